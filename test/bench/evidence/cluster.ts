/** A cluster of many nodes with a pod of Open vSwitch on each, as the API server has it: no kubelet is behind any of them. */
import { networkNamespace, probeContainers } from '../../../constructs/api/constants.ts';
import { evidenceAudience } from '../../../constructs/api/evidence/identity.ts';
import type { AdminClient } from '../../apiserver/client.ts';
import { loopbackOf, type Member } from '../../pure/evidence-fleet.ts';

export interface ClusterOptions {
  readonly nodes: number;
  readonly hangs: (n: number) => boolean;
  /** Address of a node, on this host alone. */
  readonly addressOf?: (n: number) => string;
}

const account = 'ovn-ovs';
const daemonSetPath = `/apis/apps/v1/namespaces/${networkNamespace}/daemonsets`;
const installations = `/apis/network.keelson.dev/v1alpha1/namespaces/${networkNamespace}/kubeovninstallations`;
const nameOf = (n: number): string => `node-${String(n).padStart(4, '0')}`;

/** Runs a deed for each, some at a time. */
async function each<T>(count: number, deed: (n: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) made[n] = await deed(n);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  return made;
}

const patch = { type: 'application/merge-patch+json' } as const;

async function makeNode(admin: AdminClient, n: number, address: string): Promise<void> {
  const metadata = { name: nameOf(n) };
  await admin.expect('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata } });
  const status = {
    addresses: [{ type: 'InternalIP', address }],
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'as played' }],
  };
  await admin.expect('PATCH', `/api/v1/nodes/${nameOf(n)}/status`, { ...patch, body: { status } });
}

interface PodOptions {
  readonly owner: object;
  readonly address: string;
  readonly hangs: boolean;
  readonly suffix?: string;
}

/** A pod that runs, and the token that its kubelet would give the sidecar. */
async function makePod(
  admin: AdminClient,
  n: number,
  { owner, address, hangs, suffix = '' }: PodOptions,
): Promise<Member> {
  const [node, name] = [nameOf(n), `ovs-ovn-${n}${suffix}`];
  const containers = ['openvswitch', probeContainers.chassis];
  const image = 'registry.example.com/ovn:1';
  const pods = `/api/v1/namespaces/${networkNamespace}/pods`;
  const { body: pod } = await admin.expect('POST', pods, {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { app: 'ovs' }, ownerReferences: [owner] },
      spec: {
        nodeName: node,
        hostNetwork: true,
        serviceAccountName: account,
        containers: containers.map((container) => ({ name: container, image })),
      },
    },
  });
  const podUID = String(pod.metadata.uid);
  const status = {
    phase: 'Running',
    podIP: address,
    podIPs: [{ ip: address }],
    containerStatuses: containers.map((container) => ({
      name: container,
      image,
      imageID: `${image}@sha256:${'1'.repeat(64)}`,
      containerID: `containerd://${name}-${container}`,
      ready: true,
      restartCount: 0,
    })),
  };
  await admin.expect('PATCH', `${pods}/${name}/status`, { ...patch, body: { status } });
  const { body: granted } = await admin.expect(
    'POST',
    `/api/v1/namespaces/${networkNamespace}/serviceaccounts/${account}/token`,
    {
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          audiences: [evidenceAudience],
          expirationSeconds: 7_200,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid: podUID },
        },
      },
    },
  );
  return {
    subject: {
      namespace: networkNamespace,
      pod: name,
      podUID,
      node,
      container: probeContainers.chassis,
      nodeBootID: `boot-${n}`,
    },
    address,
    token: String(granted.status.token),
    manner: hangs ? 'hangs' : 'answers',
  };
}

export interface MadeCluster {
  readonly members: readonly Member[];
  /** Makes the installation that the pods belong to: from then on they are observed. */
  install(): Promise<void>;
  /** Makes another pod on a node, beside the one that is there, as a rollout with surge does. */
  surge(n: number): Promise<Member>;
}

/** Makes nodes, pods and their DaemonSet. */
export async function makeCluster(admin: AdminClient, options: ClusterOptions): Promise<MadeCluster> {
  const { nodes, hangs, addressOf = loopbackOf } = options;
  const accounts = `/api/v1/namespaces/${networkNamespace}/serviceaccounts`;
  await admin.expect('POST', accounts, {
    body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account } },
  });
  const template = {
    metadata: { labels: { app: 'ovs' } },
    spec: { containers: [{ name: 'openvswitch', image: 'registry.example.com/ovn:1' }] },
  };
  const { body: made } = await admin.expect('POST', daemonSetPath, {
    body: {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'ovs-ovn' },
      spec: { selector: { matchLabels: { app: 'ovs' } }, template },
    },
  });
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    name: 'ovs-ovn',
    uid: String(made.metadata.uid),
    controller: true,
  };
  const status = {
    observedGeneration: 1,
    ...{ desiredNumberScheduled: nodes, currentNumberScheduled: nodes, updatedNumberScheduled: nodes },
    ...{ numberReady: nodes, numberAvailable: nodes, numberMisscheduled: 0 },
  };
  await admin.expect('PATCH', `${daemonSetPath}/ovs-ovn/status`, { ...patch, body: { status } });
  await each(nodes, (n) => makeNode(admin, n, addressOf(n)));
  const members = await each(nodes, (n) => makePod(admin, n, { owner, address: addressOf(n), hangs: hangs(n) }));
  const surge = (n: number) => makePod(admin, n, { owner, address: addressOf(n), hangs: false, suffix: '-next' });
  return { members, install: () => install(admin), surge };
}

async function install(admin: AdminClient): Promise<void> {
  const { body } = await admin.expect('POST', installations, {
    body: {
      apiVersion: 'network.keelson.dev/v1alpha1',
      kind: 'KubeOVNInstallation',
      metadata: { name: 'main' },
      spec: {
        mode: 'nodeNetworking',
        version: '1.16.13',
        chart: { source: 'https://charts.example.com/kube-ovn.tgz', digest: `sha256:${'a'.repeat(64)}` },
        external: { northbound: 'tcp:127.0.0.1:6641', southbound: 'tcp:127.0.0.1:6642' },
      },
    },
  });
  const { apiVersion, kind, metadata } = body;
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
  await admin.expect('PATCH', `${daemonSetPath}/ovs-ovn`, {
    ...patch,
    body: { metadata: { ownerReferences: [owner] } },
  });
}
