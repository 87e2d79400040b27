/** The three controllers of the core. They know no driver, and nothing of how addresses are provided. */
import type { Controllers } from '../engine.ts';
import type { LedgerStore } from '../ledger.ts';
import { claimKey } from '../objects.ts';
import { planAddress } from './plan-address.ts';
import { planClaim } from './plan-claim.ts';
import { planClass } from './plan-class.ts';
import { type PassKey, passesFor } from './wake.ts';

const split = (key: PassKey): { kind: string; name: string } => {
  const at = key.indexOf(' ');
  return { kind: key.slice(0, at), name: key.slice(at + 1) };
};

const ipLock = (address: { readonly ip: { readonly text: string } | undefined }): string[] =>
  address.ip === undefined ? [] : [`ip ${address.ip.text}`];

/**
 * Whether a claim has an address is decided by passes over both: those of one claim, and of all that mean one IP address,
 * come one after the other.
 */
function locks(ledger: LedgerStore, key: PassKey): string[] {
  const { kind, name } = split(key);
  if (kind === 'IPAddressClaim') return [`claim ${name}`, ...ledger.addressesOf(name).flatMap(ipLock)];
  const address = kind === 'IPAddress' ? ledger.address(name) : undefined;
  if (address === undefined) return [key];
  return [...(address.claimRef === undefined ? [key] : [`claim ${claimKey(address.claimRef)}`]), ...ipLock(address)];
}

export const coreControllers: Controllers<PassKey> = {
  plan(ledger, key, now) {
    const { kind, name } = split(key);
    if (kind === 'IPAddressClass') return planClass(ledger, name);
    return kind === 'IPAddress' ? planAddress(ledger, name, now) : planClaim(ledger, name, now);
  },
  wake: passesFor,
  locks,
};
