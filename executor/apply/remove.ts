/** Removes objects by UID, and does not believe it until they are gone. Finalizers are reported, never touched. */
import { annotations } from '../../constructs/api/constants.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { WaitTimeout, waitFor } from '../../constructs/lib/wait.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Rejection } from '../kube/outcome.ts';
import { describeRef, type ObjectMeta, type ObjectRef, uidOf } from '../kube/types.ts';
import { definitionGone } from './definition.ts';
import { claimant } from './need.ts';
import { explainWebhook, isDenied, webhookTrouble } from './webhook.ts';

export interface RemoveDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly check: () => void;
  readonly release: string;
  /** How long one object may take to go before the pass reports it and goes on. */
  readonly goneMs: number;
  /** `Foreground` waits until what the object owns is gone as well. `Background` when absent. */
  readonly propagation?: 'Background' | 'Foreground';
  /** Whether the object itself says that it stays; asked of the very state that would be deleted. Nothing does when absent. */
  readonly keeps?: (metadata: ObjectMeta) => boolean;
}

/**
 * `gone`: confirmed by the answer or by a read. `notOurs`: the name means another object now, or another release claims it.
 * `kept`: it says of itself that it stays.
 * `failed`: it is still there, or may be; `denied` when something refuses that it goes.
 */
export type RemoveOutcome =
  | { readonly type: 'gone' }
  | { readonly type: 'notOurs'; readonly message: string }
  | { readonly type: 'held'; readonly by: string }
  | { readonly type: 'kept' }
  | { readonly type: 'terminating'; readonly problem: Problem }
  | { readonly type: 'failed'; readonly problem: Problem; readonly denied: boolean };

const failed = (ref: ObjectRef, reason: string, message: string, remedy?: string): RemoveOutcome => ({
  type: 'failed',
  denied: reason !== 'ApiUnavailable' && reason !== 'ObjectChanged' && reason !== 'KindAbsent',
  problem: { reason, message, object: describeRef(ref), ...(remedy === undefined ? {} : { remedy }) },
});

/** Deletes the object with this UID, after a last uncached look at whose it is, and waits until it is gone. */
export async function removeObject(ref: ObjectRef, uid: string, deps: RemoveDeps): Promise<RemoveOutcome> {
  const { client, signal } = deps;
  const live = await client.get(ref, { signal });
  if (live.type === 'absent' || live.type === 'namespaceMissing') return { type: 'gone' };
  if (live.type === 'kindAbsent') return kindGone(ref, deps);
  if (live.type !== 'found') return refused(ref, live, deps);
  const { metadata } = live.object;
  if (metadata.uid !== uid)
    return { type: 'notOurs', message: `another object (UID ${uidOf(live.object)}) has its name` };
  const claim = claimant(metadata, deps.release);
  if (claim !== undefined) return { type: 'notOurs', message: `Release ${claim} claims it` };
  const hold = metadata.annotations?.[annotations.hold] ?? metadata.annotations?.[annotations.quiesce];
  if (hold !== undefined) return { type: 'held', by: hold };
  if (typeof metadata.deletionTimestamp === 'string') return untilGone(ref, uid, deps);
  if (deps.keeps?.(metadata) === true) return { type: 'kept' };
  deps.check();
  const outcome = await client.delete(ref, {
    uid,
    propagation: deps.propagation ?? 'Background',
    signal,
    // What was just looked at is what is deleted.
    ...(metadata.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion }),
  });
  switch (outcome.type) {
    case 'deleted':
    case 'absent':
    case 'namespaceMissing':
      return { type: 'gone' };
    case 'kindAbsent':
      return kindGone(ref, deps);
    case 'terminating':
      return untilGone(ref, uid, deps);
    case 'preconditionFailed':
      return failed(ref, 'ObjectChanged', `it changed while it was to be removed: ${outcome.message}`);
    default:
      return refused(ref, outcome, deps);
  }
}

/** An object whose kind is not served is gone only when the definition of the kind is. */
async function kindGone(ref: ObjectRef, { client, signal }: RemoveDeps): Promise<RemoveOutcome> {
  const gone = await definitionGone(client, groupOf(ref.apiVersion), ref.kind, signal);
  return gone === undefined ? { type: 'gone' } : failed(ref, gone.reason, gone.message, gone.remedy);
}

async function refused(ref: ObjectRef, answer: Rejection, { client, signal }: RemoveDeps): Promise<RemoveOutcome> {
  const remedy = 'look at who refuses that it goes; it stays in the ledger and is tried again';
  const trouble = webhookTrouble(answer.message);
  if (trouble !== undefined) return failed(ref, 'WebhookBlocks', await explainWebhook(client, trouble, signal), remedy);
  if (answer.type === 'invalid' || isDenied(answer.message)) return failed(ref, 'DeleteDenied', answer.message, remedy);
  return failed(ref, answer.type === 'forbidden' ? 'Forbidden' : 'ApiUnavailable', answer.message);
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
        if (live.type === 'absent') return { type: 'gone' };
        if (live.type === 'kindAbsent') return kindGone(ref, deps);
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
