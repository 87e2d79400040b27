/** What may be removed after a pass: what the ledger holds and the payload no longer names. Pure. */
import { annotations, confirmKinds, foreignAnnotations, neverPrunedKinds } from '../../constructs/api/constants.ts';
import type { Ledger, LedgerEntry } from '../../constructs/api/ledger.ts';
import { type Digest, digestOf } from '../../constructs/lib/digest.ts';
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { ObjectMeta } from '../kube/types.ts';
import { claimant, hasMarks, type LiveIndex } from './need.ts';
import { isRuntime } from './runtime.ts';

export interface PruneCandidate {
  readonly id: string;
  readonly entry: LedgerEntry;
  /** UID to delete; absent when no live object of ours was found. */
  readonly uid?: string;
}

/** Why an object that left the payload stays in the cluster. */
export type LeftReason = 'keep' | 'pruneDisabled' | 'held' | 'claimed' | 'brake' | 'unmanaged' | 'notAdopted';

export interface PrunePlan {
  /** To be deleted, in no order yet. */
  readonly remove: readonly PruneCandidate[];
  /** Nothing is live under the ledger's UID: the id leaves the ledger once that is confirmed by a read. */
  readonly vanished: readonly PruneCandidate[];
  /** Stays, and stays in the ledger. */
  readonly left: readonly { readonly id: string; readonly why: LeftReason }[];
  /** Stays and leaves the ledger: it is kept by its manifest, or another release has it now. */
  readonly dropped: readonly { readonly id: string; readonly why: LeftReason }[];
  /** Why a bound stopped the whole prune, and the digest of exactly this removal; absent when none did. */
  readonly brake?: { readonly why: string; readonly digest: Digest };
}

export interface PruneInput {
  readonly release: string;
  readonly ledger: Ledger;
  /** Ids that the payload names, tombstones included. */
  readonly wanted: ReadonlySet<string>;
  readonly live: LiveIndex;
  /** Ids that a person has taken out of management: what is there under them is left alone. */
  readonly overridden?: ReadonlySet<string>;
  /** Ids whose removal the accepted plan names, within its bounds or approved by a person. */
  readonly planned: ReadonlySet<string>;
  readonly policy: { readonly enabled: boolean; readonly maxPercent: number; readonly maxCount: number };
  /** A person approved what the accepted plan names: it counts no more. */
  readonly approved: boolean;
  /** The Release asks for no approval at all. */
  readonly unbounded: boolean;
  /** The digest that a person has approved: of a plan, or of a removal that a brake has stopped. */
  readonly approvedDigest?: string | undefined;
  /** Which other release wants an object, by id: it is handed over instead of removed. */
  readonly heirs?: ReadonlyMap<string, string>;
}

/** `group/Kind` of an object id. */
export function groupKindOfId(id: string): string {
  const { group, kind } = parseObjectId(id);
  return `${group}/${kind}`;
}

/** Whether a live object says of itself that it outlives its release: somebody wrote that on it, or what runs owns it. */
export function saysKeep(live: ObjectMeta): boolean {
  const notes = live.annotations ?? {};
  return (
    isRuntime(live) ||
    notes[foreignAnnotations.helmResourcePolicy] === 'keep' ||
    notes[annotations.prune] === 'disabled'
  );
}

const isKept = (entry: LedgerEntry, live: ObjectMeta): boolean =>
  entry.keep === true || neverPrunedKinds.includes(groupKindOfId(entry.id)) || saysKeep(live);

type Sorted =
  | { readonly to: 'remove' | 'vanished'; readonly candidate: PruneCandidate }
  | { readonly to: 'left' | 'dropped'; readonly why: LeftReason };

const dropped = (why: LeftReason): Sorted => ({ to: 'dropped', why });

/** UID of the live object that the ledger owns: by the recorded UID, and where there is none by the marks of the object. */
function ownUID(entry: LedgerEntry, live: ObjectMeta | undefined, release: string): string | undefined {
  if (live?.uid === undefined) return undefined;
  if (entry.uid !== undefined) return entry.uid === live.uid ? live.uid : undefined;
  return hasMarks(live, entry.id, release) ? live.uid : undefined;
}

