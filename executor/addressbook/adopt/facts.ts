import type { KubeClient } from '../../kube/client.ts';
import { type BalancedService, readService } from '../pins.ts';
import { type BookRead, readBook } from '../read.ts';
import type { AdoptFacts, AdoptRequest } from './plan.ts';

export type FactsRead = { readonly type: 'read'; readonly facts: AdoptFacts } | Exclude<BookRead, { type: 'read' }>;

/** Every Service of type LoadBalancer. */
export async function balancedServices(
  client: KubeClient,
  signal: AbortSignal,
): Promise<BalancedService[] | { readonly type: 'failed'; readonly message: string }> {
  const selection = { apiVersion: 'v1', kind: 'Service', fieldSelector: 'spec.type=LoadBalancer' };
  const listed = await client.list(selection, { signal });
  return listed.type === 'listed' ? listed.items.map(readService) : { type: 'failed', message: listed.message };
}

/** The ledger, and the Services that may have to do with the one that is asked about. */
export async function readFacts(
  client: KubeClient,
  { namespace, service: name }: AdoptRequest,
  signal: AbortSignal,
): Promise<FactsRead> {
  const read = await readBook(client, signal);
  if (read.type !== 'read') return read;
  const services = await balancedServices(client, signal);
  if ('type' in services) return services;
  const one = await client.get({ apiVersion: 'v1', kind: 'Service', namespace, name }, { signal });
  if (one.type !== 'found' && one.type !== 'absent') return { type: 'failed', message: one.message };
  const asked = one.type === 'found' ? [readService(one.object)] : [];
  const others = services.filter((service) => service.namespace !== namespace || service.name !== name);
  return { type: 'read', facts: { book: read.book, services: [...others, ...asked] } };
}
