import type { Ledger } from '../ledger.ts';
import type { AddressView } from '../objects.ts';

/** A claim has, or had, the address: no newer object takes that away. */
const isTaken = ({ bound, phase }: AddressView): boolean =>
  bound?.status === 'True' || phase === 'Bound' || phase === 'Released' || phase === 'Conflict' || phase === 'Lost';

/** Older objects first; of the same second the one with the smaller name. */
const before = (a: AddressView, b: AddressView): boolean =>
  a.createdAt === b.createdAt ? a.name < b.name : a.createdAt < b.createdAt;

/**
 * The object that has the same IP address with more right: one that is taken, else the older one. Undefined for the one that
 * has most. Two that are both taken keep what they have, and both are told of.
 */
export function rivalOf(ledger: Ledger, address: AddressView): AddressView | undefined {
  if (address.ip === undefined) return undefined;
  const others = ledger.addressesAt(address.ip.text).filter(({ uid }) => uid !== address.uid);
  const own = isTaken(address);
  return others.find((other) => (isTaken(other) === own ? own || before(other, address) : isTaken(other)));
}

/** Whether nobody may take the address, since another object has it with more right. */
export const isSurplus = (ledger: Ledger, address: AddressView): boolean =>
  !isTaken(address) && rivalOf(ledger, address) !== undefined;
