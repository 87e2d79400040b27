/** The order of OVN central's addresses as the cluster enforces it: from the accepted payload, while no record exists. */
import { apiVersion } from '../../constructs/api/constants.ts';
import type { InventoryTopology } from '../../constructs/api/inventory.ts';
import { joinChunks } from '../../constructs/api/payload-chunks.ts';
import { decodePayload } from '../../constructs/api/payload-codec.ts';
import type { KubeClient } from '../kube/client.ts';
import { readChunks } from '../source/chunks.ts';

/** Topology by name of the installation; empty where no network payload was accepted. */
export async function acceptedTopology(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<Record<string, InventoryTopology>> {
  const releases = await client.list({ apiVersion, kind: 'Release', namespace }, { signal });
  if (releases.type !== 'listed') return {};
  const topology: Record<string, InventoryTopology> = {};
  for (const release of releases.items) {
    const name = release.metadata.name ?? '';
    const actual = release.status?.actual;
    if (!name.startsWith('network-') || typeof actual !== 'string') continue;
    const chunks = await readChunks(client, { namespace, release: name, holds: 'retained' }, signal);
    const archive = chunks.type === 'read' ? joinChunks(actual, chunks.configMaps) : undefined;
    const payload = archive?.ok === true ? await decodePayload(archive.value) : undefined;
    if (payload?.ok !== true) continue;
    for (const installation of payload.value.index.content.installations) {
      const centralAddresses = installation.nodes.flatMap((node) => node.addresses.slice(0, 1));
      if (centralAddresses.length > 0)
        topology[installation.name] = { centralAddresses, chartReplicas: centralAddresses.length };
    }
  }
  return Object.fromEntries(Object.entries(topology).sort(([a], [b]) => (a < b ? -1 : 1)));
}
