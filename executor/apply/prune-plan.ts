/** What may be removed after a pass: what the ledger holds and the payload no longer names. Pure. */
import {
  annotations,
  confirmKinds,
  foreignAnnotations,
  labels,
  neverPrunedKinds,
} from '../../constructs/api/constants.ts';
import type { Ledger, LedgerEntry } from '../../constructs/api/ledger.ts';
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { ObjectMeta } from '../kube/types.ts';
import type { LiveIndex } from './need.ts';

export interface PruneCandidate {
  readonly id: string;
  readonly entry: LedgerEntry;
  /** UID to delete; absent when no live object of ours was found. */
  readonly uid?: string;
}

/** Why an object that left the payload stays in the cluster. */
export type LeftReason = 'keep' | 'pruneDisabled' | 'held' | 'claimed' | 'brake' | 'confirm' | 'unmanaged';

export interface PrunePlan {
  /** To be deleted, in no order yet. */
  readonly remove: readonly PruneCandidate[];
  /** Nothing is live under the ledger's UID: the id leaves the ledger once that is confirmed by a read. */
  readonly vanished: readonly PruneCandidate[];
  /** Stays, and stays in the ledger. */
  readonly left: readonly { readonly id: string; readonly why: LeftReason }[];
  /** Stays and leaves the ledger: it is kept by its manifest, or another release has it now. */
  readonly dropped: readonly { readonly id: string; readonly why: LeftReason }[];
  /** Why a bound stopped the whole prune; absent when none did. */
  readonly brake?: string;
}

export interface PruneInput {
  readonly release: string;
  readonly ledger: Ledger;
  /** Ids that the payload names, tombstones included. */
  readonly wanted: ReadonlySet<string>;
  readonly live: LiveIndex;
  /** Ids whose removal the accepted plan names, within its bounds or approved by a person. */
  readonly planned: ReadonlySet<string>;
  readonly policy: { readonly enabled: boolean; readonly maxPercent: number; readonly maxCount: number };
  /** A person approved this plan, or the Release asks for no approval at all. */
  readonly approved: boolean;
}

/** `group/Kind` of an object id. */
export function groupKindOfId(id: string): string {
  const { group, kind } = parseObjectId(id);
  return `${group}/${kind}`;
}

function isKept(id: string, live: ObjectMeta | undefined): boolean {
  const notes = live?.annotations ?? {};
  return (
    neverPrunedKinds.includes(groupKindOfId(id)) ||
    notes[foreignAnnotations.helmResourcePolicy] === 'keep' ||
    notes[annotations.prune] === 'disabled'
  );
}

type Sorted =
  | { readonly to: 'remove' | 'vanished'; readonly candidate: PruneCandidate }
  | { readonly to: 'left' | 'dropped'; readonly why: LeftReason };

function sortOut(entry: LedgerEntry, input: PruneInput): Sorted {
  const { id } = entry;
  const live = input.live.get(id);
  if (entry.state === 'unmanaged') return { to: 'left', why: 'unmanaged' };
  const known = entry.uid ?? (live?.labels?.[labels.release] === input.release ? live.uid : undefined);
  if (live?.uid === undefined || known !== live.uid) {
    // A kept object leaves the ledger unread: nothing will ever be deleted under that id.
    if (neverPrunedKinds.includes(groupKindOfId(id))) return { to: 'dropped', why: 'keep' };
    return { to: 'vanished', candidate: { id, entry, ...(known === undefined ? {} : { uid: known }) } };
  }
  if (isKept(id, live)) return { to: 'dropped', why: 'keep' };
  const claim = live.labels?.[labels.release];
  if (claim !== undefined && claim !== input.release) return { to: 'dropped', why: 'claimed' };
  if (live.annotations?.[annotations.hold] !== undefined) return { to: 'left', why: 'held' };
  if (!input.policy.enabled) return { to: 'left', why: 'pruneDisabled' };
  return { to: 'remove', candidate: { id, entry, uid: live.uid } };
}

/**
 * What to remove. Ids that the accepted plan names were judged there; what an earlier, superseded payload left behind is
 * judged here by the same bounds. A bound that is passed stops the prune as a whole: half of it would help nobody.
 */
export function prunePlan(input: PruneInput): PrunePlan {
  const remove: PruneCandidate[] = [];
  const vanished: PruneCandidate[] = [];
  const left: { id: string; why: LeftReason }[] = [];
  const dropped: { id: string; why: LeftReason }[] = [];
  let managed = 0;
  for (const entry of [...input.ledger.values()].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    if (entry.state !== 'unmanaged') managed += 1;
    if (input.wanted.has(entry.id)) continue;
    const sorted = sortOut(entry, input);
    if ('candidate' in sorted) (sorted.to === 'remove' ? remove : vanished).push(sorted.candidate);
    else (sorted.to === 'left' ? left : dropped).push({ id: entry.id, why: sorted.why });
  }
  const brake = input.approved ? undefined : brakeOf(remove, managed, input);
  if (brake === undefined) return { remove, vanished, left, dropped };
  const stopped = remove.map(({ id }) => ({ id, why: 'brake' as const }));
  return { remove: [], vanished, left: [...left, ...stopped], dropped, brake };
}

function brakeOf(remove: readonly PruneCandidate[], managed: number, input: PruneInput): string | undefined {
  const unplanned = remove.filter(({ id, entry }) => !input.planned.has(id) && entry.state !== 'pruning');
  if (unplanned.length === 0) return undefined;
  const { maxCount, maxPercent } = input.policy;
  const confirmed = unplanned.filter(({ id }) => confirmKinds.includes(groupKindOfId(id)));
  if (confirmed.length > 0)
    return `${confirmed.map(({ id }) => id).join(', ')}: of a kind whose removal needs a person`;
  if (remove.length > maxCount) return `${remove.length} objects would be removed; prune.maxCount is ${maxCount}`;
  if (remove.length * 100 > managed * maxPercent)
    return `${remove.length} of ${managed} objects would be removed; prune.maxPercent is ${maxPercent}`;
  return undefined;
}
