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
  name: dnsName(),
  uid: objectUID(),
  internalIPs: z.array(ipText()).min(1).max(8).meta({ description: 'In the order of the API server.' }),
  labels: stringMap(64).meta({ description: 'Only those that selectors of this cluster use.' }),
  taints: z
    .array(z.strictObject({ key: requiredText(317), value: text(63).optional(), effect: requiredText(32) }))
    .max(32)
    .optional(),
  unschedulable: z.boolean().default(false),
});
export type InventoryNode = z.output<typeof inventoryNode>;

export const inventoryTopology = z.strictObject({
  centralAddresses: z
    .array(ipText())
    .min(1)
    .max(9)
    .meta({ description: 'In the order that OVN central was built in.' }),
  chartReplicas: z.int().min(0).max(9),
  record: z.strictObject({ name: dnsName(), uid: objectUID(), digest: digest() }).optional(),
});
export type InventoryTopology = z.output<typeof inventoryTopology>;

export const inventory = z.strictObject({
  apiVersion: z.literal(apiVersion),
  kind: z.literal('Inventory'),
  metadata: z.strictObject({ name: dnsLabel() }),
  spec: z.strictObject({
    clusterUID: uuid(),
    kubernetesVersion: semverText(),
    serviceCIDRs: z.array(cidrText()).min(1).max(2),
    nodes: z
      .array(inventoryNode)
      .max(5_000)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
    topology: z
      .record(dnsName(), inventoryTopology)
      .meta({ maxProperties: 16, description: 'By name of the installation.' })
      .optional(),
  }),
});
export type Inventory = z.output<typeof inventory>;
