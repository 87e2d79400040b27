/**
 * One pass over a payload: ledger, checkpoint, then phase by phase the writes and the gates, at last the prune. Nothing
 * of the payload is written before the ledger holds its id and the checkpoint stands.
 */

import type { PayloadContent, PayloadPhase } from '../../constructs/api/payload.ts';
import type { PrunePolicy } from '../../constructs/api/release.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject } from '../kube/types.ts';
import type { DomainSession, WriteGuard } from '../release/domain.ts';
import type { SpanKeeper } from '../release/span-keeper.ts';
import { adoptAll } from './adopt.ts';
import type { Judged, Judgement } from './dryrun.ts';
import { type GateMode, passGates } from './gate-wait.ts';
import { intents } from './intents.ts';
import { type Item, itemRef } from './items.ts';
import type { LedgerStore } from './ledger-store.ts';
import { kindsOf, readLive } from './live.ts';
import { heldSince } from './need.ts';
import { writePhase } from './phase.ts';
import type { PassProgress } from './progress.ts';
import { type Claims, type Left, pruneAfter } from './prune.ts';
import type { Survey } from './survey.ts';
import type { WriteResult } from './write.ts';

export interface EngineOptions {
  readonly concurrency: number;
  /** How often the gates of a phase that waits are looked at. */
  readonly gatePollMs: number;
  /** How long one removed object may take to go before it is reported. */
  readonly goneMs: number;
  /** How long a kind may take to be served after its CRD was written, and a Service of a webhook to have endpoints. */
  readonly kindMs: number;
  /** How long a removal waits beside other releases: payloads that are delivered together do not arrive at once. */
  readonly handOverMs: number;
  /** Writes after which the UIDs seen so far are stored. */
  readonly ledgerBatch: number;
  /** How long at least between two such stores: each is a large write, and what it saves is writes that change nothing. */
  readonly ledgerQuietMs: number;
  /** Gate types that a test executor treats as open. */
  readonly bypassGates: ReadonlySet<string>;
}

export const defaultEngineOptions: EngineOptions = {
  concurrency: 16,
  gatePollMs: 1_000,
  goneMs: 30_000,
  kindMs: 30_000,
  handOverMs: 3_000,
  ledgerBatch: 100,
  ledgerQuietMs: 2_000,
  bypassGates: new Set(),
};

export interface PassDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly options: EngineOptions;
  /** Called before every write, besides the guard of the domain. @throws when this process may not write any more. */
  readonly check: () => void;
}

/** Objects that came to the release, or left it, in one pass: their ids. */
export interface Moved {
  readonly how: 'adopted' | 'pruned';
  readonly ids: readonly string[];
}

/** What goes on beside a pass: the watch over what was written. */
export interface PassWatch {
  /** Told of the server's answer to a write. */
  written(judged: Judged, answer: KubeObject): void;
  /** Called between two looks at gates that are waited for; it may write, under a guard of its own. */
  meanwhile(): Promise<void>;
  /**
   * Waits for the next look at gates: for `ms`, or until what is watched has changed since the last one, which began at
   * `since` by the monotonic clock, and has come to rest or shows all of `awaited` as ready. Rejects with the signal's reason.
   */
  pause(ms: number, since: number, signal: AbortSignal, awaited: readonly Item[]): Promise<void>;
  /** Told once, when the pass has ended, whatever ended it. */
  moved(moved: Moved): void;
}

export interface PassInput {
  readonly release: string;
  readonly namespace: string;
  readonly digest: string;
  readonly content: PayloadContent;
  readonly items: readonly Item[];
  readonly session: DomainSession;
  readonly ledger: LedgerStore;
  readonly survey: Survey;
  readonly judgement: Judgement;
  readonly progress: PassProgress;
  readonly suspended: ReadonlySet<string>;
  readonly spans: SpanKeeper;
  readonly watch: PassWatch;
  readonly prune: {
    readonly policy: PrunePolicy;
    readonly planned: ReadonlySet<string>;
    readonly approved: boolean;
    /** The Release asks for no approval at all. */
    readonly unbounded: boolean;
    /** Digest that a person has approved. */
    readonly approvedDigest: string | undefined;
    /** Phases of the payload before, in order, for the order of removal. */
    readonly formerPhases: readonly string[];
  };
  readonly claims: Claims;
  readonly gates: GateMode;
  /** The checkpoint is written again although nothing else is. */
  readonly checkpoint: boolean;
  /** Told of a write that was cut off before its answer: it may still take effect, after whatever comes next. */
  readonly doubt: (id: string) => void;
  readonly signal: AbortSignal;
}

export type PassCounts = Readonly<Record<WriteResult | 'pruned', number>>;

