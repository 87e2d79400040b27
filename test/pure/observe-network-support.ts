/** Rounds of the network probe in which every packet arrives, to be spoilt by tests. */
import type { NetworkCheck } from '../../constructs/api/evidence/network.ts';
import type { Family, NetworkRound, NetworkSample } from '../../executor/observe/network.ts';
import type { PodFacts } from '../../executor/observe/round.ts';
import { answer, podFacts } from './observe-support.ts';

const both = (kind: string, n: number, addresses?: string[]): PodFacts =>
  podFacts(kind, n, { addresses: addresses ?? [`10.16.0.${n}`, `fd00::${n}`] });
export const networkServer = (n: number, addresses?: string[]): PodFacts => both('server', n, addresses);
export const networkClient = (n: number, addresses?: string[]): PodFacts => both('client', n, addresses);
export const networkService = {
  namespace: 'kube-system',
  name: 'keelson-network-probe',
  addresses: ['10.96.0.9', 'fd01::9'],
};

export const daemonSet = (name: string, desired: number) => ({
  kind: 'DaemonSet',
  namespace: 'kube-system',
  name,
  uid: name,
  generation: 1,
  observedGeneration: 1,
  desired,
  updated: desired,
  ready: desired,
});

export type Spoil = (check: NetworkCheck, node: number) => NetworkCheck | undefined;

/** What a client sees of a network that works, each check through `spoil`. */
function checksOf(n: number, size: number, families: readonly Family[], spoil: Spoil): NetworkCheck[] {
  const next = (n % size) + 1;
  const answered = (m: number) => ({ namespace: 'kube-system', podUID: `server-uid-${m}`, node: `n${m}` });
  return families.flatMap((family) => {
    const pick = (addresses: readonly string[]): string =>
      addresses.find((one) => one.includes(':') === (family === 'IPv6')) ?? '';
    const base = { family, port: 8080, outcome: 'ok' as const, elapsedMs: 2 };
    const all: NetworkCheck[] = [
      { ...base, target: 'sameNode', address: pick(networkServer(n).addresses), answered: answered(n) },
      ...(size > 1
        ? [
            {
              ...base,
              target: 'nextNode' as const,
              address: pick(networkServer(next).addresses),
              answered: answered(next),
            },
          ]
        : []),
      { ...base, target: 'service', address: pick(networkService.addresses), answered: answered(1) },
      {
        ...base,
        target: 'name',
        address: pick(networkService.addresses),
        answered: answered(next),
        resolved: [pick(networkService.addresses)],
      },
    ];
    return all.flatMap((check) => spoil(check, n) ?? []);
  });
}

export const unspoilt: Spoil = (check) => check;

export function networkRound(
  size = 3,
  spoil: Spoil = unspoilt,
  families: readonly Family[] = ['IPv4', 'IPv6'],
): NetworkRound {
  const nodes = Array.from({ length: size }, (_, n) => n + 1);
  return {
    clients: daemonSet('client', size),
    servers: daemonSet('server', size),
    serverPods: nodes.map((n) => networkServer(n)),
    service: networkService,
    changed: [],
    samples: nodes.map((n): NetworkSample => {
      const facts = { addresses: [...networkClient(n).addresses], checks: checksOf(n, size, families, spoil) };
      return { client: networkClient(n), outcome: answer('network', networkClient(n), facts) };
    }),
  };
}
