/** Takes the facts about a cluster that rendering relies on. */
import { apiVersion } from '../../constructs/api/constants.ts';
import type { Inventory, InventoryNode } from '../../constructs/api/inventory.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { parseObject } from '../kube/classify.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import { retainedTopologies } from './retained.ts';
import { acceptedTopology } from './topology.ts';

export interface CaptureInput {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  readonly cluster: string;
  /** Namespace of the executor. */
  readonly namespace: string;
  /** Keys of the node labels that selectors of this cluster use; others are left out, so that they change nothing. */
  readonly labels: ReadonlySet<string>;
  /** What is written already: a topology that was recorded stays. */
  readonly topology?: Inventory['spec']['topology'];
  /** Where the cluster does not tell its service range. */
  readonly serviceCIDRs?: readonly string[];
}

export type Captured =
  | { readonly ok: true; readonly inventory: Inventory }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const unavailable = (what: string, message: string): Problem => ({
  reason: 'ApiUnavailable',
  message: `${what}: ${message}`,
  remedy: 'check the kubeconfig and its rights (namespaces, nodes and service ranges are read)',
});

/** The inventory of the cluster that the client talks to. Equal facts give equal values; there are no times. */
export async function captureInventory(input: CaptureInput): Promise<Captured> {
  const problems: Problem[] = [];
  const clusterUID = await clusterUIDOf(input, problems);
  const kubernetesVersion = await versionOf(input, problems);
  const nodes = await nodesOf(input, problems);
  const serviceCIDRs = await serviceRangesOf(input, problems);
  const accepted = await acceptedTopology(input.client, input.namespace, input.signal);
  const retained = await retainedTopologies(input.client, input.namespace, input.signal);
  problems.push(...retained.problems);
  // The record that the status pins is what was seen of the databases themselves. What an earlier one said stays while none
  // is pinned; short of that the cluster knows better than the file.
  const recorded = Object.entries(input.topology ?? {}).filter(([, entry]) => entry.record !== undefined);
  const topology = { ...input.topology, ...accepted, ...Object.fromEntries(recorded), ...retained.topologies };
  if (problems.length > 0) return { ok: false, problems };
  const inventory: Inventory = {
    apiVersion,
    kind: 'Inventory',
    metadata: { name: input.cluster },
    spec: {
      clusterUID,
      kubernetesVersion,
      serviceCIDRs,
      nodes,
      ...(Object.keys(topology).length === 0 ? {} : { topology }),
    },
  };
  return { ok: true, inventory };
}

async function clusterUIDOf({ client, signal }: CaptureInput, problems: Problem[]): Promise<string> {
  const read = await client.get({ apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' }, { signal });
  if (read.type === 'found') return uidOf(read.object);
  problems.push(unavailable('namespace kube-system', read.type === 'absent' ? 'it does not exist' : read.message));
  return '';
}

async function versionOf({ client, signal }: CaptureInput, problems: Problem[]): Promise<string> {
  const read = await client.getPath('/version', { signal });
  // Whoever answers in place of an API server (a login page, a proxy) need not answer in JSON.
  const found = read.type === 'text' ? parseObject(read.text)?.gitVersion : undefined;
  if (typeof found === 'string') return found.replace(/^v/, '');
  const why = 'message' in read ? read.message : read.type === 'text' ? 'it names none' : 'no answer';
  problems.push(unavailable('the version of the API server', why));
  return '';
}

async function nodesOf(input: CaptureInput, problems: Problem[]): Promise<InventoryNode[]> {
  const listed = await input.client.list({ apiVersion: 'v1', kind: 'Node' }, { signal: input.signal });
  if (listed.type !== 'listed') {
    problems.push(unavailable('nodes', listed.message));
    return [];
  }
  const nodes = listed.items.map((node) => toNode(node, input.labels));
  for (const node of nodes)
    if (node.internalIPs.length === 0)
      problems.push({
        reason: 'NodeWithoutAddress',
        message: 'the node has no internal address',
        object: `Node ${node.name}`,
        remedy: 'set --node-ip of its kubelet, or remove the node',
      });
  return nodes.sort((a, b) => (a.name < b.name ? -1 : 1));
}

interface NodeView {
  spec?: { taints?: { key?: string; value?: string; effect?: string }[]; unschedulable?: boolean };
  status?: { addresses?: { type?: string; address?: string }[] };
}

/** Taints that come and go with the state of a node say nothing about what it is. */
const passing = /^node\.kubernetes\.io\/(not-ready|unreachable|network-unavailable|unschedulable|.*-pressure)$/;

function toNode(node: KubeObject, wanted: ReadonlySet<string>): InventoryNode {
  const { spec, status } = node as unknown as NodeView;
  const found = Object.entries(node.metadata.labels ?? {}).filter(([key]) => wanted.has(key));
  const taints = (spec?.taints ?? [])
    .filter((taint) => !passing.test(taint.key ?? ''))
    .map(({ key = '', value, effect = '' }) => ({ key, ...(value === undefined ? {} : { value }), effect }))
    .sort((a, b) => (`${a.key} ${a.effect}` < `${b.key} ${b.effect}` ? -1 : 1));
  return {
    name: node.metadata.name ?? '',
    uid: uidOf(node),
    internalIPs: (status?.addresses ?? []).flatMap((a) => (a.type === 'InternalIP' && a.address ? [a.address] : [])),
    labels: Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1))),
    ...(taints.length === 0 ? {} : { taints }),
    unschedulable: spec?.unschedulable ?? false,
  };
}

async function serviceRangesOf(input: CaptureInput, problems: Problem[]): Promise<string[]> {
  if (input.serviceCIDRs !== undefined && input.serviceCIDRs.length > 0) return [...input.serviceCIDRs];
  for (const version of ['networking.k8s.io/v1', 'networking.k8s.io/v1beta1']) {
    const read = await input.client.get(
      { apiVersion: version, kind: 'ServiceCIDR', name: 'kubernetes' },
      { signal: input.signal },
    );
    const cidrs = read.type === 'found' ? read.object.spec?.cidrs : undefined;
    if (Array.isArray(cidrs) && cidrs.length > 0) return cidrs.map(String);
  }
  const kubeadm = await kubeadmRanges(input);
  if (kubeadm.length > 0) return kubeadm;
  problems.push({
    reason: 'ServiceRangeUnknown',
    message: 'the cluster tells its service range neither by a ServiceCIDR nor by kubeadm-config',
    remedy: 'give it with --service-cidr, as --service-cluster-ip-range of the API server has it',
  });
  return [];
}

async function kubeadmRanges({ client, signal }: CaptureInput): Promise<string[]> {
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' };
  const read = await client.get(ref, { signal });
  const data = read.type === 'found' ? (read.object as { data?: JsonObject }).data : undefined;
  const text = data?.ClusterConfiguration;
  const value = typeof text === 'string' ? parseYaml(text, 'kubeadm-config').documents[0]?.value : undefined;
  const networking = isObject(value) && isObject(value.networking) ? value.networking : {};
  return typeof networking.serviceSubnet === 'string' ? networking.serviceSubnet.split(',') : [];
}
