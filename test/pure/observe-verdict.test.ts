import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { CentralSample, ChassisSample } from '../../executor/observe/round.ts';
import {
  emptyMemory,
  evidenceTypes,
  freshConditions,
  freshnessLimitMs,
  judgeRound,
  type Round,
} from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { networkRound } from './observe-network-support.ts';
import {
  answer,
  centralRound,
  centralSample,
  chassisFacts,
  chassisRound,
  chassisSample,
  nodeFacts,
  podFacts,
  withNb,
  withOutcome,
  withoutComponent,
} from './observe-support.ts';
import { healthy, probed, statuses, time, wanted, well } from './observe-verdict-support.ts';

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

test.run();
