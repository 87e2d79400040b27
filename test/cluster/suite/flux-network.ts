import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../constructs/lib/json.ts';
import { fluxNamespace } from '../flux/objects.ts';
import type { Cluster, ClusterNode } from '../types.ts';
import { daemonSet } from './pods.ts';

/** Where a node's runtime looks for its pod network, and what the cluster has there. */
const folder = 'etc/cni/net.d';
const file = '10-keelson-bridge.conflist';

/**
 * What the agent runs. The runtime takes notice of a file that is written or renamed within the folder, not of one that is
 * moved or linked into it from elsewhere, and of nothing any more once the folder itself was replaced.
 */
const install = [
  "const { writeFileSync, renameSync } = require('node:fs');",
  `const target = '/cni/${file}';`,
  "writeFileSync(target + '.new', JSON.parse(process.argv[1])[process.env.NODE_NAME]);",
  "renameSync(target + '.new', target);",
  "process.once('SIGTERM', () => process.exit(0));",
  'setInterval(() => undefined, 60_000);',
].join('\n');

/** The configuration that each node has. */
export function nodeConfigurations(cluster: Cluster): Record<string, string> {
  return Object.fromEntries(
    cluster.nodes.map((node) => [node.name, readFileSync(join(node.root, folder, file), 'utf8')]),
  );
}

/** A DaemonSet on the host network that writes each node's CNI configuration, as network plugins do. */
export function networkAgent(cluster: Cluster, configurations: Readonly<Record<string, string>>): JsonObject {
  const container = {
    name: 'agent',
    image: `${cluster.registry.hostRef}/keelson/keelson:local`,
    command: ['/bin/node', '-e', install],
    args: [JSON.stringify(configurations)],
    env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } }],
    securityContext: { runAsUser: 0 },
    volumeMounts: [{ name: 'cni', mountPath: '/cni' }],
  };
  const agent = daemonSet('network-agent', {
    hostNetwork: true,
    tolerations: [{ operator: 'Exists' }],
    containers: [container],
    volumes: [{ name: 'cni', hostPath: { path: `/${folder}`, type: 'Directory' } }],
  });
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '100%' } };
  return { ...agent, spec: { ...(agent.spec as JsonObject), updateStrategy: strategy } };
}

/** A pod that needs a network of its own, and may be anywhere. */
export function roamingPod(cluster: Cluster, name: string): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      tolerations: [{ operator: 'Exists' }],
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'idle', image: cluster.registry.pauseImage }],
    },
  };
}

/** Names of Flux's pods in which a container runs. */
export async function runningFlux(cluster: Cluster): Promise<string[]> {
  const told = await cluster.kubectl([
    ...['-n', fluxNamespace, 'get', 'pods', '-o'],
    'jsonpath={range .items[*]}{.metadata.name}={.status.containerStatuses[*].state.running.startedAt}{"\\n"}{end}',
  ]);
  return told
    .split('\n')
    .filter((line) => /=./.test(line))
    .map((line) => line.replace(/=.*/, ''));
}

/** The range of a node's pods holds an address; ranges here have 24 bits. */
export function isPodOf(node: ClusterNode, address: string): boolean {
  return node.podCIDR.replace(/\.\d+\/24$/, '') === address.replace(/\.\d+$/, '');
}
