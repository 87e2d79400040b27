/** Which passes a change of the ledger calls for. Pure. */
import type { Ledger, LedgerChange } from '../ledger.ts';
import { type AddressView, type ClaimView, type ClassView, claimKey } from '../objects.ts';
import { wantedClass } from './resolve.ts';

/** What a pass is about: a kind, and the name of the object (`<namespace>/<name>` of a claim). */
export type PassKey = `IPAddressClass ${string}` | `IPAddress ${string}` | `IPAddressClaim ${string}`;

const addressPass = ({ name }: { readonly name: string }): PassKey => `IPAddress ${name}`;
const claimPass = (claim: { readonly namespace: string; readonly name: string }): PassKey =>
  `IPAddressClaim ${claimKey(claim)}`;

/** Of an update both sides count: what an object pointed at before wakes as well. */
export function passesFor(ledger: Ledger, { before, after }: LedgerChange): PassKey[] {
  const passes = new Set<PassKey>();
  for (const view of [before, after]) {
    if (view === undefined) continue;
    for (const pass of passesOf(ledger, view)) passes.add(pass);
  }
  return [...passes];
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
function ofClass(ledger: Ledger, view: ClassView): PassKey[] {
  const waiting = [...ledger.unbound()].filter(
    (claim) => claim.className === view.name || (claim.className === '' && ['', view.name].includes(claim.foundClass)),
  );
  const released = ledger.addressesOfClass(view.name).filter(({ phase }) => phase === 'Released');
  return [`IPAddressClass ${view.name}`, ...waiting.map(claimPass), ...released.map(addressPass)];
}

function ofAddress(ledger: Ledger, view: AddressView): PassKey[] {
  const { claimRef, className, ip } = view;
  const rivals = ip === undefined ? [] : ledger.addressesAt(ip.text);
  const found = ledger.class(className);
  return [
    addressPass(view),
    ...(found?.deleting === true ? [`IPAddressClass ${className}` as const] : []),
    ...rivals.map(addressPass),
    ...(claimRef === undefined
      ? [...ledger.unbound()].filter((claim) => mayWant(ledger, claim, view)).map(claimPass)
      : [claimPass(claimRef), ...ledger.addressesOf(claimKey(claimRef)).map(addressPass)]),
  ];
}

const mayWant = (ledger: Ledger, claim: ClaimView, { name, className }: AddressView): boolean =>
  claim.addressName === name || (claim.addressName === '' && wantedClass(ledger, claim) === className);
