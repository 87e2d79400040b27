/**
 * Takes one owner off one object, and nothing else: no value but that reference changes, and no payload is needed. The
 * field is handed to a manager that holds nothing but it, and an apply of nothing by that manager takes it off; whatever
 * else is ours stays ours.
 */
import { isObject, type JsonObject, objectsOf } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { hasMarks } from '../apply/need.ts';
import { appliedByUs } from '../apply/ownership.ts';
import type { KubeClient } from '../kube/client.ts';
import { appliesAs, isOurApply, stepValue, withoutField } from '../kube/managedfields.ts';
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
import type { WriteGuard } from '../release/domain.ts';

/** Holds an owner between the write that hands it over and the one that takes it off; never a field besides. */
const disowner = 'keelson-disowner';

const ownersPath = 'metadata.ownerReferences';

/** The UID that a member `k:{"uid":"…"}` of a field set is about. */
function uidOfMember(member: string): string | undefined {
  const key = member.startsWith('k:') ? stepValue(member) : undefined;
  return isObject(key) ? String(key.uid) : undefined;
}

/** Members of a field set that are about this owner. */
function ownerMembers(entry: ManagedFieldsEntry, owner: string): JsonObject {
  const metadata = isObject(entry.fieldsV1) ? entry.fieldsV1['f:metadata'] : undefined;
  const owners = isObject(metadata) ? metadata['f:ownerReferences'] : undefined;
  if (!isObject(owners)) return {};
  return Object.fromEntries(Object.entries(owners).filter(([member]) => uidOfMember(member) === owner));
}

const holds = (entry: ManagedFieldsEntry, owner: string): boolean => Object.keys(ownerMembers(entry, owner)).length > 0;

/**
 * The entries with this owner handed from us to the manager that takes it off; undefined when we do not hold it. Every other
 * field stays with whom it is. Pure.
 */
export function handedOver(
  entries: readonly ManagedFieldsEntry[],
  owner: string,
): readonly ManagedFieldsEntry[] | undefined {
  const ours = entries.find((entry) => isOurApply(entry) && holds(entry, owner));
  if (ours === undefined) return undefined;
  const members = ownerMembers(ours, owner);
  const handed = { 'f:metadata': { 'f:ownerReferences': members } };
  const left = Object.keys(members).reduce(
    (fields, member) => withoutField(fields, ['f:metadata', 'f:ownerReferences', member]),
    ours.fieldsV1 ?? {},
  );
  return [
    ...entries.flatMap((entry) => {
      if (entry !== ours) return appliesAs(entry, disowner) ? [] : [entry];
      return Object.keys(left).length === 0 ? [] : [{ ...ours, fieldsV1: left }];
    }),
    { ...ours, manager: disowner, fieldsV1: handed },
  ];
}

export interface Disowning {
  readonly client: KubeClient;
  /** Release whose object it is. */
  readonly release: string;
  /** UID of the owner that is to go. */
  readonly owner: string;
  readonly guard: WriteGuard;
}

/** How often an object may change between a look and the write that was decided on it. */
const mostRounds = 5;

/** Whether an object names this owner. Pure. */
export const isOwnedBy = ({ ownerReferences }: ObjectMeta, owner: string): boolean =>
  objectsOf(ownerReferences).some(({ uid }) => uid === owner);

/**
 * Takes the owner off the object of this ledger id, if it names it. Answers why it still does; an object that is gone, or
 * that names other owners alone, is no problem.
 */
export async function disown(
  ref: ObjectRef,
  { id, uid }: { readonly id: string; readonly uid?: string | undefined },
  deps: Disowning,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  const { client, owner, release } = deps;
  let why = 'it changes all the time';
  for (let round = 0; round < mostRounds; round += 1) {
    const found = await client.get(ref, { signal });
    if (found.type === 'absent' || found.type === 'namespaceMissing' || found.type === 'kindAbsent') return undefined;
    if (found.type !== 'found') return stays(ref, found);
    const { object } = found;
    if (!isOwnedBy(object.metadata, owner)) return undefined;
    // What somebody put in its place with the same owner would go along with it, and is not ours to write.
    if (uidOf(object) !== uid && !(hasMarks(object.metadata, id, release) && appliedByUs(object)))
      return stays(ref, { type: 'notOurs', message: 'an object that is not ours has this name, and the same owner' });
    const written = await take(ref, object, deps, signal);
    if (written === undefined || 'reason' in written) return written;
    why = written.again;
  }
  return stays(ref, { type: 'stale', message: why });
}

const stays = (ref: ObjectRef, answer: { readonly type: string; readonly message?: string }): Problem => ({
  reason: answer.type === 'unavailable' ? 'ApiUnavailable' : 'OwnerNotStripped',
  message: answer.message ?? `the API server answered '${answer.type}'`,
  object: describeRef(ref),
  path: ownersPath,
  remedy: 'the installation stays until this owner is off the object; nothing was deleted',
});

/** Both writes, each for the very version that was seen. */
async function take(
  ref: ObjectRef,
  object: KubeObject,
  { client, owner, guard }: Disowning,
  signal: AbortSignal,
): Promise<Problem | { readonly again: string } | undefined> {
  const uid = uidOf(object);
  const entries = object.metadata.managedFields ?? [];
  const wanted = handedOver(entries, owner);
  let seen = object;
  if (wanted !== undefined) {
    guard.check();
    const patch = { uid, resourceVersion: resourceVersionOf(object), entries: wanted };
    const handed = await client.replaceManagedFields(ref, patch, { signal });
    if (handed.type === 'absent') return undefined;
    if (handed.type === 'stale') return { again: handed.message };
    if (!('object' in handed)) return stays(ref, handed);
    seen = handed.object;
  } else if (!entries.some((entry) => appliesAs(entry, disowner) && holds(entry, owner)))
    return heldByOthers(ref, seen, owner);
  guard.check();
  const precondition = { uid, resourceVersion: resourceVersionOf(seen) };
  const outcome = await client.apply(bareObject(ref), { fieldManager: disowner, ...precondition, signal });
  if (outcome.type === 'gone') return undefined;
  if (outcome.type === 'stale' || outcome.type === 'unavailable') return { again: outcome.message };
  if (!('object' in outcome)) return stays(ref, outcome);
  return isOwnedBy(outcome.object.metadata, owner) ? heldByOthers(ref, outcome.object, owner) : undefined;
}

function heldByOthers(ref: ObjectRef, object: KubeObject, owner: string): Problem {
  const others = (object.metadata.managedFields ?? []).filter((entry) => holds(entry, owner));
  const who = [...new Set(others.map(({ manager }) => manager ?? 'unknown'))].sort().join(', ');
  return stays(ref, { type: 'held', message: `the owner is held by ${who || 'nobody'}, and not by us` });
}
