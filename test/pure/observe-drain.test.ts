import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { timings } from '../../constructs/api/constants.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type DrainLook, type DrainVerdict, freshDrain, judgeDrain } from '../../executor/observe/drain.ts';
import { nodeLoad, slimPod } from '../../executor/observe/drain-load.ts';
import { chooseDrains, type DrainPace, drainLimitMs } from '../../executor/observe/drain-turn.ts';
import { broken, open } from '../../executor/observe/finding.ts';
import { answer, drainFacts, nodeFacts, podFacts, silences } from './observe-support.ts';

const host = (facts = drainFacts(1), code?: 'refused') => answer('drain', podFacts('ovs-ovn', 1), facts, code);

/** A node of which nothing is left but what belongs to it. */
const empty = (changes: Partial<DrainLook> = {}): DrainLook => ({
  node: 'n1',
  live: nodeFacts(1, { unschedulable: true }),
  host: host(),
  load: {
    type: 'read',
    load: { pods: [{ namespace: 'kube-system', name: 'pinger-1', stays: true, claims: [] }], attached: [] },
  },
  others: [],
  ...changes,
});

const load = (pods: { name: string; stays?: boolean; claims?: string[] }[], volumes: string[] = []) => ({
  type: 'read' as const,
  load: {
    pods: pods.map((pod) => ({ namespace: 'shop', stays: false, claims: [], ...pod })),
    attached: volumes.map((volume) => ({ volume, driver: 'csi.example.com' })),
  },
});

const told = (verdict: DrainVerdict): string => {
  const reason = ({ reason: one }: { reason: string }): string => one;
  if (verdict.state === 'drained') return 'drained';
  const unknown = verdict.unknown.map(reason).join(' ');
  return verdict.state === 'unknown' ? `unknown: ${unknown}` : `${verdict.blockers.map(reason).join(' ')} | ${unknown}`;
};
const judged = (changes: Partial<DrainLook> = {}): string => told(judgeDrain(empty(changes)));

test('a node is drained when it is cordoned and nothing but its own pods and ports is left on it', () => {
  assert.is(judged(), 'drained');
  const ports = [
    { name: 'node-n1', type: '' },
    { name: 'pinger-1.kube-system', type: '' },
    { name: 'pinger-1.kube-system.net1.kube-system.ovn', type: '' },
    { name: 'cr-standby', type: 'chassisredirect' },
  ];
  assert.is(judged({ host: host(drainFacts(1, { ports: { count: 4, first: ports } })) }), 'drained');
});

test('each of its blockers is told by itself, in the words of the table', () => {
  const gateways = {
    count: 2,
    first: [
      { port: 'cr-out', priority: 20, active: true, others: 0 },
      { port: 'cr-in', priority: 10, active: false, others: 2 },
    ],
  };
  const bound = (name: string, type = '') => ({ ports: { count: 1, first: [{ name, type }] } });
  const cases: readonly [Partial<DrainLook>, string][] = [
    [{ live: nodeFacts(1), load: undefined }, 'NodeNotCordoned | '],
    [{ load: load([{ name: 'web-1' }]) }, 'PodsRemain | '],
    [{ load: load([{ name: 'log-1', stays: true, claims: ['disk'] }]) }, 'ClaimsInUse | '],
    [{ load: load([], ['pv-1']) }, 'VolumesAttached | '],
    [{ host: host(drainFacts(1, { gateways })) }, 'GatewayActive | '],
    [{ host: host(drainFacts(1, bound('web-1.shop'))) }, 'PortsBound | '],
    [{ host: host(drainFacts(1, bound('r-out', 'l3gateway'))) }, 'PortsBound | '],
    [{ host: host(drainFacts(1, bound('node-n2'))) }, 'PortsBound | '],
    [{ host: host(drainFacts(1, bound('pinger-10.kube-system'))) }, 'PortsBound | '],
  ];
  for (const [changes, wanted] of cases) assert.is(judged(changes), wanted);
  const all = judgeDrain(
    empty({
      live: nodeFacts(1),
      load: load([{ name: 'a' }, { name: 'b' }, { name: 'c' }, { name: 'd', claims: ['disk'] }], ['pv-1']),
      host: host(drainFacts(1, { gateways })),
    }),
  );
  assert.is(told(all), 'NodeNotCordoned PodsRemain ClaimsInUse VolumesAttached GatewayActive | ');
  const messages = all.state === 'blocked' ? all.blockers.map(({ message }) => message) : [];
  assert.match(messages[1] ?? '', '4 pods are left on node n1: shop/a, shop/b, shop/c and 1 more');
  assert.match(messages[2] ?? '', 'shop/disk of pod d');
  assert.match(messages[3] ?? '', 'pv-1 (csi.example.com)');
  assert.match(messages[4] ?? '', 'cr-out (no other could take over)');
});

