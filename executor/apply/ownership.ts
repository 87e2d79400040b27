/**
 * Whose is the object: from the answer to a dry run, the ledger and, where these do not say, an uncached read. Pure.
 * Nothing is ever written that is not `new` or `ours`.
 */

import { annotations, labels, recreatableKinds } from '../../constructs/api/constants.ts';
import { groupKindOf } from '../../constructs/api/plan.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { isOurApply } from '../kube/managedfields.ts';
import type { ApplyConflict, ApplyOutcome, Invalid } from '../kube/outcome.ts';
import { describeRef, type KubeObject, uidOf } from '../kube/types.ts';
import { isWithin, pointerOf } from './fieldpath.ts';
import { markedOwners } from './foreign.ts';
import type { Hold } from './hold.ts';
import { type Item, itemRef } from './items.ts';
import { namespaceTrouble } from './namespace.ts';
import { hasMarks, type Need } from './need.ts';
import { isUndryable, type WebhookTrouble, webhookTrouble } from './webhook.ts';

export type Verdict =
  /** Nothing of that name exists. */
  | { readonly verdict: 'new' }
  /** In the ledger with this UID, or proven to be what an interrupted run wrote. `version` is that of the live object. */
  | { readonly verdict: 'ours'; readonly uid: string; readonly version: string }
  /** Ours, and a change hits a field that cannot change; deleting and creating it again is allowed. */
  | { readonly verdict: 'replace'; readonly uid: string }
  /** A create-only object that exists already, whoever made it. */
  | { readonly verdict: 'leave'; readonly uid: string }
  /** Another manager holds fields that this object gives up. */
  | { readonly verdict: 'yield'; readonly pointers: readonly string[]; readonly managers: readonly string[] }
  /** The dry run says 200 and the ledger does not know the UID: only a read can tell. */
  | { readonly verdict: 'look'; readonly uid: string }
  /** The server cannot judge yet: its namespace, or its kind, comes with the same payload. */
  | { readonly verdict: 'unjudged'; readonly missing: 'namespace' | 'kind'; readonly problem: Problem }
  /** A webhook that takes no part in dry runs keeps the server from judging it. */
  | { readonly verdict: 'undryable'; readonly problem: Problem }
  | { readonly verdict: 'refused'; readonly problem: Problem }
  /** A webhook that does not answer stands in the way. */
  | { readonly verdict: 'blocked'; readonly trouble: WebhookTrouble; readonly problem: Problem }
  /** No answer that means anything; to be tried again. */
  | { readonly verdict: 'unavailable'; readonly problem: Problem };

const say = (item: Item, reason: string, message: string, more: Partial<Problem> = {}): Problem => ({
  reason,
  message,
  object: describeRef(itemRef(item)),
  ...more,
});

/** UIDs of owners that the intent itself names. */
function ownOwners(intent: KubeObject): Set<string> {
  return new Set(owners(intent).map((owner) => String(owner.uid ?? '')));
}

function owners(object: KubeObject): JsonObject[] {
  const { ownerReferences } = object.metadata;
  return Array.isArray(ownerReferences) ? ownerReferences.filter(isObject) : [];
}

/** The owner that another controller set on the object, if there is one. */
function foreignController(intent: KubeObject, live: KubeObject): JsonObject | undefined {
  const known = ownOwners(intent);
  return owners(live).find((owner) => owner.controller === true && !known.has(String(owner.uid ?? '')));
}

/** Whether an entry of managedFields shows that we applied this object. */
export function appliedByUs(object: KubeObject): boolean {
  return (object.metadata.managedFields ?? []).some(isOurApply);
}

const ownedBy = (item: Item, owner: JsonObject): Verdict => ({
  verdict: 'refused',
  problem: say(item, 'OwnedByAnother', `it belongs to the controller ${String(owner.kind)} ${String(owner.name)}`, {
    remedy: 'remove the other owner, or take the object out of the payload',
  }),
});

/** True for an answer that may hide a foreign controller: the server refuses a second one before anything else. */
export const hidesOwner = (verdict: Verdict): boolean =>
  verdict.verdict === 'refused' &&
  verdict.problem.reason === 'ObjectInvalid' &&
  verdict.problem.path?.includes('metadata.ownerReferences') === true;

