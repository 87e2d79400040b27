/** What follows from a look at nodes and cluster before a first install. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { probeContainers } from '../../constructs/api/constants.ts';
import type { FactsOf } from '../../constructs/api/evidence.ts';
import { findReason } from '../../constructs/api/reasons.ts';
import type { Item } from '../../executor/apply/items.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { preflightPlan } from '../../executor/network/before-install.ts';
import { podSecurityProblems, privilegedNamespaces } from '../../executor/network/pod-security.ts';
import { type HostLook, hostProblems, hostQuestion } from '../../executor/network/preflight.ts';
import { type RangeFacts, rangeProblems, rangesOf } from '../../executor/network/ranges.ts';
import { readInstallation } from '../../executor/network/snapshot.ts';
import { installation } from './network-support.ts';

const gib = (n: number): string => (BigInt(n) * 1_073_741_824n).toString();

const good: FactsOf<'host'> = {
  database: { path: '/etc/origin/ovn', state: 'absent', entries: [], freeBytes: gib(20) },
  ports: [6641, 6642, 6643, 6644].map((port) => ({ port, free: true })),
  cni: { path: '/etc/cni/net.d', files: ['01-kube-ovn.conflist', '10-later.conflist'] },
  kernel: { release: '6.8.0-45-generic', modules: ['openvswitch'], ipv6: true },
};
const seen = (node: string, facts: Partial<FactsOf<'host'>> = {}): HostLook => ({
  node,
  type: 'seen',
  facts: { ...good, ...facts },
  problems: [],
});
const question = {
  database: '/etc/origin/ovn',
  ports: [6641, 6642, 6643, 6644],
  cni: '/etc/cni/net.d',
  primary: true,
  ipv6: false,
} as const;

const said = (looks: readonly HostLook[], asked = question as Parameters<typeof hostProblems>[1]): string[] =>
  hostProblems(looks, asked).map(({ reason, object }) => `${reason} ${object}`);

const hosts = suite('preflight of nodes');

hosts('finds nothing against a node that is free', () => {
  assert.equal(said([seen('n1'), seen('n2')]), []);
});

hosts('blocks an occupied folder with the ways out, and says that nothing is deleted', () => {
  const occupied = { ...good.database, path: '/etc/origin/ovn', freeBytes: gib(20) };
  const [problem] = hostProblems(
    [seen('n1', { database: { ...occupied, state: 'occupied', entries: ['ovnnb_db.db', 'ovnsb_db.db'] } })],
    question,
  );
  assert.is(problem?.reason, 'DatabaseRootOccupied');
  assert.match(problem?.message ?? '', /\/etc\/origin\/ovn holds ovnnb_db\.db, ovnsb_db\.db/);
  for (const text of [problem?.message, problem?.remedy]) assert.match(text ?? '', /adopt .*recover /i);
  assert.match(problem?.remedy ?? '', /nothing here deletes it/);
});

hosts('tells everything of every node at once', () => {
  const looks: HostLook[] = [
    seen('n1', { ports: [{ port: 6641, free: false }] }),
    seen('n2', {
      database: { path: '/etc/origin/ovn', state: 'empty', entries: [], freeBytes: '1000' },
      cni: { path: '/etc/cni/net.d', files: ['00-other.conflist'] },
      kernel: { release: '3.10.0-862.el7.x86_64', modules: [], ipv6: false },
    }),
    { node: 'n3', type: 'unseen', message: 'its pod is Pending' },
  ];
  assert.equal(said(looks), [
    'PortTaken Node n1',
    'DiskTooSmall Node n2',
    'CniConflict Node n2',
    'KernelUnsupported Node n2',
    'KernelUnsupported Node n2',
    'PreflightIncomplete Node n3',
  ]);
  for (const reason of new Set(hostProblems(looks, question).map((one) => one.reason)))
    assert.is(findReason(reason)?.retry, 'retry', reason);
});

hosts('does not take for fine what nobody saw', () => {
  const { database: _, ...rest } = good;
  const look: HostLook = {
    node: 'n1',
    type: 'seen',
    facts: rest,
    problems: [{ component: 'database', message: '/etc/origin/ovn leads to /data, which this pod does not see' }],
  };
  const [problem, ...more] = hostProblems([look], question);
  assert.is(problem?.reason, 'PreflightIncomplete');
  assert.match(problem?.message ?? '', /^database: .*\/data/);
  assert.equal(more, []);
});

hosts('lets another network be where Kube-OVN is the second one', () => {
  const look = seen('n1', { cni: { path: '/etc/cni/net.d', files: ['00-other.conflist'] } });
  assert.equal(said([look], { ...question, primary: false }), []);
});

hosts('wants IPv6 where it is handed out, and on kernels that do not work without it', () => {
  const without = (release: string) => seen('n1', { kernel: { release, modules: [], ipv6: false } });
  assert.equal(said([without('6.8.0')]), []);
  assert.equal(said([without('6.8.0')], { ...question, ipv6: true }), ['KernelUnsupported Node n1']);
  assert.equal(said([without('3.10.0-1160')]), ['KernelUnsupported Node n1']);
});

hosts.run();

const workload = (kind: string, name: string, args: string[], pod: object = {}): KubeObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name, namespace: 'kube-system' },
  spec: { template: { spec: { containers: [{ name, args }], ...pod } } },
});

const central = (volume: object): KubeObject =>
  workload('Deployment', 'ovn-central', [], {
    containers: [{ name: 'ovn-central', volumeMounts: [{ name: 'files', mountPath: '/etc/ovn' }] }],
    volumes: [{ name: 'files', ...volume }],
  });

const questions = suite('question to a node');

questions('asks for the folder that the payload mounts', () => {
  const objects = [central({ hostPath: { path: '/var/lib/ovn' } }), workload('DaemonSet', 'kube-ovn-cni', [])];
  assert.equal(hostQuestion(objects), {
    database: '/var/lib/ovn',
    ports: [6641, 6642, 6643, 6644],
    cni: '/etc/cni/net.d',
    primary: true,
    ipv6: false,
  });
});

questions('knows a second network by its flag, and central alone as none', () => {
  const home = central({ hostPath: { path: '/etc/origin/ovn' } });
  const second = workload('DaemonSet', 'kube-ovn-cni', ['--non-primary-cni-mode=true']);
  assert.is(hostQuestion([home, second])?.primary, false);
  assert.is(hostQuestion([home])?.primary, false);
});

/** What of the name of a workload comes before it. */
const roles = (name: string): KubeObject[] =>
  ['ClusterRoleBinding', 'RoleBinding', 'ServiceAccount'].map((kind) => ({
    apiVersion: 'v1',
    kind,
    metadata: { name, ...(kind === 'ClusterRoleBinding' ? {} : { namespace: 'accounts' }) },
  }));

