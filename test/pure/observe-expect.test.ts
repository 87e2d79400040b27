import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KubeObject } from '../../executor/kube/types.ts';
import { centralAbsence, expectCentral, expectChassis, expectNetwork } from '../../executor/observe/expect.ts';
import { centralNodes, centralOwner, clusterLook, kube, networkNames, podObject } from './observe-look-support.ts';

const central = (look = clusterLook()) => expectCentral(look, 'uid-1', centralNodes);
const absences = (look = clusterLook()) => {
  const expected = central(look);
  return expected.targets.map((target) => {
    const absence = centralAbsence(target, expected);
    return absence === undefined ? 'there' : `${absence.type}: ${'message' in absence ? absence.message : ''}`;
  });
};
const without = (objects: readonly KubeObject[], name: string): KubeObject[] =>
  objects.filter(({ metadata }) => metadata.name !== name);

test('E8: pods are followed from UID to UID of their controllers: Deployment, ReplicaSet, pod', () => {
  const look = clusterLook();
  const stranger = { ...centralOwner, uid: 'somebody' };
  look.pods.push(
    podObject('ovn-central-fake', 'n1', stranger, {
      metadata: { labels: { app: 'ovn-central' }, creationTimestamp: '2099-01-01T00:00:00Z' },
    }),
  );
  const { targets, workload, strays } = central(look);
  assert.equal(
    targets.map(({ pod }) => pod?.name),
    ['ovn-central-n1', 'ovn-central-n2', 'ovn-central-n3'],
  );
  assert.is(workload?.uid, 'Deployment-ovn-central');
  assert.equal(strays, []);
});

test("E8: a workload of the right name that belongs to somebody else is nobody's", () => {
  const { targets, workload } = expectCentral(clusterLook(), 'uid-2', centralNodes);
  assert.is(workload, undefined);
  assert.equal(
    targets.map(({ pod }) => pod),
    [undefined, undefined, undefined],
  );
  assert.equal(expectChassis(clusterLook(), 'uid-2'), { workloads: [], targets: [] });
});

test('E8: a StatefulSet carries members as well', () => {
  const look = clusterLook();
  const set = kube(
    'apps/v1',
    'StatefulSet',
    'ovn-central',
    { spec: { replicas: 3 }, status: {} },
    { kind: 'KubeOVNInstallation', name: 'main', uid: 'uid-1', controller: true },
  );
  const pods = [1, 2, 3].map((n) =>
    podObject(`ovn-central-${n}`, `n${n}`, {
      kind: 'StatefulSet',
      name: 'ovn-central',
      uid: 'StatefulSet-ovn-central',
      controller: true,
    }),
  );
  const found = central({ ...look, deployments: [], statefulSets: [set], pods });
  assert.equal(
    found.targets.map(({ pod }) => pod?.name),
    ['ovn-central-1', 'ovn-central-2', 'ovn-central-3'],
  );
});

test('J3: where the databases are: a folder of the node, or a claim by its UID', () => {
  assert.equal(central().targets[0]?.storage, { type: 'hostPath', path: '/etc/origin/ovn' });
  const look = clusterLook();
  const claimed = podObject('ovn-central-n1', 'n1', centralOwner, {
    spec: {
      nodeName: 'n1',
      containers: [{ name: 'main', volumeMounts: [{ name: 'data', mountPath: '/var/lib/ovn-member/' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'member' } }],
    },
  });
  const bound = { ...look, pods: [claimed], claims: [kube('v1', 'PersistentVolumeClaim', 'member')] };
  assert.equal(central(bound).targets[0]?.storage, {
    type: 'claim',
    name: 'member',
    uid: 'PersistentVolumeClaim-member',
  });
  assert.is(central({ ...bound, claims: [] }).targets[0]?.storage, undefined);
});

test('W2: a pod on a node that none is expected on is a stray', () => {
  const look = clusterLook(4);
  look.pods.push(podObject('ovn-central-x', 'n4', centralOwner));
  assert.equal(
    central(look).strays.map(({ name, node }) => `${name} ${node}`),
    ['ovn-central-x n4'],
  );
});

test('E14: a pod that ends answers for nobody; the one that comes does', () => {
  const look = clusterLook();
  const pods = without(look.pods, 'ovn-central-n3');
  const at = (creationTimestamp: string, name: string, more = {}): KubeObject =>
    podObject(name, 'n3', centralOwner, { metadata: { creationTimestamp, ...more } });
  const found = central({
    ...look,
    pods: [
      ...pods,
      at('2026-01-01T00:00:00Z', 'old'),
      at('2026-01-02T00:00:00Z', 'new'),
      at('2026-01-03T00:00:00Z', 'ends', { deletionTimestamp: '2026-01-03T00:00:00Z' }),
    ],
  });
  assert.is(found.targets[2]?.pod?.name, 'new');
});

test('X23: a node that is gone is told as such, and stays a place of the payload', () => {
  const look = clusterLook();
  assert.equal(absences({ ...look, nodes: without(look.nodes, 'n3'), pods: without(look.pods, 'ovn-central-n3') }), [
    'there',
    'there',
    'Broken: the node is gone',
  ]);
});

test('X7: a pod that is missing is broken once the rollout is over, and work under way before', () => {
  const look = clusterLook();
  const pods = without(look.pods, 'ovn-central-n3');
  assert.is(absences({ ...look, pods })[2], 'Broken: no pod of it runs there');
  const rolling = look.deployments.map((one) => ({ ...one, status: { observedGeneration: 1, updatedReplicas: 2 } }));
  assert.is(absences({ ...look, pods, deployments: rolling })[2], 'Unreachable: its pod is not there yet');
  const fresh = podObject('ovn-central-new', '', centralOwner);
  assert.is(absences({ ...look, pods: [...pods, fresh] })[2], 'Unreachable: its pod is not there yet');
  const nowhere = podObject('ovn-central-new', '', centralOwner, {
    status: {
      conditions: [
        { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' },
      ],
    },
  });
  assert.is(
    absences({ ...look, pods: [...pods, nowhere] })[2],
    'Broken: no pod of it runs there, and the scheduler says: 0/3 nodes are available',
  );
});

test('X7: while the pod of a place ends nobody is there to ask, and nobody was seen to be missing', () => {
  const look = clusterLook();
  const rest = without(look.pods, 'ovn-central-n3');
  const ends = (phase: string): KubeObject =>
    podObject('ovn-central-old', 'n3', centralOwner, {
      metadata: { deletionTimestamp: '2026-01-03T00:00:00Z' },
      status: { phase },
    });
  const nowhere = podObject('ovn-central-new', '', centralOwner, {
    status: {
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'anti-affinity' }],
    },
  });
  for (const more of [[], [nowhere]])
    assert.is(
      absences({ ...look, pods: [...rest, ends('Running'), ...more] })[2],
      'Unreachable: its pod ends, and answers for nobody any more',
    );
  // One that has ended holds no place.
  assert.match(absences({ ...look, pods: [...rest, ends('Failed'), nowhere] })[2] ?? '', /^Broken: no pod of it runs/);
  // Of a node that is gone more is known.
  const gone = { ...look, nodes: without(look.nodes, 'n3'), pods: [...rest, ends('Running')] };
  assert.is(absences(gone)[2], 'Broken: the node is gone');
});

