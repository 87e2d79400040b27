/** Asks the server about every object before anything is written, and collects all that is wrong. */
import { managers } from '../../constructs/api/constants.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject } from '../kube/types.ts';
import { type BindValue, bindItem } from './bind.ts';
import { eachLimited } from './concurrency.ts';
import { without } from './fieldpath.ts';
import { type Item, itemRef } from './items.ts';
import type { Need } from './need.ts';
import { definesKind, SchemaBook } from './offline.ts';
import { afterLook, foreignOwner, hidesOwner, type Verdict, verdictOf } from './ownership.ts';

/** An object that may be written, and how. */
export interface Judged {
  readonly item: Item;
  /** The object as it is sent: bound, without what it yields. */
  readonly intent: KubeObject;
  readonly verdict: Extract<Verdict, { readonly verdict: 'new' | 'ours' | 'replace' | 'leave' }>;
  /** The server could not judge it; it must before it is written. */
  readonly partial: boolean;
  /** Fields that were given up, and to whom. */
  readonly yielded?: { readonly pointers: readonly string[]; readonly managers: readonly string[] };
}

export interface Judgement {
  readonly judged: ReadonlyMap<string, Judged>;
  readonly problems: readonly Problem[];
  /** `partial` when the server could not judge some object. */
  readonly confidence: 'full' | 'partial';
  /** The API server gave no answer to some of the questions: asking again may help. */
  readonly unavailable: boolean;
}

export interface DryRunInput {
  readonly client: KubeClient;
  readonly release: string;
  /** Every object of the payload: what namespaces and kinds come with it is read from here. */
  readonly items: readonly Item[];
  readonly needs: ReadonlyMap<string, Need>;
  readonly bind: BindValue;
  readonly signal: AbortSignal;
  /** How many are asked about at once. */
  readonly concurrency?: number;
  /** Phases before this one are in place, counted from 0. */
  readonly phaseIndex?: number;
  /** The last question before a write: nothing may stay unjudged. */
  readonly final?: boolean;
}

type Outcome = { readonly judged: Judged } | { readonly problems: readonly Problem[]; readonly unavailable?: boolean };

const isCrd = (item: Item): boolean => item.entry.kind === 'CustomResourceDefinition' && !item.entry.absent;
const mostRounds = 4;

/** What of the payload makes other parts of it possible. */
class Company {
  readonly book: SchemaBook;
  readonly #input: DryRunInput;
  /** Namespaces and CRDs of the payload. */
  readonly #providers: readonly Item[];

  constructor(input: DryRunInput) {
    this.#input = input;
    this.#providers = input.items.filter(
      (other) => isCrd(other) || (other.entry.kind === 'Namespace' && !other.entry.absent),
    );
    this.book = new SchemaBook(
      input.client,
      input.items.filter(isCrd).map((item) => item.object),
    );
  }

  /** Whether what an object misses comes with the payload, in its own phase or before. */
  brings(item: Item, missing: 'namespace' | 'kind'): boolean {
    return this.#providers.some((other) => {
      if (other.phaseIndex > item.phaseIndex || other.entry.absent) return false;
      if (missing === 'kind') return isCrd(other) && definesKind(other.object, item.entry);
      return other.entry.kind === 'Namespace' && other.entry.name === item.entry.namespace;
    });
  }

  /** What the server surely misses of an object: asking would only tell so. */
  misses(item: Item): 'namespace' | 'kind' | undefined {
    const to = this.#input.phaseIndex ?? 0;
    const comes = (other: Item): boolean => {
      const need = this.#input.needs.get(other.id);
      return other.phaseIndex >= to && need?.need === 'write' && need.uid === undefined && need.formerUID === undefined;
    };
    const missing = this.#providers.find((other) => {
      if (other.phaseIndex > item.phaseIndex || other.id === item.id || other.entry.absent || !comes(other))
        return false;
      const isNamespace = other.entry.kind === 'Namespace' && other.entry.name === item.entry.namespace;
      return isNamespace || (isCrd(other) && definesKind(other.object, item.entry));
    });
    return missing === undefined ? undefined : isCrd(missing) ? 'kind' : 'namespace';
  }

  /** Whether the kind's definition is about to change: what the server says of its objects until then is about the old one. */
  changesKind(item: Item): boolean {
    return this.#providers.some(
      (other) =>
        other.phaseIndex <= item.phaseIndex &&
        isCrd(other) &&
        definesKind(other.object, item.entry) &&
        this.#input.needs.get(other.id)?.need === 'write',
    );
  }
}

