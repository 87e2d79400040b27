import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { getAt, type JsonObject, setAt } from '../../constructs/lib/json.ts';
import { acceptChart } from '../../renderer/network/acceptance.ts';
import { placeCentral } from '../../renderer/network/addresses.ts';
import { toReleaseObject } from '../../renderer/network/bindings.ts';
import { formatEndpoint, parseEndpoint } from '../../renderer/network/endpoint.ts';
import { filterHooks } from '../../renderer/network/hooks.ts';
import { type ChartObject, objectId, withBody } from '../../renderer/network/object.ts';
import { networkPhases } from '../../renderer/network/phases.ts';
import { mergeNodeSelector } from '../../renderer/network/selector.ts';
import { renameTLSSecret } from '../../renderer/network/tls.ts';
import { chartValues, shapeProblems } from '../../renderer/network/values.ts';
import {
  dataPlaneObjects,
  fullObjects,
  inventoryOf,
  named,
  namespace,
  object,
  specOf,
  workload,
} from './network-fixture.ts';

const modes = { shape: 'modes', centralMode: true, externalCentral: true, hcp: true, tlsRotation: true } as const;
const classic = {
  shape: 'classic',
  centralMode: false,
  externalCentral: false,
  hcp: false,
  tlsRotation: false,
} as const;
const selector = { 'node-role.kubernetes.io/control-plane': '' };
const place = (inventory = inventoryOf(3), replicas = 3) =>
  placeCentral({ inventory, installation: 'main', selector, replicas, object: 'x' });
const reasonsOf = (problems: readonly { reason: string }[]): string[] =>
  [...new Set(problems.map((problem) => problem.reason))].sort();

