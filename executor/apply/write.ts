/** Writes one object that was judged. A create must answer 201, an update carries the UID that the ledger owns. */

import { annotations, labels, managers } from '../../constructs/api/constants.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { WaitTimeout, waitFor } from '../../constructs/lib/wait.ts';
import type { KubeClient } from '../kube/client.ts';
import { isOurApply } from '../kube/managedfields.ts';
import type { ApplyOutcome } from '../kube/outcome.ts';
import { describeRef, type KubeObject, type ObjectMeta, resourceVersionOf, uidOf } from '../kube/types.ts';
import type { Judged } from './dryrun.ts';
import { itemRef } from './items.ts';
import { letGo } from './let-go.ts';
import { namespaceTrouble } from './namespace.ts';
import { heldSince } from './need.ts';
import { foreignOwner } from './ownership.ts';
import { freeTaken, isTaken } from './take-back.ts';
import { isDenied, webhookTrouble } from './webhook.ts';

export type WriteResult = 'created' | 'configured' | 'unchanged' | 'replaced' | 'left';

/**
 * `retry`: it may go well later without anybody doing anything. `answer`: the object as the server has it now, if it was
 * written. `held`: nothing is wrong, somebody has said on the object that it is to be left alone; what the mark says.
 */
export type WriteOutcome =
  | { readonly ok: true; readonly result: WriteResult; readonly uid: string; readonly answer?: KubeObject }
  | { readonly ok: false; readonly problem: Problem; readonly retry: boolean; readonly held?: string };

export interface WriteDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called right before each request that writes. @throws when writing is no longer allowed. */
  readonly check: () => void;
  /** How long a replaced object may take to go. */
  readonly replaceMs: number;
  /**
   * Metadata of an object as it was when what it needs was decided. An update then holds for that version alone: who marks
   * the object meanwhile is not written over. Without it an update holds for any version.
   */
  readonly seen?: (id: string) => ObjectMeta | undefined;
  /** The payload is accepted: what an Update took of an object since is taken back, as drift is. */
  readonly takeBack?: boolean;
}

function refuse(
  judged: Judged,
  reason: string,
  message: string,
  retry: boolean,
  remedy?: string,
): Extract<WriteOutcome, { readonly ok: false }> {
  const object = describeRef(itemRef(judged.item));
  return { ok: false, retry, problem: { reason, message, object, ...(remedy === undefined ? {} : { remedy }) } };
}

const unavailableReason = (message: string): string =>
  webhookTrouble(message) === undefined ? 'ApiUnavailable' : 'WebhookBlocks';

/** What an answer that wrote nothing means. */
function failed(judged: Judged, answer: Exclude<ApplyOutcome, { readonly object: KubeObject }>): WriteOutcome {
  switch (answer.type) {
    case 'conflict':
      return refuse(
        judged,
        'FieldConflict',
        answer.managers.map(({ manager, fields }) => `${manager} holds ${fields.join(', ')}`).join('; '),
        true,
      );
    case 'gone':
      return refuse(judged, answer.why === 'replaced' ? 'ObjectReplaced' : 'ObjectChanged', answer.message, true);
    case 'stale':
      return refuse(judged, 'ObjectChanged', answer.message, true);
    case 'invalid':
      return refuse(judged, 'ObjectInvalid', answer.message, false);
    case 'forbidden':
      return refuse(judged, 'Forbidden', answer.message, true);
    case 'namespaceMissing':
      return refuse(judged, 'NamespaceAbsent', namespaceTrouble(answer).message, true, namespaceTrouble(answer).remedy);
    case 'kindAbsent':
      return refuse(judged, 'KindAbsent', answer.message, true);
    case 'unavailable':
      return refuse(judged, unavailableReason(answer.message), answer.message, true);
    case 'unauthorized':
      return refuse(judged, 'ApiUnavailable', answer.message, true);
  }
}

async function create(judged: Judged, deps: WriteDeps, result: WriteResult = 'created'): Promise<WriteOutcome> {
  deps.check();
  const answer = await deps.client.apply(judged.intent, { fieldManager: managers.objects, signal: deps.signal });
  if (answer.type === 'created') return { ok: true, result, uid: uidOf(answer.object), answer: answer.object };
  if (!('object' in answer)) return failed(judged, answer);
  // The first attempt of this very call may have created it while its reply was lost.
  if (answer.retried && isOfThisAge(answer.object))
    return { ok: true, result, uid: uidOf(answer.object), answer: answer.object };
  return stranger(judged, answer.object, deps);
}

