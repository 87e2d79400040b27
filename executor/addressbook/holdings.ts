/** Who holds what: the ledger as rows for people and programs. Pure. */
import type { AddressPhase, ClaimFamily, ClaimPhase } from '../../constructs/api/ledger-words.ts';
import type { IPFamily } from '../../constructs/lib/ip.ts';
import { type AddressView, type ClaimView, type ClassView, claimKey } from '../addresses/objects.ts';
import { type Book, rangesOf, type Workload, workloadOf } from './book.ts';
import { type AddressReturn, returnOf } from './returns.ts';
import { type ClassUsage, usageByClass } from './usage.ts';

export interface Holding {
  readonly name: string;
  readonly address: string;
  readonly className: string;
  /** Absent: the text is no address. */
  readonly family?: IPFamily;
  readonly phase: AddressPhase;
  /** `<namespace>/<name>`. */
  readonly claim?: string;
  readonly workload?: Workload;
  readonly returns: AddressReturn;
  readonly deleting: boolean;
  /** Why it is as it is, where the phase does not tell. */
  readonly why?: string;
}

/** A claim that has not all that it asks for. */
export interface WaitingClaim {
  readonly claim: string;
  readonly className: string;
  readonly family: ClaimFamily;
  readonly phase: ClaimPhase;
  readonly reason: string;
  readonly message: string;
}

export interface ClassHoldings extends ClassUsage {
  readonly name: string;
  readonly provisioner: string;
  readonly isDefault: boolean;
  readonly deleting: boolean;
  readonly releaseDelayMs?: number;
  /** Ranges that can not be read. */
  readonly unread: readonly string[];
}

export interface Holdings {
  readonly classes: readonly ClassHoldings[];
  readonly addresses: readonly Holding[];
  readonly waiting: readonly WaitingClaim[];
}

/** What is asked for; everything where nothing is named. */
export interface HoldingFilter {
  readonly className?: string;
  /** Of the claim that has an address, or of the workload that uses it. */
  readonly namespace?: string;
}

const told = new Set(['Bound', 'Available', 'Released']);

function holdingOf(address: AddressView, found: ClassView | undefined, now: number): Holding {
  const { name, text, ip, className, claimRef, phase = 'Pending', bound, deleting } = address;
  const workload = workloadOf(address);
  const why = bound !== undefined && !told.has(bound.reason) ? bound.message : '';
  return {
    name,
    address: ip?.text ?? text,
    className,
    ...(ip === undefined ? {} : { family: ip.family }),
    phase,
    ...(claimRef === undefined ? {} : { claim: claimKey(claimRef) }),
    ...(workload === undefined ? {} : { workload }),
    returns: returnOf(address, found, now),
    deleting,
    ...(why === '' ? {} : { why }),
  };
}

function waitingOf(claim: ClaimView): WaitingClaim[] {
  const { phase = 'Pending', className, foundClass, family, conditions } = claim;
  if (phase === 'Bound') return [];
  const unresolved = conditions.find(({ type, status }) => type === 'ClassResolved' && status === 'False');
  const { reason = '', message = '' } = unresolved ?? conditions.find(({ type }) => type === 'Bound') ?? {};
  return [{ claim: claimKey(claim), className: className || foundClass, family, phase, reason, message }];
}

/** By class, then by address as a number, then by what is no address. */
function inOrder(a: AddressView, b: AddressView): number {
  if (a.className !== b.className) return a.className < b.className ? -1 : 1;
  if (a.ip?.family !== b.ip?.family) return (a.ip?.family ?? 'z') < (b.ip?.family ?? 'z') ? -1 : 1;
  const [left, right] = [a.ip?.value ?? 0n, b.ip?.value ?? 0n];
  return left < right ? -1 : left > right ? 1 : a.name < b.name ? -1 : 1;
}

/** @param now milliseconds since 1970. */
export function holdingsOf(book: Book, { className, namespace }: HoldingFilter, now: number): Holdings {
  const wanted = (name: string): boolean => className === undefined || name === className;
  const here = (address: AddressView): boolean =>
    namespace === undefined ||
    address.claimRef?.namespace === namespace ||
    workloadOf(address)?.namespace === namespace;
  const usage = usageByClass(book);
  const byName = new Map(book.classes.map((one) => [one.name, one]));
  const addresses = book.addresses.filter((one) => wanted(one.className) && here(one)).toSorted(inOrder);
  const waiting = book.claims
    .filter(
      (one) => wanted(one.className || one.foundClass) && (namespace === undefined || one.namespace === namespace),
    )
    .flatMap(waitingOf)
    .sort((a, b) => (a.claim < b.claim ? -1 : 1));
  const classes = book.classes
    .filter(({ name }) => wanted(name))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((one): ClassHoldings => {
      const { name, provisioner, isDefault, deleting, releaseDelayMs } = one;
      const { families = [], outside = 0 } = usage.get(name) ?? {};
      const delay = releaseDelayMs === undefined ? {} : { releaseDelayMs };
      return { name, provisioner, isDefault, deleting, ...delay, families, outside, unread: rangesOf(one).unread };
    });
  return { classes, addresses: addresses.map((one) => holdingOf(one, byName.get(one.className), now)), waiting };
}
