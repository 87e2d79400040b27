/** Rounds of observation in which everything is well, to be spoilt by tests. */
import type { CentralFacts, DatabaseFacts, NorthdFacts } from '../../constructs/api/evidence/central.ts';
import type { ChassisFacts } from '../../constructs/api/evidence/chassis.ts';
import { type EvidenceKind, type EvidenceOf, evidenceComponents, type FactsOf } from '../../constructs/api/evidence.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import type {
  CentralRound,
  CentralSample,
  ChassisRound,
  ChassisSample,
  NodeFacts,
  Outcome,
  PodFacts,
} from '../../executor/observe/round.ts';

export const uuidOf = (n: number): string => `${String(n).padStart(4, '0')}0000-0000-4000-8000-000000000000`;
const daemon = { socketInode: '7', startTicks: '100' };

export const nodeFacts = (n: number, changes: Partial<NodeFacts> = {}): NodeFacts => ({
  name: `n${n}`,
  uid: `node-${n}`,
  addresses: [`10.0.0.${n}`],
  ready: 'True',
  unschedulable: false,
  ...changes,
});

export const podFacts = (kind: string, n: number, changes: Partial<PodFacts> = {}): PodFacts => ({
  namespace: 'kube-system',
  name: `${kind}-${n}`,
  uid: `${kind}-uid-${n}`,
  node: `n${n}`,
  addresses: [`10.0.0.${n}`],
  containers: [{ name: kind, id: `${kind}-id-${n}`, restarts: 0 }],
  ...changes,
});

/** The pod behind a target, as far as an answer tells of it. */
export const podOf = ({ namespace, pod, podUID, node }: ProbeTarget): PodFacts => ({
  namespace,
  name: pod,
  uid: podUID,
  node,
  addresses: [],
  containers: [],
});

/** The answer of a sidecar; components that `facts` lacks are problems of this code. */
export function answer<K extends 'central' | 'chassis' | 'network' | 'drain'>(
  kind: K,
  pod: PodFacts,
  facts: EvidenceOf<K>['facts'],
  code: 'refused' | 'timeout' | 'protocol' = 'refused',
): Outcome<K> {
  const has: Readonly<Record<string, unknown>> = facts;
  const problems = evidenceComponents[kind]
    .filter((component) => has[component] === undefined)
    .map((component) => ({ component, code, message: `no ${component}`, elapsedMs: 5, limitMs: 5_000 }));
  const evidence = {
    schema: 'keelson.dev/evidence/v1',
    kind,
    nonce: 'a'.repeat(32),
    observation: { startedAt: '2026-01-01T00:00:00Z', endedAt: '2026-01-01T00:00:00Z', elapsedMs: 1 },
    subject: {
      namespace: pod.namespace,
      pod: pod.name,
      podUID: pod.uid,
      container: 'probe',
      node: pod.node,
      nodeBootID: 'boot',
    },
    probe: { version: '1.0.0' },
    complete: problems.length === 0,
    problems,
    facts,
  } as unknown as EvidenceOf<K>;
  return { type: 'Evidence', evidence };
}

/** What SB knows of chassis; a sidecar from before that was told tells none. */
export const chassisListOf = (names: readonly string[], behind: readonly string[] = []) => ({
  count: names.length,
  names: [...names],
  behind: [...behind],
});

const raftPort = { nb: 6643, sb: 6644 } as const;
const clientPort = { nb: 6641, sb: 6642 } as const;

/** One database of member `n` of `size`; member 1 leads. Server ids of SB are those of NB plus 100. */
export function databaseFacts(
  key: 'nb' | 'sb',
  n: number,
  size: number,
  changes: Partial<DatabaseFacts> = {},
): DatabaseFacts {
  const id = (m: number): string => uuidOf(m + (key === 'nb' ? 0 : 100));
  const others = Array.from({ length: size }, (_, m) => m + 1);
  const leads = n === 1;
  return {
    name: key === 'nb' ? 'OVN_Northbound' : 'OVN_Southbound',
    model: 'clustered',
    connected: true,
    leading: leads,
    index: '10',
    cid: key === 'nb' ? 'cccccccc-0000-4000-8000-000000000001' : 'cccccccc-0000-4000-8000-000000000002',
    sid: id(n),
    address: `ssl:[10.0.0.${n}]:${raftPort[key]}`,
    status: 'member',
    role: leads ? 'leader' : 'follower',
    term: '5',
    leader: leads ? 'self' : id(1).slice(0, 4),
    electionTimerMs: 5_000,
    log: { first: '2', last: '12', committed: '12', applied: '12', unapplied: '0', uncommitted: '0' },
    members: others.map((m) => ({
      sid: id(m).slice(0, 4),
      address: `ssl:10.0.0.${m}:${raftPort[key]}`,
      self: m === n,
    })),
    connections: others
      .filter((m) => m !== n)
      .flatMap((m) => (['in', 'out'] as const).map((direction) => ({ direction, sid: id(m).slice(0, 4), up: true }))),
    listeners: [`pssl:${clientPort[key]}:[10.0.0.${n}]`],
    storage: 'ok',
    freeBytes: '10000000000',
    daemon,
    ...changes,
  };
}

