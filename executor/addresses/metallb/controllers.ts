/** The four controllers of the driver for MetalLB. */
import type { Controllers } from '../engine.ts';
import type { MetallbLedger } from './ledger.ts';
import { planAddress } from './plan-address.ts';
import { planClaim } from './plan-claim.ts';
import { planClass } from './plan-class.ts';
import { planService } from './plan-service.ts';
import type { AnyView } from './views.ts';
import { type DriverKey, passesFor } from './wake.ts';

const split = (key: DriverKey): { kind: string; name: string } => {
  const at = key.indexOf(' ');
  return { kind: key.slice(0, at), name: key.slice(at + 1) };
};

/**
 * Whether an address is held or used is decided by its passes, by those of its claim and by those of Services that have it or
 * ask for it: none of them at the same time.
 */
function locks(ledger: MetallbLedger, key: DriverKey): string[] {
  const { kind, name } = split(key);
  const lock = (one: string): string => `IPAddress ${one}`;
  if (kind === 'IPAddressClaim') return [key, ...ledger.addressesOf(name).map((one) => lock(one.name))];
  if (kind !== 'Service') return [key];
  const service = ledger.service(name);
  const claimed = service?.claim === undefined ? [] : ledger.addressesOf(service.claim);
  const at = (service?.ingress ?? []).flatMap((ip) => ledger.addressesAt(ip));
  return [key, ...[...claimed, ...at, ...ledger.usedBy(name)].map((one) => lock(one.name))];
}

export const metallbControllers: Controllers<DriverKey, AnyView, MetallbLedger> = {
  plan(ledger, key, now) {
    const { kind, name } = split(key);
    if (kind === 'IPAddressClass') return planClass(ledger, name);
    if (kind === 'IPAddress') return planAddress(ledger, name, now);
    return kind === 'Service' ? planService(ledger, name) : planClaim(ledger, name);
  },
  wake: passesFor,
  locks,
};
