/** The IPAddressClaim of an adoption: the one that is there already, or the one to be made. */
import type { IPFamily } from '../../../constructs/lib/ip.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import { type ClaimView, claimKey } from '../../addresses/objects.ts';
import type { Book } from '../book.ts';
import type { Prepared, Wanted } from './address.ts';
import { ledgerObject } from './object.ts';

export interface ClaimWish {
  readonly className: string;
  readonly family: IPFamily;
  readonly addressName: string;
}

/** How a claim that is there differs from the one that is wanted; empty when it is the one. */
export function differences(found: ClaimView, { family, className, addressName }: ClaimWish): string[] {
  const other = found.addresses.filter((one) => one.name !== addressName);
  return [
    ...(found.deleting ? ['it is being deleted'] : []),
    ...(found.className === className || (found.className === '' && found.foundClass === className)
      ? []
      : [`it is of class ${found.className || found.foundClass || 'none'}`]),
    ...(found.family === family ? [] : [`it asks for ${found.family}`]),
    ...(found.addressName === addressName ? [] : [`it names ${found.addressName || 'no address'}`]),
    ...(other.length === 0 ? [] : [`it has ${other.map(({ address }) => address).join(', ')}`]),
  ];
}

export function claimFor(book: Book, wanted: Wanted, addressName: string): Prepared {
  const { claim, className, ip } = wanted;
  const wish: ClaimWish = { className, family: ip.family, addressName };
  const object = ledgerObject('IPAddressClaim', { namespace: claim.namespace, name: claim.name }, { ...wish });
  const found = book.claims.find((one) => claimKey(one) === claimKey(claim));
  if (found === undefined)
    return { write: 'create', object, done: false, note: `is made, and waits for ${addressName}`, problems: [] };
  const problems = differences(found, wish).map(
    (message): Problem => ({
      reason: 'ClaimTaken',
      object: `IPAddressClaim ${claimKey(claim)}`,
      message,
      remedy: 'name another claim with --claim',
    }),
  );
  return { write: 'create', object, done: true, note: 'is there already', problems };
}
