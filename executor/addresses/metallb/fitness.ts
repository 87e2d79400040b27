/** Whether a Service can take addresses: MetalLB would refuse a pin that it can not carry out, with the address held by nobody. */
import { poolName } from '../../../constructs/api/metallb.ts';
import type { AddressView } from '../objects.ts';
import type { MetallbLedger } from './ledger.ts';
import type { ServiceView } from './views.ts';

/** Why it can not, in words; undefined: it can. */
export function unfitness(
  ledger: MetallbLedger,
  service: ServiceView,
  wanted: readonly AddressView[],
): string | undefined {
  const { type, lbClass, loadBalancerIP, families, pool, releasing } = service;
  const { lbClass: served = '' } = ledger.settings;
  if (type !== 'LoadBalancer') return `it is of type ${type}`;
  if (lbClass !== served)
    return served === '' ? `its loadBalancerClass is ${lbClass}` : `its loadBalancerClass is not ${served}`;
  if (loadBalancerIP !== '') return 'it has spec.loadBalancerIP, which MetalLB takes with no pin';
  const foreign = wanted.find(({ className }) => pool !== poolName(className));
  if (pool !== '' && !releasing && foreign !== undefined) return `it asks for pool ${pool}`;
  const needed = wanted.flatMap(({ ip }) => (ip === undefined ? [] : [ip.family]));
  const same = families.length === needed.length && needed.every((one) => families.includes(one));
  // The server fills them in; one that has none yet is judged when it has.
  if (families.length > 0 && !same)
    return `its families are ${families.join(' and ')}, those of the claim ${needed.join(' and ')}`;
  return undefined;
}
