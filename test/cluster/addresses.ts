/** Address plan of one cluster: slot N of 64. */
export interface AddressPlan {
  readonly slot: number;
  readonly bridgeAddress: string;
  readonly prefixLength: number;
  readonly podCIDR: string;
  readonly serviceCIDR: string;
  node(index: number): { readonly address: string; readonly tunnelAddress: string; readonly podCIDR: string };
}

const slots = 64;
const serviceCIDR = '10.96.0.0/16';

/** The API server's own address in the service range. */
export const serviceAddress = '10.96.0.1';

/** Where pods ask for names, and the domain of the cluster's own. */
export const dnsServiceAddress = '10.96.0.10';
export const clusterDomain = 'cluster.local';

/**
 * The plan of a slot: nodes in 172.31.N.0/24, pods in 10.(128+N).0.0/16; Services live only inside the nodes. Tunnels
 * between nodes have 172.30.N.0/24 on a bridge where the host has no address, so that range needs no room among its routes.
 */
export function addressPlan(slot: number): AddressPlan {
  const nodes = `172.31.${slot}`;
  const tunnels = `172.30.${slot}`;
  const pods = `10.${128 + slot}`;
  return {
    slot,
    bridgeAddress: `${nodes}.1`,
    prefixLength: 24,
    podCIDR: `${pods}.0.0/16`,
    serviceCIDR,
    node: (index) => ({
      address: `${nodes}.${10 + index}`,
      tunnelAddress: `${tunnels}.${10 + index}`,
      podCIDR: `${pods}.${index}.0/24`,
    }),
  };
}

interface Range {
  readonly first: number;
  readonly last: number;
}

function rangeOf(cidr: string): Range {
  const [address = '', length = '32'] = cidr.split('/');
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - Number(length));
  const first = Math.floor(value / size) * size;
  return { first, last: first + size - 1 };
}

export function overlaps(a: string, b: string): boolean {
  const [left, right] = [rangeOf(a), rangeOf(b)];
  return left.first <= right.last && right.first <= left.last;
}

/**
 * The first plan that overlaps no route of the host. `routes` are IPv4 destinations; a default route does not count.
 * @throws Error when all slots are taken.
 */
export function freePlan(routes: readonly string[]): AddressPlan {
  for (let slot = 0; slot < slots; slot += 1) {
    const plan = addressPlan(slot);
    const own = [`${plan.bridgeAddress}/${plan.prefixLength}`, plan.podCIDR];
    if (!own.some((cidr) => routes.some((route) => overlaps(cidr, route)))) return plan;
  }
  throw new Error(
    `all ${slots} address ranges for clusters (172.31.N.0/24 with 10.(128+N).0.0/16) overlap routes of this host`,
  );
}