export type PassOutcome =
  | { readonly type: 'completed'; readonly counts: PassCounts; readonly left: readonly Left[]; readonly open: boolean }
  | { readonly type: 'suspended'; readonly phase: string; readonly counts: PassCounts }
  | { readonly type: 'waiting'; readonly phase: string; readonly counts: PassCounts }
  /** A one-way span was left, and something else than the rest of this payload is wanted. */
  | { readonly type: 'left'; readonly counts: PassCounts }
  | {
      readonly type: 'failed';
      readonly phase?: string;
      readonly problems: readonly Problem[];
      /** False when only a change of the payload or the spec can help. */
      readonly retry: boolean;
      readonly counts: PassCounts;
    };

/** The right to write during one step, and what ends it. */
export type StepGuard = WriteGuard & { readonly signal: AbortSignal };

/** What went on in a pass so far; shared by its steps. */
export interface PassContext extends PassDeps {
  readonly input: PassInput;
  readonly judged: Map<string, Judged>;
  readonly counts: Record<WriteResult | 'pruned', number>;
  /** Gates were waited for: what is live was looked at too long ago to be written by. */
  waited: boolean;
  /** Ids of what this pass adopted, and of what it removed. */
  readonly adopted: string[];
  readonly pruned: string[];
}

const noCounts = (): Record<WriteResult | 'pruned', number> => ({
  created: 0,
  configured: 0,
  unchanged: 0,
  replaced: 0,
  left: 0,
  pruned: 0,
});

/** Problems of objects that can not be worked on now, although nothing is wrong with the payload. */
function busyObjects(input: PassInput): Problem[] {
  return input.items.flatMap((item): Problem[] => {
    const need = input.survey.needs.get(item.id);
    if (need?.need !== 'terminating') return [];
    return [
      {
        reason: 'ObjectTerminating',
        message: `it is being deleted since ${need.since}; finalizers: ${need.finalizers.join(', ') || 'none'}`,
        object: describeRef(itemRef(item)),
      },
    ];
  });
}

const failure = (
  { counts }: PassContext,
  problems: readonly Problem[],
  retry: boolean,
  phase?: string,
): Extract<PassOutcome, { type: 'failed' }> => ({
  type: 'failed',
  problems,
  retry,
  counts,
  ...(phase === undefined ? {} : { phase }),
});

/**
 * Runs one pass. `adopted`: what existed is taken over, and the pass ends there; what each object needs now has to be looked
 * at anew. Rejects with the signal's reason, or with what a guard throws.
 */
export async function runPass(deps: PassDeps, input: PassInput): Promise<PassOutcome | { readonly type: 'adopted' }> {
  const context: PassContext = {
    ...deps,
    input,
    judged: new Map(input.judgement.judged),
    counts: noCounts(),
    waited: false,
    adopted: [],
    pruned: [],
  };
  try {
    return await carryOut(context);
  } finally {
    const { adopted, pruned } = context;
    if (adopted.length > 0) input.watch.moved({ how: 'adopted', ids: adopted });
    if (pruned.length > 0) input.watch.moved({ how: 'pruned', ids: pruned });
  }
}

async function carryOut(context: PassContext): Promise<PassOutcome | { readonly type: 'adopted' }> {
  const { input } = context;
  if (input.judgement.problems.length > 0) return failure(context, input.judgement.problems, true);
  reportHolds(input);
  const unready = await authorise(context);
  if (unready.length > 0) return failure(context, unready, true);
  const { adoption } = input.session;
  if (input.judgement.adoptions.size > 0 && adoption !== undefined) {
    const unadopted = await adoptAll(context, adoption, (phase, work) => guarded(context, phase, work, true));
    return unadopted.length > 0 ? failure(context, unadopted, true) : { type: 'adopted' };
  }
  let open = true;
  for (const phase of input.content.phases) {
    const looked = context.waited ? await marksAgain(context, phase) : context;
    if ('problems' in looked) return failure(context, looked.problems, true, phase.name);
    const step = await runPhase(looked, phase);
    context.waited ||= looked.waited;
    if (typeof step !== 'string') return step;
    open &&= step === 'open';
  }
  return finish(context, open);
}

/** One phase: its writes, its gates. Answers how the gates stand, or what ends the pass here. */
async function runPhase(context: PassContext, phase: PayloadPhase): Promise<PassOutcome | 'open' | 'shut'> {
  const { input, counts } = context;
  const { name } = phase;
  if (input.suspended.has(name)) {
    input.progress.state(name, 'Suspended');
    return { type: 'suspended', phase: name, counts };
  }
  const writes = needsWrites(context, phase);
  const entry = await input.spans.before(name, writes);
  if (entry.type === 'failed') return failure(context, entry.problems, true, name);
  if (entry.type === 'stop') return { type: 'waiting', phase: name, counts };
  const written = await guarded(context, name, (guard) => writePhase(context, phase, guard), writes);
  if (written.problems.length > 0) {
    input.progress.state(name, written.retry ? 'Failed' : 'Blocked');
    return failure(context, written.problems, written.retry, name);
  }
  const gates = await passGates(context, phase);
  if (gates.type === 'failed') {
    input.progress.state(name, 'Failed');
    return failure(context, gates.problems, true, name);
  }
  if (gates.type === 'shut') {
    if (input.gates === 'stop') return { type: 'waiting', phase: name, counts };
    input.progress.state(name, 'Waiting');
    return 'shut';
  }
  context.waited ||= gates.waited;
  input.progress.state(name, 'Done');
  const exit = await input.spans.after(name);
  if (exit.type === 'failed') return failure(context, exit.problems, true, name);
  return exit.type === 'stop' ? { type: 'left', counts } : 'open';
}

