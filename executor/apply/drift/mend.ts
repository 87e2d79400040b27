/** Sets back what drifted: looks at each object uncached, decides, and writes under the same guards as a pass. */
import { managers } from '../../../constructs/api/constants.ts';
import { getAt, type JsonValue } from '../../../constructs/lib/json.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import { describeRef, type KubeObject, uidOf } from '../../kube/types.ts';
import type { DomainSession } from '../../release/domain.ts';
import { eachLimited } from '../concurrency.ts';
import { guarded, type PassDeps, type StepGuard, type StepResult } from '../engine.ts';
import { itemRef } from '../items.ts';
import type { LedgerStore } from '../ledger-store.ts';
import { needOf } from '../need.ts';
import { foreignOwner } from '../ownership.ts';
import type { Bound } from './bound.ts';
import { compare } from './compare.ts';
import { braked, type Decision, type Drifted, decide } from './decide.ts';
import { type Fight, wholeObject } from './fights.ts';
import { somebody, type Taken } from './holders.ts';
import { type DriftState, type Followed, isQuiesced } from './state.ts';
import { createAgain, type Mend, setBack } from './write-back.ts';

/** Something that was done about drift, or is not done any more; for Events and metrics. */
export type DriftEvent =
  | {
      readonly type: 'repaired';
      readonly object: KubeObject;
      readonly fields: readonly string[];
      readonly managers: readonly string[];
      readonly created: boolean;
      /** From when it was noticed. */
      readonly elapsedMs: number;
    }
  | { readonly type: 'fight'; readonly object: KubeObject; readonly fight: Fight };

export interface MendInput {
  readonly session: DomainSession;
  readonly namespace: string;
  /** Digest of the payload that is enforced. */
  readonly digest: string;
  /** Told of a write that was cut off before its answer. */
  readonly doubt: (id: string) => void;
  readonly tell: (event: DriftEvent) => void;
  readonly signal: AbortSignal;
}

/** What a step works with. */
export interface MendContext extends PassDeps {
  readonly state: DriftState;
  readonly followed: Followed;
  readonly ledger: LedgerStore;
  readonly input: MendInput;
}

export interface MendReport {
  /** Something has to be seen to that only a whole pass can do. */
  readonly passNeeded: boolean;
  /** The ledger could not be stored: what is stored decides. */
  readonly ledgerLost: boolean;
}

type Looked = { readonly type: 'none' | 'pass' } | { readonly type: 'mend'; readonly mend: Mend };

const mostRounds = 4;

/** Sees to everything that is due. Rejects with the signal's reason, or with what a guard throws. */
export async function mend(state: DriftState, deps: PassDeps, input: MendInput): Promise<MendReport> {
  const { followed } = state;
  const ids = state.ready();
  if (followed === undefined || ids.length === 0) return { passNeeded: false, ledgerLost: false };
  const context: MendContext = { ...deps, state, followed, ledger: followed.ledger, input };
  const mends: Mend[] = [];
  let passNeeded = false;
  await eachLimited(ids, deps.options.concurrency, async (id) => {
    const bound = state.bound(id);
    if (bound === undefined) return;
    const looked = await look(context, bound);
    if (looked.type === 'mend') mends.push(looked.mend);
    passNeeded ||= looked.type === 'pass';
  });
  let ledgerLost = false;
  for (const phase of phasesOf(mends)) {
    const here = mends.filter(({ bound }) => bound.item.phase === phase);
    const result = await writeAll(context, phase, here);
    ledgerLost ||= result.ledgerLost;
    passNeeded ||= result.passNeeded;
  }
  return { passNeeded, ledgerLost };
}

const phasesOf = (mends: readonly Mend[]): string[] => [
  ...new Set(
    mends.toSorted((a, b) => a.bound.item.phaseIndex - b.bound.item.phaseIndex).map(({ bound }) => bound.item.phase),
  ),
];

const say = (bound: Bound, reason: string, message: string): Problem => ({
  reason,
  message,
  object: describeRef(itemRef(bound.item)),
});

/** Reads one object, uncached, and decides. */
async function look(context: MendContext, bound: Bound): Promise<Looked> {
  const { client, state, followed, input } = context;
  const { item } = bound;
  const shown = state.shown(item.id);
  const read = await client.get(itemRef(item), { signal: input.signal });
  if (read.type === 'kindAbsent' || read.type === 'namespaceMissing') return wholePass(state, item.id);
  if (read.type !== 'found' && read.type !== 'absent') {
    state.failed(item.id, say(bound, read.type === 'forbidden' ? 'Forbidden' : 'ApiUnavailable', read.message));
    return { type: 'none' };
  }
  const live = read.type === 'found' ? read.object : undefined;
  const { release, overridden } = followed;
  const need = needOf(item, {
    release,
    ledger: followed.ledger.ledger,
    live: new Map(live === undefined ? [] : [[item.id, live.metadata]]),
    overridden,
  });
  if (need.need === 'write') {
    if (live !== undefined || need.why !== 'vanished') return wholePass(state, item.id);
    const decision = braked(
      item.id,
      { taken: [], fields: [wholeObject], managers: [somebody] },
      brakes(context, bound),
    );
    if (decision.type === 'fight') return fight(context, bound, decision.fight);
    return { type: 'mend', mend: { bound, need, how: 'create' } };
  }
  if (need.need !== 'none' || live === undefined || item.entry.createOnly || isQuiesced(live.metadata))
    return nothing(state, item.id, [shown, live?.metadata.resourceVersion]);
  return settle(context, bound, live, shown);
}

