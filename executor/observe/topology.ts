/** The order of OVN central's addresses as the cluster enforces it: from the accepted payload, while no record exists. */
import type { InventoryTopology } from '../../constructs/api/inventory.ts';
import type { KubeClient } from '../kube/client.ts';
import { acceptedPayloads } from './accepted.ts';

/** Topology by name of the installation; empty where no network payload was accepted. */
export async function acceptedTopology(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<Record<string, InventoryTopology>> {
  const topology: Record<string, InventoryTopology> = {};
  for (const { index } of (await acceptedPayloads(client, namespace, signal)).values()) {
    const { content } = index;
    if (content.release.domain !== 'network') continue;
    for (const installation of content.installations) {
      const centralAddresses = installation.nodes.flatMap((node) => node.addresses.slice(0, 1));
      if (centralAddresses.length > 0)
        topology[installation.name] = { centralAddresses, chartReplicas: centralAddresses.length };
    }
  }
  return Object.fromEntries(Object.entries(topology).sort(([a], [b]) => (a < b ? -1 : 1)));
}
