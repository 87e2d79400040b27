import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { cluster as clusterSchema } from '../../constructs/api/cluster.ts';
import { getAt, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { networkProbeOf } from '../../renderer/network/networkprobe.ts';
import { type ChartObject, items, podSpecOf } from '../../renderer/network/object.ts';
import { networkPhases } from '../../renderer/network/phases.ts';
import { refusals } from '../../renderer/network/refusals.ts';
import { mergeNodeSelector } from '../../renderer/network/selector.ts';
import { fullObjects, inventoryOf, namespace, specOf, workload } from './network-fixture.ts';

const image = 'registry.example.com/keelson/probe:0.1.0';
const networkProbe = { image };

const tolerations = [
  { effect: 'NoSchedule', operator: 'Exists' },
  { effect: 'NoExecute', operator: 'Exists' },
];
/** A DaemonSet of Open vSwitch that says where it runs. */
function switches(name: string, more: JsonObject = {}): ChartObject {
  const object = workload('DaemonSet', name, {});
  const podSpec = podSpecOf(object) ?? {};
  Object.assign(podSpec, { tolerations, hostNetwork: true, priorityClassName: 'system-node-critical' }, more);
  return object;
}
const charted = (...more: ChartObject[]): ChartObject[] => [
  ...fullObjects().filter(({ name }) => name !== 'ovs-ovn'),
  switches('ovs-ovn'),
  ...more,
];
const rendered = (changes: Parameters<typeof specOf>[0] = {}, objects = charted()): ChartObject[] =>
  networkProbeOf(specOf({ networkProbe, ...changes }), namespace, ['pull'], objects);
const find = (objects: readonly ChartObject[], name: string): ChartObject => {
  const found = objects.find((object) => object.name === name);
  if (found === undefined) throw new Error(`no ${name}`);
  return found;
};
const podOf = (name: string, objects = rendered()): JsonObject => podSpecOf(find(objects, name)) ?? {};

test('P1: a client and a server on every node of the network, and one Service; nothing without an image', () => {
  assert.equal(
    rendered().map(({ kind, namespace: where, name }) => `${kind} ${where}/${name}`),
    [
      'Service kube-system/keelson-network-probe',
      'DaemonSet kube-system/keelson-network-server',
      'DaemonSet kube-system/keelson-network-client',
    ],
  );
  const { networkProbe: _none, ...without } = specOf({ networkProbe });
  assert.equal(networkProbeOf(without, namespace, [], charted()), []);
});

test('P9: centralOnly has no data plane to probe', () => {
  assert.equal(rendered({ mode: 'centralOnly' }), []);
});

test('P1: ordinary pods: no privileges, nothing of the host, no account at the API server, bounded', () => {
  for (const name of ['keelson-network-client', 'keelson-network-server']) {
    const pod = podOf(name);
    for (const absent of ['hostNetwork', 'hostPID', 'hostIPC', 'priorityClassName', 'initContainers'])
      assert.is(pod[absent], undefined, `${name} ${absent}`);
    assert.equal([pod.serviceAccountName, pod.automountServiceAccountToken], ['default', false]);
    assert.is(getAt(pod, '/securityContext/runAsNonRoot'), true);
    assert.equal(pod.imagePullSecrets, [{ name: 'pull' }]);
    const [container, ...others] = items(pod.containers);
    assert.equal(others, []);
    assert.is(container?.name, 'keelson-network-probe');
    assert.is(container?.image, image);
    assert.equal(container?.securityContext, {
      privileged: false,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    assert.equal(getAt(container ?? {}, '/resources/limits'), { cpu: '500m', memory: '128Mi' });
    assert.not.match(JSON.stringify(pod), /hostPath|hostPort|kubernetes\.io\/serviceaccount/);
  }
});

test('the client proves its pod by a token for evidence alone; the server holds nothing at all', () => {
  const client = podOf('keelson-network-client');
  assert.equal(
    items(client.volumes).map(({ name }) => name),
    ['keelson-evidence'],
  );
  assert.equal(getAt(items(client.volumes)[0] ?? {}, '/projected/sources/0'), {
    serviceAccountToken: { audience: 'keelson-evidence', expirationSeconds: 3600, path: 'token' },
  });
  assert.equal(items(client.containers)[0]?.args, ['probe', 'network-client']);
  const server = podOf('keelson-network-server');
  assert.is(server.volumes, undefined);
  assert.equal(items(server.containers)[0]?.args, ['probe', 'network-server']);
  const readiness = getAt(items(server.containers)[0] ?? {}, '/readinessProbe/httpGet');
  assert.equal(readiness, { path: '/v1/ready', port: 10673 });
});

test('P1: where Open vSwitch runs, by its selectors and tolerations, those of the specification included', () => {
  const dataPlane = { nodeSelector: { net: 'ovn' } };
  const merged = mergeNodeSelector(charted(), dataPlane.nodeSelector, inventoryOf(3, 3, { net: 'ovn' }));
  const pod = podOf('keelson-network-client', rendered({ dataPlane }, [...merged.objects]));
  assert.equal(pod.nodeSelector, { 'kubernetes.io/os': 'linux', net: 'ovn' });
  assert.equal(pod.tolerations, tolerations);
  assert.is(pod.affinity, undefined);
});

test('P1: with a second Open vSwitch for other nodes, where either of them runs', () => {
  const type = 'ovn.kubernetes.io/ovs_dp_type';
  const expression = (key: string, value: string) => ({ key, operator: 'In', values: [value] });
  const two = [
    ...charted().filter(({ name }) => name !== 'ovs-ovn'),
    switches('ovs-ovn', { nodeSelector: { [type]: 'kernel' } }),
    switches('ovs-ovn-dpdk', { nodeSelector: { [type]: 'userspace' }, tolerations: [{ operator: 'Exists' }] }),
  ];
  const pod = podOf('keelson-network-server', rendered({}, two));
  assert.is(pod.nodeSelector, undefined);
  assert.equal(pod.affinity, {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [expression(type, 'kernel')] },
          { matchExpressions: [expression(type, 'userspace')] },
        ],
      },
    },
  });
  assert.equal(pod.tolerations, [...tolerations, { operator: 'Exists' }]);
  const required = { nodeSelectorTerms: [{ matchExpressions: [expression('zone', 'a')] }] };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
  const own = podOf('keelson-network-server', rendered({}, [switches('ovs-ovn', { affinity })]));
  assert.equal(getAt(own, '/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution'), {
    nodeSelectorTerms: [{ matchExpressions: [expression('zone', 'a'), expression('kubernetes.io/os', 'linux')] }],
  });
});