/** Whether what we applied is as old as the object: it was made by that. An apply that changes nothing keeps its time. */
function isOfThisAge({ metadata: { managedFields = [], creationTimestamp } }: KubeObject): boolean {
  const applied = managedFields.find(isOurApply)?.time;
  return applied !== undefined && Date.parse(applied) <= Date.parse(creationTimestamp ?? '');
}

/** Somebody made it meanwhile. Our marks would say later that it is ours, to be managed and removed: they go at once. */
async function stranger(judged: Judged, object: KubeObject, deps: WriteDeps): Promise<WriteOutcome> {
  const release = judged.intent.metadata.labels?.[labels.release] ?? '';
  const marked = await letGo(itemRef(judged.item), uidOf(object), { ...deps, release });
  const left = marked === undefined ? '' : `; our marks are still on it: ${marked.message}`;
  return refuse(
    judged,
    'AlreadyExists',
    `it appeared between the dry run and the write (UID ${uidOf(object)}); fields that nobody else held were set${left}`,
    false,
    'look who made it; delete it, or take it out of the payload',
  );
}

async function update(judged: Judged, uid: string, version: string, deps: WriteDeps): Promise<WriteOutcome> {
  const { seen, takeBack } = deps;
  const before = seen?.(judged.item.id);
  let answer = await (seen === undefined
    ? applyTo(judged, uid, undefined, deps)
    : applySeen(judged, uid, before, deps));
  if (takeBack === true && !('ok' in answer) && isTaken(judged.item, uid, answer))
    answer = await applyTaken(judged, uid, before, answer, deps);
  if ('ok' in answer) return answer;
  if (!('object' in answer)) return failed(judged, answer);
  if (answer.type === 'created')
    return refuse(judged, 'ObjectChanged', 'the API server created an object in answer to an update by UID', true);
  const same = answer.object.metadata.resourceVersion === version;
  return { ok: true, result: same ? 'unchanged' : 'configured', uid: uidOf(answer.object), answer: answer.object };
}

function applyTo(
  judged: Judged,
  uid: string,
  resourceVersion: string | undefined,
  { client, signal, check }: WriteDeps,
): Promise<ApplyOutcome> {
  check();
  const as = resourceVersion === undefined ? {} : { resourceVersion };
  return client.apply(judged.intent, { fieldManager: managers.objects, signal, uid, ...as });
}

/** An object changes for many reasons between a look and a write, mostly by its own controller. */
const mostLooks = 8;

type Again = { readonly live: KubeObject } | Extract<WriteOutcome, { readonly ok: false }>;

/** A look at an object that changed since it was decided on, or what keeps it from being written. */
async function lookAgain(
  judged: Judged,
  uid: string,
  before: ObjectMeta | undefined,
  { client, signal }: WriteDeps,
): Promise<Again> {
  const live = await client.get(itemRef(judged.item), { signal });
  if (live.type === 'absent') return refuse(judged, 'ObjectChanged', 'it is gone', true);
  if (live.type !== 'found')
    return refuse(judged, live.type === 'forbidden' ? 'Forbidden' : 'ApiUnavailable', live.message, true);
  const { metadata } = live.object;
  if (metadata.uid !== uid) return refuse(judged, 'ObjectReplaced', `it has UID ${metadata.uid}, not ${uid}`, true);
  const held = heldSince(before, metadata);
  if (held !== undefined) return { ...refuse(judged, 'ObjectHeld', `it is held: ${held}`, true), held };
  // The dry run would have refused it, had it been asked about the object as it is now.
  const foreign = foreignOwner(judged.item, judged.intent, live.object);
  if (foreign?.verdict === 'refused') return { ok: false, retry: true, problem: foreign.problem };
  return { live: live.object };
}

/** Applies to the version that was decided on, or to one that was looked at since. */
async function applySeen(
  judged: Judged,
  uid: string,
  before: ObjectMeta | undefined,
  deps: WriteDeps,
): Promise<ApplyOutcome | WriteOutcome> {
  let version = before?.resourceVersion;
  for (let look = 1; ; look += 1) {
    if (version === undefined) {
      const again = await lookAgain(judged, uid, before, deps);
      if ('ok' in again) return again;
      version = resourceVersionOf(again.live);
    }
    const answer = await applyTo(judged, uid, version, deps);
    if (answer.type !== 'stale' || look === mostLooks) return answer;
    version = undefined;
  }
}

