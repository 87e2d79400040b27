/**
 * Which addresses a claim has. An address names its claim; whether the claim takes it is decided here and nowhere else, so
 * that claim and address come to the same answer.
 */
import { addressFinalizers } from '../../../constructs/api/addresses.ts';
import type { Ledger } from '../ledger.ts';
import { type AddressView, type ClaimView, claimKey } from '../objects.ts';
import { isSurplus } from './duplicate.ts';
import { requested } from './families.ts';
import { wantedClass } from './resolve.ts';

export interface Refusal {
  readonly address: AddressView;
  /** Words that follow "is not taken by the claim:". */
  readonly why: string;
}

export interface Acceptance {
  /** By name. */
  readonly accepted: readonly AddressView[];
  readonly refused: readonly Refusal[];
  /** Lost addresses whose place another one has taken, because the claim allows it. */
  readonly replaced: readonly AddressView[];
}

/** The claim of the address is gone, as far as the ledger says: its clock runs. */
export const isReleased = ({ phase, bound }: AddressView): boolean =>
  phase === 'Released' || (bound?.status === 'False' && bound.reason === 'Released');

/** The claim has the address already: nothing about the claim, its class or other addresses takes it away. */
function isAccepted(claim: ClaimView, address: AddressView): boolean {
  const { claimRef, bound, phase } = address;
  if (claimRef?.uid !== claim.uid) return false;
  if (bound?.status === 'True') return true;
  if (bound?.status === 'False' && bound.reason === 'Released') return false;
  if (claim.addresses.some(({ name }) => name === address.name)) return true;
  // Controllers that wrote no condition took what they bound.
  return bound === undefined && (phase === 'Bound' || phase === 'Conflict' || phase === 'Lost');
}

/** The address is on its way out, and nothing of ours keeps it. */
const isLeaving = ({ deleting, finalizers }: AddressView): boolean =>
  deleting && !finalizers.includes(addressFinalizers.address);

/** Why the claim does not take an address that names it, apart from families. */
function objection(ledger: Ledger, claim: ClaimView, address: AddressView): string | undefined {
  const wanted = wantedClass(ledger, claim);
  if (address.deleting) return 'it is being deleted';
  if (address.phase === 'Lost') return 'its reservation is lost';
  if (wanted === undefined) return 'the claim has no class yet';
  if (address.className !== wanted) return `it is of class ${address.className}, the claim of class ${wanted}`;
  if (claim.addressName !== '' && claim.addressName !== address.name) return `the claim wants ${claim.addressName}`;
  // A claim of the same name is another one: only who asks for this very address gets what a former claim had.
  if (isReleased(address) && claim.addressName === '')
    return 'it was released, and the claim does not ask for it by name';
  if (isSurplus(ledger, address)) return 'another object has the same IP address';
  return undefined;
}

/** Addresses that name the claim, those it has first, then those whose UID somebody filled in. */
function candidates(ledger: Ledger, claim: ClaimView): { had: AddressView[]; others: AddressView[] } {
  const named = ledger
    .addressesOf(claimKey(claim))
    .filter((one) => (one.claimRef?.uid === '' || one.claimRef?.uid === claim.uid) && !isLeaving(one));
  const [had, rest] = [named.filter((one) => isAccepted(claim, one)), named.filter((one) => !isAccepted(claim, one))];
  const filled = (one: AddressView): boolean => one.claimRef?.uid !== '';
  return { had, others: [...rest.filter(filled), ...rest.filter((one) => !filled(one))] };
}

/** What the claim has and takes. At most one address of each family is taken; one that it has goes before any other. */
export function acceptance(ledger: Ledger, claim: ClaimView): Acceptance {
  const { had, others } = candidates(ledger, claim);
  const keeps = had.filter(({ phase }) => phase !== 'Lost' || !claim.replaceLost);
  const lost = had.filter((one) => !keeps.includes(one));
  const accepted = [...keeps];
  const refused: Refusal[] = [];
  for (const address of others) {
    const why = objection(ledger, claim, address) ?? familyObjection(claim, address, accepted);
    if (why === undefined) accepted.push(address);
    else refused.push({ address, why });
  }
  const replaced = lost.filter(({ ip }) => accepted.some((one) => one.ip?.family === ip?.family));
  return {
    accepted: [...accepted, ...lost.filter((one) => !replaced.includes(one))].sort((a, b) =>
      a.name < b.name ? -1 : 1,
    ),
    refused,
    replaced,
  };
}

function familyObjection(claim: ClaimView, address: AddressView, accepted: readonly AddressView[]): string | undefined {
  const { ip } = address;
  if (ip === undefined) return 'its text is no address';
  if (!requested(claim).includes(ip.family))
    return `it is ${ip.family}, the claim asks for ${requested(claim).join(' and ')}`;
  const holder = accepted.find((one) => one.ip?.family === ip.family);
  return holder === undefined ? undefined : `the claim has ${holder.name} for ${ip.family}`;
}
