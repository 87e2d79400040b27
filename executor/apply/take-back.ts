/** What somebody took of an object of ours by an Update is given up by its holder, so that the usual apply sets it; never by force. */
import type { KubeClient } from '../kube/client.ts';
import type { ApplyOutcome } from '../kube/outcome.ts';
import { type KubeObject, refOf, resourceVersionOf, uidOf } from '../kube/types.ts';
import { compare } from './drift/compare.ts';
import { whoTook, withoutTaken } from './drift/holders.ts';
import type { Item } from './items.ts';

/** Whether what stands in the way of an apply is only what Updates took of an object of the ledger. */
export function isTaken({ entry }: Item, uid: string | undefined, answer: ApplyOutcome): boolean {
  if (answer.type !== 'conflict' || uid === undefined || entry.conflict === 'yield') return false;
  return answer.managers.every(({ operation }) => operation === 'Update');
}

/**
 * `freed`: the object has this version now, and its values are as they were. `held`: somebody's Apply is in the way, or
 * nobody's hand. `changed`: it is another version than was looked at.
 */
export type Freed =
  | { readonly type: 'freed'; readonly resourceVersion: string }
  | { readonly type: 'held' }
  | { readonly type: 'changed' }
  | { readonly type: 'failed'; readonly reason: 'Forbidden' | 'ApiUnavailable'; readonly message: string };

/**
 * Takes exactly the fields that differ from the intent out of the entries of those who updated them, for the version that was
 * looked at and no other.
 */
export async function freeTaken(
  { client, check, signal }: { readonly client: KubeClient; readonly check: () => void; readonly signal: AbortSignal },
  intent: KubeObject,
  live: KubeObject,
): Promise<Freed> {
  const compared = compare(intent, live);
  const entries = live.metadata.managedFields ?? [];
  const held = (compared.same ? [] : whoTook(entries, compared.differences)).filter(
    ({ holders }) => holders.length > 0,
  );
  if (held.length === 0 || held.some(({ holders }) => holders.some(({ operation }) => operation === 'Apply')))
    return { type: 'held' };
  check();
  const patch = { uid: uidOf(live), resourceVersion: resourceVersionOf(live), entries: withoutTaken(entries, held) };
  const given = await client.replaceManagedFields(refOf(live), patch, { signal });
  if (given.type === 'updated') return { type: 'freed', resourceVersion: resourceVersionOf(given.object) };
  if (given.type === 'stale' || given.type === 'absent') return { type: 'changed' };
  const reason = given.type === 'forbidden' ? 'Forbidden' : 'ApiUnavailable';
  return { type: 'failed', reason, message: given.message };
}
