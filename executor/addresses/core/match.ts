/** Finds free addresses for a claim. */
import type { IPFamily } from '../../../constructs/lib/ip.ts';
import type { Ledger } from '../ledger.ts';
import { type AddressView, type ClaimView, claimKey } from '../objects.ts';
import { isSurplus } from './duplicate.ts';

export interface Matches {
  readonly found: readonly AddressView[];
  /** The families that these fill. */
  readonly families: readonly IPFamily[];
  /** Why the address that the claim names can not be taken, if it exists. */
  readonly unusable: string | undefined;
}

const isFree = (ledger: Ledger, address: AddressView, className: string): boolean =>
  address.claimRef === undefined &&
  !address.deleting &&
  address.phase === 'Available' &&
  address.className === className &&
  !ledger.isReserved(address) &&
  !isSurplus(ledger, address);

/**
 * For each family the free address of the class with the smallest name, or the one that the claim names. Always the smallest:
 * two claims that look at an old state then want the same one, and the version of its object lets only one have it.
 */
export function findMatches(
  ledger: Ledger,
  claim: ClaimView,
  missing: readonly IPFamily[],
  className: string,
): Matches {
  const named = claim.addressName === '' ? undefined : ledger.address(claim.addressName);
  const candidates = (): Iterable<AddressView> => {
    if (claim.addressName === '') return ledger.freeOf(className);
    return named === undefined ? [] : [named];
  };
  const found = missing.flatMap((family) => {
    for (const one of candidates()) if (one.ip?.family === family && isFree(ledger, one, className)) return [one];
    return [];
  });
  return {
    found,
    families: found.flatMap(({ ip }) => (ip === undefined ? [] : [ip.family])),
    unusable: named === undefined || found.length > 0 ? undefined : whyNot(claim, named, missing, className),
  };
}

function whyNot(
  claim: ClaimView,
  address: AddressView,
  missing: readonly IPFamily[],
  className: string,
): string | undefined {
  const { claimRef, ip } = address;
  if (claimRef !== undefined) {
    // What names this claim is judged as a pre-binding.
    return claimKey(claimRef) === claimKey(claim) ? undefined : `claim ${claimKey(claimRef)} has it`;
  }
  if (address.className !== className) return `it is of class ${address.className}, the claim of class ${className}`;
  if (ip === undefined) return 'its text is no address';
  if (!missing.includes(ip.family)) return `it is ${ip.family}, the claim asks for ${missing.join(' and ')}`;
  if (address.deleting) return 'it is being deleted';
  return address.phase === 'Available' ? 'another object has the same IP address' : undefined;
}
