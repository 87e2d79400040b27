import { addressesApiVersion } from '../../../constructs/api/addresses.ts';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { waitFor } from '../../../constructs/lib/wait.ts';
import type { Cluster } from '../types.ts';

/** What tenants of the local cluster do with addresses: claims are theirs, and never in Git. */

const namespace = 'demo';
/** Name of the claim, and of the Service in the specs that is annotated with it. */
const name = 'web';

const claim = {
  apiVersion: addressesApiVersion,
  kind: 'IPAddressClaim',
  metadata: { name, namespace },
  spec: { className: 'public' },
};

/** Claims an address, as the administrator or as the user who is named. */
export async function claimAddress(cluster: Cluster, user?: string): Promise<void> {
  const as = user === undefined ? [] : [`--as=${user}`];
  await cluster.kubectl([...as, 'apply', '-f', '-'], { input: JSON.stringify(claim) });
}

/** A Service with its address. */
export interface Served {
  readonly uid: string;
  readonly ip: string;
}

/** Waits until the claim is Bound and its Service, another one than `before`, has an address; answers both addresses. */
export function untilServed(
  cluster: Cluster,
  { before, signal }: { before?: Served; signal?: AbortSignal } = {},
): Promise<Served & { readonly claimed: string }> {
  const read = (kind: string, path: string): Promise<string> =>
    cluster.kubectl(['-n', namespace, 'get', kind, name, '--ignore-not-found', '-o', `jsonpath=${path}`]);
  return waitFor({
    what: `Service ${namespace}/${name} to have the address that claim ${name} has`,
    limitMs: 60_000,
    intervalMs: 500,
    clock: systemClock,
    ...(signal === undefined ? {} : { signal }),
    async probe(saw) {
      const [held, service] = await Promise.all([
        read('ipaddressclaims.local.sdn.cozystack.io', '{.status.phase} {.status.addresses[*].address}'),
        read('service', '{.metadata.uid} {.status.loadBalancer.ingress[*].ip}'),
      ]);
      saw(`claim ${held || 'absent'}, service ${service || 'absent'}`);
      const [phase, claimed = ''] = held.split(' ');
      const [uid = '', ip = ''] = service.split(' ');
      return phase === 'Bound' && ip !== '' && uid !== before?.uid ? { uid, ip, claimed } : undefined;
    },
  });
}
