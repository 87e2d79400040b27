/** Whether a Service can be adopted, and which address it is about. */
import type { IPAddress } from '../../../constructs/lib/ip.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import { type BalancedService, fieldPin, hasAddress, serviceName } from '../pins.ts';
import type { AdoptFacts } from './plan.ts';

export type PinnedAddress =
  | { readonly ip: IPAddress; readonly warnings: readonly string[] }
  /** The pin can not be adopted; the address is told where there is one all the same. */
  | { readonly problem: Problem; readonly ip?: IPAddress };

const newer = 'metallb.io/loadBalancerIPs';

/** The one address that a Service is pinned to and has. */
export function pinnedAddress(service: BalancedService): PinnedAddress {
  const { pin, has, namespace, name } = service;
  const object = serviceName(service);
  const problem = (message: string, remedy: string, more: Partial<Problem> = {}): Problem => ({
    reason: 'PinUnusable',
    object,
    message,
    remedy,
    ...more,
  });
  const annotate = (ip: string): string => `kubectl -n ${namespace} annotate service ${name} ${newer}=${ip}`;
  switch (pin.type) {
    case 'none': {
      const [one, ...more] = has;
      const ip = one !== undefined && more.length === 0 ? one.text : 'ADDRESS';
      return { problem: problem('it is not pinned to an address', `pin it to the one that it has: ${annotate(ip)}`) };
    }
    case 'several': {
      const value = pin.ips.map(({ text }) => text).join(',');
      const remedy = 'adopt Services of one address; a claim that names an address has no second one';
      return { problem: problem(`it is pinned to ${pin.ips.length} addresses`, remedy, { path: pin.where, value }) };
    }
    case 'unusable':
      return {
        problem: problem(`it ${pin.why}`, `leave ${newer} alone, with one address`, {
          path: pin.where,
          value: pin.value,
        }),
      };
    case 'one': {
      const { ip, where } = pin;
      if (where === fieldPin) {
        const patch = `{"metadata":{"annotations":{"${newer}":"${ip.text}"}},"spec":{"loadBalancerIP":null}}`;
        const remedy = `move the pin, which moves nothing else: kubectl -n ${namespace} patch service ${name} --type merge -p '${patch}'`;
        return { ip, problem: problem(`it is pinned by ${fieldPin}, beside which no driver can pin`, remedy) };
      }
      if (!hasAddress(service, ip)) {
        const holds = has.length === 0 ? 'no address' : has.map(({ text }) => text).join(', ');
        const remedy = 'see in the Events of the Service why MetalLB does not give it the address that it is pinned to';
        return { ip, problem: problem(`it is pinned to ${ip.text} and has ${holds}`, remedy, { path: where }) };
      }
      const old = where === newer ? [] : [`the pin is under the older name ${where}; MetalLB prefers ${newer}`];
      return { ip, warnings: old };
    }
  }
}

/** What else is in the way on the side of Services. */
export function serviceProblems(
  { services }: AdoptFacts,
  service: BalancedService,
  ip: IPAddress | undefined,
  claim: string,
): Problem[] {
  const object = serviceName(service);
  const problem = (message: string, remedy: string): Problem => ({
    reason: 'ServiceNotAdoptable',
    object,
    message,
    remedy,
  });
  const others = services.filter(
    (one) => one.uid !== service.uid && !one.placeholder && ip !== undefined && hasAddress(one, ip),
  );
  return [
    ...(service.isLoadBalancer
      ? []
      : [problem('it is not of type LoadBalancer', 'adopt a Service that MetalLB serves')]),
    ...(service.deleting ? [problem('it is being deleted', 'wait until it is gone; its address goes with it')] : []),
    ...(service.placeholder
      ? [problem('it holds an address for the driver', 'leave it to the driver; it goes by itself')]
      : []),
    ...(service.claim === undefined || service.claim === claim
      ? []
      : [
          problem(
            `it takes the addresses of claim ${service.claim} already`,
            `name that claim with --claim ${service.claim}, or take the annotation off first`,
          ),
        ]),
    ...(others.length === 0
      ? []
      : [
          problem(
            `it shares ${ip?.text} with ${others.map(serviceName).join(', ')}`,
            'give the others addresses of their own: an address of the ledger has one workload',
          ),
        ]),
  ];
}
