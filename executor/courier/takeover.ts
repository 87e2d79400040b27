/** Hands the fields of a courier that was left to the one that is configured now. No value changes. */
import { managers } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { appliesAs, unionOfFields } from '../kube/managedfields.ts';
import { describeRef, type KubeObject, type ManagedFieldsEntry, type ObjectRef, refOf, uidOf } from '../kube/types.ts';
import type { CourierDeps } from './apply.ts';

const couriers: readonly string[] = [managers.flux, managers.argo, managers.none];

/**
 * Entries of other couriers in one of `manager`; undefined when there is nothing to hand over. Fields are named in the words
 * of one version: entries of another version than the courier's own stay.
 */
export function handOver(
  entries: readonly ManagedFieldsEntry[],
  manager: string,
): readonly ManagedFieldsEntry[] | undefined {
  const applied = (entry: ManagedFieldsEntry): boolean => couriers.some((courier) => appliesAs(entry, courier));
  const own = entries.find((entry) => applied(entry) && entry.manager === manager);
  const others = entries.filter((entry) => applied(entry) && entry.manager !== manager);
  const version = (own ?? others[0])?.apiVersion;
  const given = others.filter(({ apiVersion }) => apiVersion === version);
  const [first] = given;
  if (first === undefined) return undefined;
  const fieldsV1 = [...(own === undefined ? [] : [own]), ...given].reduce(
    (all, entry) => unionOfFields(all, entry.fieldsV1 ?? {}),
    {} as JsonObject,
  );
  const rest = entries.filter((entry) => entry !== own && !given.includes(entry));
  return [...rest, { ...(own ?? first), manager, fieldsV1 }];
}

/** Hands over what other couriers hold of objects that are there; each guarded by UID and resourceVersion. */
export async function takeOver(
  deps: CourierDeps,
  objects: readonly KubeObject[],
): Promise<{ taken: ObjectRef[]; problems: Problem[] }> {
  const taken: ObjectRef[] = [];
  const problems: Problem[] = [];
  for (const ref of objects.map(refOf)) {
    const outcome = await takeOne(deps, ref);
    if (outcome === 'taken') taken.push(ref);
    else if (outcome !== 'nothing') problems.push(outcome);
  }
  return { taken, problems };
}

/** Whoever writes in between moves the resourceVersion; the next look sees it. */
const mostTries = 3;

async function takeOne(deps: CourierDeps, ref: ObjectRef): Promise<'taken' | 'nothing' | Problem> {
  const { client, signal, fieldManager } = deps;
  let message = 'the object changed at every try';
  for (let n = 0; n < mostTries; n += 1) {
    const read = await client.get(ref, { signal });
    if (read.type === 'absent' || read.type === 'kindAbsent') return 'nothing';
    if (read.type !== 'found') return failed(ref, read.message);
    const { metadata } = read.object;
    const entries = handOver(metadata.managedFields ?? [], fieldManager);
    if (entries === undefined || metadata.resourceVersion === undefined) return 'nothing';
    const patch = { uid: uidOf(read.object), resourceVersion: metadata.resourceVersion, entries };
    const outcome = await client.replaceManagedFields(ref, patch, { signal });
    if (outcome.type === 'updated') return 'taken';
    if (outcome.type === 'absent') return 'nothing';
    message = outcome.message;
    if (outcome.type !== 'stale') break;
  }
  return failed(ref, message);
}

const failed = (ref: ObjectRef, message: string): Problem => ({
  reason: 'ApplyFailed',
  message: `its fields were not handed over: ${message}`,
  object: describeRef(ref),
  remedy: 'run it again when the cause is gone; what was handed over stays so',
});