/** The verdict on an object whose live state names another controller; undefined when it names none. */
export function foreignOwner(item: Item, intent: KubeObject, live: KubeObject): Verdict | undefined {
  const owner = foreignController(intent, live);
  return owner === undefined ? undefined : ownedBy(item, owner);
}

/** Verdict on a dry run that the server accepted. */
function accepted(item: Item, intent: KubeObject, need: Need, result: KubeObject): Verdict {
  const uid = uidOf(result);
  const owner = foreignController(intent, result);
  if (owner !== undefined) return ownedBy(item, owner);
  const version = result.metadata.resourceVersion ?? '';
  if (need.need === 'write' && (need.uid === uid || need.formerUID === uid)) return { verdict: 'ours', uid, version };
  if (item.entry.createOnly) return { verdict: 'leave', uid };
  return { verdict: 'look', uid };
}

/**
 * Whether an object that we wrote once, and that carries these marks, may be taken up: the release that its label names has
 * let it go, so that nothing has to be deleted for it to change hands. `hold` is what the ledger of that release says.
 */
function letGo(item: Item, need: Need, release: string, live: KubeObject, hold: Hold | undefined): boolean {
  const { metadata } = live;
  const former = metadata.labels?.[labels.release];
  if (hold !== 'free' || metadata.annotations?.[annotations.id] !== item.id || !appliedByUs(live)) return false;
  return former !== release || (need.need === 'write' && need.why === 'new');
}

/** The release whose label a live object carries, when this item could be handed over by it. */
export const formerRelease = (live: KubeObject): string | undefined => live.metadata.labels?.[labels.release];

/**
 * Verdict after the read that {@link Verdict} `look` asked for. `live` is absent when the object is gone by now; `hold` tells
 * whether the release that its label names still has it.
 */
export function afterLook(item: Item, need: Need, release: string, live: KubeObject | undefined, hold?: Hold): Verdict {
  if (live === undefined) return { verdict: 'new' };
  const uid = uidOf(live);
  const ours: Verdict = { verdict: 'ours', uid, version: live.metadata.resourceVersion ?? '' };
  const intended = need.need === 'write' && need.why !== 'new';
  if (intended && need.why !== 'replaced' && hasMarks(live.metadata, item.id, release) && appliedByUs(live))
    return ours;
  if (letGo(item, need, release, live, hold)) return ours;
  const other = formerRelease(live);
  if (other !== undefined && other !== release && hold === 'held')
    return {
      verdict: 'refused',
      problem: say(item, 'OwnedByAnother', `Release ${other} has it, and Release ${release} names it too`, {
        remedy: `take it out of the payload of ${other}: it is handed over then, and never deleted in between`,
      }),
    };
  const who = [...new Set((live.metadata.managedFields ?? []).map((entry) => entry.manager ?? 'unknown'))].sort();
  const replaced = need.need === 'write' && need.why === 'replaced';
  const owners = markedOwners(live.metadata).map((owner) => `, marked as of ${owner}`);
  return {
    verdict: 'refused',
    problem: say(
      item,
      replaced ? 'ObjectReplaced' : 'AlreadyExists',
      `${replaced ? 'another object took its name' : 'it exists and is not ours'} (UID ${uid}, written by ${who.join(', ') || 'unknown'}${owners.join('')})`,
      { remedy: 'delete it, or take it out of the payload; nothing of it was changed' },
    ),
  };
}

/** The pointers of conflicting fields that the object gives up, or undefined when it insists on one of them. */
function yielded(item: Item, intent: KubeObject, conflict: ApplyConflict): string[] | undefined {
  if (item.entry.conflict !== 'yield') return undefined;
  const given = item.entry.yieldFields;
  const pointers = conflict.managers.flatMap(({ fields }) => fields.map((field) => pointerOf(intent, field)));
  const known = pointers.filter((pointer) => pointer !== undefined);
  if (known.length !== pointers.length || known.length === 0) return undefined;
  const allowed = (pointer: string): boolean => given === undefined || given.some((at) => isWithin(pointer, at));
  return known.every(allowed) ? known : undefined;
}

