import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { ChassisFacts } from '../../constructs/api/evidence/chassis.ts';
import { type DataPlaneMemory, judgeDataPlane } from '../../executor/observe/dataplane.ts';
import type { ChassisRound, ChassisSample, Rollout } from '../../executor/observe/round.ts';
import { answer, chassisFacts, chassisRound, chassisSample, nodeFacts, podFacts, silences } from './observe-support.ts';

const northd = '25.03.1-20.41.0-78.8';
const judge = (round: ChassisRound, memory: DataPlaneMemory = {}, tick = 0) =>
  judgeDataPlane(round, { tick, bridge: 'br-int', northd }, memory);

type Change = { readonly [K in keyof ChassisFacts]?: Partial<NonNullable<ChassisFacts[K]>> };
/** One chassis with changed facts. */
const changed =
  (n: number, change: Change) =>
  (m: number): ChassisSample | undefined => {
    if (m !== n) return undefined;
    const { ovsdb, controller, vswitchd } = chassisFacts(n);
    return chassisSample(n, {
      ...(ovsdb && { ovsdb: { ...ovsdb, ...change.ovsdb } }),
      ...(controller && { controller: { ...controller, ...change.controller } }),
      ...(vswitchd && { vswitchd: { ...vswitchd, ...change.vswitchd } }),
    });
  };
const without =
  (n: number, component: keyof ChassisFacts, code: 'refused' | 'timeout' | 'protocol') =>
  (m: number): ChassisSample | undefined => {
    if (m !== n) return undefined;
    const facts = chassisFacts(n);
    delete facts[component];
    return chassisSample(n, {}, answer('chassis', podFacts('ovs-ovn', n), facts, code));
  };
const rolledOut = (changes: Partial<Rollout>): ChassisRound => {
  const round = chassisRound();
  return { ...round, workloads: round.workloads.map((one): Rollout => ({ ...one, ...changes })) };
};
const onNode =
  (n: number, live: ReturnType<typeof nodeFacts> | undefined) =>
  (m: number): ChassisSample | undefined =>
    m === n ? { ...chassisSample(n), target: { ...chassisSample(n).target, live } } : undefined;

