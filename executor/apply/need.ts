/** What each object of a payload needs, from the ledger and one listing of what is live. Pure. */
import { annotations, labels } from '../../constructs/api/constants.ts';
import type { Ledger, LedgerEntry } from '../../constructs/api/ledger.ts';
import type { ObjectMeta } from '../kube/types.ts';
import type { Item } from './items.ts';

/** Live objects of a release by id; metadata only. */
export type LiveIndex = ReadonlyMap<string, ObjectMeta>;

export type WriteReason =
  | 'new'
  | 'changed'
  /** An earlier run meant to write it and did not record that it had. */
  | 'unfinished'
  /** The ledger knows it, the cluster does not. */
  | 'vanished'
  /** Another object took its name. */
  | 'replaced'
  /** An override, or a prune, that is no longer wanted. */
  | 'resumed';

/** `uid` is that of the live object that the ledger owns; `formerUID` that of one which was not found. */
export type Need =
  | { readonly need: 'none'; readonly uid: string }
  | { readonly need: 'write'; readonly why: WriteReason; readonly uid?: string; readonly formerUID?: string }
  | { readonly need: 'remove'; readonly uid: string; readonly finalizers: readonly string[] }
  | { readonly need: 'gone' }
  | { readonly need: 'held'; readonly uid: string; readonly by: string }
  | {
      readonly need: 'terminating';
      readonly uid: string;
      readonly finalizers: readonly string[];
      readonly since: string;
    }
  | { readonly need: 'unmanaged' }
  /** Its adoption has begun, under this UID, and is not known to be done. */
  | { readonly need: 'adopt'; readonly uid: string };

/** Whether the metadata of a live object carries the marks that only this release's objects carry. */
export function hasMarks(metadata: ObjectMeta | undefined, id: string, release: string): boolean {
  return metadata?.labels?.[labels.release] === release && metadata.annotations?.[annotations.id] === id;
}

/** The other release whose label an object carries; undefined when it carries none, or this one's. */
export function claimant(metadata: ObjectMeta, release: string): string | undefined {
  const by = metadata.labels?.[labels.release];
  return by === release ? undefined : by;
}

/** Whether the live object says that nothing may write it, and in whose words. */
function holdOf(metadata: ObjectMeta | undefined): string | undefined {
  return metadata?.annotations?.[annotations.hold];
}

/**
 * In whose words an object is not to be written that may have been marked after it was looked at. A quiesced one that was
 * so before is written: whoever marked it knew of the payload.
 */
export function heldSince(before: ObjectMeta | undefined, now: ObjectMeta | undefined): string | undefined {
  const quiesced = before?.annotations?.[annotations.quiesce];
  return holdOf(now) ?? (quiesced === undefined ? now?.annotations?.[annotations.quiesce] : undefined);
}

export interface NeedInput {
  readonly release: string;
  readonly ledger: Ledger;
  readonly live: LiveIndex;
  /** Ids that a person has taken out of management. */
  readonly overridden: ReadonlySet<string>;
}

/**
 * The live object that the ledger owns: by UID, or by its marks where the UID was not recorded. What nobody manages may be
 * somebody else's that was there before: there it takes both.
 */
function owned(
  entry: LedgerEntry | undefined,
  live: ObjectMeta | undefined,
  id: string,
  release: string,
): string | undefined {
  if (live?.uid === undefined || entry === undefined) return undefined;
  if (entry.uid !== undefined && entry.uid !== live.uid) return undefined;
  if (entry.uid !== undefined && entry.state !== 'unmanaged') return live.uid;
  return hasMarks(live, id, release) ? live.uid : undefined;
}

/** What one object needs. */
export function needOf(item: Item, input: NeedInput): Need {
  const { id } = item;
  if (input.overridden.has(id)) return { need: 'unmanaged' };
  const entry = input.ledger.get(id);
  const live = input.live.get(id);
  if (entry?.state === 'adopting' && entry.uid !== undefined) return { need: 'adopt', uid: entry.uid };
  const uid = owned(entry, live, id, input.release);
  const hold = holdOf(live);
  if (hold !== undefined && live?.uid !== undefined) return { need: 'held', uid: live.uid, by: hold };
  const finalizers = live?.finalizers ?? [];
  if (item.entry.absent) return uid === undefined ? { need: 'gone' } : { need: 'remove', uid, finalizers };
  if (uid !== undefined && typeof live?.deletionTimestamp === 'string')
    return { need: 'terminating', uid, finalizers, since: live.deletionTimestamp };
  if (entry === undefined) return { need: 'write', why: 'new' };
  // A create-only object that somebody else had made before us is theirs for good.
  if (item.entry.createOnly && entry.state === 'unmanaged')
    return uid === undefined ? { need: 'unmanaged' } : { need: 'none', uid };
  return writeNeed(item, entry, live, uid);
}

function writeNeed(item: Item, entry: LedgerEntry, live: ObjectMeta | undefined, uid: string | undefined): Need {
  if (entry.state === 'unmanaged' || entry.state === 'pruning') return resumed(entry, uid);
  if (uid === undefined) {
    const former = entry.uid === undefined ? {} : { formerUID: entry.uid };
    if (live?.uid !== undefined && entry.uid !== undefined && !mayBeReplacement(item, entry, live))
      return { need: 'write', why: 'replaced', ...former };
    return { need: 'write', why: entry.state === 'applied' ? 'vanished' : 'unfinished', ...former };
  }
  if (entry.state === 'intended') return { need: 'write', why: 'unfinished', uid };
  if (item.entry.createOnly || entry.sha256 === item.entry.sha256) return { need: 'none', uid };
  return { need: 'write', why: 'changed', uid };
}

/**
 * An object that was being deleted and created again when the work was cut off: the new one is ours although the ledger knows
 * the old one's UID. That we created it, a read has still to prove.
 */
const mayBeReplacement = (item: Item, entry: LedgerEntry, live: ObjectMeta): boolean =>
  item.entry.recreate &&
  entry.state === 'intended' &&
  live.annotations?.[annotations.id] === item.id &&
  live.labels?.[labels.release] !== undefined;

function resumed(entry: LedgerEntry, uid: string | undefined): Need {
  if (uid !== undefined) return { need: 'write', why: 'resumed', uid };
  // Under the UID of what nobody manages may stand what was never ours: only its marks tell, by a read.
  const former = entry.state === 'unmanaged' ? undefined : entry.uid;
  return { need: 'write', why: 'resumed', ...(former === undefined ? {} : { formerUID: former }) };
}

/** What every object of a payload needs, by id. */
export function needsOf(items: readonly Item[], input: NeedInput): Map<string, Need> {
  return new Map(items.map((item) => [item.id, needOf(item, input)]));
}
