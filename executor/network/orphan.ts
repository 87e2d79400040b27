/**
 * A confirmed delete of an installation leaves the network running: before the object goes, its objects lose their owner,
 * so that the garbage collector takes nothing along. Nothing else is changed and nothing is deleted.
 */
import { managers, orphanFinalizer, payloadFormatVersion } from '../../constructs/api/constants.ts';
import type { LedgerEntry } from '../../constructs/api/ledger.ts';
import type { Payload } from '../../constructs/api/payload-codec.ts';
import { setAt } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { pointerOf, without } from '../apply/fieldpath.ts';
import { type Item, itemRef, itemsOf } from '../apply/items.ts';
import { openLedger } from '../apply/ledger-store.ts';
import { hasMarks } from '../apply/need.ts';
import { appliedByUs } from '../apply/ownership.ts';
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

interface Orphaning {
  readonly client: KubeClient;
  readonly payload: Payload;
  readonly release: string;
  readonly namespace: string;
  readonly installationUID: string;
  readonly guard: WriteGuard;
}

/**
 * UID of the live object that is ours by the ledger; where a run ended before it recorded one, by the marks that only our
 * objects carry. Undefined when there is none.
 */
async function ownUID(
  { client, release }: Orphaning,
  item: Item,
  entry: LedgerEntry,
  signal: AbortSignal,
): Promise<{ uid: string | undefined } | { problem: Problem }> {
  if (entry.uid !== undefined) return { uid: entry.uid };
  const found = await client.get(itemRef(item), { signal });
  if (found.type === 'absent' || found.type === 'kindAbsent') return { uid: undefined };
  if (found.type !== 'found')
    return { problem: { reason: 'ApiUnavailable', message: found.message, object: describeRef(itemRef(item)) } };
  const ours = hasMarks(found.object.metadata, item.id, release) && appliedByUs(found.object);
  return { uid: ours ? uidOf(found.object) : undefined };
}

/** Fields that others hold by now are left to them: they are not in the way of the owner. */
const mostRounds = 4;

async function strip(
  { client, installationUID, guard }: Orphaning,
  item: Item,
  uid: string,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  let intent = withoutOwner(item, installationUID);
  let message = 'other managers hold one field after the other';
  for (let round = 0; round < mostRounds; round += 1) {
    guard.check();
    const outcome = await client.apply(intent, { fieldManager: managers.objects, uid, signal });
    if (outcome.type === 'configured' || outcome.type === 'unchanged' || outcome.type === 'gone') return undefined;
    message = 'message' in outcome ? outcome.message : `the API server answered '${outcome.type}'`;
    if (outcome.type === 'unavailable')
      return { reason: 'ApiUnavailable', message, object: describeRef(itemRef(item)), path: ownersPath };
    if (outcome.type !== 'conflict') break;
    const held = outcome.managers.flatMap(({ fields }) => fields.map((field) => pointerOf(intent, field)));
    const pointers = held.filter((pointer) => pointer !== undefined);
    if (pointers.length === 0) break;
    intent = without(intent, pointers) as KubeObject;
  }
  return {
    reason: 'OwnerNotStripped',
    message,
    object: describeRef(itemRef(item)),
    path: ownersPath,
    remedy: 'the installation stays until this object can be written; nothing was deleted',
  };
}

const ownersPath = 'metadata.ownerReferences';

/**
 * Strips the owner from every live object of the payload that is ours. Objects that are gone, or that another owner
 * replaced, are passed over. Answers every problem; after one the installation must stay.
 */
export async function orphanObjects(options: Orphaning, signal: AbortSignal): Promise<Problem[]> {
  const { client, payload } = options;
  if (payload.index.formatVersion !== payloadFormatVersion)
    return [{ reason: 'ExecutorTooOld', message: `the payload has format ${payload.index.formatVersion}` }];
  const ledger = await openLedger(client, options, signal);
  if (!ledger.ok) return [...ledger.problems];
  const problems: Problem[] = [];
  for (const item of itemsOf(payload).filter(isOwned)) {
    const entry = ledger.store.ledger.get(item.id);
    if (entry === undefined) continue;
    const own = await ownUID(options, item, entry, signal);
    if ('problem' in own) problems.push(own.problem);
    else if (own.uid !== undefined) problems.push(...[(await strip(options, item, own.uid, signal)) ?? []].flat());
  }
  return problems;
}