function sortOut(entry: LedgerEntry, input: PruneInput): Sorted {
  const { id } = entry;
  const live = input.live.get(id);
  if (entry.state === 'unmanaged') return { to: 'left', why: 'unmanaged' };
  // It was there before us, and we have not got it yet.
  if (entry.state === 'adopting') return dropped('notAdopted');
  const uid = ownUID(entry, live, input.release);
  if (live === undefined || uid === undefined) {
    // A kept object leaves the ledger unread: nothing will ever be deleted under that id.
    if (entry.keep === true || neverPrunedKinds.includes(groupKindOfId(id))) return dropped('keep');
    return { to: 'vanished', candidate: { id, entry, ...(entry.uid === undefined ? {} : { uid: entry.uid }) } };
  }
  if (isKept(entry, live)) return dropped('keep');
  if (claimant(live, input.release) !== undefined) return dropped('claimed');
  if (input.heirs?.has(id) === true) return dropped('claimed');
  if (input.overridden?.has(id) === true) return { to: 'left', why: 'unmanaged' };
  const stop = [annotations.hold, annotations.quiesce].some((name) => live.annotations?.[name] !== undefined);
  if (stop) return { to: 'left', why: 'held' };
  if (!input.policy.enabled) return { to: 'left', why: 'pruneDisabled' };
  return { to: 'remove', candidate: { id, entry, uid } };
}

/** Digest of exactly this removal; a person who approves it approves these ids and no other. */
const removalDigest = (release: string, remove: readonly PruneCandidate[]): Digest =>
  digestOf({ release, remove: remove.map(({ id }) => id).sort() });

/**
 * What to remove. Ids that the accepted plan names were judged there; what an earlier, superseded payload left behind is
 * judged here by the same bounds. A bound that is passed stops the prune as a whole: half of it would help nobody.
 */
export function prunePlan(input: PruneInput): PrunePlan {
  const remove: PruneCandidate[] = [];
  const vanished: PruneCandidate[] = [];
  const left: { id: string; why: LeftReason }[] = [];
  const gone: { id: string; why: LeftReason }[] = [];
  let managed = 0;
  for (const entry of [...input.ledger.values()].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    if (entry.state !== 'unmanaged') managed += 1;
    if (input.wanted.has(entry.id)) continue;
    const sorted = sortOut(entry, input);
    if ('candidate' in sorted) (sorted.to === 'remove' ? remove : vanished).push(sorted.candidate);
    else (sorted.to === 'left' ? left : gone).push({ id: entry.id, why: sorted.why });
  }
  const why = brakeOf(remove, managed, input);
  if (why === undefined) return { remove, vanished, left, dropped: gone };
  const stopped = remove.map(({ id }) => ({ id, why: 'brake' as const }));
  const brake = { why, digest: removalDigest(input.release, remove) };
  return { remove: [], vanished, left: [...left, ...stopped], dropped: gone, brake };
}

function brakeOf(remove: readonly PruneCandidate[], managed: number, input: PruneInput): string | undefined {
  if (input.unbounded || remove.length === 0) return undefined;
  const unplanned = remove.filter(({ id, entry }) => !input.planned.has(id) && entry.state !== 'pruning');
  if (unplanned.length === 0 || input.approvedDigest === removalDigest(input.release, remove)) return undefined;
  const { maxCount, maxPercent } = input.policy;
  const confirmed = unplanned.filter(({ id }) => confirmKinds.includes(groupKindOfId(id)));
  if (confirmed.length > 0)
    return `${confirmed.map(({ id }) => id).join(', ')}: of a kind whose removal needs a person`;
  const counted = (input.approved ? unplanned : remove).length;
  if (counted > maxCount) return `${counted} objects would be removed; prune.maxCount is ${maxCount}`;
  if (counted * 100 > managed * maxPercent)
    return `${counted} of ${managed} objects would be removed; prune.maxPercent is ${maxPercent}`;
  return undefined;
}
