import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { DomainCondition } from '../../constructs/api/conditions.ts';
import type { CentralFacts, DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { topologyDigest } from '../../constructs/api/topology.ts';
import type { CentralSample, ChassisSample, Outcome } from '../../executor/observe/round.ts';
import {
  emptyMemory,
  evidenceTypes,
  freshConditions,
  freshnessLimitMs,
  judgeRound,
  type Memory,
  type Round,
  type Verdict,
  type Wanted,
} from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { networkRound } from './observe-network-support.ts';
import {
  answer,
  centralFacts,
  centralRound,
  centralSample,
  chassisFacts,
  chassisRound,
  chassisSample,
  databaseFacts,
  nodeFacts,
  podFacts,
  silences,
  uuidOf,
  withNb,
  withOutcome,
  withoutComponent,
} from './observe-support.ts';

const installation = { namespace: 'kube-system', name: 'main', uid: 'uid-1' };
const probed: InstallationSpec = specOf({
  networkStack: 'dual_stack',
  networkProbe: { image: 'registry.example.com/probe:1' },
});

const time = (n = 0): Round['time'] => ({
  startedAt: n * 10_000,
  startedTick: n * 10_000,
  endedAt: n * 10_000 + 500,
  endedTick: n * 10_000 + 500,
});
const unpinned: Wanted = { spec: probed, installation, chartReplicas: 3, pin: undefined };
const bare = (changes: Partial<Round> = {}): Round => ({
  time: time(),
  central: centralRound(),
  chassis: chassisRound(),
  network: networkRound(),
  peer: { type: 'noProvider' },
  ...changes,
});

/** A record of the healthy round, as status pins it. */
const held = (() => {
  const { toRecord } = judgeRound(bare(), unpinned, emptyMemory);
  assert.ok(toRecord);
  const record = toRecord as NonNullable<typeof toRecord>;
  return { record, digest: topologyDigest(record) };
})();
const wanted: Wanted = { ...unpinned, pin: { name: 'keelson-topology-main-x', uid: 'cm-1', digest: held.digest } };
const healthy = (changes: Partial<Round> = {}): Round =>
  bare({ record: { type: 'found', uid: 'cm-1', held }, ...changes });

const statuses = ({ conditions }: Pick<Verdict, 'conditions'>): Record<string, DomainCondition['status']> =>
  Object.fromEntries(conditions.map(({ type, status }) => [type, status]));
const well = {
  OVNDBReady: 'True',
  NorthdReady: 'True',
  DataPlaneReady: 'True',
  NetworkReady: 'True',
  TopologyRecorded: 'True',
  Degraded: 'False',
};

test('E3: all conditions come of one round, in which everything passed', () => {
  const verdict = judgeRound(healthy(), wanted, emptyMemory);
  assert.equal(statuses(verdict), well);
  assert.is(verdict.databases.length, 2);
  assert.is(verdict.network?.passed, 24);
});

test('E3: a part that the round does not hold was not seen, whatever an earlier round held', () => {
  const before = judgeRound(healthy(), wanted, emptyMemory);
  const { chassis: _chassis, ...without } = healthy({ time: time(1) });
  assert.equal(statuses(judgeRound(without, wanted, before.memory)), {
    ...well,
    DataPlaneReady: 'Unknown',
    Degraded: 'Unknown',
  });
  const empty = judgeRound({ time: time(1), peer: { type: 'pending' } }, wanted, before.memory);
  for (const { status, reason } of empty.conditions) assert.is(`${status}/${reason}`, 'Unknown/RoundPending');
  assert.equal([empty.databases, empty.network], [[], undefined]);
});

test('E15, E16, E17: the mode decides which conditions there are', () => {
  const endpoints = { northbound: 'tcp:10.0.0.1:6641', southbound: 'tcp:10.0.0.1:6642' };
  const pair = {
    enabled: true,
    role: 'dataPlane',
    peerNamespace: 'hosted',
    tlsSecretRef: { name: 'tls' },
    ...endpoints,
  } as const;
  const specs = [
    probed,
    specOf(),
    specOf({ mode: 'centralOnly' }),
    specOf({ central: { database: 'standalone', replicas: 1 } }),
    specOf({ mode: 'nodeNetworking', external: endpoints }),
    specOf({ mode: 'nodeNetworking', hcp: pair }),
  ];
  for (const spec of specs) {
    const { conditions } = judgeRound(healthy(), { ...wanted, spec }, emptyMemory);
    assert.equal(
      conditions.map(({ type }) => type),
      evidenceTypes(spec),
    );
  }
  assert.equal(evidenceTypes(specOf({ mode: 'centralOnly' })), [
    'OVNDBReady',
    'NorthdReady',
    'TopologyRecorded',
    'Degraded',
  ]);
  assert.equal(evidenceTypes(specOf({ mode: 'nodeNetworking', external: endpoints })), [
    'DataPlaneReady',
    'NetworkReady',
    'HCPReady',
    'Degraded',
  ]);
});

test('X2: without a probe image everything else is True, and redundancy does not wait for what nobody looks at', () => {
  const { networkProbe: _image, ...spec } = probed;
  const verdict = judgeRound(healthy(), { ...wanted, spec }, emptyMemory);
  assert.equal(statuses(verdict), { ...well, NetworkReady: 'Unknown' });
});

/** Faults, what they turn, and a word of the message. */
type Fault = readonly [id: string, round: Round, turned: Partial<Record<keyof typeof well, string>>, word: string];
const node3 = (change: (sample: CentralSample) => CentralSample) =>
  centralRound(3, (n) => (n === 3 ? change(centralSample(3, 3)) : undefined));
const withChassis = (n: number, sample: ChassisSample) => chassisRound(3, (m) => (m === n ? sample : undefined));
const noController = chassisFacts(2);
delete noController.controller;
const noVswitchd = chassisFacts(2);
delete noVswitchd.vswitchd;
const pod2 = podFacts('ovs-ovn', 2);
const controller = chassisFacts(2).controller;
const faults: Fault[] = [
  [
    'X7 one ovsdb-server killed',
    healthy({ central: centralRound(3, withoutComponent(3, 'nb', 'refused')) }),
    { OVNDBReady: 'False', Degraded: 'True' },
    'node n3 (pod ovn-central-3) does not run',
  ],
  [
    'E11 northd paused',
    healthy({
      central: centralRound(3, (n) =>
        n === 3
          ? centralSample(3, 3, {
              northd: { state: 'paused', nb: true, sb: true, daemon: { socketInode: '1', startTicks: '1' } },
            })
          : undefined,
      ),
    }),
    { NorthdReady: 'False', Degraded: 'True' },
    'is paused',
  ],
  [
    'E12 ovn-controller stopped on one node',
    healthy({ chassis: withChassis(2, chassisSample(2, {}, answer('chassis', pod2, noController))) }),
    { DataPlaneReady: 'False', Degraded: 'True' },
    'ovn-controller of node n2',
  ],
  [
    'E12 vswitchd frozen',
    healthy({ chassis: withChassis(2, chassisSample(2, {}, answer('chassis', pod2, noVswitchd, 'timeout'))) }),
    { DataPlaneReady: 'Unknown', Degraded: 'Unknown' },
    'ovs-vswitchd of node n2',
  ],
  [
    'E12 port 6642 blocked',
    healthy({
      chassis: withChassis(
        2,
        chassisSample(2, controller === undefined ? {} : { controller: { ...controller, connected: false } }),
      ),
    }),
    { DataPlaneReady: 'False', Degraded: 'True' },
    'not connected to SB',
  ],
  [
    'X21 a probe server with another identity',
    healthy({
      network: networkRound(3, (check, n) =>
        n === 2 && check.target === 'sameNode'
          ? { ...check, answered: { namespace: 'kube-system', podUID: 'other', node: 'n2' } }
          : check,
      ),
    }),
    { NetworkReady: 'False', Degraded: 'True' },
    'pod UID other',
  ],
  [
    'W1 a node of OVN central cordoned',
    healthy({
      central: node3((one) => ({ ...one, target: { ...one.target, live: nodeFacts(3, { unschedulable: true }) } })),
    }),
    { Degraded: 'True' },
    'node n3 of OVN central is cordoned',
  ],
  [
    'X23 a node of OVN central deleted',
    healthy({
      central: node3((one) => ({
        target: { ...one.target, live: undefined, pod: undefined },
        first: { type: 'Broken', message: 'the node is gone' },
        second: { type: 'Broken', message: 'the node is gone' },
      })),
    }),
    { OVNDBReady: 'False', TopologyRecorded: 'False', Degraded: 'True' },
    'the node is gone',
  ],
  [
    'W10 database disk full',
    healthy({
      central: centralRound(3, withNb(3, { status: 'failed', storage: 'I/O error: no space left on device' })),
    }),
    { OVNDBReady: 'False', Degraded: 'True' },
    'no space left on device',
  ],
  [
    'E13 sidecar of a node killed',
    healthy({ chassis: withChassis(2, chassisSample(2, {}, { type: 'Unreachable', message: 'connection refused' })) }),
    { DataPlaneReady: 'Unknown', Degraded: 'Unknown' },
    'the sidecar of node n2 does not answer',
  ],
  [
    'E13 sidecar of a member killed',
    healthy({ central: centralRound(3, withOutcome(3, { type: 'Unreachable', message: 'connection refused' })) }),
    { OVNDBReady: 'Unknown', NorthdReady: 'Unknown', TopologyRecorded: 'Unknown', Degraded: 'Unknown' },
    'the sidecar of node n3 (pod ovn-central-3) does not answer',
  ],
];
for (const [id, broken, turned, word] of faults)
  test(`${id}: for three rounds exactly what it concerns, and back afterwards`, () => {
    let { memory } = judgeRound(healthy(), wanted, emptyMemory);
    for (const n of [1, 2, 3]) {
      const verdict = judgeRound({ ...broken, time: time(n) }, wanted, memory);
      memory = verdict.memory;
      assert.equal(statuses(verdict), { ...well, ...turned });
      const [first] = Object.keys(turned);
      assert.match(verdict.conditions.find(({ type }) => type === first)?.message ?? '', word);
    }
    for (const n of [4, 5, 6]) {
      const verdict = judgeRound(healthy({ time: time(n) }), wanted, memory);
      memory = verdict.memory;
      assert.equal(statuses(verdict), well);
    }
  });

test('E9: freshness: a verdict holds for two rounds, and a minute at least', () => {
  assert.equal([freshnessLimitMs(5_000), freshnessLimitMs(45_000)], [60_000, 90_000]);
  const verdict = judgeRound(healthy(), wanted, emptyMemory);
  const at = (tick: number) => freshConditions(verdict, { tick, limitMs: 60_000 });
  assert.equal(at(60_500), [...verdict.conditions]);
  for (const { status, reason, message } of at(60_501)) {
    assert.is(`${status}/${reason}`, 'Unknown/EvidenceStale');
    assert.match(message, /is 1m0s old$/);
  }
});

// What members and chassis may come to, healthy or not.
const databaseChanges: Partial<DatabaseFacts>[] = [
  {},
  { cid: uuidOf(77) },
  { sid: uuidOf(2) },
  { sid: uuidOf(9), address: 'ssl:10.0.0.9:6643' },
  { status: 'joining' },
  { status: 'failed', storage: 'I/O error' },
  { role: 'leader', leader: 'self', leading: true },
  { role: 'follower', leading: false, leader: '0002' },
  { role: 'candidate' },
  { term: '4' },
  { index: '0' },
  { index: '3' },
  { connections: [] },
  { log: { first: '2', last: '9', committed: '7', applied: '6', unapplied: '3', uncommitted: '2' } },
  { members: [] },
  { members: databaseFacts('nb', 1, 2).members },
  { members: databaseFacts('nb', 1, 4).members },
  { listeners: [] },
  { model: 'standalone', status: 'standalone' },
];
const centralChanges: CentralFacts[] = [
  {},
  ...(['active', 'standby', 'paused'] as const).map(
    (state): CentralFacts => ({ northd: { state, nb: true, sb: true, daemon: { socketInode: '1', startTicks: '1' } } }),
  ),
  { northd: { state: 'standby', nb: true, sb: false, daemon: { socketInode: '1', startTicks: '1' } } },
  { progress: { nbCfg: '9', sbCfg: '3', hvCfg: '2' } },
];
const silence = fc.constantFrom(...silences);

const centralOutcome = (n: number): fc.Arbitrary<Outcome<'central'>> => {
  const pod = podFacts('ovn-central', n);
  const facts = fc
    .tuple(
      fc.constantFrom(...databaseChanges),
      fc.constantFrom(...databaseChanges.slice(0, 12)),
      fc.constantFrom(...centralChanges),
    )
    .map(([nb, sb, other]) =>
      centralFacts(n, 3, {
        nb: databaseFacts('nb', n, 3, nb),
        sb: databaseFacts('sb', n, 3, { ...sb, ...(sb.sid === undefined ? {} : { sid: uuidOf(102) }) }),
        ...other,
      }),
    );
  const partly = fc
    .tuple(facts, fc.constantFrom('nb', 'sb', 'northd', 'progress'), fc.constantFrom('refused', 'timeout', 'protocol'))
    .map(([whole, component, code]) => {
      const rest = { ...whole };
      delete rest[component as keyof CentralFacts];
      return answer('central', pod, rest, code as 'refused');
    });
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant(answer('central', pod, centralFacts(n, 3))) },
    { weight: 6, arbitrary: facts.map((one) => answer('central', pod, one)) },
    { weight: 2, arbitrary: partly },
    { weight: 1, arbitrary: silence as fc.Arbitrary<Outcome<'central'>> },
    { weight: 1, arbitrary: fc.constant<Outcome<'central'>>({ type: 'Broken', message: 'no pod' }) },
  );
};
const centralOf = (n: number): fc.Arbitrary<CentralSample> =>
  fc
    .tuple(centralOutcome(n), centralOutcome(n), fc.boolean())
    .map(([first, second, same]) => ({ ...centralSample(n, 3), first: same ? second : first, second }));

