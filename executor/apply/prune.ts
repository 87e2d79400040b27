/** Removes what left the payload, in reverse order of phases and ranks, after everything else is in place. */
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KindRef, ObjectRef } from '../kube/types.ts';
import { eachLimited } from './concurrency.ts';
import type { PassContext, StepGuard, StepResult } from './engine.ts';
import { confirmGone, removeListed } from './leave.ts';
import { removeOrder } from './order.ts';
import { groupKindOfId, type LeftReason, type PruneCandidate, prunePlan } from './prune-plan.ts';

export interface Left {
  readonly id: string;
  readonly why: LeftReason;
}

interface Target extends PruneCandidate {
  readonly ref: ObjectRef;
}

interface Removal extends StepResult {
  readonly removed: number;
}

type RunGuarded = (phase: string, work: (guard: StepGuard) => Promise<StepResult>) => Promise<StepResult>;

/** Reference to an object that only the ledger names; undefined when its kind is served no more. */
function refOfId(id: string, kinds: ReadonlyMap<string, KindRef | undefined>): ObjectRef | undefined {
  const kind = kinds.get(groupKindOfId(id));
  if (kind === undefined) return undefined;
  const { namespace, name } = parseObjectId(id);
  return { apiVersion: kind.apiVersion, kind: kind.kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** Prunes, and answers what stays and why. */
export async function pruneAfter(
  context: PassContext,
  runGuarded: RunGuarded,
): Promise<{ readonly problems: readonly Problem[]; readonly left: readonly Left[] }> {
  const { input } = context;
  const plan = prunePlan({
    release: input.release,
    ledger: input.ledger.ledger,
    wanted: new Set(input.items.map(({ id }) => id)),
    live: input.survey.live,
    planned: input.prune.planned,
    policy: input.prune.policy,
    approved: input.prune.approved,
  });
  const left: Left[] = [...plan.left, ...plan.dropped];
  for (const { id } of plan.dropped) input.ledger.remove(id);
  const problems: Problem[] = [];
  if (plan.brake !== undefined)
    problems.push({
      reason: 'PruneBrake',
      message: plan.brake,
      remedy: 'approve the plan of this release, or raise the bounds of spec.prune',
    });
  await confirmVanished(context, plan.vanished);
  const lastPhase = input.content.phases.at(-1)?.name ?? '';
  if (plan.remove.length > 0) {
    const removed = await runGuarded(lastPhase, (guard) => removeAll(context, plan.remove, guard));
    problems.push(...removed.problems);
  }
  const unwritten = await input.ledger.flush(input.signal);
  if (unwritten !== undefined) problems.push(unwritten);
  return { problems, left };
}

/** Lets go of ids that the listing did not show. */
async function confirmVanished(context: PassContext, vanished: readonly PruneCandidate[]): Promise<void> {
  const { input } = context;
  await eachLimited(vanished, context.options.concurrency, async ({ id, uid }) => {
    const ref = refOfId(id, input.survey.kinds);
    if (ref === undefined) {
      input.ledger.remove(id);
      return;
    }
    await confirmGone(context, { id, ref, uid }, input.signal);
  });
}

async function removeAll(
  context: PassContext,
  candidates: readonly PruneCandidate[],
  guard: StepGuard,
): Promise<Removal> {
  const { input, options } = context;
  for (const { entry } of candidates) if (entry.state !== 'pruning') input.ledger.put({ ...entry, state: 'pruning' });
  const unwritten = await input.ledger.flush(guard.signal);
  if (unwritten !== undefined) return { problems: [unwritten], retry: true, removed: 0 };
  const problems: Problem[] = [];
  let removed = 0;
  for (const batch of inOrder(context, candidates))
    await eachLimited(batch, options.concurrency, async ({ id, ref, uid }) => {
      if (uid === undefined) return;
      const problem = await removeListed(context, { id, ref, uid }, guard);
      if (problem === undefined) removed += 1;
      else problems.push(problem);
    });
  return { problems, retry: true, removed };
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