questions('reads workloads, and not the accounts and roles of the same name that come before them', () => {
  const home = central({ hostPath: { path: '/etc/origin/ovn' } });
  const second = workload('DaemonSet', 'kube-ovn-cni', ['--non-primary-cni-mode=true']);
  const asked = hostQuestion([...roles('kube-ovn-cni'), ...roles('ovn-central'), home, second]);
  assert.equal([asked?.database, asked?.primary], ['/etc/origin/ovn', false]);
  assert.is(hostQuestion([...roles('kube-ovn-cni'), home])?.primary, false, 'an account alone is no network');
});

questions('takes the image of the look from the workload, and not from an account of its name', () => {
  const home = workload('Deployment', 'ovn-central', [], {
    containers: [
      { name: 'ovn-central', volumeMounts: [{ name: 'files', mountPath: '/etc/ovn' }] },
      { name: probeContainers.central, image: 'probe' },
    ],
    volumes: [{ name: 'files', hostPath: { path: '/etc/origin/ovn' } }],
  });
  const items = [...roles('ovn-central'), home].map((object) => ({ entry: {}, object })) as unknown as Item[];
  const snapshot = { installation: readInstallation(installation()).installation, nodes: [] };
  const plan = preflightPlan(items, snapshot, ['n1']);
  assert.equal([plan?.image, plan?.namespace], ['probe', 'kube-system']);
});

questions('has none where a claim holds the databases, or where there is no central', () => {
  assert.is(hostQuestion([central({ persistentVolumeClaim: { claimName: 'data' } })]), undefined);
  assert.is(hostQuestion([workload('DaemonSet', 'kube-ovn-cni', [])]), undefined);
});

questions.run();

const controller = (pods: string, services: string, join: string): KubeObject =>
  workload('Deployment', 'kube-ovn-controller', [
    `--default-cidr=${pods}`,
    `--node-switch-cidr=${join}`,
    `--service-cluster-ip-range=${services}`,
  ]);
const fits = ['10.16.0.0/16', '10.96.0.0/12', '100.64.0.0/16'] as const;
const dual = [
  '10.16.0.0/16,fd00:10:16::/112',
  '10.96.0.0/12,fd00:10:96::/112',
  '100.64.0.0/16,fd00:100:64::/112',
] as const;