const chassisOf = (n: number): fc.Arbitrary<ChassisSample> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant(chassisSample(n)) },
    { weight: 1, arbitrary: silence.map((one) => chassisSample(n, {}, one as Outcome<'chassis'>)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('system-1', `fresh-${n}`).map((systemID) =>
        chassisSample(n, {
          ovsdb: { ...(chassisFacts(n).ovsdb as NonNullable<ReturnType<typeof chassisFacts>['ovsdb']>), systemID },
        }),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.constant(
        chassisSample(n, {
          vswitchd: { bridge: { name: 'br-int', inVswitchd: false }, daemon: { socketInode: '1', startTicks: '1' } },
        }),
      ),
    },
  );
const networkOf = fc
  .constantFrom('ok', 'timeout', 'wrongPeer')
  .chain((outcome) =>
    fc
      .integer({ min: 1, max: 3 })
      .map((node) => networkRound(3, (check, n) => (n === node ? { ...check, outcome: outcome as 'ok' } : check))),
  );

const anyRound = (n: number): fc.Arbitrary<Round> =>
  fc
    .tuple(
      fc.tuple(centralOf(1), centralOf(2), centralOf(3)),
      fc.tuple(chassisOf(1), chassisOf(2), chassisOf(3)),
      networkOf,
    )
    .map(([central, chassis, network]) =>
      healthy({
        time: time(n),
        central: { ...centralRound(), samples: central },
        chassis: { ...chassisRound(), samples: chassis },
        network,
      }),
    );
const anyMemory: fc.Arbitrary<Memory> = fc
  .tuple(anyRound(-7), anyRound(-1))
  .map(([first, second]) => judgeRound(second, wanted, judgeRound(first, wanted, emptyMemory).memory).memory);

/** One place of a round that can fall silent, and the round in which it has. */
const silenced: fc.Arbitrary<(round: Round) => Round> = fc
  .tuple(fc.constantFrom('first', 'second', 'chassis', 'network'), fc.integer({ min: 0, max: 2 }), silence)
  .map(([where, place, outcome]) => (round: Round) => {
    const replace = <T>(list: readonly T[], change: (one: T) => T): T[] =>
      list.map((one, n) => (n === place ? change(one) : one));
    const { central, chassis, network } = round;
    if (where === 'chassis' && chassis !== undefined)
      return {
        ...round,
        chassis: { ...chassis, samples: replace(chassis.samples, (one) => ({ ...one, outcome: outcome as never })) },
      };
    if (where === 'network' && network !== undefined)
      return {
        ...round,
        network: { ...network, samples: replace(network.samples, (one) => ({ ...one, outcome: outcome as never })) },
      };
    if (central === undefined) return round;
    return {
      ...round,
      central: { ...central, samples: replace(central.samples, (one) => ({ ...one, [where]: outcome })) },
    };
  });

/** Degraded is told the other way round. */
const goodness = ({ type, status }: DomainCondition): DomainCondition['status'] =>
  type !== 'Degraded' || status === 'Unknown' ? status : status === 'True' ? 'False' : 'True';

test('property: taking evidence away makes no condition True, and none False that was not', () => {
  fc.assert(
    fc.property(anyRound(0), anyMemory, silenced, (round, memory, silence) => {
      const before = judgeRound(round, wanted, memory).conditions;
      const after = judgeRound(silence(round), wanted, memory).conditions;
      before.forEach((condition, n) => {
        const now = after[n];
        assert.ok(now);
        const [was, is] = [goodness(condition), goodness(now as DomainCondition)];
        const what = `${condition.type}: ${was} (${condition.message}) -> ${is} (${now?.message})`;
        if (was !== 'True') assert.is.not(is, 'True', what);
        if (was !== 'False') assert.is.not(is, 'False', what);
      });
    }),
    { numRuns: 1_000 },
  );
});

test('property: who says nothing never makes anything False', () => {
  const places = fc.array(silenced, { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(places, (silences_) => {
      const round = silences_.reduce((one, silence) => silence(one), healthy());
      for (const condition of judgeRound(round, wanted, emptyMemory).conditions)
        assert.is.not(goodness(condition), 'False', condition.message);
    }),
  );
});

test('property: the order in which anybody was asked says nothing', () => {
  fc.assert(
    fc.property(anyRound(0), anyMemory, (round, memory) => {
      const turned: Round = {
        ...round,
        ...(round.central && { central: { ...round.central, samples: round.central.samples.toReversed() } }),
        ...(round.chassis && { chassis: { ...round.chassis, samples: round.chassis.samples.toReversed() } }),
        ...(round.network && {
          network: {
            ...round.network,
            samples: round.network.samples.toReversed(),
            serverPods: round.network.serverPods.toReversed(),
          },
        }),
      };
      const [a, b] = [judgeRound(round, wanted, memory), judgeRound(turned, wanted, memory)];
      assert.equal(statuses(a), statuses(b));
      assert.equal(a.conditions, b.conditions);
    }),
    { numRuns: 500 },
  );
});

test('property: every message fits, and what is remembered does not grow', () => {
  fc.assert(
    fc.property(anyRound(0), anyMemory, (round, memory) => {
      const verdict = judgeRound(round, wanted, memory);
      for (const { message } of verdict.conditions) assert.ok(message.length > 0 && message.length <= 4_096);
      assert.ok(JSON.stringify(verdict.memory).length < 8_192);
    }),
    { numRuns: 300 },
  );
});

test.run();
