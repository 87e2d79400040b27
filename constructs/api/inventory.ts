import { z } from 'zod';
import { apiVersion } from './constants.ts';
import {
  cidrText,
  digest,
  dnsLabel,
  dnsName,
  ipText,
  objectUID,
  requiredText,
  semverText,
  stringMap,
  text,
  uuid,
} from './fields.ts';

/** `inventory.yaml`: the facts about a cluster that rendering may rely on. It holds no times, so equal facts are equal bytes. */

export const inventoryNode = z.strictObject({
  name: dnsName().meta({ description: 'Name of the node.' }),
  uid: objectUID().meta({ description: 'UID of the node.' }),
  internalIPs: z.array(ipText()).min(1).max(8).meta({ description: 'In the order of the API server.' }),
  labels: stringMap(64).meta({ description: 'Only those that selectors of this cluster use.' }),
  taints: z
    .array(
      z.strictObject({
        key: requiredText(317).meta({ description: 'Key of the taint.' }),
        value: text(63).optional().meta({ description: 'Value of the taint.' }),
        effect: requiredText(32).meta({ description: 'Effect of the taint.' }),
      }),
    )
    .max(32)
    .optional()
    .meta({ description: 'Taints of the node.' }),
  unschedulable: z.boolean().default(false).meta({ description: 'Whether the node is cordoned.' }),
});
export type InventoryNode = z.output<typeof inventoryNode>;

export const inventoryTopology = z.strictObject({
  centralAddresses: z
    .array(ipText())
    .min(1)
    .max(9)
    .meta({ description: 'In the order that OVN central was built in.' }),
  chartReplicas: z.int().min(0).max(9).meta({ description: 'Replicas that the Deployment of the chart retains.' }),
  record: z
    .strictObject({
      name: dnsName().meta({ description: 'Name of the ConfigMap.' }),
      uid: objectUID().meta({ description: 'UID of the ConfigMap.' }),
      digest: digest().meta({ description: 'Digest over its content.' }),
    })
    .optional()
    .meta({ description: 'The retained record that this comes from.' }),
});
export type InventoryTopology = z.output<typeof inventoryTopology>;

export const inventory = z.strictObject({
  apiVersion: z.literal(apiVersion),
  kind: z.literal('Inventory'),
  metadata: z.strictObject({ name: dnsLabel() }),
  spec: z.strictObject({
    clusterUID: uuid().meta({ description: 'UID of namespace kube-system.' }),
    kubernetesVersion: semverText().meta({ description: 'Version of the API server.' }),
    serviceCIDRs: z.array(cidrText()).min(1).max(2).meta({ description: 'Service ranges, the primary family first.' }),
    nodes: z
      .array(inventoryNode)
      .max(5_000)
      .meta({
        description: 'Nodes, by name.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
    topology: z
      .record(dnsName(), inventoryTopology)
      .meta({ maxProperties: 16, description: 'By name of the installation.' })
      .optional(),
  }),
});
export type Inventory = z.output<typeof inventory>;
