/** Removes objects by UID, and does not believe it until they are gone. Finalizers are reported, never touched. */
import { annotations, labels } from '../../constructs/api/constants.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { WaitTimeout, waitFor } from '../../constructs/lib/wait.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type ObjectRef, uidOf } from '../kube/types.ts';

export interface RemoveDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly check: () => void;
  readonly release: string;
  /** How long one object may take to go before the pass reports it and goes on. */
  readonly goneMs: number;
}

/**
 * `gone`: confirmed by the answer or by a read. `notOurs`: the name means another object now, or another release claims it.
 */
export type RemoveOutcome =
  | { readonly type: 'gone' }
  | { readonly type: 'notOurs'; readonly message: string }
  | { readonly type: 'held'; readonly by: string }
  | { readonly type: 'terminating'; readonly problem: Problem }
  | { readonly type: 'failed'; readonly problem: Problem };

const failed = (ref: ObjectRef, reason: string, message: string): RemoveOutcome => ({
  type: 'failed',
  problem: { reason, message, object: describeRef(ref) },
});

/** Deletes the object with this UID, after a last uncached look at whose it is, and waits until it is gone. */
export async function removeObject(ref: ObjectRef, uid: string, deps: RemoveDeps): Promise<RemoveOutcome> {
  const { client, signal } = deps;
  const live = await client.get(ref, { signal });
  if (live.type === 'absent' || live.type === 'kindAbsent' || live.type === 'namespaceMissing') return { type: 'gone' };
  if (live.type !== 'found')
    return failed(ref, live.type === 'forbidden' ? 'Forbidden' : 'ApiUnavailable', live.message);
  const { metadata } = live.object;
  if (metadata.uid !== uid)
    return { type: 'notOurs', message: `another object (UID ${uidOf(live.object)}) has its name` };
  const claim = metadata.labels?.[labels.release];
  if (claim !== undefined && claim !== deps.release) return { type: 'notOurs', message: `Release ${claim} claims it` };
  const hold = metadata.annotations?.[annotations.hold];
  if (hold !== undefined) return { type: 'held', by: hold };
  if (typeof metadata.deletionTimestamp === 'string') return untilGone(ref, uid, deps);
  deps.check();
  const outcome = await client.delete(ref, {
    uid,
    propagation: 'Background',
    signal,
    // What was just looked at is what is deleted.
    ...(metadata.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion }),
  });
  switch (outcome.type) {
    case 'deleted':
    case 'absent':
      return { type: 'gone' };
    case 'terminating':
      return untilGone(ref, uid, deps);
    case 'preconditionFailed':
      return failed(ref, 'ObjectChanged', `it changed while it was to be removed: ${outcome.message}`);
    case 'forbidden':
      return failed(ref, 'Forbidden', outcome.message);
    default:
      return failed(ref, 'ApiUnavailable', outcome.message);
  }
}

async function untilGone(ref: ObjectRef, uid: string, deps: RemoveDeps): Promise<RemoveOutcome> {
  const { client, clock, signal } = deps;
  try {
    return await waitFor<RemoveOutcome>({
      what: `${describeRef(ref)} to go`,
      limitMs: deps.goneMs,
      intervalMs: Math.min(250, deps.goneMs),
      clock,
      signal,
      probe: async (saw) => {
        const live = await client.get(ref, { signal });
        if (live.type === 'absent' || live.type === 'kindAbsent') return { type: 'gone' };
        if (live.type !== 'found') {
          saw(live.message);
          return undefined;
        }
        if (uidOf(live.object) !== uid) return { type: 'gone' };
        const { finalizers, deletionTimestamp } = live.object.metadata;
        saw(`being deleted since ${String(deletionTimestamp)}, finalizers ${finalizers?.join(', ') || 'none'}`);
        return undefined;
      },
    });
  } catch (error) {
    if (!(error instanceof WaitTimeout)) throw error;
    return {
      type: 'terminating',
      problem: {
        reason: 'ObjectTerminating',
        message: error.message,
        object: describeRef(ref),
        remedy: 'see what the finalizers wait for; they are never removed by Keelson',
      },
    };
  }
}
