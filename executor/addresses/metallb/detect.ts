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
    return { actions: wronged.flatMap((one) => conflict(service, one)), warnings: [] };
  });
  return {
    actions: findings.flatMap(({ actions }) => actions),
    warnings: findings.flatMap(({ warnings }) => warnings),
  };
}

function conflict(service: ServiceView, address: AddressView): Action[] {
  const found = conflictIn(service, address);
  if (found === undefined) return [];
  return [{ type: 'status', target: address, status: statusWith(address, found.status), events: found.events }];
}

/** What the conflict changes, and who is told; undefined: the address is in conflict already, or lost. */
export function conflictIn(
  service: ServiceView,
  address: AddressView,
): { readonly status: { readonly phase: 'Conflict' }; readonly events: readonly Told[] } | undefined {
  const { phase } = address;
  if (phase === 'Conflict' || phase === 'Lost') return undefined;
  return { status: { phase: 'Conflict' }, events: conflictTold(service, address) };
}

/** Both are told: who has the address, and whose it is. */
export function conflictTold(service: ServiceView, address: AddressView): Told[] {
  const { claimRef, ip } = address;
  const owner = claimRef === undefined ? `IPAddress ${address.name}` : `claim ${claimKey(claimRef)}`;
  const user = userText({ kind: 'Service', namespace: service.namespace, name: service.name });
  return [
    warning(service, 'AddressConflict', { address: ip?.text ?? address.text, owner }),
    warning(address, 'Conflict', { user }),
  ];
}

/** An address of a class that the ledger does not know: its pool is open to everybody who names it. */
function unrecorded(ledger: MetallbLedger, service: ServiceView, ip: string): Told[] {
  const read = readIP(ip);
  const name = read === undefined ? undefined : ledger.classAt(read);
  return name === undefined ? [] : [warning(service, 'AddressNotInLedger', { address: ip, class: name })];
}
