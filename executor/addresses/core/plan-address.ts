/** What the core does about an address. Pure: the ledger in, writes in their order out. */
import { addressFinalizers } from '../../../constructs/api/addresses.ts';
import type { AddressPhase } from '../../../constructs/api/ledger-words.ts';
import { reasonMessage } from '../../../constructs/api/reasons.ts';
import { deepEqual, type JsonObject } from '../../../constructs/lib/json.ts';
import { holderOf, type Ledger } from '../ledger.ts';
import { type AddressView, type ClaimView, claimKey } from '../objects.ts';
import { type Confirmation, type LedgerAction, type LedgerEvent, type LedgerPlan, nothing } from '../plan.ts';
import { acceptance, isReleased } from './accept.ts';
import { conditionOf, type NewCondition, withConditions } from './conditions.ts';
import { isSurplus, rivalOf } from './duplicate.ts';
import { goesAlong, releasedStatus, statusOf } from './release.ts';

/**
 * One pass over an address, given by name.
 * @param now milliseconds since 1970.
 */
export function planAddress(ledger: Ledger, name: string, now: number): LedgerPlan {
  const address = ledger.address(name);
  if (address === undefined) return nothing;
  if (address.deleting) return finaliseAddress(ledger, address, now);
  const settled = settle(ledger, address, now);
  return {
    ...settled,
    actions: [...protect(address), ...settled.actions],
    warnings: [...duplicateWarning(ledger, address), ...settled.warnings],
  };
}

/** What was seen of the claim is read again: it is not held to be gone because the watch is late. */
function goneClaim(ledger: Ledger, { claimRef }: AddressView): Confirmation[] {
  if (claimRef === undefined) return [];
  const { namespace, name } = claimRef;
  const ref = { kind: 'IPAddressClaim', namespace, name };
  return [{ type: 'identity', ref, uid: ledger.claim(claimKey(claimRef))?.uid }];
}

/** A live claim that has the address keeps it, whatever its phase; until it is gone nothing else of the address changes. */
function finaliseAddress(ledger: Ledger, address: AddressView, now: number): LedgerPlan {
  const { finalizers } = address;
  if (!finalizers.includes(addressFinalizers.address)) return nothing;
  const claim = holderOf(ledger, address);
  if (claim?.deleting === false && acceptance(ledger, claim).accepted.some(({ uid }) => uid === address.uid)) {
    const settled = settle(ledger, address, now);
    return {
      ...settled,
      warnings: [...settled.warnings, warn(address, 'DeletionBlocked', { claim: claimKey(claim) })],
    };
  }
  const patch = { finalizers: finalizers.filter((one) => one !== addressFinalizers.address) };
  const confirm = claim === undefined ? goneClaim(ledger, address) : [];
  return { actions: [{ type: 'patch', target: address, patch, confirm }], warnings: [] };
}

const protect = (address: AddressView): LedgerAction[] =>
  address.finalizers.includes(addressFinalizers.address)
    ? []
    : [{ type: 'patch', target: address, patch: { finalizers: [...address.finalizers, addressFinalizers.address] } }];

const warn = (about: AddressView, why: string, values: Readonly<Record<string, string>>): LedgerEvent => ({
  about,
  type: 'Warning',
  reason: why,
  note: reasonMessage(why, values),
});

function duplicateWarning(ledger: Ledger, address: AddressView): LedgerEvent[] {
  const rival = rivalOf(ledger, address);
  return rival === undefined ? [] : [warn(address, 'DuplicateAddress', { address: address.text, other: rival.name })];
}

/** Phase and condition, where they differ from what is stored. */
function status(
  address: AddressView,
  phase: AddressPhase | undefined,
  bound: NewCondition,
  now: number,
): LedgerAction[] {
  const next: JsonObject = {
    ...statusOf(address),
    ...(phase === undefined ? {} : { phase }),
    conditions: withConditions(address.conditions, [bound], now),
  };
  return deepEqual(statusOf(address), next) ? [] : [{ type: 'status', target: address, status: next }];
}

const only = (actions: readonly LedgerAction[], warnings: readonly LedgerEvent[] = []): LedgerPlan => ({
  actions,
  warnings,
});

const isDrivers = ({ phase }: AddressView): boolean => phase === 'Conflict' || phase === 'Lost';

