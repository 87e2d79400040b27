import { z } from 'zod';
import { digestOf } from '../lib/digest.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../lib/json.ts';
import { annotations, configMapNames, labels, managedByValue } from './constants.ts';
import { dnsLabel, dnsName, ipText, objectUID, requiredText, text, uuid } from './fields.ts';

/**
 * The retained record of a local RAFT cluster: who its members were when all of them were first seen to agree. It holds
 * identities alone. What ordinary work changes (pods, terms, indexes, leaders) is not in it, so an unchanged cluster has
 * an unchanged record.
 */

export const topologyVersion = 'keelson.dev/topology/v1';

const server = z.strictObject({
  serverID: uuid(),
  /** RAFT address, in one spelling. */
  address: requiredText(320),
  /** Where clients are listened to, sorted. */
  listeners: z.array(text(320)).max(32),
});

const storage = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('hostPath'), path: requiredText(4096) }),
  z.strictObject({ type: z.literal('claim'), name: dnsName(), uid: objectUID() }),
]);

const member = z.strictObject({
  node: z.strictObject({ name: dnsName(), uid: objectUID() }),
  storage,
  nb: server,
  sb: server,
});
export type TopologyMember = z.output<typeof member>;

const cluster = z.strictObject({ clusterID: uuid() });

const topologyRecord = z.strictObject({
  version: z.literal(topologyVersion),
  installation: z.strictObject({ namespace: dnsLabel(), name: dnsName(), uid: objectUID() }),
  workload: z.strictObject({ kind: requiredText(63), name: dnsName(), uid: objectUID() }),
  /** Replicas that the Deployment of the chart retains. */
  chartReplicas: z.int().min(0).max(9),
  /** First address of each central node, in the order that OVN central was built in. */
  centralAddresses: z.array(ipText()).min(1).max(9),
  nb: cluster,
  sb: cluster,
  /** In the order of the addresses. */
  members: z.array(member).min(1).max(16),
});
export type TopologyRecord = z.output<typeof topologyRecord>;

const dataKey = 'record.json';

export const topologyDigest = (record: TopologyRecord): string => digestOf(record as unknown as JsonValue);

/** The immutable ConfigMap of a record. It has no owner: whatever is deleted, the record stays. */
export function topologyConfigMap(record: TopologyRecord, namespace: string): JsonObject {
  const digest = topologyDigest(record);
  const { name, uid } = record.installation;
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: configMapNames.topology(name, digest),
      namespace,
      labels: {
        [labels.managedBy]: managedByValue,
        [labels.holds]: 'topology',
        [labels.installationUID]: uid,
      },
      annotations: { [annotations.prune]: 'disabled' },
    },
    immutable: true,
    data: { [dataKey]: canonicalJson(record as unknown as JsonValue) },
  };
}

/** A record with the digest over what it says now; undefined where the ConfigMap holds none that can be read. */
export function readTopologyRecord(configMap: JsonObject): { record: TopologyRecord; digest: string } | undefined {
  const data = configMap.data as JsonObject | undefined;
  const held = data?.[dataKey];
  if (typeof held !== 'string') return undefined;
  const parsed = topologyRecord.safeParse(parse(held));
  return parsed.success ? { record: parsed.data, digest: topologyDigest(parsed.data) } : undefined;
}

function parse(held: string): unknown {
  try {
    return JSON.parse(held);
  } catch {
    return undefined;
  }
}