test('the first render takes central addresses in the order of node names', () => {
  const inventory = inventoryOf(3);
  inventory.spec.nodes.reverse();
  const outcome = place(inventory);
  assert.equal(outcome.ok && outcome.placement.addresses, ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
});

test('more or fewer nodes than replicas are refused with both counts', () => {
  for (const [nodes, replicas] of [
    [4, 3],
    [2, 3],
    [0, 1],
  ] as const) {
    const outcome = place(inventoryOf(nodes), replicas);
    assert.is(outcome.ok, false);
    const [problem] = outcome.ok ? [] : outcome.problems;
    assert.is(problem?.reason, 'CentralNodeCount');
    assert.match(problem?.message ?? '', new RegExp(`^${nodes} nodes match .* asks for ${replicas}`));
  }
});

test('property: retained addresses keep their order whatever order nodes come in, and are never invented', () => {
  fc.assert(
    fc.property(
      fc.shuffledSubarray(['10.0.0.1', '10.0.0.2', '10.0.0.3'], { minLength: 3 }),
      fc.boolean(),
      (order, reverse) => {
        const inventory = inventoryOf(3);
        if (reverse) inventory.spec.nodes.reverse();
        inventory.spec.topology = { main: { centralAddresses: order, chartReplicas: 3 } };
        const outcome = place(inventory);
        assert.equal(outcome.ok && outcome.placement.addresses, order);
      },
    ),
  );
  const gone = inventoryOf(2);
  gone.spec.topology = { main: { centralAddresses: ['10.0.0.1', '10.0.0.2', '10.0.0.3'], chartReplicas: 3 } };
  const missing = place(gone);
  assert.equal(missing.ok ? [] : reasonsOf(missing.problems), ['CentralAddressMissing']);
  const extra = inventoryOf(4);
  extra.spec.topology = { main: { centralAddresses: ['10.0.0.1', '10.0.0.2', '10.0.0.3'], chartReplicas: 3 } };
  const unexpected = place(extra);
  assert.equal(unexpected.ok ? [] : reasonsOf(unexpected.problems), ['CentralNodeUnexpected']);
});

test('values: only what the specification speaks of is set', () => {
  const input = {
    spec: specOf(),
    namespace,
    centralAddresses: ['10.0.0.2', '10.0.0.1'],
    nodeAddresses: [],
    pullSecrets: [],
  };
  assert.equal(chartValues(input, classic), {
    namespace,
    MASTER_NODES: '10.0.0.2,10.0.0.1',
    MASTER_NODES_LABEL: 'node-role.kubernetes.io/control-plane=',
    'ovs-ovn': { updateStrategy: { type: 'RollingUpdate' } },
  });
  const stack = chartValues(
    { ...input, spec: specOf({ networkStack: 'dual_stack', mode: 'centralOnly' }), pullSecrets: ['s'] },
    modes,
  );
  assert.equal(
    [stack.installMode, stack.OVN_CENTRAL_MODE, stack.networking, stack.global, stack['ovs-ovn']],
    ['controlPlaneOnly', 'cluster', { NET_STACK: 'dual_stack' }, { registry: { imagePullSecrets: ['s'] } }, undefined],
  );
});

test('values: tcp: endpoints go in by host and port, ssl: ones verbatim, IPv6 hosts in brackets once', () => {
  const base = {
    namespace,
    centralAddresses: [],
    nodeAddresses: ['10.0.0.1', '10.0.0.2', '10.0.0.3'],
    pullSecrets: [],
  };
  const tcp = specOf({
    mode: 'nodeNetworking',
    external: { northbound: 'tcp:[fd00::1]:6641', southbound: 'tcp:[fd00::1]:7642' },
  });
  const values = chartValues({ ...base, spec: tcp }, modes);
  assert.equal(values.externalOvnCentral, { nbEndpoint: 'fd00::1', nbPort: 6641, sbEndpoint: 'fd00::1', sbPort: 7642 });
  assert.is(values.MASTER_NODES, '10.0.0.1,10.0.0.2');
  const ssl = specOf({
    mode: 'nodeNetworking',
    hcp: {
      enabled: true,
      role: 'dataPlane',
      peerNamespace: 'p',
      tlsSecretRef: { name: 'k' },
      northbound: 'ssl:[fd00::1]:6641',
      southbound: 'ssl:host:6642',
    },
  });
  const hosted = chartValues({ ...base, spec: ssl }, modes);
  assert.equal(hosted['ovn-central'], {
    hcp: { enabled: true, nbAddress: 'ssl:[fd00::1]:6641', sbAddress: 'ssl:host:6642' },
  });
  assert.equal(hosted.networking, { ENABLE_SSL: true });
});

test('a chart without the keys of a mode never renders it', () => {
  const external = { northbound: 'tcp:a:1', southbound: 'tcp:a:2' };
  assert.equal(shapeProblems(specOf(), classic, 'x'), []);
  assert.equal(reasonsOf(shapeProblems(specOf({ mode: 'centralOnly' }), classic, 'x')), ['ChartLacksMode']);
  assert.is(shapeProblems(specOf({ mode: 'nodeNetworking', external }), classic, 'x').length, 2);
  assert.equal(reasonsOf(shapeProblems(specOf({ central: { database: 'standalone', replicas: 1 } }), classic, 'x')), [
    'ChartLacksMode',
  ]);
  assert.equal(shapeProblems(specOf({ mode: 'nodeNetworking', external }), modes, 'x'), []);
});

test('endpoints come apart and together, and nothing else is one', () => {
  for (const text of ['tcp:10.0.0.1:6641', 'ssl:[fd00::1]:6642', 'tcp:host.example:1']) {
    const endpoint = parseEndpoint(text);
    assert.is(endpoint && formatEndpoint(endpoint), text);
  }
  for (const text of ['tcp:fd00::1:6641', 'udp:a:1', 'tcp:a:0', 'tcp:a:65536', 'tcp::1', 'tcp:a', 'tcp:a b:1'])
    assert.is(parseEndpoint(text), undefined, text);
});

test('hooks are left out by their annotation, accounts and roles included; install hooks and unknown words are refused', () => {
  const hook = (kind: string, words: string): ChartObject =>
    object({
      apiVersion: 'v1',
      kind,
      metadata: { name: kind.toLowerCase(), namespace, annotations: { 'helm.sh/hook': words } },
    });
  const outcome = filterHooks([
    ...fullObjects(),
    hook('ServiceAccount', 'pre-upgrade'),
    hook('Job', 'post-delete, test'),
  ]);
  assert.is(outcome.kept.length, fullObjects().length);
  assert.equal(outcome.filtered, [
    'Job kube-system/job (post-delete,test)',
    'ServiceAccount kube-system/serviceaccount (pre-upgrade)',
  ]);
  for (const words of ['pre-install', 'post-install,pre-upgrade', 'later'])
    assert.equal(reasonsOf(filterHooks([hook('Job', words)]).problems), ['HelmHookRefused']);
});

test('the node selector reaches exactly the data plane and keeps what the chart selects', () => {
  const inventory = inventoryOf(3, 3, { zone: 'a' });
  const merged = mergeNodeSelector(fullObjects(), { zone: 'a' }, inventory);
  assert.equal(merged.problems, []);
  assert.equal(merged.touched, [
    'DaemonSet/kube-ovn-cni',
    'DaemonSet/kube-ovn-pinger',
    'DaemonSet/ovs-ovn',
    'Deployment/kube-ovn-controller',
  ]);
  const agent = merged.objects.find((candidate) => candidate.name === 'ovs-ovn');
  assert.equal(agent && getAt(agent.body, '/spec/template/spec/nodeSelector'), {
    'kubernetes.io/os': 'linux',
    zone: 'a',
  });
  const conflict = mergeNodeSelector(fullObjects(), { 'kubernetes.io/os': 'windows' }, inventory);
  assert.is(conflict.problems.filter((problem) => problem.reason === 'NodeSelectorConflict').length, 4);
});

test('a selector that no node of a required affinity satisfies is told', () => {
  const affinity = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'master', operator: 'Exists' }] }],
      },
    },
  };
  const ic = workload('Deployment', 'ovn-ic-controller', {});
  const body = setAt(ic.body, '/spec/template/spec/affinity', affinity) as JsonObject;
  const outcome = mergeNodeSelector([withBody(ic, body)], { zone: 'a' }, inventoryOf(2, 2, { zone: 'a' }));
  assert.equal(reasonsOf(outcome.problems), ['NodeSelectorUnsatisfiable']);
});

