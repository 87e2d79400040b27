/**
 * A confirmed delete of an installation leaves the network running: before the object goes, its objects lose their owner,
 * so that the garbage collector takes nothing along. Nothing else is changed and nothing is deleted.
 */
import { managers, orphanFinalizer, payloadFormatVersion } from '../../constructs/api/constants.ts';
import type { Payload } from '../../constructs/api/payload-codec.ts';
import { setAt } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type Item, itemRef, itemsOf } from '../apply/items.ts';
import { openLedger } from '../apply/ledger-store.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject, refOf, uidOf } from '../kube/types.ts';
import type { WriteGuard } from '../release/domain.ts';

/** True when the orphaning finalizer is on the object. */
export const hasOrphanFinalizer = (object: KubeObject): boolean =>
  object.metadata.finalizers?.includes(orphanFinalizer) === true;

/** The part of an installation that the executor owns beside its status: its finalizer, or nothing. */
const finalizerIntent = (object: KubeObject, present: boolean): KubeObject => ({
  apiVersion: object.apiVersion,
  kind: object.kind,
  metadata: {
    name: object.metadata.name ?? '',
    namespace: object.metadata.namespace ?? '',
    ...(present ? { finalizers: [orphanFinalizer] } : {}),
  },
});

/** Puts the finalizer on, or takes it off, by server-side apply of that field alone. */
export async function setOrphanFinalizer(
  client: KubeClient,
  object: KubeObject,
  present: boolean,
  signal: AbortSignal,
): Promise<Problem[]> {
  const outcome = await client.apply(finalizerIntent(object, present), {
    fieldManager: managers.status,
    uid: uidOf(object),
    signal,
  });
  if (outcome.type === 'configured' || outcome.type === 'unchanged' || outcome.type === 'gone') return [];
  return [
    {
      reason: outcome.type === 'unavailable' ? 'ApiUnavailable' : 'FinalizerNotWritten',
      message: 'message' in outcome ? outcome.message : `the API server answered '${outcome.type}'`,
      object: describeRef(refOf(object)),
      path: 'metadata.finalizers',
    },
  ];
}

/** The object without its owner; everything else of the intent stays, so that no field is given up. */
function withoutOwner(item: Item, installationUID: string): KubeObject {
  let object = item.object as KubeObject;
  for (const { at, what } of item.entry.bind ?? []) {
    if (what === 'uidLabels' || what === 'installationUID') object = setAt(object, at, installationUID) as KubeObject;
  }
  return object;
}

const isOwned = (item: Item): boolean => (item.entry.bind ?? []).some((rule) => rule.what === 'owner');

/**
 * Strips the owner from every live object of the payload that the ledger knows by UID. Objects that are gone, or that another
 * owner replaced, are passed over. Answers every problem; after one the installation must stay.
 */
export async function orphanObjects(
  options: {
    readonly client: KubeClient;
    readonly payload: Payload;
    readonly release: string;
    readonly namespace: string;
    readonly installationUID: string;
    readonly guard: WriteGuard;
  },
  signal: AbortSignal,
): Promise<Problem[]> {
  const { client, payload, guard } = options;
  if (payload.index.formatVersion !== payloadFormatVersion)
    return [{ reason: 'ExecutorTooOld', message: `the payload has format ${payload.index.formatVersion}` }];
  const ledger = await openLedger(client, options, signal);
  if (!ledger.ok) return [...ledger.problems];
  const problems: Problem[] = [];
  for (const item of itemsOf(payload).filter(isOwned)) {
    const uid = ledger.store.ledger.get(item.id)?.uid;
    if (uid === undefined) continue;
    guard.check();
    const outcome = await client.apply(withoutOwner(item, options.installationUID), {
      fieldManager: managers.objects,
      uid,
      signal,
    });
    if (outcome.type === 'configured' || outcome.type === 'unchanged' || outcome.type === 'gone') continue;
    problems.push({
      reason: outcome.type === 'unavailable' ? 'ApiUnavailable' : 'OwnerNotStripped',
      message: 'message' in outcome ? outcome.message : `the API server answered '${outcome.type}'`,
      object: describeRef(itemRef(item)),
      path: 'metadata.ownerReferences',
      remedy: 'the installation stays until this object can be written; nothing was deleted',
    });
  }
  return problems;
}
