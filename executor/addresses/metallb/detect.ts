/** Finds Services that have addresses without authority. Pure. */
import { readIP } from '../../../constructs/lib/ip.ts';
import { type AddressView, claimKey } from '../objects.ts';
import { isUser, ownersOf, servesAddress, statusWith, userText } from './facts.ts';
import type { MetallbLedger } from './ledger.ts';
import { type Action, type Told, warning } from './tell.ts';
import { type ServiceView, serviceKey } from './views.ts';

interface Findings {
  readonly actions: readonly Action[];
  readonly warnings: readonly Told[];
}

/** What is wrong with the addresses that a Service has. Those that it takes in the same pass, or gives back, are not. */
export function detect(ledger: MetallbLedger, service: ServiceView, takes: readonly AddressView[]): Findings {
  // MetalLB is about to take them away.
  if (service.releasing) return { actions: [], warnings: [] };
  const given = ledger.usedBy(serviceKey(service));
  const findings = service.ingress.map((ip): Findings => {
    if (ledger.addressesAt(ip).length === 0) return { actions: [], warnings: unrecorded(ledger, service, ip) };
    const wronged = ownersOf(ledger, ip).filter(
      (one) => servesAddress(ledger, one) && !takes.includes(one) && !given.includes(one) && !isUser(one, service),
    );
    return { actions: wronged.flatMap((one) => conflict(service, one, ip)), warnings: [] };
  });
  return {
    actions: findings.flatMap(({ actions }) => actions),
    warnings: findings.flatMap(({ warnings }) => warnings),
  };
}

function conflict(service: ServiceView, address: AddressView, ip: string): Action[] {
  const { phase, claimRef } = address;
  if (phase === 'Conflict' || phase === 'Lost') return [];
  const owner = claimRef === undefined ? `IPAddress ${address.name}` : `claim ${claimKey(claimRef)}`;
  const user = userText({ kind: 'Service', namespace: service.namespace, name: service.name });
  const events = [warning(service, 'AddressConflict', { address: ip, owner }), warning(address, 'Conflict', { user })];
  return [{ type: 'status', target: address, status: statusWith(address, { phase: 'Conflict' }), events }];
}

/** An address of a class that the ledger does not know: its pool is open to everybody who names it. */
function unrecorded(ledger: MetallbLedger, service: ServiceView, ip: string): Told[] {
  const read = readIP(ip);
  const name = read === undefined ? undefined : ledger.classAt(read);
  return name === undefined ? [] : [warning(service, 'AddressNotInLedger', { address: ip, class: name })];
}