const northdFacts = (n: number): NorthdFacts => ({
  state: n === 1 ? 'active' : 'standby',
  nb: true,
  sb: true,
  daemon,
});

export const centralFacts = (n: number, size: number, changes: CentralFacts = {}): CentralFacts => ({
  nb: databaseFacts('nb', n, size),
  sb: databaseFacts('sb', n, size),
  northd: northdFacts(n),
  progress: { nbCfg: '3', sbCfg: '3', hvCfg: '3', northdInternalVersion: '25.03.1-20.41.0-78.8' },
  ...changes,
});

export function centralSample(n: number, size: number, changes: CentralFacts = {}): CentralSample {
  const pod = podFacts('ovn-central', n);
  const outcome = answer('central', pod, centralFacts(n, size, changes));
  const { name, uid, addresses } = nodeFacts(n);
  return {
    target: {
      node: { name, uid, addresses },
      live: nodeFacts(n),
      pod,
      storage: { type: 'hostPath', path: '/etc/origin/ovn' },
    },
    first: outcome,
    second: outcome,
  };
}

const workload = (kind: string, name: string, count: number) => ({
  kind,
  namespace: 'kube-system',
  name,
  uid: `${name}-uid`,
  generation: 1,
  observedGeneration: 1,
  desired: count,
  updated: count,
  ready: count,
});

/** A round of `size` members; `spoil` gives another sample for a member, or undefined for the healthy one. */
export const centralRound = (
  size = 3,
  spoil: (n: number) => CentralSample | undefined = () => undefined,
): CentralRound => ({
  workload: workload('Deployment', 'ovn-central', size),
  samples: Array.from({ length: size }, (_, n) => spoil(n + 1) ?? centralSample(n + 1, size)),
  strays: [],
});

/** Changes NB of one member in both passes. */
export const withNb =
  (member: number, changes: Partial<DatabaseFacts>, size = 3) =>
  (n: number): CentralSample | undefined =>
    n === member ? centralSample(n, size, { nb: databaseFacts('nb', n, size, changes) }) : undefined;

/** The same answer of one member in both passes. */
export const withOutcome =
  (member: number, outcome: Outcome<'central'>, size = 3) =>
  (n: number): CentralSample | undefined =>
    n === member ? { ...centralSample(n, size), first: outcome, second: outcome } : undefined;

/** A member whose sidecar tells of one component that nobody listens, or that it does not answer. */
export function withoutComponent(
  member: number,
  component: keyof CentralFacts,
  code: 'refused' | 'timeout' | 'protocol',
  size = 3,
): (n: number) => CentralSample | undefined {
  const facts = centralFacts(member, size);
  delete facts[component];
  return withOutcome(member, answer('central', podFacts('ovn-central', member), facts, code), size);
}

export const chassisFacts = (n: number, changes: ChassisFacts = {}): ChassisFacts => ({
  ovsdb: {
    systemID: `system-${n}`,
    chassisUUID: uuidOf(500 + n),
    remote: 'ssl:[10.0.0.1]:6642',
    encaps: [{ type: 'geneve', ip: `10.0.0.${n}` }],
    matchNorthdVersion: false,
    daemon,
  },
  controller: { connected: true, version: '25.03.1', daemon },
  vswitchd: { bridge: { name: 'br-int', inVswitchd: true, datapath: 'system' }, daemon },
  ...changes,
});

/** A chassis that carries the port of its node, and nothing else. */
export const drainFacts = (n: number, changes: FactsOf<'drain'> = {}): FactsOf<'drain'> => ({
  chassis: { systemID: `system-${n}`, chassisUUID: uuidOf(500 + n) },
  gateways: { count: 0, first: [] },
  ports: { count: 1, first: [{ name: `node-n${n}`, type: '' }] },
  ...changes,
});

export function chassisSample(n: number, changes: ChassisFacts = {}, outcome?: Outcome<'chassis'>): ChassisSample {
  const pod = podFacts('ovs-ovn', n);
  return {
    target: { node: `n${n}`, live: nodeFacts(n), pod },
    outcome: outcome ?? answer('chassis', pod, chassisFacts(n, changes)),
  };
}

export const chassisRound = (
  size = 3,
  spoil: (n: number) => ChassisSample | undefined = () => undefined,
): ChassisRound => ({
  workloads: [workload('DaemonSet', 'ovs-ovn', size)],
  samples: Array.from({ length: size }, (_, n) => spoil(n + 1) ?? chassisSample(n + 1)),
  changed: [],
});

/** Outcomes of which none says that anything is broken. */
export const silences: readonly Outcome<EvidenceKind>[] = [
  { type: 'Unreachable', message: 'connection refused' },
  { type: 'Untrusted', message: 'certificate of another pod' },
  { type: 'Hung', limitMs: 10_000 },
  { type: 'Unreadable', message: 'not JSON' },
  { type: 'IdentityChanged', message: 'its container was restarted' },
];