/** Nothing is to be done about these versions. */
function nothing(state: DriftState, id: string, versions: readonly (string | undefined)[]): Looked {
  state.looked(id, versions);
  return { type: 'none' };
}

function wholePass(state: DriftState, id: string): Looked {
  state.failed(id, undefined);
  return { type: 'pass' };
}

function brakes({ state, clock }: MendContext, { item }: Bound) {
  return {
    returning: (fields: readonly string[]): string[] => state.fights.returning(item.id, fields, clock.monotonic()),
    trying: state.fights.of(item.id) !== undefined,
  };
}

/** Decides on an object that exists and is ours; `shown` is the version that its watch showed before it was read. */
async function settle(
  context: MendContext,
  bound: Bound,
  live: KubeObject,
  shown: string | undefined,
): Promise<Looked> {
  const { state } = context;
  const { item } = bound;
  for (let round = 0; round < mostRounds; round += 1) {
    const intent = state.answers.intent(bound);
    const settled = state.answers.settled(bound);
    const asked = state.answers.compared(bound);
    let decision: Decision = decide({ item, intent: asked, live, settled, ...brakes(context, bound) });
    if (decision.type === 'yield') {
      state.answers.give(bound, decision.pointers);
      continue;
    }
    if (decision.type === 'ask') decision = await ask(context, bound, live, decision);
    if (decision.type === 'none') return nothing(state, item.id, [shown, live.metadata.resourceVersion]);
    if (decision.type === 'fight') return fight(context, bound, decision.fight, live);
    if (decision.type !== 'setBack') continue;
    const foreign = foreignOwner(item, intent, live);
    if (foreign?.verdict === 'refused') {
      state.failed(item.id, foreign.problem);
      return { type: 'none' };
    }
    return { type: 'mend', mend: { bound, how: 'setBack', intent, live, shown, drifted: decision } };
  }
  state.failed(item.id, say(bound, 'FieldConflict', 'other managers hold one field after the other'));
  return { type: 'none' };
}

/** Lets the server say what it would make of the intent: no change means that this is its way to write it. */
async function ask(
  context: MendContext,
  bound: Bound,
  live: KubeObject,
  asked: Drifted & { readonly hash: string },
): Promise<Decision> {
  const { client, state, input } = context;
  const intent = state.answers.intent(bound);
  const { id } = bound.item;
  const answer = await client.apply(intent, {
    fieldManager: managers.objects,
    dryRun: true,
    uid: uidOf(live),
    signal: input.signal,
  });
  if ('object' in answer) {
    const compared = compare(state.answers.compared(bound), answer.object);
    if (compared.same || compared.hash !== asked.hash) return braked(id, asked, brakes(context, bound));
    state.answers.take(bound, answer.object);
    return { type: 'none' };
  }
  if (answer.type === 'conflict') {
    const fields = answer.managers.flatMap((holder) => holder.fields);
    return { type: 'fight', fight: { id, why: 'apply', managers: answer.managers.map((m) => m.manager), fields } };
  }
  // Some kinds refuse an empty value where they keep none. Nothing is missing that could be set back.
  const isEmpty = ({ difference: { missing, pointer } }: Taken): boolean => missing && isHollow(getAt(intent, pointer));
  if (answer.type === 'invalid' && asked.taken.every(isEmpty)) {
    state.answers.take(bound, live);
    return { type: 'none' };
  }
  // The write will meet the same answer, and tell it.
  const { taken, fields, managers: who } = asked;
  return { type: 'setBack', taken, fields, managers: who };
}

const isHollow = (value: JsonValue | undefined): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

function fight({ state, clock, input }: MendContext, bound: Bound, found: Fight, live?: KubeObject): Looked {
  const news = state.fights.begin(found, clock.monotonic());
  if (news) input.tell({ type: 'fight', object: live ?? bound.intent, fight: found });
  return { type: 'none' };
}

/** Writes what drifted in one phase, under the guard of the domain. */
async function writeAll(
  context: MendContext,
  phase: string,
  mends: readonly Mend[],
): Promise<{ readonly ledgerLost: boolean; readonly passNeeded: boolean }> {
  const { state, ledger, client, clock, check, input } = context;
  const { session, signal } = input;
  const unstored = (problem: Problem | undefined): void => {
    for (const { bound } of mends) if (problem !== undefined) state.failed(bound.item.id, problem);
  };
  check();
  const [unready] = await session.beforeFirstWrite({ client, clock, signal });
  if (unready !== undefined) {
    unstored(unready);
    return { ledgerLost: false, passNeeded: false };
  }
  let passNeeded = false;
  let lost: Problem | undefined;
  const work = async (guard: StepGuard): Promise<StepResult> => {
    const creates = mends.filter(({ how }) => how === 'create');
    const created = await createAgain(context, creates, guard);
    passNeeded = created.passNeeded;
    lost = created.lost;
    if (lost !== undefined) return { problems: [], retry: true };
    const backs = mends.flatMap((one) => (one.how === 'setBack' ? [one] : []));
    await eachLimited(backs, context.options.concurrency, (one) => setBack(context, one, guard));
    guard.check();
    lost = await ledger.flush(guard.signal);
    return { problems: [], retry: true };
  };
  const { problems } = await guarded({ client, clock, check, input }, phase, work, true);
  unstored(lost ?? problems[0]);
  return { ledgerLost: lost !== undefined, passNeeded };
}