type Case = readonly [id: string, round: ChassisRound, head: string, ...words: string[]];
const cases: Case[] = [
  ['E12 all connected', chassisRound(), 'True/ChassisConnected', '3 of 3 chassis'],
  [
    'E12 ovn-controller stopped on one node',
    chassisRound(3, without(2, 'controller', 'refused')),
    'False/DaemonDown',
    'ovn-controller of node n2 does not run',
  ],
  [
    'E12 no connection to SB',
    chassisRound(3, changed(2, { controller: { connected: false } })),
    'False/ChassisDisconnected',
    'ovn-controller of node n2',
    'ssl:[10.0.0.1]:6642',
  ],
  [
    'E12 a bridge that only the database has',
    chassisRound(3, changed(3, { vswitchd: { bridge: { name: 'br-int', inVswitchd: false } } })),
    'False/BridgeMissing',
    'ovs-vswitchd of node n3',
    'br-int',
  ],
  [
    'E12 vswitchd frozen',
    chassisRound(3, without(3, 'vswitchd', 'timeout')),
    'Unknown/EvidenceHung',
    'ovs-vswitchd of node n3 did not answer within 5s',
  ],
  [
    'E12 a database that does not run',
    chassisRound(3, without(1, 'ovsdb', 'refused')),
    'False/DaemonDown',
    'ovsdb-server of node n1',
  ],
  [
    'E12 the same system-id twice',
    chassisRound(3, changed(3, { ovsdb: { systemID: 'system-1' } })),
    'False/ChassisIDTwice',
    'node n1 and node n3 have the same system-id system-1',
  ],
  [
    'E12 the same chassis UUID twice',
    chassisRound(3, changed(3, { ovsdb: { chassisUUID: '05010000-0000-4000-8000-000000000000' } })),
    'False/ChassisIDTwice',
    'chassis UUID',
  ],
  ['E12 no tunnel address', chassisRound(3, changed(2, { ovsdb: { encaps: [] } })), 'False/EncapMissing', 'node n2'],
  [
    'E12 a node that is not Ready',
    chassisRound(3, onNode(2, nodeFacts(2, { ready: 'False' }))),
    'False/NodeNotReady',
    'node n2 is not Ready',
  ],
  [
    'E12 a kubelet that tells nothing',
    chassisRound(3, onNode(2, nodeFacts(2, { ready: 'Unknown' }))),
    'Unknown/EvidenceUnreachable',
    'node n2',
  ],
  ['E12 a node that is gone', chassisRound(3, onNode(2, undefined)), 'False/NodeGone', 'pod ovs-ovn-2 is still there'],
  [
    'E12 a rollout under way',
    rolledOut({ updated: 2 }),
    'Unknown/RolloutInProgress',
    '2 of 3 nodes have the updated pod',
  ],
  ['E12 a generation that nobody has seen', rolledOut({ generation: 2 }), 'Unknown/RolloutInProgress'],
  [
    'E12 fewer pods than nodes',
    rolledOut({ desired: 4, updated: 4, ready: 4 }),
    'Unknown/RolloutInProgress',
    '3 of 4 nodes have a pod',
  ],
  ['E12 no node wanted', rolledOut({ desired: 0 }), 'Unknown/NothingExpected', 'wants no pod'],
  ['E12 no DaemonSet', { workloads: [], samples: [], changed: [] }, 'Unknown/NothingExpected'],
  [
    '9.4 frozen by the version of northd',
    chassisRound(
      3,
      changed(2, { ovsdb: { matchNorthdVersion: true }, controller: { version: 'ovn-controller 24.03.5' } }),
    ),
    'False/ChassisFrozen',
    'node n2 (ovn-controller 24.03.5)',
    northd,
  ],
  [
    '9.4 the sidecar tells that it is frozen',
    chassisRound(3, changed(2, { controller: { frozenByNorthdMatch: true } })),
    'False/ChassisFrozen',
  ],
  [
    '9.4 matching and of one version',
    chassisRound(
      3,
      changed(2, { ovsdb: { matchNorthdVersion: true }, controller: { version: 'ovn-controller 25.03.1' } }),
    ),
    'True/ChassisConnected',
  ],
  [
    '9.4 matching, and no version known',
    chassisRound(3, (n) =>
      n === 2
        ? {
            ...chassisSample(2, {
              ovsdb: { ...required(chassisFacts(2).ovsdb), matchNorthdVersion: true },
              controller: { connected: true, daemon: { socketInode: '1', startTicks: '1' } },
            }),
          }
        : undefined,
    ),
    'Unknown/EvidenceIncomplete',
    'only a northd of its own version',
  ],
  ['9.2 paused', chassisRound(3, changed(2, { controller: { paused: true } })), 'False/ChassisPaused'],
  [
    'E14 a DaemonSet that changed meanwhile',
    { ...chassisRound(), changed: ['DaemonSet ovs-ovn'] },
    'Unknown/EvidenceMoved',
    'DaemonSet ovs-ovn changed',
  ],
];

function required<T>(value: T | undefined): T {
  assert.ok(value !== undefined);
  return value as T;
}

for (const [id, round, head, ...words] of cases)
  test(id, () => {
    const { condition } = judge(round);
    assert.is(`${condition.status}/${condition.reason}`, head, condition.message);
    for (const word of words) assert.match(condition.message, word);
    const turned = judge({ ...round, samples: round.samples.toReversed() }).condition;
    assert.equal(turned, condition);
  });

test('9.4: of one release, but another image of the repository than OVN central runs: whether it follows northd is not known', () => {
  const image = (digest: string, repository = 'docker.io/kubeovn/kube-ovn'): string => `${repository}@sha256:${digest}`;
  const head = (own: string | undefined, images: readonly string[], matchNorthdVersion = true): string => {
    const round = chassisRound(3, (n) => {
      const sample = changed(n, { ovsdb: { matchNorthdVersion } })(n) as ChassisSample;
      return n === 2 ? { ...sample, target: { ...sample.target, image: own } } : sample;
    });
    const { condition } = judgeDataPlane(round, { tick: 0, bridge: 'br-int', northd, images }, {});
    return `${condition.status}/${condition.reason}: ${condition.message}`;
  };
  assert.match(
    head(image('a'), [image('a'), image('b')]),
    /^Unknown\/EvidenceIncomplete: .*of node n2.*OVN central runs another image of the same release/,
  );
  for (const same of [
    head(image('a'), [image('a'), image('a')]),
    // Another repository may hold the same build, a node of DPDK has an image of its own, and who does not match follows anyway.
    head(image('a'), [image('b', 'registry.example.com/central-runtime')]),
    head(undefined, [image('a')]),
    head(image('a'), [image('b')], false),
  ])
    assert.match(same, /^True\/ChassisConnected/);
});

