/**
 * Who waits for an address of a class: the claim that was made first is offered first what becomes free. A claim that is looked
 * at for another reason at that very moment may take it before. Pure.
 */
import type { IPFamily } from '../../../constructs/lib/ip.ts';
import { ageOf, type Ledger } from '../ledger.ts';
import type { AddressView, ClaimView } from '../objects.ts';
import { acceptance } from './accept.ts';
import { isSurplus } from './duplicate.ts';
import { missingFamilies } from './families.ts';
import { wantedClass } from './resolve.ts';

/** A claim that had its addresses waits for what it lost; only its owner can let it be replaced. */
export const mayMatch = ({ phase, replaceLost }: ClaimView): boolean =>
  phase === undefined || phase === 'Pending' || replaceLost;

/** Whether a claim could have it. */
export const isOffered = ({ claimRef, phase, deleting }: AddressView): boolean =>
  claimRef === undefined && phase === 'Available' && !deleting;

/** Claims that wait for a class, or for the class that they get by default, the oldest first. */
export function lineOf(ledger: Ledger, className: string): Iterable<ClaimView> {
  const unnamed = [...ledger.waitingForClass('')];
  if (unnamed.length === 0) return ledger.waitingForClass(className);
  return [...ledger.waitingForClass(className), ...unnamed].sort((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1));
}

/** Whether claims of the class will be given an address that is recorded: nothing new has to be provided. */
export function isStocked(ledger: Ledger, className: string, family: IPFamily): boolean {
  for (const one of ledger.freeOf(className))
    if (one.ip?.family === family && isOffered(one) && !isSurplus(ledger, one)) return true;
  return false;
}

const lacks = (ledger: Ledger, claim: ClaimView, className: string, family: IPFamily): boolean =>
  mayMatch(claim) &&
  !claim.deleting &&
  claim.addressName === '' &&
  wantedClass(ledger, claim) === className &&
  missingFamilies(claim, acceptance(ledger, claim).accepted).includes(family);

/** So many claims are woken at once; each that leaves the line wakes another one. */
const atOnce = 16;

function offers(ledger: Ledger, className: string, family: IPFamily, most: number): number {
  let found = 0;
  for (const one of ledger.freeOf(className)) {
    if (one.ip?.family === family && isOffered(one)) found += 1;
    if (found >= most) break;
  }
  return found;
}

/** The claims whose turn it is: the oldest that lack an address of the family, no more than there are such addresses. */
export function nextInLine(ledger: Ledger, className: string, family: IPFamily, most = atOnce): ClaimView[] {
  const found: ClaimView[] = [];
  const room = offers(ledger, className, family, most);
  if (room === 0) return found;
  for (const claim of lineOf(ledger, className)) {
    if (lacks(ledger, claim, className, family)) found.push(claim);
    if (found.length >= room) break;
  }
  return found;
}
