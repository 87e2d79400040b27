/** Asks the server about every object before anything is written, and collects all that is wrong. */
import { managers } from '../../constructs/api/constants.ts';
import { groupKindOf } from '../../constructs/api/plan.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject, uidOf } from '../kube/types.ts';
import { type Adoption, judgeAdoption } from './adopt-judge.ts';
import type { AdoptionRules } from './adopt-rules.ts';
import { type BindValue, bindItem } from './bind.ts';
import { eachLimited } from './concurrency.ts';
import { without } from './fieldpath.ts';
import { type Hold, Ledgers } from './hold.ts';
import { type Item, itemRef } from './items.ts';
import type { Need } from './need.ts';
import { definedKind, definesKind, SchemaBook } from './offline.ts';
import { afterLook, foreignOwner, formerRelease, hidesOwner, type Verdict, verdictOf } from './ownership.ts';
import { isTaken } from './take-back.ts';
import { explainWebhook } from './webhook.ts';

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
  /** Objects that exist and can be taken over as they are, by id. */
  readonly adoptions: ReadonlyMap<string, Adoption>;
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
  /** Where the ledgers of the releases are. */
  readonly namespace: string;
  /** Set while what exists is to be adopted. */
  readonly adoption?: AdoptionRules | undefined;
  readonly signal: AbortSignal;
  /** How many are asked about at once. */
  readonly concurrency?: number;
  /** Phases before this one are in place, counted from 0. */
  readonly phaseIndex?: number;
  /** The last question before a write: nothing may stay unjudged. */
  readonly final?: boolean;
  /** The payload is accepted: what Updates took of its objects since does not keep them from being written. */
  readonly takeBack?: boolean;
}

type Outcome =
  | { readonly judged: Judged }
  | { readonly adoption: Adoption }
  | { readonly problems: readonly Problem[]; readonly unavailable?: boolean };

const isCrd = (item: Item): boolean => item.entry.kind === 'CustomResourceDefinition' && !item.entry.absent;
const mostRounds = 4;

/** What of the payload makes other parts of it possible. */
class Company {
  readonly book: SchemaBook;
  readonly ledgers: Ledgers;
  readonly #input: DryRunInput;
  /** Namespaces of the payload by their names, and its CRDs by the group and kind that they define. */
  readonly #namespaces: ReadonlyMap<unknown, readonly Item[]>;
  readonly #definitions: ReadonlyMap<string, readonly Item[]>;

  constructor(input: DryRunInput) {
    this.#input = input;
    this.ledgers = new Ledgers(input.client, input.namespace, input.signal);
    const definitions = input.items.filter(isCrd);
    const namespaces = input.items.filter(({ entry }) => entry.kind === 'Namespace' && !entry.absent);
    this.#definitions = Map.groupBy(definitions, ({ object }) => definedKind(object));
    this.#namespaces = Map.groupBy(namespaces, ({ entry }) => entry.name);
    this.book = new SchemaBook(
      input.client,
      definitions.map(({ object }) => object),
    );
  }

  /** What provides the kind, or the namespace, of an object, in its own phase or before. */
  #providers({ entry, phaseIndex }: Item, missing: 'namespace' | 'kind'): Item[] {
    const found =
      missing === 'kind'
        ? this.#definitions.get(groupKindOf(entry))?.filter(({ object }) => definesKind(object, entry))
        : this.#namespaces.get(entry.namespace);
    return (found ?? []).filter((other) => other.phaseIndex <= phaseIndex);
  }

  /** Whether what an object misses comes with the payload, in its own phase or before. */
  brings(item: Item, missing: 'namespace' | 'kind'): boolean {
    return this.#providers(item, missing).length > 0;
  }

  /** What the server surely misses of an object: asking would only tell so. */
  misses(item: Item): 'namespace' | 'kind' | undefined {
    const to = this.#input.phaseIndex ?? 0;
    const comes = (other: Item): boolean => {
      const need = this.#input.needs.get(other.id);
      return other.phaseIndex >= to && need?.need === 'write' && need.uid === undefined && need.formerUID === undefined;
    };
    return (['kind', 'namespace'] as const).find((missing) => this.#providers(item, missing).some(comes));
  }

  /** Whether the kind's definition is about to change: what the server says of its objects until then is about the old one. */
  changesKind(item: Item): boolean {
    return this.#providers(item, 'kind').some((other) => this.#input.needs.get(other.id)?.need === 'write');
  }
}

