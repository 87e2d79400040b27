/** What the API server has of a small cluster with OVN central, Open vSwitch and the network probe, to be changed by tests. */
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { ClusterLook } from '../../executor/observe/expect.ts';

type Look = { -readonly [K in keyof ClusterLook]: KubeObject[] };

const owner = (kind: string, name: string, uid: string): JsonObject => ({ kind, name, uid, controller: true });

export function kube(
  apiVersion: string,
  kind: string,
  name: string,
  more: JsonObject = {},
  by?: JsonObject,
): KubeObject {
  const { metadata, ...rest } = more;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace: 'kube-system',
      uid: `${kind}-${name}`,
      generation: 1,
      ...(by === undefined ? {} : { ownerReferences: [by] }),
      ...(metadata as JsonObject | undefined),
    },
    ...rest,
  };
}

const installation = owner('KubeOVNInstallation', 'main', 'uid-1');

export const podObject = (name: string, node: string, by: JsonObject, more: JsonObject = {}): KubeObject =>
  kube(
    'v1',
    'Pod',
    name,
    {
      spec: {
        ...(node === '' ? {} : { nodeName: node }),
        containers: [{ name: 'main', volumeMounts: [{ name: 'config', mountPath: '/etc/ovn' }] }],
        volumes: [{ name: 'config', hostPath: { path: '/etc/origin/ovn' } }],
      },
      status: {
        phase: 'Running',
        podIPs: [{ ip: `10.0.0.${node.slice(1)}` }],
        containerStatuses: [{ name: 'main', containerID: `containerd://${name}`, restartCount: 0 }],
      },
      ...more,
    },
    by,
  );

export const centralOwner = owner('ReplicaSet', 'ovn-central-1', 'ReplicaSet-ovn-central-1');

const daemonSet = (name: string, nodes: number): KubeObject =>
  kube(
    'apps/v1',
    'DaemonSet',
    name,
    {
      status: {
        observedGeneration: 1,
        desiredNumberScheduled: nodes,
        updatedNumberScheduled: nodes,
        numberReady: nodes,
      },
    },
    installation,
  );

/** `nodes` nodes, the first three of which carry OVN central. */
export function clusterLook(nodes = 3): Look {
  const names = Array.from({ length: nodes }, (_, n) => `n${n + 1}`);
  const perNode = (workload: string, prefix: string): KubeObject[] =>
    names.map((node) => podObject(`${prefix}-${node}`, node, owner('DaemonSet', workload, `DaemonSet-${workload}`)));
  return {
    deployments: [
      kube(
        'apps/v1',
        'Deployment',
        'ovn-central',
        { spec: { replicas: 3 }, status: { observedGeneration: 1, updatedReplicas: 3, readyReplicas: 3 } },
        installation,
      ),
    ],
    statefulSets: [],
    daemonSets: [daemonSet('ovs-ovn', nodes), daemonSet('probe-client', nodes), daemonSet('probe-server', nodes)],
    replicaSets: [
      kube('apps/v1', 'ReplicaSet', 'ovn-central-1', {}, owner('Deployment', 'ovn-central', 'Deployment-ovn-central')),
    ],
    pods: [
      ...names.slice(0, 3).map((node) => podObject(`ovn-central-${node}`, node, centralOwner)),
      ...perNode('ovs-ovn', 'ovs-ovn'),
      ...perNode('probe-client', 'client'),
      ...perNode('probe-server', 'server'),
    ],
    nodes: names.map((name, n) =>
      kube('v1', 'Node', name, {
        metadata: { namespace: '', uid: `node-${n + 1}` },
        spec: {},
        status: {
          addresses: [
            { type: 'InternalIP', address: `10.0.0.${n + 1}` },
            { type: 'Hostname', address: name },
          ],
          conditions: [{ type: 'Ready', status: 'True' }],
        },
      }),
    ),
    claims: [],
    services: [kube('v1', 'Service', 'probe', { spec: { clusterIPs: ['10.96.0.9'] } }, installation)],
  };
}

export const centralNodes = [1, 2, 3].map((n) => ({ name: `n${n}`, uid: `node-${n}`, addresses: [`10.0.0.${n}`] }));
export const networkNames = { clients: 'probe-client', servers: 'probe-server', service: 'probe', echoPort: 10673 };
