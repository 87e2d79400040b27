/** Which passes a change of the ledger calls for. Pure. */
import type { Ledger, LedgerChange } from '../ledger.ts';
import { type AddressView, type ClaimView, type ClassView, claimKey } from '../objects.ts';
import { requested } from './families.ts';
import { isOffered, lineOf, mayMatch, nextInLine } from './line.ts';
import { wantedClass } from './resolve.ts';

/** What a pass is about: a kind, and the name of the object (`<namespace>/<name>` of a claim). */
export type PassKey = `IPAddressClass ${string}` | `IPAddress ${string}` | `IPAddressClaim ${string}`;

const addressPass = ({ name }: { readonly name: string }): PassKey => `IPAddress ${name}`;
const claimPass = (claim: { readonly namespace: string; readonly name: string }): PassKey =>
  `IPAddressClaim ${claimKey(claim)}`;

/** Of an update both sides count: what an object pointed at before wakes as well. */
export function passesFor(ledger: Ledger, change: LedgerChange): PassKey[] {
  const passes = new Set<PassKey>(offeredTo(ledger, change));
  if (change.returned === true) return [...passes];
  for (const view of [change.before, change.after]) {
    if (view === undefined) continue;
    for (const pass of passesOf(ledger, view)) passes.add(pass);
  }
  return [...passes];
}

/** An address that has just become free, and a claim that has left the line, concern those whose turn it is. */
function offeredTo(ledger: Ledger, { before, after, returned }: LedgerChange): PassKey[] {
  const view = after ?? before;
  if (view?.kind === 'IPAddressClaim') return before?.kind === 'IPAddressClaim' ? leftLine(ledger, before, after) : [];
  if (after?.kind !== 'IPAddress' || after.ip === undefined || !isOffered(after)) return [];
  const { className, ip } = after;
  // Whose turn it was did not take it: it may be anybody's.
  if (returned === true) return [...lineOf(ledger, className)].filter(takesAny).map(claimPass);
  const was = before?.kind === 'IPAddress' && isOffered(before) && before.className === className;
  return was ? [] : nextInLine(ledger, className, ip.family).map(claimPass);
}

const takesAny = ({ addressName }: ClaimView): boolean => addressName === '';

/** What was offered to a claim that does not wait any more is the next one's. */
function leftLine(ledger: Ledger, before: ClaimView, after: LedgerChange['after']): PassKey[] {
  if (before.phase === 'Bound' || !takesAny(before)) return [];
  const className = wantedClass(ledger, before);
  const waits =
    after?.kind === 'IPAddressClaim' &&
    after.phase !== 'Bound' &&
    mayMatch(after) &&
    !after.deleting &&
    takesAny(after) &&
    after.family === before.family &&
    wantedClass(ledger, after) === className;
  if (waits || className === undefined) return [];
  return requested(before).flatMap((family) => nextInLine(ledger, className, family, 1).map(claimPass));
}

function passesOf(ledger: Ledger, view: ClassView | AddressView | ClaimView): PassKey[] {
  switch (view.kind) {
    case 'IPAddressClass':
      return ofClass(ledger, view);
    case 'IPAddress':
      return ofAddress(ledger, view);
    case 'IPAddressClaim':
      return [claimPass(view), ...ledger.addressesOf(claimKey(view)).map(addressPass)];
  }
}

/** A class that appears or goes, or another default, may serve who waits; a delay is read from the class as it is. */
function ofClass(ledger: Ledger, { name }: ClassView): PassKey[] {
  const waiting = [...lineOf(ledger, name)];
  const released = ledger.addressesOfClass(name).filter(({ phase }) => phase === 'Released');
  return [`IPAddressClass ${name}`, ...waiting.map(claimPass), ...released.map(addressPass)];
}

function ofAddress(ledger: Ledger, view: AddressView): PassKey[] {
  const { name, claimRef, className, ip } = view;
  const rivals = ip === undefined ? [] : ledger.addressesAt(ip.text);
  const found = ledger.class(className);
  return [
    addressPass(view),
    ...(found?.deleting === true ? [`IPAddressClass ${className}` as const] : []),
    ...rivals.map(addressPass),
    ...[...ledger.waitingForAddress(name)].map(claimPass),
    ...(claimRef === undefined
      ? []
      : [claimPass(claimRef), ...ledger.addressesOf(claimKey(claimRef)).map(addressPass)]),
  ];
}