test('P6: the Service has the families that are asked for; without a word, those of the cluster', () => {
  const of = (networkStack?: 'ipv4' | 'ipv6' | 'dual_stack') =>
    find(rendered(networkStack === undefined ? {} : { networkStack }), 'keelson-network-probe').body.spec as JsonObject;
  assert.equal([of('ipv6').ipFamilyPolicy, of('ipv6').ipFamilies], ['SingleStack', ['IPv6']]);
  assert.equal([of('ipv4').ipFamilyPolicy, of('ipv4').ipFamilies], ['SingleStack', ['IPv4']]);
  for (const spec of [of('dual_stack'), of()])
    assert.equal([spec.ipFamilyPolicy, spec.ipFamilies], ['PreferDualStack', undefined]);
  assert.equal(of().selector, { 'app.kubernetes.io/name': 'keelson-network-server' });
});

test('the last phase holds the probe, and waits until packets arrive', () => {
  const phases = networkPhases(charted(), specOf({ networkProbe }), [], rendered());
  const last = phases.at(-1);
  assert.is(last?.dir, '50-network-probe');
  assert.equal(
    last?.gates.map(({ type, scope }) => `${type}(${scope})`),
    ['WorkloadsReady(network-probe)', 'NetworkReady(network-probe)'],
  );
  assert.is(networkPhases(charted(), specOf(), []).at(-1)?.dir, '40-data-plane');
});

test('a data plane without a probe has to be meant, and a probe needs somebody who asks it', () => {
  const settings = (more: JsonObject, images: JsonObject = {}) =>
    clusterSchema.parse({
      apiVersion: 'keelson.dev/v1alpha1',
      kind: 'Cluster',
      metadata: { name: 'test' },
      spec: {
        kubernetesVersion: '1.34.2',
        delivery: { repository: '../rendered.git', author: { name: 'Test', email: 'test@example.com' } },
        images: { executor: `registry.example.com/keelson@sha256:${'e'.repeat(64)}`, ...images },
        ...more,
      },
    });
  const found = (spec: ReturnType<typeof specOf>, cluster: ReturnType<typeof settings>): string[] =>
    refusals(spec, cluster, (path, problem): Problem => ({ ...problem, path: path.join('.') })).map(
      ({ reason, path }) => `${reason} ${path}`,
    );
  assert.equal(found(specOf(), settings({})), ['NetworkUnverified spec.networkProbe']);
  assert.equal(found(specOf(), settings({ acceptUnverifiedNetwork: true })), []);
  assert.equal(found(specOf({ mode: 'centralOnly', networkProbe }), settings({})), []);
  assert.equal(found(specOf({ networkProbe }), settings({})), ['ProbeImageMissing spec.networkProbe.image']);
  assert.equal(found(specOf({ networkProbe }), settings({}, { probe: image })), []);
});

test.run();