/** What comes after the last phase. */
async function finish(context: PassContext, open: boolean): Promise<PassOutcome> {
  const { input, client, clock, counts } = context;
  const busy = busyObjects(input);
  if (busy.length > 0) return failure(context, busy, true);
  const pruned = await pruneAfter(context, (phase, work) => guarded(context, phase, work, true));
  if (pruned.problems.length > 0) return failure(context, pruned.problems, true);
  const unsettled = await input.session.settled({ client, clock, signal: input.signal });
  if (unsettled.length > 0) return failure(context, unsettled, true);
  const unstored = open ? await input.spans.completed() : [];
  if (unstored.length > 0) return failure(context, unstored, true);
  return { type: 'completed', counts, left: pruned.left, open };
}

function reportHolds(input: PassInput): void {
  input.progress.held = [...input.survey.needs].flatMap(([id, need]) =>
    need.need === 'held' ? [{ id, by: need.by }] : [],
  );
}

/** A phase as it stands after a wait: what somebody has taken in hand meanwhile is held, and told as such. */
async function marksAgain(
  context: PassContext,
  phase: PayloadPhase,
): Promise<PassContext | { readonly problems: readonly Problem[] }> {
  const { input, client } = context;
  const { survey } = input;
  if (input.suspended.has(phase.name)) return context;
  const written = input.items.filter((item) => {
    const need = survey.needs.get(item.id);
    return item.phase === phase.name && need?.need === 'write' && need.why !== 'new';
  });
  const read = await readLive(client, { release: input.release, kinds: kindsOf(written) }, input.signal);
  if (!read.ok) return read;
  const needs = new Map(survey.needs);
  const live = new Map(survey.live);
  for (const { id } of written) {
    const now = read.live.get(id)?.metadata;
    if (now === undefined) live.delete(id);
    else live.set(id, now);
    const by = heldSince(survey.live.get(id), now);
    if (by === undefined) continue;
    needs.set(id, { need: 'held', uid: now?.uid ?? '', by });
    input.progress.held = [...input.progress.held, { id, by }];
  }
  return { ...context, input: { ...input, survey: { ...survey, needs, live } } };
}

function needsWrites({ input }: PassContext, phase: PayloadPhase): boolean {
  return input.items.some((item) => {
    const need = input.survey.needs.get(item.id)?.need;
    return item.phase === phase.name && (need === 'write' || need === 'remove');
  });
}

/** Ledger, then checkpoint: both stand before the first object of the payload is touched. */
async function authorise({ input, client, clock, check, judged }: PassContext): Promise<readonly Problem[]> {
  const { ledger, survey, signal } = input;
  const entries = intents({
    payload: input.digest,
    items: input.items,
    needs: survey.needs,
    judged,
    adoptions: input.judgement.adoptions,
    ledger: ledger.ledger,
  });
  for (const entry of entries) ledger.put(entry);
  check();
  const unwritten = await ledger.flush(signal);
  if (unwritten !== undefined) return [unwritten];
  const writes = [...survey.needs.values()].some(({ need }) => ['write', 'remove', 'adopt'].includes(need));
  if (!writes && !input.checkpoint) return [];
  check();
  return input.session.beforeFirstWrite({ client, clock, signal });
}

export interface StepResult {
  readonly problems: readonly Problem[];
  readonly retry: boolean;
}

/** Runs writes under the guard of the domain, and under none when there is nothing to write. */
export async function guarded<T extends StepResult>(
  context: Pick<PassDeps, 'client' | 'clock' | 'check'> & { readonly input: Pick<PassInput, 'session' | 'signal'> },
  phase: string,
  work: (guard: StepGuard) => Promise<T>,
  writes: boolean,
): Promise<T | StepResult> {
  const { input, client, clock } = context;
  const deps = { client, clock, signal: input.signal };
  if (!writes) return work({ check: () => undefined, release: () => Promise.resolve(), signal: input.signal });
  const outcome = await input.session.guard(phase, deps);
  if (!outcome.granted) return { problems: [outcome.problem], retry: true };
  const { guard } = outcome;
  const signal = guard.signal === undefined ? input.signal : AbortSignal.any([input.signal, guard.signal]);
  const check = (): void => {
    context.check();
    guard.check();
  };
  try {
    return await work({ ...guard, check, signal });
  } finally {
    await guard.release();
  }
}
