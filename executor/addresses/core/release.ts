/** What becomes of an address whose claim is gone, or going. */
import type { JsonObject } from '../../../constructs/lib/json.ts';
import { isObject } from '../../../constructs/lib/json.ts';
import type { Ledger } from '../ledger.ts';
import { type AddressView, claimKey, type LedgerCondition } from '../objects.ts';
import { isReleased } from './accept.ts';
import { conditionOf, withConditions } from './conditions.ts';

/** The status of an object as it is. */
export const statusOf = ({ object }: AddressView): JsonObject => (isObject(object.status) ? object.status : {});

/**
 * Whether a driver made the address for a claim that never had it. Nobody knows such an address: kept as Released it would be
 * reserved for nothing. A driver is known by a finalizer under its own name.
 */
function isUnused(ledger: Ledger, { className, finalizers, phase, bound }: AddressView): boolean {
  const provisioner = ledger.class(className)?.provisioner;
  const byDriver = provisioner !== undefined && finalizers.some((one) => one.startsWith(`${provisioner}/`));
  const fresh = phase === undefined || phase === 'Pending';
  return byDriver && fresh && bound?.status !== 'True' && bound?.reason !== 'Released';
}

/** Whether the address goes with its claim. */
export const goesAlong = (ledger: Ledger, address: AddressView): boolean =>
  address.reclaimPolicy === 'Delete' || isUnused(ledger, address);

/** Conflict and Lost are the driver's: it takes them back itself, and the address is Released then. */
const isDrivers = ({ phase }: AddressView): boolean => phase === 'Conflict' || phase === 'Lost';

/** The status of a released address; its clock starts now unless it ran already. */
export function releasedStatus(address: AddressView, now: number): JsonObject {
  const { claimRef, phase } = address;
  const claim = claimRef === undefined ? '' : claimKey(claimRef);
  // One that was never Bound has a condition that is False already: its clock starts when it is released all the same.
  const present = isReleased(address) ? address.conditions : address.conditions.filter(endedBefore);
  return {
    ...statusOf(address),
    phase: isDrivers(address) ? (phase ?? 'Pending') : 'Released',
    conditions: withConditions(present, [conditionOf('Bound', 'False', 'Released', { claim })], now),
  };
}

const endedBefore = ({ type, status }: LedgerCondition): boolean => type !== 'Bound' || status === 'True';
