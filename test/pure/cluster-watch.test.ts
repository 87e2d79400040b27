/** What is kept of the cluster by the thousand is everything that a round reads. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KubeObject } from '../../executor/kube/types.ts';
import { slim } from '../../executor/network/cluster-watch.ts';
import { type ClusterLook, expectCentral, expectChassis, expectNetwork } from '../../executor/observe/expect.ts';
import { centralNodes, clusterLook, networkNames } from './observe-look-support.ts';

/** A pod as a kubelet tells of it, with what nobody here reads. */
const told = (pod: KubeObject): KubeObject => ({
  ...pod,
  metadata: { ...pod.metadata, resourceVersion: '7', labels: { app: 'x' }, annotations: { long: 'x'.repeat(2_000) } },
  status: {
    ...pod.status,
    hostIP: '10.0.0.9',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node fits' }],
    containerStatuses: [
      { name: 'main', containerID: 'c', imageID: 'kube-ovn@sha256:a', restartCount: 2, ready: true, started: true },
      { name: 'keelson-probe', containerID: 'p', imageID: 'probe@sha256:b', restartCount: 0, ready: true },
    ],
  },
});

test('a round expects the same of what is kept as of what the API server tells', () => {
  const whole = clusterLook();
  whole.pods = whole.pods.map((pod, n) =>
    n === 1 ? { ...told(pod), spec: { ...pod.spec, nodeName: undefined } as never } : told(pod),
  );
  const kept = Object.fromEntries(
    Object.entries(whole).map(([kind, objects]) => [
      kind,
      objects.map((one) => slim[kind as keyof ClusterLook]?.(one) ?? one),
    ]),
  ) as unknown as ClusterLook;
  assert.ok(JSON.stringify(kept).length < JSON.stringify(whole).length / 2);
  const expected = (look: ClusterLook) => [
    expectCentral(look, 'uid-1', centralNodes),
    expectChassis(look, 'uid-1'),
    expectNetwork(look, 'uid-1', networkNames),
  ];
  assert.equal(expected(kept), expected(whole));
  assert.is(expectChassis(kept, 'uid-1').targets[0]?.image, 'kube-ovn@sha256:a');
});

test.run();
