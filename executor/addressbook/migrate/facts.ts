import { metallbGroup } from '../../../constructs/api/metallb.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/types.ts';
import { balancedServices } from '../adopt/facts.ts';
import type { Book } from '../book.ts';
import { readBook } from '../read.ts';
import { readPool } from './pools.ts';
import type { MigrationFacts } from './propose.ts';

export type MigrationRead =
  | { readonly type: 'read'; readonly facts: MigrationFacts }
  | { readonly type: 'failed'; readonly message: string };

type Listed = readonly KubeObject[] | { readonly type: 'failed'; readonly message: string };

/** Objects of MetalLB; none where it does not serve the kind. */
async function ofMetallb(client: KubeClient, kind: string, signal: AbortSignal): Promise<Listed> {
  const listed = await client.list({ apiVersion: `${metallbGroup}/v1beta1`, kind }, { signal });
  if (listed.type === 'kindAbsent') return [];
  return listed.type === 'listed' ? listed.items : { type: 'failed', message: listed.message };
}

const noBook: Book = { classes: [], addresses: [], claims: [] };

/** Pools and Services, and the ledger where there is one already. */
export async function readMigration(client: KubeClient, signal: AbortSignal): Promise<MigrationRead> {
  const read = await readBook(client, signal);
  if (read.type === 'failed') return read;
  const found: Record<string, readonly KubeObject[]> = {};
  for (const kind of ['IPAddressPool', 'L2Advertisement', 'BGPAdvertisement']) {
    const listed = await ofMetallb(client, kind, signal);
    if ('type' in listed) return listed;
    found[kind] = listed;
  }
  const { IPAddressPool = [], L2Advertisement = [], BGPAdvertisement = [] } = found;
  const services = await balancedServices(client, signal);
  if ('type' in services) return services;
  const pools = IPAddressPool.map((pool) => readPool(pool, [...L2Advertisement, ...BGPAdvertisement]));
  return { type: 'read', facts: { book: read.type === 'read' ? read.book : noBook, pools, services } };
}