/** Dry-runs the given items (all of them when none are named) that need a write. Nothing is stored. */
export async function dryRun(input: DryRunInput, only: readonly Item[] = input.items): Promise<Judgement> {
  const judged = new Map<string, Judged>();
  const problems: Problem[] = [];
  let unavailable = false;
  const company = new Company(input);
  const wanted = only.filter((item) => input.needs.get(item.id)?.need === 'write');
  await eachLimited(wanted, input.concurrency ?? 16, async (item) => {
    const outcome = await judge(input, company, item);
    if ('judged' in outcome) judged.set(item.id, outcome.judged);
    else {
      problems.push(...outcome.problems);
      unavailable ||= outcome.unavailable === true;
    }
  });
  const confidence = [...judged.values()].some(({ partial }) => partial) ? 'partial' : 'full';
  return { judged, problems, confidence, unavailable };
}

async function judge(input: DryRunInput, company: Company, item: Item): Promise<Outcome> {
  const need = input.needs.get(item.id);
  const bound = bindItem(item, input.bind);
  if (!bound.ok) return { problems: bound.problems };
  if (need?.need !== 'write') return { problems: [] };
  let intent = bound.object;
  const misses = input.final === true ? undefined : company.misses(item);
  if (misses !== undefined) return offline(input, company, { item, intent }, missingProblem(item, misses));
  const pointers: string[] = [];
  const others = new Set<string>();
  for (let round = 0; round < mostRounds; round += 1) {
    const verdict = await ask(input, item, intent, need);
    if (verdict.verdict === 'yield') {
      pointers.push(...verdict.pointers);
      for (const manager of verdict.managers) others.add(manager);
      intent = without(intent, verdict.pointers) as KubeObject;
      continue;
    }
    const yielded = pointers.length === 0 ? {} : { yielded: { pointers, managers: [...others] } };
    return conclude(input, company, { item, intent, ...yielded }, verdict);
  }
  return {
    problems: [
      {
        reason: 'FieldConflict',
        message: `other managers (${[...others].join(', ')}) hold one field after the other`,
        object: describeRef(itemRef(item)),
      },
    ],
  };
}

const missingProblem = (item: Item, missing: 'namespace' | 'kind'): Problem => ({
  reason: missing === 'kind' ? 'KindAbsent' : 'NamespaceAbsent',
  message: `its ${missing} comes with this payload, and no schema says what it has to look like`,
  object: describeRef(itemRef(item)),
});

async function ask(
  input: DryRunInput,
  item: Item,
  intent: KubeObject,
  need: Extract<Need, { need: 'write' }>,
): Promise<Verdict> {
  const { client, signal, release } = input;
  const answer = await client.apply(intent, {
    fieldManager: managers.objects,
    dryRun: true,
    signal,
    ...(need.uid === undefined ? {} : { uid: need.uid }),
  });
  const verdict = verdictOf(item, intent, need, answer);
  const hidden = hidesOwner(verdict);
  if (verdict.verdict !== 'look' && !hidden) return verdict;
  const live = await client.get(itemRef(item), { signal });
  if (hidden) return (live.type === 'found' ? foreignOwner(item, intent, live.object) : undefined) ?? verdict;
  if (live.type === 'found') return afterLook(item, need, release, live.object);
  if (live.type === 'absent') return afterLook(item, need, release, undefined);
  return {
    verdict: 'unavailable',
    problem: { reason: 'ApiUnavailable', message: live.message, object: describeRef(itemRef(item)) },
  };
}

async function conclude(
  input: DryRunInput,
  company: Company,
  so: Pick<Judged, 'item' | 'intent' | 'yielded'>,
  verdict: Exclude<Verdict, { readonly verdict: 'yield' }>,
): Promise<Outcome> {
  switch (verdict.verdict) {
    case 'new':
    case 'ours':
    case 'replace':
    case 'leave':
      return { judged: { ...so, verdict, partial: false } };
    case 'refused':
      if (verdict.problem.reason === 'ObjectInvalid' && input.final !== true && company.changesKind(so.item))
        return offline(input, company, so, verdict.problem);
      return { problems: [verdict.problem] };
    case 'unjudged':
      if (input.final === true) return { problems: [verdict.problem], unavailable: true };
      if (!company.brings(so.item, verdict.missing)) return { problems: [verdict.problem] };
      return offline(input, company, so, verdict.problem);
    case 'look':
    case 'unavailable':
      return 'problem' in verdict ? { problems: [verdict.problem], unavailable: true } : { problems: [] };
  }
}

/** What the schema alone says; `problem` stands when there is no schema. */
async function offline(
  input: DryRunInput,
  company: Company,
  so: Pick<Judged, 'item' | 'intent' | 'yielded'>,
  problem: Problem,
): Promise<Outcome> {
  const checked = await company.book.check(so.intent, input.signal);
  if (checked.type === 'unavailable') return { problems: [checked.problem], unavailable: true };
  if (checked.type === 'noSchema') return { problems: [problem] };
  if (checked.problems.length > 0) return { problems: checked.problems };
  const need = input.needs.get(so.item.id);
  const uid = need?.need === 'write' ? need.uid : undefined;
  const verdict = uid === undefined ? ({ verdict: 'new' } as const) : ({ verdict: 'ours', uid, version: '' } as const);
  return { judged: { ...so, verdict, partial: true } };
}