function ranged(given: readonly [string, string, string], facts: Partial<RangeFacts> = {}): string[] {
  const ranges = rangesOf([controller(...given)]);
  assert.ok(ranges);
  const node = { name: 'n1', uid: 'u', internalIPs: ['10.0.0.1'], labels: {} };
  const cluster = { nodes: [node], serviceCIDRs: ['10.96.0.0/16'] };
  const all: RangeFacts = { object: 'o', stack: undefined, selector: {}, ranges, ...cluster, ...facts };
  return rangeProblems(all).map(({ reason, message }) => `${reason}: ${message}`);
}

const ranges = suite('ranges of addresses');

ranges('finds nothing against ranges that fit, and none without a controller', () => {
  assert.equal(ranged(fits), []);
  assert.is(rangesOf([]), undefined);
});

ranges('finds every pair that overlaps, whichever holds the other', () => {
  const found = ranged(['10.96.1.0/24', '10.96.0.0/12', '10.64.0.0/10']);
  assert.is(found.filter((one) => one.startsWith('RangesOverlap')).length, 3);
  assert.match(found[0] ?? '', /10\.96\.1\.0\/24 of pods overlaps 10\.96\.0\.0\/12 of Services/);
});

ranges('finds nodes inside a range, of either family', () => {
  const nodes = [{ name: 'n1', uid: 'u', internalIPs: ['10.16.0.7', 'fd00:10:16::7'], labels: {} }];
  const found = ranged(dual, { nodes, serviceCIDRs: ['10.96.0.0/16', 'fd00:10:96::/112'] });
  assert.equal(
    found.map((one) => one.replace(/:.*(address .* of node n1).*/, ' $1')),
    ['RangesOverlap address 10.16.0.7 of node n1', 'RangesOverlap address fd00:10:16::7 of node n1'],
  );
});

ranges('wants the ranges of the API server inside those of the network, in their order', () => {
  assert.match(ranged(fits, { serviceCIDRs: ['172.20.0.0/16'] })[0] ?? '', /RangeDiffers: .*172\.20\.0\.0\/16/);
  for (const wider of ['10.0.0.0/8', '10.96.0.0/11'])
    assert.match(ranged(fits, { serviceCIDRs: [wider] })[0] ?? '', /RangeDiffers/);
  const turned = ranged(dual, {
    serviceCIDRs: ['fd00:10:96::/112', '10.96.0.0/16'],
    nodes: [{ name: 'n1', uid: 'u', internalIPs: ['10.0.0.1', 'fd00::1'], labels: {} }],
  });
  assert.is(turned.filter((one) => one.startsWith('RangeDiffers')).length, 2);
  assert.equal(ranged(fits, { serviceCIDRs: undefined }), []);
});

ranges('wants the families of the specification on ranges and nodes', () => {
  const stack = 'dual_stack';
  const found = ranged(fits, { stack });
  assert.is(found.filter((one) => one.startsWith('FamilyUnavailable: ranges of')).length, 3);
  assert.match(found.join('\n'), /node n1 has no internal address of IPv6/);
  const chosen = ranged(dual, {
    stack,
    selector: { plane: 'yes' },
    serviceCIDRs: ['10.96.0.0/16', 'fd00:10:96::/112'],
  });
  assert.equal(chosen, [], 'a node that the data plane does not choose needs no second family');
});

ranges('tells a range that is none, and nothing that would follow from it', () => {
  assert.equal(ranged(['10.16.0.0', fits[1], fits[2]]), ['RangeUnusable: the range of pods is none']);
  assert.equal(ranged(['10.16.0.0/33', fits[1], fits[2]]), ['RangeUnusable: the range of pods is none']);
});

ranges.run();

const security = suite('pod security');

security('names the first workload that a namespace would refuse, and how many more', () => {
  const objects = [
    workload('DaemonSet', 'ovs-ovn', [], { hostNetwork: true }),
    workload('Deployment', 'ovn-central', [], { volumes: [{ name: 'v', hostPath: { path: '/' } }] }),
    workload('Deployment', 'plain', []),
  ];
  assert.equal(privilegedNamespaces(objects), ['kube-system']);
  const labelled = (level?: string) => [
    { name: 'kube-system', labels: level === undefined ? {} : { 'pod-security.kubernetes.io/enforce': level } },
  ];
  assert.equal(podSecurityProblems(objects, labelled()), []);
  assert.equal(podSecurityProblems(objects, labelled('privileged')), []);
  const [problem, ...more] = podSecurityProblems(objects, labelled('baseline'));
  assert.equal(more, []);
  assert.is(problem?.reason, 'PodSecurityTooStrict');
  assert.match(problem?.message ?? '', /DaemonSet ovs-ovn needs the network of the host, as 1 more do/);
  assert.equal(podSecurityProblems([workload('Deployment', 'plain', [])], labelled('restricted')), []);
});

security.run();