test('E12: a second DaemonSet that wants no pod takes nothing away', () => {
  const round = chassisRound();
  const dpdk = { ...(round.workloads[0] as Rollout), name: 'ovs-ovn-dpdk', desired: 0, updated: 0, ready: 0 };
  assert.is(judge({ ...round, workloads: [...round.workloads, dpdk] }).condition.status, 'True');
});

test('W14: a chassis that became another one is told, through silence and for ten minutes; the old one coming back ends it', () => {
  const first = judge(chassisRound());
  const other = chassisRound(3, changed(2, { ovsdb: { systemID: 'fresh' } }));
  const after = judge(other, first.memory, 1_000);
  assert.is(`${after.condition.status}/${after.condition.reason}`, 'False/ChassisIDChanged');
  assert.match(after.condition.message, 'the system-id of node n2 was system-2 and is fresh');
  const silent = judge(
    chassisRound(3, (n) => (n === 2 ? chassisSample(2, {}, silences[0] as never) : undefined)),
    after.memory,
    2_000,
  );
  assert.is(silent.condition.status, 'Unknown');
  assert.is(judge(other, silent.memory, 3_000).condition.status, 'False');
  assert.is(judge(other, silent.memory, 700_000).condition.status, 'True');
  assert.is(judge(chassisRound(), silent.memory, 4_000).condition.status, 'True');
});

test('W14: a node without a pod for a moment is held to the chassis that it had, and one that was made anew is not', () => {
  const first = judge(chassisRound());
  const whole = chassisRound();
  const gap = judge(
    { ...whole, samples: whole.samples.filter(({ target }) => target.node !== 'n2') },
    first.memory,
    500,
  );
  const other = chassisRound(3, changed(2, { ovsdb: { systemID: 'fresh' } }));
  const after = judge(other, gap.memory, 1_000);
  assert.is(`${after.condition.status}/${after.condition.reason}`, 'False/ChassisIDChanged');
  assert.is(judge(chassisRound(), gap.memory, 1_000).condition.status, 'True');
  // While the Node is gone its chassis is known by name alone, and a later one of that name is somebody else.
  const gone = (n: number) => {
    const sample = chassisSample(n);
    return n === 2 ? { ...sample, target: { ...sample.target, live: undefined } } : undefined;
  };
  const nameless = judge(chassisRound(3, gone), {}, 500);
  const between = judge({ ...whole, samples: whole.samples.slice(0, 1) }, nameless.memory, 600);
  assert.not.ok(
    Object.keys(between.memory).some((key) => key.includes('n2')),
    JSON.stringify(between.memory),
  );
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`uid-${n}`, { systemID: `s${n}` }]));
  assert.ok(Object.keys(judge(whole, many, 700).memory).length <= 10_000);
});

test('W14: a node that was made anew has a right to another chassis', () => {
  const first = judge(chassisRound());
  const anew = chassisRound(3, (n) => {
    const sample = changed(2, { ovsdb: { systemID: 'fresh' } })(n);
    return sample && { ...sample, target: { ...sample.target, live: nodeFacts(2, { uid: 'node-2-again' }) } };
  });
  assert.is(judge(anew, first.memory, 1_000).condition.status, 'True');
});

test('E12: a thousand nodes: the message names some, counts the rest, and fits', () => {
  const round = chassisRound(1_000, (n) =>
    n % 20 === 0 ? chassisSample(n, {}, { type: 'Hung', limitMs: 10_000 }) : undefined,
  );
  const { condition } = judge(round);
  assert.is(condition.status, 'Unknown');
  assert.match(
    condition.message,
    /^the sidecar of node n100 did not answer within 10s; likewise node n1000, node n120, node n140 and 46 more$/,
  );
});

test.run();