/** Applies after those who updated what is in the way have given it up; the conflict stands where that can not be. */
async function applyTaken(
  judged: Judged,
  uid: string,
  before: ObjectMeta | undefined,
  conflict: ApplyOutcome,
  deps: WriteDeps,
): Promise<ApplyOutcome | WriteOutcome> {
  let answer = conflict;
  for (let look = 0; look < mostLooks; look += 1) {
    const again = await lookAgain(judged, uid, before, deps);
    if ('ok' in again) return again;
    const freed = await freeTaken(deps, judged.intent, again.live);
    if (freed.type === 'changed') continue;
    if (freed.type === 'failed') return refuse(judged, freed.reason, freed.message, true);
    if (freed.type === 'held') return answer;
    answer = await applyTo(judged, uid, freed.resourceVersion, deps);
    if (answer.type !== 'stale' && !isTaken(judged.item, uid, answer)) return answer;
  }
  return answer;
}

const mostDeletes = 4;

/** A last uncached look at what is to be replaced: its version, or what keeps it from being deleted. */
async function lookBefore(judged: Judged, { client, signal }: WriteDeps): Promise<WriteOutcome | string | undefined> {
  const live = await client.get(itemRef(judged.item), { signal });
  if (live.type === 'absent') return undefined;
  if (live.type === 'found') {
    const { annotations: notes, resourceVersion } = live.object.metadata;
    const held = notes?.[annotations.hold] ?? notes?.[annotations.quiesce];
    if (held !== undefined) return { ...refuse(judged, 'ObjectHeld', `it is held: ${held}`, true), held };
    const foreign = foreignOwner(judged.item, judged.intent, live.object);
    return foreign?.verdict === 'refused' ? { ok: false, retry: true, problem: foreign.problem } : resourceVersion;
  }
  return refuse(judged, live.type === 'forbidden' ? 'Forbidden' : 'ApiUnavailable', live.message, true);
}

/** Deletes what is to be replaced, as it was just looked at. Answers what keeps it from being deleted. */
async function deleteSeen(judged: Judged, uid: string, deps: WriteDeps): Promise<WriteOutcome | undefined> {
  const { client, signal } = deps;
  let problem: WriteOutcome | undefined;
  for (let look = 0; look < mostDeletes; look += 1) {
    const seen = await lookBefore(judged, deps);
    if (typeof seen === 'object') return seen;
    const as = seen === undefined ? {} : { resourceVersion: seen };
    deps.check();
    const deleted = await client.delete(itemRef(judged.item), { uid, propagation: 'Background', signal, ...as });
    if (deleted.type === 'deleted' || deleted.type === 'absent' || deleted.type === 'terminating') return undefined;
    if (deleted.type !== 'preconditionFailed') {
      const denied = deleted.type === 'invalid' || isDenied(deleted.message);
      const reason = deleted.type === 'forbidden' ? 'Forbidden' : unavailableReason(deleted.message);
      return refuse(judged, denied ? 'DeleteDenied' : reason, deleted.message, true);
    }
    // It changed after the look, maybe by such a mark, or it is another object: the next look tells.
    problem = refuse(judged, 'ObjectReplaced', deleted.message, true);
  }
  return problem;
}

async function replace(judged: Judged, uid: string, deps: WriteDeps): Promise<WriteOutcome> {
  const { client, clock, signal } = deps;
  const ref = itemRef(judged.item);
  const kept = await deleteSeen(judged, uid, deps);
  if (kept !== undefined) return kept;
  try {
    await waitFor({
      what: `${describeRef(ref)} to be gone before it is created again`,
      limitMs: deps.replaceMs,
      intervalMs: 200,
      clock,
      signal,
      probe: async (saw) => {
        const live = await client.get(ref, { signal });
        if (live.type === 'absent' || (live.type === 'found' && uidOf(live.object) !== uid)) return true;
        saw(
          live.type === 'found' ? `finalizers ${live.object.metadata.finalizers?.join(', ') || 'none'}` : live.message,
        );
        return undefined;
      },
    });
  } catch (error) {
    if (!(error instanceof WaitTimeout)) throw error;
    return refuse(judged, 'ObjectTerminating', error.message, true);
  }
  return create(judged, deps, 'replaced');
}

/** Writes one object. Rejects with the signal's reason, or with what `check` throws. */
export async function writeItem(judged: Judged, deps: WriteDeps): Promise<WriteOutcome> {
  const { verdict } = judged;
  switch (verdict.verdict) {
    case 'new':
      return create(judged, deps);
    case 'ours':
      return update(judged, verdict.uid, verdict.version, deps);
    case 'replace':
      return replace(judged, verdict.uid, deps);
    case 'leave':
      return { ok: true, result: 'left', uid: verdict.uid };
  }
}