test('a port of a pod that is left is told as the pod alone', () => {
  const ports = { count: 1, first: [{ name: 'web-1.shop', type: '' }] };
  assert.is(judged({ load: load([{ name: 'web-1' }]), host: host(drainFacts(1, { ports })) }), 'PodsRemain | ');
});

test('whatever could not be seen leaves the answer open, and is told beside what was seen', () => {
  for (const outcome of silences)
    assert.match(judged({ host: outcome as DrainLook['host'] }), /^unknown: Evidence\w+$/);
  assert.is(judged({ host: { type: 'Broken', message: 'gone' } }), 'unknown: EvidenceBroken', 'silence blocks nothing');
  for (const component of ['chassis', 'gateways', 'ports'] as const) {
    const facts = drainFacts(1);
    delete facts[component];
    assert.is(judged({ host: host(facts, 'refused') }), 'unknown: EvidenceIncomplete', component);
  }
  const unregistered = { chassis: { systemID: 'system-1' } };
  assert.is(judged({ host: host(drainFacts(1, unregistered)) }), 'unknown: ChassisUnregistered');
  assert.is(judged({ live: undefined }), 'unknown: EvidenceIncomplete');
  assert.is(judged({ live: nodeFacts(1, { unschedulable: true, ready: 'Unknown' }) }), 'unknown: NodeNotReady');
  assert.is(judged({ load: undefined }), 'unknown: EvidenceIncomplete', 'cordoned while it was looked at');
  assert.is(judged({ load: { type: 'unread', message: '403' } }), 'unknown: EvidenceIncomplete');
  const unseen = { count: 300, first: [{ name: 'node-n1', type: '' }] };
  assert.is(judged({ host: host(drainFacts(1, { ports: unseen })) }), 'unknown: EvidenceIncomplete');
  const hidden = { count: 200, first: [{ port: 'cr-a', priority: 1, active: false, others: 1 }] };
  assert.is(judged({ host: host(drainFacts(1, { gateways: hidden })) }), 'unknown: EvidenceIncomplete');
  const both = judged({ load: load([{ name: 'web-1' }]), host: { type: 'Hung', limitMs: 10_000 } });
  assert.is(both, 'PodsRemain | EvidenceHung');
});

test('taking anything of the look away never makes a node drained', () => {
  const full = empty({ load: load([{ name: 'web-1' }], ['pv-1']) });
  const poorer: Partial<DrainLook>[] = [
    { host: { type: 'Unreachable', message: 'refused' } },
    { host: host({}) },
    { load: undefined },
    { live: undefined },
  ];
  for (const less of poorer) {
    assert.is.not(judgeDrain({ ...full, ...less }).state, 'drained');
    assert.is.not(judgeDrain({ ...empty(), ...less }).state, 'drained');
  }
});

test('what another domain knows of a node counts like the rest', () => {
  // Storage has its own words; any of the table will do here.
  const blocks = broken('VolumesAttached', 'node n1', { observed: 2, message: 'volumes of storage node s-1' });
  const silent = open('EvidenceUnreachable', 'node n1', { message: 'the storage control plane' });
  assert.is(judged({ others: [blocks] }), 'VolumesAttached | ');
  assert.is(judged({ others: [silent] }), 'unknown: EvidenceUnreachable');
  assert.is(judged({ others: [silent, blocks] }), 'VolumesAttached | EvidenceUnreachable');
});