test('every reference to the TLS Secret is renamed, file and volume names stay', () => {
  const renamed = renameTLSSecret(fullObjects(), 'keys');
  const text = JSON.stringify(renamed.map((candidate) => candidate.body));
  assert.not.match(text, '"secretName":"kube-ovn-tls"');
  assert.match(text, '"resourceNames":["keys"]');
  assert.match(text, '{"name":"kube-ovn-tls","secret":{"secretName":"keys","optional":true}}');
});

test('phases: definitions, access, central, data plane; centralOnly has no data plane', () => {
  const phases = networkPhases(fullObjects(), specOf(), []);
  assert.equal(
    phases.map((phase) => [
      phase.dir,
      phase.objects.map((candidate) => candidate.name),
      phase.gates.map((gate) => gate.type),
    ]),
    [
      ['10-definitions', ['subnets.kubeovn.io'], ['Established']],
      ['20-access', ['ovn', 'system:ovn', 'ovn-vpc-nat-config'], []],
      ['30-central', ['ovn-nb', 'ovn-central-data', 'ovn-central'], ['WorkloadsReady', 'OVNDBReady', 'NorthdReady']],
      [
        '40-data-plane',
        ['kube-ovn-controller', 'kube-ovn-monitor', 'ovs-ovn', 'kube-ovn-cni', 'kube-ovn-pinger'],
        ['WorkloadsReady', 'DataPlaneReady'],
      ],
    ],
  );
});

test('marks: owners for namespaced objects, labels alone for cluster-scoped ones, claims and what is kept', () => {
  const marks = new Map(fullObjects().map((candidate) => [objectId(candidate), toReleaseObject(candidate, 'chart')]));
  const at = (id: string) => marks.get(id)?.bind?.map((rule) => rule.what);
  assert.equal(at('apps/Deployment/kube-system/ovn-central'), ['uidLabels', 'owner']);
  assert.equal(at('rbac.authorization.k8s.io/ClusterRole//system:ovn'), ['uidLabels']);
  assert.equal(at('/PersistentVolumeClaim/kube-system/ovn-central-data'), ['uidLabels']);
  assert.is(marks.get('/PersistentVolumeClaim/kube-system/ovn-central-data')?.keep, true);
  const kept = object({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'k', namespace, annotations: { 'helm.sh/resource-policy': 'keep' } },
  });
  assert.equal(
    toReleaseObject(kept, 'chart').bind?.map((rule) => rule.what),
    ['uidLabels'],
  );
});

const accept = (objects: readonly ChartObject[], changes: Partial<Parameters<typeof acceptChart>[0]> = {}): string[] =>
  reasonsOf(
    acceptChart({
      spec: specOf(),
      namespace,
      objects,
      centralAddresses: ['10.0.0.1', '10.0.0.2', '10.0.0.3'],
      touchedBySelector: [],
      extraKinds: [],
      ...changes,
    }),
  );

const change = (name: string, pointer: string, value: JsonObject[string]): ChartObject[] =>
  fullObjects().map((candidate) =>
    candidate.name === name ? object(setAt(candidate.body, pointer, value) as JsonObject) : candidate,
  );
