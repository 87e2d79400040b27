/** Removes what left the payload, in reverse order of phases and ranks, after everything else is in place. */
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KindRef, ObjectMeta, ObjectRef } from '../kube/types.ts';
import { eachLimited } from './concurrency.ts';
import type { PassContext, StepGuard, StepResult } from './engine.ts';
import { confirmGone, removeListed } from './leave.ts';
import { removeOrder } from './order.ts';
import {
  groupKindOfId,
  type LeftReason,
  type PruneCandidate,
  type PrunePlan,
  prunePlan,
  saysKeep,
} from './prune-plan.ts';

export interface Left {
  readonly id: string;
  readonly why: LeftReason;
}

/** Which objects other releases want. Asked uncached, right before something would be removed. */
export interface Claims {
  /**
   * The other release that wants an object, by id. `company` is false when there is no other release at all. Problems: a
   * release whose wish could not be read yet; nothing may be removed then.
   */
  heirs(
    release: string,
    signal: AbortSignal,
  ): Promise<{
    readonly company: boolean;
    readonly heirs: ReadonlyMap<string, string>;
    readonly problems: readonly Problem[];
  }>;
}

interface Target extends PruneCandidate {
  readonly ref: ObjectRef;
}

type RunGuarded = (phase: string, work: (guard: StepGuard) => Promise<StepResult>) => Promise<StepResult>;
type Live = ReadonlyMap<string, ObjectMeta>;

export interface Pruned {
  readonly problems: readonly Problem[];
  readonly left: readonly Left[];
}

