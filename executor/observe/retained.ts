/** Topologies as the retained records have them: what a status pins, read back and held against the pin. */
import { networkApiVersion } from '../../constructs/api/constants.ts';
import type { InventoryTopology } from '../../constructs/api/inventory.ts';
import { readTopologyRecord } from '../../constructs/api/topology.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import type { RecordPin } from './topology-record.ts';

/** The record that a status pins. */
export function pinOf(status: JsonObject | undefined): RecordPin | undefined {
  const { topology } = status ?? {};
  const inventory = isObject(topology) ? topology.inventory : undefined;
  if (!isObject(inventory)) return undefined;
  const { name, uid, digest } = inventory;
  if (typeof name !== 'string' || typeof uid !== 'string' || typeof digest !== 'string') return undefined;
  return { name, uid, digest };
}

export interface RetainedTopologies {
  readonly topologies: Readonly<Record<string, InventoryTopology>>;
  readonly problems: readonly Problem[];
}

/**
 * Topology by name of the installation, for those whose status pins a record. A record that is not what the status pins is a
 * problem, and never replaced by a guess.
 */
export async function retainedTopologies(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<RetainedTopologies> {
  const kind = 'KubeOVNInstallation';
  const listed = await client.list({ apiVersion: networkApiVersion, kind }, { signal });
  // Without the definition there is no installation.
  if (listed.type === 'kindAbsent') return { topologies: {}, problems: [] };
  if (listed.type !== 'listed')
    return { topologies: {}, problems: [{ reason: 'ApiUnavailable', message: `${kind}: ${listed.message}` }] };
  const topologies: Record<string, InventoryTopology> = {};
  const problems: Problem[] = [];
  for (const installation of listed.items) {
    const pin = pinOf(installation.status);
    if (pin === undefined) continue;
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: pin.name };
    const found = await client.get(ref, { signal });
    const read = found.type === 'found' ? pinned(found.object, pin) : notRead(found, pin);
    if ('reason' in read) problems.push({ ...read, object: `ConfigMap ${namespace}/${pin.name}` });
    else topologies[installation.metadata.name ?? ''] = read;
  }
  return { topologies, problems };
}

const notRead = (found: { readonly type: string; readonly message?: string }, { name }: RecordPin): Problem =>
  found.type === 'absent'
    ? {
        reason: 'TopologyRecordMissing',
        message: `the record ${name}, which the status pins, is gone`,
        remedy: 'restore it from a backup of the cluster; the topology in inventory.yaml was left as it is',
      }
    : { reason: 'ApiUnavailable', message: found.message ?? 'no answer' };

function pinned(object: KubeObject, pin: RecordPin): InventoryTopology | Problem {
  const uid = uidOf(object);
  const held = readTopologyRecord(object);
  const remedy = 'find out who made or changed it; the topology in inventory.yaml was left as it is';
  if (uid !== pin.uid)
    return { reason: 'TopologyRecordReplaced', message: `it has UID ${uid}, the status pins ${pin.uid}`, remedy };
  if (held?.digest !== pin.digest)
    return {
      reason: 'TopologyRecordChanged',
      message: `its content has digest ${held?.digest ?? 'none that can be read'}, the status pins ${pin.digest}`,
      remedy,
    };
  const { centralAddresses, chartReplicas } = held.record;
  return { centralAddresses: [...centralAddresses], chartReplicas, record: { ...pin } };
}