const without = (name: string): ChartObject[] => fullObjects().filter((candidate) => candidate.name !== name);
const external = { northbound: 'tcp:10.9.0.1:6641', southbound: 'tcp:10.9.0.1:6642' };
const elsewhere = specOf({ mode: 'nodeNetworking', external });
const pairSpec = specOf({
  mode: 'nodeNetworking',
  hcp: {
    enabled: true,
    role: 'dataPlane',
    peerNamespace: 'p',
    tlsSecretRef: { name: 'keys' },
    northbound: 'ssl:10.9.0.1:6641',
    southbound: 'ssl:10.9.0.1:6642',
  },
});

const refused: [string, string[], () => string[]][] = [
  ['nothing of a sound render', [], () => accept(fullObjects())],
  ['an unexpected kind', ['UnexpectedKind'], () => accept([...fullObjects(), named('x.io/v1', 'Odd', 'x')])],
  [
    'nothing when the cluster allows the kind',
    [],
    () => accept([...fullObjects(), named('x.io/v1', 'Odd', 'x')], { extraKinds: ['x.io/Odd'] }),
  ],
  [
    'a foreign namespace',
    ['ForeignNamespace'],
    () => accept([...fullObjects(), named('v1', 'ConfigMap', 'x', {}, 'other')]),
  ],
  [
    'a missing namespace',
    ['ForeignNamespace'],
    () => accept([...fullObjects(), named('v1', 'ConfigMap', 'x', {}, null)]),
  ],
  ['a duplicate', ['DuplicateObject'], () => accept([...fullObjects(), named('v1', 'ServiceAccount', 'ovn')])],
  [
    'a hook that is left',
    ['HookLeft'],
    () => accept(change('ovn', '/metadata/annotations', { 'helm.sh/hook': 'test' })),
  ],
  ['wrong replicas', ['CentralReplicas'], () => accept(change('ovn-central', '/spec/replicas', 1))],
  [
    'empty NODE_IPS',
    ['CentralAddresses'],
    () => accept(change('ovn-central', '/spec/template/spec/containers/0/env/0/value', '')),
  ],
  [
    'NODE_IPS in another order',
    ['CentralAddresses'],
    () => accept(change('ovn-central', '/spec/template/spec/containers/0/env/0/value', '10.0.0.2,10.0.0.1,10.0.0.3')),
  ],
  [
    'OVN_DB_IPS that differ',
    ['CentralAddresses'],
    () => accept(change('ovs-ovn', '/spec/template/spec/containers/0/env/0/value', '10.0.0.1')),
  ],
  ['no central', ['CentralMissing', 'ModeIgnored'], () => accept(without('ovn-central'))],
  [
    'a data plane under centralOnly',
    ['ModeIgnored'],
    () => accept(fullObjects(), { spec: specOf({ mode: 'centralOnly' }) }),
  ],
  [
    'a central under nodeNetworking',
    ['ModeIgnored'],
    () => accept([...dataPlaneObjects('tcp'), named('v1', 'Service', 'ovn-nb')], { spec: elsewhere }),
  ],
  ['nothing of a sound data plane', [], () => accept(dataPlaneObjects('tcp'), { spec: elsewhere })],
  ['an endpoint with another scheme', ['EndpointMismatch'], () => accept(dataPlaneObjects('ssl'), { spec: elsewhere })],
  [
    'endpoints given to nobody',
    ['EndpointMismatch'],
    () => accept([named('v1', 'ServiceAccount', 'ovn')], { spec: elsewhere }),
  ],
  ['a rendered Secret', ['SecretRendered'], () => accept([...fullObjects(), named('v1', 'Secret', 'x')])],
  ['a reference to the wrong Secret', ['SecretReference'], () => accept(dataPlaneObjects('ssl'), { spec: pairSpec })],
  [
    'nothing once references are renamed',
    [],
    () => accept(renameTLSSecret(dataPlaneObjects('ssl'), 'keys'), { spec: pairSpec }),
  ],
  [
    'a selector that did not arrive',
    ['NodeSelectorLost'],
    () => accept(fullObjects(), { spec: specOf({ dataPlane: { nodeSelector: { zone: 'a' } } }) }),
  ],
  [
    'another update strategy',
    ['UpdateStrategy'],
    () => accept(fullObjects(), { spec: specOf({ dataPlane: { ovsUpdateStrategy: 'OnDelete' } }) }),
  ],
  ['a status', ['ServerField'], () => accept(change('ovn', '/status', { x: 1 }))],
];
for (const [what, expected, run] of refused) test(`acceptance finds ${what}`, () => assert.equal(run(), expected));

test.run();
