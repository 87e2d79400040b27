/**
 * The writes of an adoption: for each object, the fields of listed managers are folded into ours, then our marks are applied
 * with every value as it is. No value changes; what differs by digest is left to the phases that follow.
 */
import { managers } from '../../constructs/api/constants.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, type KubeObject, resourceVersionOf, uidOf } from '../kube/types.ts';
import { foldManagers } from './adopt-fields.ts';
import { type Adoption, asLive, judgeAdoption } from './adopt-judge.ts';
import type { AdoptionRules } from './adopt-rules.ts';
import { eachLimited } from './concurrency.ts';
import type { PassContext, StepGuard, StepResult } from './engine.ts';
import { itemRef } from './items.ts';

type RunGuarded = (phase: string, work: (guard: StepGuard) => Promise<StepResult>) => Promise<StepResult>;

/** How often an object may change between the look at it and the write. */
const mostRaces = 8;

/** Adopts what was judged, phase by phase, under the guard of each phase. Answers what kept it from being done. */
export async function adoptAll(
  context: PassContext,
  rules: AdoptionRules,
  runGuarded: RunGuarded,
): Promise<readonly Problem[]> {
  const { input } = context;
  for (const phase of input.content.phases) {
    const adoptions = [...input.judgement.adoptions.values()].filter(({ item }) => item.phase === phase.name);
    if (adoptions.length === 0) continue;
    input.progress.state(phase.name, 'Applying');
    const { problems } = await runGuarded(phase.name, (guard) => adoptPhase(context, rules, adoptions, guard));
    if (problems.length > 0) return problems;
  }
  return [];
}

async function adoptPhase(
  context: PassContext,
  rules: AdoptionRules,
  adoptions: readonly Adoption[],
  guard: StepGuard,
): Promise<StepResult> {
  const { input, options } = context;
  const problems: Problem[] = [];
  await eachLimited(adoptions, options.concurrency, async (adoption) => {
    // After a failure nothing new is begun; what is under way ends.
    if (problems.length > 0) return;
    const { id } = adoption.item;
    const found = await adoptOne(context, rules, adoption, guard).catch((error: unknown) => {
      input.doubt(id);
      throw error;
    });
    problems.push(...found);
    const entry = input.ledger.ledger.get(id);
    if (found.length === 0) context.adopted.push(id);
    if (found.length === 0 && entry !== undefined) input.ledger.put({ ...entry, uid: adoption.uid, state: 'intended' });
  });
  const unwritten = await input.ledger.flush(guard.signal);
  if (unwritten !== undefined) problems.push(unwritten);
  return { problems, retry: true };
}

/** One object: folded, then marked. Nothing is written over a version that was not judged: one that moved is judged again. */
async function adoptOne(
  { client }: PassContext,
  rules: AdoptionRules,
  judged: Adoption,
  guard: StepGuard,
): Promise<readonly Problem[]> {
  const { item, uid } = judged;
  const ref = itemRef(item);
  const { signal } = guard;
  let adoption = judged;
  for (let race = 0; race < mostRaces; race += 1) {
    const folded = await fold({ client }, rules, adoption, guard);
    if ('reason' in folded) return [folded];
    if ('live' in folded) {
      guard.check();
      const { live } = folded;
      const answer = await client.apply(asLive(adoption.intent, live, adoption.pinned), {
        fieldManager: managers.objects,
        uid,
        resourceVersion: resourceVersionOf(live),
        signal,
      });
      if (answer.type === 'configured' || answer.type === 'unchanged') return [];
      if (answer.type !== 'stale' && answer.type !== 'unavailable' && answer.type !== 'conflict')
        return [
          { reason: 'ObjectChanged', message: `it could not be marked: ${textOf(answer)}`, object: describeRef(ref) },
        ];
    }
    const again = await judgeAdoption({ client, rules, signal }, item, adoption.intent, uid);
    if (!('adoption' in again)) return again.problems;
    adoption = again.adoption;
  }
  return [
    { reason: 'ObjectChanged', message: 'it changes all the time while it is to be adopted', object: describeRef(ref) },
  ];
}

const textOf = (answer: { readonly type: string; readonly message?: string }): string => answer.message ?? answer.type;

/** Folds what listed managers hold. Answers the object as it is then; `stale` when it is no longer the one that was judged. */
async function fold(
  { client }: Pick<PassContext, 'client'>,
  rules: AdoptionRules,
  { item, intent, live }: Adoption,
  guard: StepGuard,
): Promise<{ readonly live: KubeObject } | { readonly stale: true } | Problem> {
  const folded = foldManagers(live.metadata.managedFields ?? [], intent, rules.takeManagers);
  if (folded === undefined) return { live };
  guard.check();
  const ref = itemRef(item);
  const outcome = await client.replaceManagedFields(
    ref,
    { uid: uidOf(live), resourceVersion: resourceVersionOf(live), entries: folded.entries },
    { signal: guard.signal },
  );
  if (outcome.type === 'updated') return { live: outcome.object };
  if (outcome.type === 'stale' || outcome.type === 'absent' || outcome.type === 'unavailable') return { stale: true };
  return {
    reason: outcome.type === 'forbidden' ? 'Forbidden' : 'ObjectChanged',
    message: `the fields of ${folded.from.join(', ')} could not be taken over: ${outcome.message}`,
    object: describeRef(ref),
  };
}