test('an answer that is too old is known no more', () => {
  const row = { node: 'n1', cordoned: true, verdict: judgeDrain(empty()), seenAt: 0, seenTick: 1_000, limitMs: 60_000 };
  assert.is(told(freshDrain(row, 61_000)), 'drained');
  assert.is(told(freshDrain(row, 61_001)), 'unknown: EvidenceStale');
});

const pod = (name: string, more: Partial<KubeObject> & { kind?: string; annotations?: object } = {}): KubeObject => {
  const { kind: owner, annotations, ...rest } = more;
  const ownerReferences = owner === undefined ? [] : [{ kind: owner, name: 'o', uid: 'o', controller: true }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', ownerReferences, ...(annotations === undefined ? {} : { annotations }) },
    ...rest,
  } as unknown as KubeObject;
};

test('pods of DaemonSets and of the kubelet itself stay, ended ones do not count, those that end still do', () => {
  const ending = pod('ending');
  ending.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  const pods = [
    pod('web', { kind: 'ReplicaSet' }),
    pod('agent', { kind: 'DaemonSet' }),
    pod('static', { kind: 'Node', annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    pod('done', { kind: 'Job', status: { phase: 'Succeeded' } }),
    pod('bare'),
    ending,
  ];
  const found = nodeLoad('n1', pods.map(slimPod), []);
  assert.equal(
    found.pods.map(({ name, stays }) => `${name} ${stays}`),
    ['agent true', 'bare false', 'ending false', 'static true', 'web false'],
  );
});

test('claims are those that pods name and those that are made for them; volumes those attached to this very node', () => {
  const volumes = [
    { name: 'data', persistentVolumeClaim: { claimName: 'disk' } },
    { name: 'scratch', ephemeral: { volumeClaimTemplate: {} } },
    { name: 'config', configMap: { name: 'x' } },
  ];
  const attachment = (name: string, nodeName: string, source: object): KubeObject =>
    ({ metadata: { name }, spec: { attacher: 'csi.example.com', nodeName, source } }) as unknown as KubeObject;
  const found = nodeLoad(
    'n1',
    [slimPod(pod('db', { spec: { volumes } }))],
    [
      attachment('a', 'n1', { persistentVolumeName: 'pv-1' }),
      attachment('b', 'n2', { persistentVolumeName: 'pv-2' }),
      attachment('csi-inline', 'n1', { inlineVolumeSpec: {} }),
    ],
  );
  assert.equal(found.pods[0]?.claims, ['disk', 'db-scratch']);
  assert.equal(
    found.attached.map(({ volume }) => volume),
    ['csi-inline', 'pv-1'],
  );
});

const pace: DrainPace = { everyMs: 10_000, restMs: 300_000, retryMs: 20_000, most: 3 };

test('the cordoned nodes have their turn first, the others now and then, and a turn is bounded', () => {
  const others = ['a', 'b', 'c', 'd'].map((node) => ({ node, cordoned: false }));
  const gone = { node: 'z', cordoned: true, askedTick: 999_999 };
  assert.equal(chooseDrains([...others, gone], pace, 1_000_000), ['z', 'a', 'b']);
  const asked = others.map((one, n) => ({ ...one, askedTick: 700_000 + n }));
  assert.equal(chooseDrains([...asked, gone], pace, 1_000_001), ['z', 'a', 'b']);
  assert.equal(chooseDrains(asked, pace, 999_999), []);
});

test('an answer holds until its turn has come twice, and a minute at least', () => {
  assert.is(drainLimitMs(true, 1, pace, 0), timings.evidence.freshMs);
  assert.is(drainLimitMs(true, 12, pace, 5_000), 2 * 4 * 15_000);
  assert.ok(drainLimitMs(false, 1_000, pace, 0) > 2 * (1_000 / pace.most) * pace.everyMs);
});

test.run();