/** Dry-runs the given items (all of them when none are named) that need a write. Nothing is stored. */
export async function dryRun(input: DryRunInput, only: readonly Item[] = input.items): Promise<Judgement> {
  const judged = new Map<string, Judged>();
  const adoptions = new Map<string, Adoption>();
  const problems: Problem[] = [];
  let unavailable = false;
  const company = new Company(input);
  const wanted = only.filter((item) => ['write', 'adopt'].includes(input.needs.get(item.id)?.need ?? ''));
  await eachLimited(wanted, input.concurrency ?? 16, async (item) => {
    const outcome = await judge(input, company, item);
    if ('judged' in outcome) judged.set(item.id, outcome.judged);
    else if ('adoption' in outcome) adoptions.set(item.id, outcome.adoption);
    else {
      problems.push(...outcome.problems);
      unavailable ||= outcome.unavailable === true;
    }
  });
  const confidence = [...judged.values()].some(({ partial }) => partial) ? 'partial' : 'full';
  return { judged, adoptions, problems, confidence, unavailable };
}

async function judge(input: DryRunInput, company: Company, item: Item): Promise<Outcome> {
  const need = input.needs.get(item.id);
  const bound = bindItem(item, input.bind);
  if (!bound.ok) return { problems: bound.problems };
  if (need?.need === 'adopt' || isFirstSight(input, item, need)) return adopt(input, item, bound.object);
  if (need?.need !== 'write') return { problems: [] };
  let intent = bound.object;
  const misses = input.final === true ? undefined : company.misses(item);
  if (misses !== undefined) return offline(input, company, { item, intent }, missingProblem(item, misses));
  const pointers: string[] = [];
  const others = new Set<string>();
  for (let round = 0; round < mostRounds; round += 1) {
    const verdict = await ask(input, company, item, intent, need);
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

/** Whether an object is one that must be there and is not in the ledger yet. */
const isFirstSight = ({ adoption }: DryRunInput, item: Item, need: Need | undefined): boolean =>
  need?.need === 'write' && need.why === 'new' && adoption?.ids.has(item.id) === true;

async function adopt(input: DryRunInput, item: Item, intent: KubeObject): Promise<Outcome> {
  const { client, adoption: rules, signal, needs } = input;
  if (rules !== undefined) {
    const need = needs.get(item.id);
    return judgeAdoption({ client, rules, signal }, item, intent, need?.need === 'adopt' ? need.uid : undefined);
  }
  const problem: Problem = {
    reason: 'AdoptionRefused',
    message: 'its adoption has begun, and the installation no longer adopts',
    object: describeRef(itemRef(item)),
    remedy: 'set spec.adoption.enabled again until the adoption is done',
  };
  return { problems: [problem] };
}

const missingProblem = (item: Item, missing: 'namespace' | 'kind'): Problem => ({
  reason: missing === 'kind' ? 'KindAbsent' : 'NamespaceAbsent',
  message: `its ${missing} comes with this payload, and no schema says what it has to look like`,
  object: describeRef(itemRef(item)),
});

async function ask(
  input: DryRunInput,
  company: Company,
  item: Item,
  intent: KubeObject,
  need: Extract<Need, { need: 'write' }>,
): Promise<Verdict> {
  const { client, signal, release } = input;
  const answer = await client.apply(intent, {
    fieldManager: managers.objects,
    dryRun: true,
    // Whose it is stands in its metadata; the server has judged the rest.
    metadataOnly: true,
    signal,
    ...(need.uid === undefined ? {} : { uid: need.uid }),
  });
  if (input.takeBack === true && need.uid !== undefined && isTaken(item, need.uid, answer))
    return { verdict: 'ours', uid: need.uid, version: '' };
  const verdict = verdictOf(item, intent, need, answer);
  const hidden = hidesOwner(verdict);
  // One that stands there already is left as it is, also where it says something else.
  const clashing = answer.type === 'conflict' && item.entry.createOnly && need.uid === undefined;
  if (verdict.verdict !== 'look' && !hidden && !clashing) return verdict;
  const live = await client.get(itemRef(item), { signal });
  if (clashing && live.type === 'found') {
    const uid = uidOf(live.object);
    const looked = afterLook(item, need, release, live.object, await holdOn(company, item, live.object));
    return need.formerUID === uid || looked.verdict === 'ours' ? verdict : { verdict: 'leave', uid };
  }
  if (hidden) return (live.type === 'found' ? foreignOwner(item, intent, live.object) : undefined) ?? verdict;
  if (live.type === 'found')
    return afterLook(item, need, release, live.object, await holdOn(company, item, live.object));
  if (live.type === 'absent') return afterLook(item, need, release, undefined);
  return unread(item, live.message);
}

const unread = (item: Item, message: string): Extract<Verdict, { verdict: 'unavailable' }> => ({
  verdict: 'unavailable',
  problem: { reason: 'ApiUnavailable', message, object: describeRef(itemRef(item)) },
});

/** What the ledger of the release whose label the object carries says of it. */
async function holdOn(company: Company, item: Item, live: KubeObject): Promise<Hold | undefined> {
  const former = formerRelease(live);
  return former === undefined ? undefined : company.ledgers.hold(former, item.id);
}

/** Whose the object is, by a read, where the server can not dry-run it; what it looks like only its schema can judge. */
async function judgeUnseen(
  input: DryRunInput,
  company: Company,
  so: Pick<Judged, 'item' | 'intent' | 'yielded'>,
  problem: Problem,
): Promise<Outcome> {
  const { client, signal, release, needs } = input;
  const { item, intent } = so;
  const need = needs.get(item.id);
  if (need?.need !== 'write') return { problems: [] };
  const live = await client.get(itemRef(item), { signal });
  if (live.type === 'absent') return offline(input, company, so, problem, { verdict: 'new' });
  if (live.type !== 'found') return conclude(input, company, so, unread(item, live.message));
  const foreign = foreignOwner(item, intent, live.object);
  if (foreign?.verdict === 'refused') return { problems: [foreign.problem] };
  const uid = uidOf(live.object);
  if (need.uid === uid || need.formerUID === uid) return offline(input, company, so, problem, ownedAs(live.object));
  if (item.entry.createOnly) return { judged: { ...so, verdict: { verdict: 'leave', uid }, partial: false } };
  const verdict = afterLook(item, need, release, live.object, await holdOn(company, item, live.object));
  if (verdict.verdict === 'ours') return offline(input, company, so, problem, verdict);
  return verdict.verdict === 'refused' ? { problems: [verdict.problem] } : { problems: [problem] };
}

const ownedAs = (live: KubeObject): Extract<Verdict, { verdict: 'ours' }> => ({
  verdict: 'ours',
  uid: uidOf(live),
  version: live.metadata.resourceVersion ?? '',
});

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
    case 'undryable':
      return judgeUnseen(input, company, so, verdict.problem);
    case 'blocked': {
      const message = await explainWebhook(input.client, verdict.trouble, input.signal);
      return { problems: [{ ...verdict.problem, message }] };
    }
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
  owned?: Extract<Verdict, { verdict: 'new' | 'ours' }>,
): Promise<Outcome> {
  const checked = await company.book.check(so.intent, input.signal);
  if (checked.type === 'unavailable') return { problems: [checked.problem], unavailable: true };
  if (checked.type === 'noSchema') return { problems: [problem] };
  if (checked.problems.length > 0) return { problems: checked.problems };
  if (owned !== undefined) return { judged: { ...so, verdict: owned, partial: true } };
  const need = input.needs.get(so.item.id);
  const uid = need?.need === 'write' ? need.uid : undefined;
  const verdict = uid === undefined ? ({ verdict: 'new' } as const) : ({ verdict: 'ours', uid, version: '' } as const);
  return { judged: { ...so, verdict, partial: true } };
}
