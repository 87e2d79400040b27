/** What has to be seen after a step before the next one: objects in, what is still missing out. Pure. */

import { addressFinalizers } from '../../../constructs/api/addresses.ts';
import type { IPAddress } from '../../../constructs/lib/ip.ts';
import type { AddressView, ClaimView, LedgerCondition } from '../../addresses/objects.ts';
import { workloadOf } from '../book.ts';
import { type BalancedService, hasAddress } from '../pins.ts';

/** Undefined: it is so. A text: what was seen in place of it. */
export type Missing = string | undefined;

const said = (conditions: readonly LedgerCondition[]): string =>
  conditions.flatMap(({ status, message }) => (status === 'False' && message !== '' ? [message] : [])).join('; ');

/** The core has seen the claim, and protects it: it works, and will see the address. */
export function claimSeen(claim: ClaimView | undefined): Missing {
  if (claim === undefined) return 'the claim is not there';
  return claim.finalizers.includes(addressFinalizers.claim)
    ? undefined
    : 'the claim is there, and no core has looked at it: does one run?';
}

/** The claim has the address, and both say so. A driver may hold the address to be in conflict until the Service names the claim. */
export function bothBound(claim: ClaimView | undefined, address: AddressView | undefined): Missing {
  if (claim === undefined || address === undefined)
    return `the ${claim === undefined ? 'claim' : 'address'} is not there`;
  const { claimRef, phase = 'Pending' } = address;
  const has = claim.phase === 'Bound' && claim.addresses.some(({ name }) => name === address.name);
  const given = claimRef?.uid === claim.uid && (phase === 'Bound' || phase === 'Conflict');
  if (has && given) return undefined;
  const why = [said(address.bound === undefined ? [] : [address.bound]), said(claim.conditions)].find(
    (one) => one !== '',
  );
  return `the claim is ${claim.phase ?? 'Pending'}, the address ${phase}${why === undefined ? '' : `: ${why}`}`;
}

/** The driver has recorded the Service as what uses the address, and the Service has it. */
export function associated(
  address: AddressView | undefined,
  service: BalancedService | undefined,
  ip: IPAddress,
): Missing {
  if (service === undefined || address === undefined)
    return `the ${service === undefined ? 'Service' : 'address'} is not there`;
  const workload = workloadOf(address);
  if (workload === undefined) return 'no driver has recorded the Service yet: does one run?';
  if (workload.namespace !== service.namespace || workload.name !== service.name)
    return `${workload.kind} ${workload.namespace}/${workload.name} is recorded as what uses the address`;
  if (address.phase !== 'Bound') return `the address is ${address.phase ?? 'Pending'}`;
  return hasAddress(service, ip) ? undefined : `the Service has not ${ip.text} any more`;
}