function conflicted(item: Item, intent: KubeObject, conflict: ApplyConflict): Verdict {
  const pointers = yielded(item, intent, conflict);
  if (pointers !== undefined)
    return { verdict: 'yield', pointers, managers: conflict.managers.map(({ manager }) => manager) };
  const held = conflict.managers.map(
    ({ manager, operation, fields }) =>
      `${manager}${operation === undefined ? '' : ` (${operation})`} holds ${fields.join(', ')}`,
  );
  return {
    verdict: 'refused',
    problem: say(item, 'FieldConflict', held.join('; '), {
      ...(conflict.managers[0]?.fields[0] === undefined ? {} : { path: conflict.managers[0].fields[0] }),
      remedy:
        'let the other manager give the field up, or annotate the manifest with keelson.dev/conflict-policy: yield',
    }),
  };
}

const isImmutable = (invalid: Invalid): boolean =>
  invalid.causes.some(({ message }) => /immutable|may not be changed|updates to .* are forbidden/i.test(message));

function isInvalid(item: Item, need: Need, invalid: Invalid): Verdict {
  const uid = need.need === 'write' ? need.uid : undefined;
  const fields = invalid.causes.map(({ field }) => field).filter((field) => field !== '');
  const path = fields.length > 0 ? { path: fields.slice(0, 5).join(', ') } : {};
  if (uid === undefined || !isImmutable(invalid))
    return { verdict: 'refused', problem: say(item, reasonOf(invalid), invalid.message, path) };
  if (item.entry.recreate && recreatableKinds.includes(groupKindOf(item.entry))) return { verdict: 'replace', uid };
  return {
    verdict: 'refused',
    problem: say(item, 'ImmutableField', invalid.message, {
      ...path,
      remedy: item.entry.recreate
        ? `objects of kind ${item.entry.kind} are never deleted and created again`
        : 'annotate the manifest with keelson.dev/recreate: "true" to allow that it is deleted and created again',
    }),
  };
}

function reasonOf(invalid: Invalid): string {
  if (invalid.causes.some(({ field }) => field.startsWith('status.storedVersions'))) return 'StoredVersionDropped';
  return 'ObjectInvalid';
}

/** Whose the object is, by the answer to its dry run. */
export function verdictOf(item: Item, intent: KubeObject, need: Need, answer: ApplyOutcome): Verdict {
  switch (answer.type) {
    case 'created':
      return { verdict: 'new' };
    case 'configured':
    case 'unchanged':
      return accepted(item, intent, need, answer.object);
    case 'conflict':
      return conflicted(item, intent, answer);
    case 'gone':
    case 'stale':
      return { verdict: 'unavailable', problem: say(item, 'ObjectChanged', answer.message) };
    case 'invalid':
      if (isUndryable(answer.message))
        return { verdict: 'undryable', problem: say(item, 'ObjectInvalid', answer.message) };
      return isInvalid(item, need, answer);
    case 'namespaceMissing':
      return {
        verdict: 'unjudged',
        missing: 'namespace',
        problem: say(item, 'NamespaceAbsent', namespaceTrouble(answer).message, {
          remedy: namespaceTrouble(answer).remedy,
        }),
      };
    case 'kindAbsent':
      return {
        verdict: 'unjudged',
        missing: 'kind',
        problem: say(item, 'KindAbsent', answer.message, {
          remedy: 'put the CustomResourceDefinition into an earlier phase of this release, or install it',
        }),
      };
    case 'forbidden':
      return { verdict: 'refused', problem: say(item, 'Forbidden', answer.message) };
    case 'unavailable': {
      const trouble = webhookTrouble(answer.message);
      if (trouble !== undefined)
        return { verdict: 'blocked', trouble, problem: say(item, 'WebhookBlocks', answer.message) };
      return { verdict: 'unavailable', problem: say(item, 'ApiUnavailable', answer.message) };
    }
    case 'unauthorized':
      return { verdict: 'unavailable', problem: say(item, 'ApiUnavailable', answer.message) };
  }
}