function settle(ledger: Ledger, address: AddressView, now: number): LedgerPlan {
  const { claimRef } = address;
  if (address.ip === undefined) {
    const condition = conditionOf('Bound', 'False', 'InvalidAddress', { value: address.text });
    return only(status(address, 'Pending', condition, now), [warn(address, 'InvalidAddress', { value: address.text })]);
  }
  if (claimRef !== undefined && holderOf(ledger, address) === undefined) return reclaim(ledger, address, now);
  if (claimRef === undefined) return only(settleFree(ledger, address, now));
  if (isDrivers(address)) return nothing;
  const claim = holderOf(ledger, address);
  if (claim === undefined || claim.deleting) return nothing;
  return settleNamed(ledger, address, claim, now);
}

/** A phase of the driver stays; that nobody has the address is said all the same, or the next claim would seem to have had it. */
function settleFree(ledger: Ledger, address: AddressView, now: number): LedgerAction[] {
  const rival = isSurplus(ledger, address) ? rivalOf(ledger, address) : undefined;
  const settled = (phase: AddressPhase, condition: NewCondition): LedgerAction[] =>
    status(address, isDrivers(address) ? undefined : phase, condition, now);
  if (rival === undefined) return settled('Available', conditionOf('Bound', 'False', 'Available'));
  const condition = conditionOf('Bound', 'False', 'DuplicateAddress', { address: address.text, other: rival.name });
  return settled('Pending', condition);
}

/** The address names a claim that lives: it has it, is about to, or does not want it. */
function settleNamed(ledger: Ledger, address: AddressView, claim: ClaimView, now: number): LedgerPlan {
  const { accepted, refused, replaced } = acceptance(ledger, claim);
  const refusal = refused.find((one) => one.address.uid === address.uid);
  const values = { claim: claimKey(claim), address: address.name };
  // The claim lets go of the one that this replaces first.
  if (replaced.some(({ uid, ip }) => uid === address.uid || ip?.family === address.ip?.family)) return nothing;
  if (accepted.some(({ uid }) => uid === address.uid)) {
    const taken = address.claimRef?.uid === claim.uid;
    if (taken)
      return only(status(address, 'Bound', conditionOf('Bound', 'True', 'Bound', { what: claimKey(claim) }), now));
    return only(
      isReleased(address) ? [] : status(address, undefined, conditionOf('Bound', 'False', 'ClaimPending', values), now),
    );
  }
  if (isReleased(address)) return released(ledger, address, now);
  if (refusal === undefined) return nothing;
  const condition = conditionOf('Bound', 'False', 'PreBindingRefused', { ...values, why: refusal.why });
  return only(status(address, 'Pending', condition, now));
}

/** The claim is gone without having let the address go, or was never there. */
function reclaim(ledger: Ledger, address: AddressView, now: number): LedgerPlan {
  const confirm = goneClaim(ledger, address);
  const claim = address.claimRef === undefined ? '' : claimKey(address.claimRef);
  const told = (what: string): LedgerEvent[] => [
    { about: address, type: 'Normal', reason: 'Reclaimed', note: reasonMessage('Reclaimed', { claim, what }) },
  ];
  if (goesAlong(ledger, address)) return only([{ type: 'delete', target: address, confirm, events: told('deleted') }]);
  return released(ledger, address, now, { confirm, events: isReleased(address) ? [] : told('released') });
}

/** A released address, and its way back to those that can be claimed. */
function released(
  ledger: Ledger,
  address: AddressView,
  now: number,
  how: Pick<LedgerAction, 'confirm' | 'events'> = {},
): LedgerPlan {
  const next = releasedStatus(address, now);
  const settled = deepEqual(statusOf(address), next);
  if (!settled) return only([{ type: 'status', target: address, status: next, ...how }]);
  return isDrivers(address) ? nothing : returning(ledger, address, now);
}

const longestRestMs = 86_400_000;

function returning(ledger: Ledger, address: AddressView, now: number): LedgerPlan {
  const { className, held, associatedTo, bound } = address;
  const delay = ledger.class(className)?.releaseDelayMs;
  const since = Date.parse(bound?.lastTransitionTime ?? '');
  // What a workload still uses is given to nobody else; that it no longer does wakes this address.
  if (delay === undefined || held || associatedTo !== undefined || Number.isNaN(since)) return nothing;
  const left = since + delay - now;
  // A timer holds no more than some weeks: a longer delay is looked at on the way.
  if (left > 0) return { ...nothing, againMs: Math.min(left, longestRestMs) };
  const note = reasonMessage('Returned', { class: className });
  const events: LedgerEvent[] = [{ about: address, type: 'Normal', reason: 'Returned', note }];
  return only([{ type: 'patch', target: address, patch: { claimRef: null }, events }]);
}
