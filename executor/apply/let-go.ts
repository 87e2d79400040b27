/**
 * Letting go of one object: it stays as it is, and nothing on it says any more that it was ours. No value of it changes,
 * and no payload is needed: our entry of managedFields is cut down to the marks, and an apply of nothing takes these off.
 */
import { annotations, labels, managedByValue, managers, networkApiVersion } from '../../constructs/api/constants.ts';
import { deepEqual, isObject, type JsonObject, type JsonValue, objectsOf } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { isOurApply } from '../kube/managedfields.ts';
import {
  bareObject,
  describeRef,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectMeta,
  type ObjectRef,
  resourceVersionOf,
  uidOf,
} from '../kube/types.ts';

const prefix = 'keelson.dev/';

/** Marks that only we set. A hold is a person's, and stays. */
const isMark = (key: string): boolean => key.startsWith(prefix) && key !== annotations.hold;

/** Field sets of managedFields name a member `f:<name>`. */
const member = (field: string): string => field.replace(/^f:/, '');

function pick(fields: JsonValue | undefined, wanted: (key: string) => boolean): JsonObject {
  if (!isObject(fields)) return {};
  return Object.fromEntries(Object.entries(fields).filter(([field]) => wanted(member(field))));
}

/** The part of our field set that is marks and owners; undefined when there is none. Pure. */
export function marksOf(fields: JsonObject, owners: boolean): JsonObject | undefined {
  const metadata = isObject(fields['f:metadata']) ? fields['f:metadata'] : {};
  const kept: JsonObject = {};
  const labelled = pick(metadata['f:labels'], (key) => isMark(key) || key === labels.managedBy);
  const noted = pick(metadata['f:annotations'], isMark);
  const owned = owners ? metadata['f:ownerReferences'] : undefined;
  if (Object.keys(labelled).length > 0) kept['f:labels'] = labelled;
  if (Object.keys(noted).length > 0) kept['f:annotations'] = noted;
  if (isObject(owned)) kept['f:ownerReferences'] = owned;
  return Object.keys(kept).length === 0 ? undefined : { 'f:metadata': kept };
}

/** The entries with ours cut down to its marks, or left out when it has none. Pure. */
export function cutDown(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  return entries.flatMap((entry) => {
    if (!isOurApply(entry)) return [entry];
    const marks = marksOf(isObject(entry.fieldsV1) ? entry.fieldsV1 : {}, true);
    return marks === undefined ? [] : [{ ...entry, fieldsV1: marks }];
  });
}

/** An installation as an owner: when it is deleted, it takes along what still names it. */
const isInstallation = ({ apiVersion }: JsonObject): boolean => apiVersion === networkApiVersion;

/** Marks and owners that are still on an object. Pure. */
export function marksLeft({ labels: labelled = {}, annotations: noted = {}, ownerReferences }: ObjectMeta): string[] {
  const owned = objectsOf(ownerReferences).some(isInstallation);
  return [
    ...Object.keys(labelled).filter(
      (key) => isMark(key) || (key === labels.managedBy && labelled[key] === managedByValue),
    ),
    ...Object.keys(noted).filter(isMark),
    ...(owned ? ['metadata.ownerReferences'] : []),
  ];
}

export interface LetGoDeps {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  /** @throws when this process may not write any more. */
  readonly check: () => void;
  readonly release: string;
}

/** How often an object may change between a look and the write that was decided on it. */
const mostRounds = 5;

/** Lets go of the object with this UID. Answers the problem that keeps it; an object that is gone, or another's, is none. */
export async function letGo(ref: ObjectRef, uid: string, deps: LetGoDeps): Promise<Problem | undefined> {
  let why = 'it changes all the time';
  for (let round = 0; round < mostRounds; round += 1) {
    const found = await deps.client.get(ref, { signal: deps.signal });
    if (found.type === 'absent' || found.type === 'namespaceMissing' || found.type === 'kindAbsent') return undefined;
    if (found.type !== 'found') return failed(ref, found);
    const { object } = found;
    const claim = object.metadata.labels?.[labels.release];
    if (uidOf(object) !== uid || (claim !== undefined && claim !== deps.release)) return undefined;
    const ready = await onlyMarks(ref, object, deps);
    if (ready === undefined) return stillMarked(ref, object);
    if (!('object' in ready)) {
      if (ready.type !== 'stale') return failed(ref, ready);
      why = ready.message ?? why;
      continue;
    }
    const taken = await takeOff(ref, ready.object, deps);
    if (taken === undefined || 'reason' in taken) return taken;
    why = taken.again;
  }
  return { reason: 'ObjectChanged', message: why, object: describeRef(ref) };
}

const failed = (ref: ObjectRef, answer: { readonly type: string; readonly message?: string }): Problem => ({
  reason:
    answer.type === 'unavailable' ? 'ApiUnavailable' : answer.type === 'forbidden' ? 'Forbidden' : 'MarksNotRemoved',
  message: answer.message ?? `the API server answered '${answer.type}'`,
  object: describeRef(ref),
});

/** Cuts our entry down to the marks; undefined when nothing of ours is on the object. */
async function onlyMarks(
  ref: ObjectRef,
  object: KubeObject,
  { client, signal, check }: LetGoDeps,
): Promise<{ readonly object: KubeObject } | { readonly type: string; readonly message?: string } | undefined> {
  const entries = object.metadata.managedFields ?? [];
  if (!entries.some(isOurApply)) return undefined;
  const wanted = cutDown(entries);
  if (deepEqual(wanted as JsonValue, entries as JsonValue)) return { object };
  check();
  const patch = { uid: uidOf(object), resourceVersion: resourceVersionOf(object), entries: wanted };
  const outcome = await client.replaceManagedFields(ref, patch, { signal });
  if (outcome.type === 'absent') return undefined;
  return outcome;
}

/** An apply of nothing, in the very version in which our entry holds marks alone: these go, and nothing else can. */
async function takeOff(
  ref: ObjectRef,
  object: KubeObject,
  { client, signal, check }: LetGoDeps,
): Promise<Problem | { readonly again: string } | undefined> {
  if (!(object.metadata.managedFields ?? []).some(isOurApply)) return undefined;
  check();
  const outcome = await client.apply(bareObject(ref), {
    fieldManager: managers.objects,
    uid: uidOf(object),
    resourceVersion: resourceVersionOf(object),
    signal,
  });
  if (outcome.type === 'gone') return undefined;
  if (outcome.type === 'stale' || outcome.type === 'unavailable') return { again: outcome.message };
  if (!('object' in outcome)) return failed(ref, outcome);
  return stillMarked(ref, outcome.object);
}

/** Marks that are not ours to take off, since another manager holds them. */
function stillMarked(ref: ObjectRef, { metadata }: KubeObject): Problem | undefined {
  const left = marksLeft(metadata);
  if (left.length === 0) return undefined;
  return {
    reason: 'MarksNotRemoved',
    message: `another manager holds ${left.join(', ')}`,
    object: describeRef(ref),
    remedy: 'remove these labels, annotations and owners by hand; nothing was deleted',
  };
}