/** Reference to an object that only the ledger names; undefined when its kind is served no more. */
function refOfId(id: string, kinds: ReadonlyMap<string, KindRef | undefined>): ObjectRef | undefined {
  const kind = kinds.get(groupKindOfId(id));
  if (kind === undefined) return undefined;
  const { namespace, name } = parseObjectId(id);
  return { apiVersion: kind.apiVersion, kind: kind.kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

function planFor({ input }: PassContext, live: Live, heirs: ReadonlyMap<string, string>): PrunePlan {
  const { approvedDigest, policy, planned, approved, unbounded } = input.prune;
  return prunePlan({
    release: input.release,
    ledger: input.ledger.ledger,
    wanted: new Set(input.items.map(({ id }) => id)),
    overridden: input.survey.overridden,
    live,
    planned,
    policy,
    approved,
    unbounded,
    approvedDigest,
    heirs,
  });
}

/** Prunes, and answers what stays and why. */
export async function pruneAfter(context: PassContext, runGuarded: RunGuarded): Promise<Pruned> {
  const { input } = context;
  const looked = await lookAgain(context);
  if (looked.problems.length > 0) return { problems: looked.problems, left: [] };
  const problems: Problem[] = [];
  let plan = planFor(context, looked.live, new Map());
  if (plan.remove.length > 0) {
    const settled = await heirsOf(context);
    if (settled.problems.length > 0) return { problems: settled.problems, left: plan.left };
    plan = planFor(context, looked.live, settled.heirs);
  }
  for (const { id } of plan.dropped) input.ledger.remove(id);
  releaseOverridden(context, plan);
  if (plan.brake !== undefined)
    problems.push({
      reason: 'PruneBrake',
      message: `${plan.brake.why}; this removal has digest ${plan.brake.digest}`,
      remedy: `keelson approve ${input.release} --plan ${plan.brake.digest}, raise the bounds of spec.prune, or put the objects back`,
    });
  const kept: Left[] = [];
  const lastPhase = input.content.phases.at(-1)?.name ?? '';
  if (plan.remove.length > 0) {
    const removed = await runGuarded(lastPhase, (guard) => removeAll(context, plan.remove, kept, guard));
    problems.push(...removed.problems);
  }
  const unwritten = await input.ledger.flush(input.signal);
  if (unwritten !== undefined) problems.push(unwritten);
  return { problems, left: [...plan.left, ...plan.dropped, ...kept] };
}

/**
 * What an override took out of management stays so when it is lifted: its manifest is gone, and nothing says that whoever
 * lifts it wants the object removed.
 */
function releaseOverridden({ input }: PassContext, plan: PrunePlan): void {
  for (const { id, why } of plan.left) {
    const entry = input.ledger.ledger.get(id);
    if (why === 'unmanaged' && entry !== undefined && entry.state !== 'unmanaged')
      input.ledger.put({ ...entry, state: 'unmanaged' });
  }
}

/**
 * Ids that the listing by label did not show: what a read finds under the ledger's UID has only lost its label and is pruned
 * like the rest; what a read confirms to be gone leaves the ledger.
 */
async function lookAgain(context: PassContext): Promise<{ live: Live; problems: readonly Problem[] }> {
  const { input, options } = context;
  const live = new Map(input.survey.live);
  const problems: Problem[] = [];
  const { vanished } = planFor(context, live, new Map());
  await eachLimited(vanished, options.concurrency, async ({ id, uid }) => {
    const ref = refOfId(id, input.survey.kinds);
    const doubt = input.survey.doubtful.get(groupKindOfId(id));
    if (doubt !== undefined) problems.push(doubt);
    if (ref === undefined) return doubt === undefined ? input.ledger.remove(id) : undefined;
    const still = await confirmGone(context, { id, ref, uid }, input.signal);
    if (still.type === 'ours') live.set(id, still.object.metadata);
    if (still.type === 'unknown') problems.push(still.problem);
  });
  return { live, problems };
}

/** Who else wants what is to go. Payloads that are delivered together do not arrive at once: a moment is waited first. */
async function heirsOf(context: PassContext): Promise<Awaited<ReturnType<Claims['heirs']>>> {
  const { input, clock, options } = context;
  const first = await input.claims.heirs(input.release, input.signal);
  if (!first.company || options.handOverMs === 0) return first;
  await clock.sleep(options.handOverMs, input.signal);
  return input.claims.heirs(input.release, input.signal);
}

/**
 * A batch that is not gone keeps the next one: what is removed later is what the earlier may need to go. What was marked to
 * stay since the pass began, which may have waited for hours, stays and is added to `kept`.
 */
async function removeAll(
  context: PassContext,
  candidates: readonly PruneCandidate[],
  kept: Left[],
  guard: StepGuard,
): Promise<StepResult> {
  const { input, options } = context;
  for (const { entry } of candidates) if (entry.state !== 'pruning') input.ledger.put({ ...entry, state: 'pruning' });
  const unwritten = await input.ledger.flush(guard.signal);
  if (unwritten !== undefined) return { problems: [unwritten], retry: true };
  const problems: Problem[] = [];
  for (const batch of inOrder(context, candidates)) {
    await eachLimited(batch, options.concurrency, async ({ id, ref, uid }) => {
      if (uid === undefined) return;
      const keeps = (metadata: ObjectMeta): boolean => {
        const stays = saysKeep(metadata);
        if (stays) kept.push({ id, why: 'keep' });
        return stays;
      };
      const problem = await removeListed(context, { id, ref, uid, keeps }, guard);
      if (problem !== undefined) problems.push(problem);
    });
    if (problems.length > 0) break;
  }
  return { problems, retry: true };
}

/** Last phase first; inside a phase what was written last goes first. */
function inOrder({ input }: PassContext, candidates: readonly PruneCandidate[]): Target[][] {
  const names = [...input.prune.formerPhases, ...input.content.phases.map(({ name }) => name)];
  const place = (name: string): number => names.lastIndexOf(name);
  const targets = candidates.flatMap((candidate): Target[] => {
    const ref = refOfId(candidate.id, input.survey.kinds);
    return ref === undefined ? [] : [{ ...candidate, ref }];
  });
  const phases = [...new Set(targets.map(({ entry }) => entry.phase))].sort((a, b) => place(b) - place(a));
  return phases.flatMap((phase) =>
    removeOrder(
      targets
        .filter(({ entry }) => entry.phase === phase)
        .map((target) => ({ id: target.id, entry: target.ref, target })),
    ).map((batch) => batch.map(({ target }) => target)),
  );
}