test('E12: one target per node that carries Open vSwitch, with its node as it is now', () => {
  const look = clusterLook();
  look.nodes = look.nodes.map((node) =>
    node.metadata.name === 'n2'
      ? {
          ...node,
          spec: { unschedulable: true },
          status: { ...node.status, conditions: [{ type: 'Ready', status: 'Unknown' }] },
        }
      : node,
  );
  const { workloads, targets } = expectChassis(look, 'uid-1');
  assert.equal(
    workloads.map(({ name, desired }) => `${name} ${desired}`),
    ['ovs-ovn 3'],
  );
  assert.equal(
    targets.map(({ node, live }) => `${node} ${live?.ready} ${live?.unschedulable}`),
    ['n1 True false', 'n2 Unknown true', 'n3 True false'],
  );
});

test('9.4: the image of the daemons, not that of the sidecar; a node of DPDK has one of its own', () => {
  const look = clusterLook();
  const imageOf = (name: string): string => (name.endsWith('n3') ? 'kube-ovn@sha256:b' : 'kube-ovn@sha256:a');
  look.pods = look.pods.map((pod) => ({
    ...pod,
    status: {
      ...pod.status,
      containerStatuses: [
        { name: 'main', containerID: 'c', restartCount: 0, imageID: imageOf(pod.metadata.name ?? '') },
        { name: 'keelson-probe', containerID: 'p', restartCount: 0, imageID: 'probe@sha256:c' },
      ],
    },
  }));
  const dpdk = look.daemonSets.map((one) =>
    one.metadata.name === 'ovs-ovn' ? { ...one, metadata: { ...one.metadata, name: 'ovs-ovn-dpdk' } } : one,
  );
  const images = (wanted = look): (string | undefined)[] =>
    expectChassis(wanted, 'uid-1').targets.map(({ image }) => image);
  const [a, b] = ['kube-ovn@sha256:a', 'kube-ovn@sha256:b'];
  assert.equal(images(), [a, a, b]);
  assert.equal(images({ ...look, daemonSets: dpdk }), [undefined, undefined, undefined]);
  assert.equal(
    central(look).targets.map(({ image }) => image),
    [a, a, b],
  );
  // Without a word of the kubelet nothing is known.
  assert.equal(images(clusterLook()), [undefined, undefined, undefined]);
});

test('P1: the pods of the network probe and its Service', () => {
  const { clientPods, serverPods, service, clients, servers, nodes } = expectNetwork(
    clusterLook(),
    'uid-1',
    networkNames,
  );
  assert.equal([clientPods.length, serverPods.length, clients?.desired, servers?.desired], [3, 3, 3, 3]);
  assert.equal([service?.namespace, service?.name, service?.addresses], ['kube-system', 'probe', ['10.96.0.9']]);
  assert.equal(
    nodes.map(({ name, uid }) => `${name} ${uid}`),
    ['n1 node-1', 'n2 node-2', 'n3 node-3'],
  );
  assert.is(expectNetwork(clusterLook(), 'uid-2', networkNames).service, undefined);
});

test.run();
