/** Takes finalizers off, object by object: each in the version that was looked at, and none but those that the plan names. */
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import type { KubeClient } from '../../kube/client.ts';
import { describeRef, resourceVersionOf, uidOf } from '../../kube/types.ts';
import type { SharedRef } from '../../kube/verbs/merge.ts';
import type { Stripping, StrippingPlan } from './plan.ts';

const fieldManager = 'keelson-release-finalizers';
const attempts = 5;

export interface StrippingWork {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  /** Keeps an entry before it returns. */
  readonly audit: (entry: JsonObject) => Promise<void>;
}

export interface StrippingResult {
  /** Objects that have none of these finalizers any more. */
  readonly released: number;
  readonly problems: readonly Problem[];
}

const refOf = ({ kind, namespace, name }: Stripping): SharedRef => ({
  apiVersion: 'local.sdn.cozystack.io/v1alpha1',
  kind,
  ...(namespace === undefined ? {} : { namespace }),
  name,
});

/** Everything is tried; what was refused is told at the end. */
export async function stripFinalizers(work: StrippingWork, plan: StrippingPlan): Promise<StrippingResult> {
  const problems: Problem[] = [];
  let released = 0;
  for (const one of plan.objects) {
    const problem = await strip(work, one);
    if (problem === undefined) released += 1;
    else problems.push(problem);
  }
  return { released, problems };
}

async function strip({ client, signal, audit }: StrippingWork, one: Stripping): Promise<Problem | undefined> {
  const ref = refOf(one);
  const object = describeRef(ref);
  const refused = (message: string): Problem => ({
    reason: 'StepRefused',
    object,
    message,
    remedy: 'do what the message asks for, and run the command again for what is left',
  });
  for (let n = 0; n < attempts; n += 1) {
    const found = await client.get(ref, { signal });
    // Gone, or another one of its name that nobody has planned for.
    if (found.type === 'absent' || (found.type === 'found' && uidOf(found.object) !== one.uid)) return undefined;
    if (found.type !== 'found') return refused(found.message);
    const before = found.object.metadata.finalizers ?? [];
    const finalizers = before.filter((finalizer) => !one.remove.includes(finalizer));
    if (finalizers.length === before.length) return undefined;
    await audit({ event: 'writing', object, uid: one.uid, before: [...before], after: finalizers });
    const guard = { uid: one.uid, resourceVersion: resourceVersionOf(found.object) };
    const outcome = await client.mergeShared(ref, { ...guard, finalizers }, { fieldManager, signal });
    if (outcome.type === 'updated' || outcome.type === 'absent') {
      await audit({ event: 'written', object, uid: one.uid });
      return undefined;
    }
    if (outcome.type !== 'stale') return refused(outcome.message);
  }
  return refused('it changed every time between a look at it and the write: is a controller still at work?');
}
