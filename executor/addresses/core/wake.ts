/** Which passes a change of the ledger calls for. Pure. */
import type { Ledger, LedgerChange } from '../ledger.ts';
import { type AddressView, type ClaimView, type ClassView, claimKey } from '../objects.ts';

/** What a pass is about: a kind, and the name of the object (`<namespace>/<name>` of a claim). */
export type PassKey = `IPAddressClass ${string}` | `IPAddress ${string}` | `IPAddressClaim ${string}`;

const addressPass = ({ name }: { readonly name: string }): PassKey => `IPAddress ${name}`;
const claimPass = (claim: { readonly namespace: string; readonly name: string }): PassKey =>
  `IPAddressClaim ${claimKey(claim)}`;

/** Of an update both sides count: what an object pointed at before wakes as well. */
export function passesFor(ledger: Ledger, change: LedgerChange): PassKey[] {
  const passes = new Set<PassKey>(offeredTo(ledger, change));
  for (const view of [change.before, change.after]) {
    if (view === undefined) continue;
    for (const pass of passesOf(ledger, view)) passes.add(pass);
  }
  return [...passes];
}

const canBeTaken = (view: LedgerChange['after']): view is AddressView =>
  view?.kind === 'IPAddress' && view.claimRef === undefined && view.phase === 'Available' && !view.deleting;

/** An address that has just become free concerns all who wait for one; one that is free still, or no more, none of them. */
function offeredTo(ledger: Ledger, { before, after }: LedgerChange): PassKey[] {
  if (!canBeTaken(after)) return [];
  if (canBeTaken(before) && before.className === after.className) return [];
  const waiting = [...ledger.waitingForClass(after.className), ...ledger.waitingForClass('')];
  return waiting.filter(({ addressName }) => addressName === '').map(claimPass);
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
  const waiting = [...ledger.waitingForClass(name), ...ledger.waitingForClass('')];
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
