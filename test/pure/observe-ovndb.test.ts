import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { plainEndpoint, sameEndpoint } from '../../executor/observe/endpoint.ts';
import { emptyDatabasesMemory, judgeDatabases } from '../../executor/observe/ovndb.ts';
import type { CentralRound, CentralSample } from '../../executor/observe/round.ts';
import {
  centralRound,
  centralSample,
  databaseFacts,
  podFacts,
  silences,
  uuidOf,
  withNb,
  withOutcome,
  withoutComponent,
} from './observe-support.ts';

const judge = (
  round: CentralRound,
  model: 'clustered' | 'standalone' = 'clustered',
  tick = 0,
  memory = emptyDatabasesMemory,
) => judgeDatabases(round, { model, tick }, memory);

/** `status/reason` and the message, of a round. */
function told(round: CentralRound, ...more: [('clustered' | 'standalone')?, number?, typeof emptyDatabasesMemory?]) {
  const { condition } = judge(round, ...more);
  return { head: `${condition.status}/${condition.reason}`, message: condition.message };
}

/** Both passes of a member with the same change of NB in the second one only. */
const secondNb =
  (member: number, changes: Partial<DatabaseFacts>) =>
  (n: number): CentralSample | undefined =>
    n === member
      ? { ...centralSample(n, 3), second: centralSample(n, 3, { nb: databaseFacts('nb', n, 3, changes) }).second }
      : undefined;

test('E6: all members agree, one leads, indexes are positive: True, with leader, term, members and quorum', () => {
  const { condition, databases } = judge(centralRound());
  assert.is(`${condition.status}/${condition.reason}`, 'True/MembersAgree');
  assert.match(condition.message, 'OVN_Northbound: leader node n1, term 5, 3 of 3 members, quorum 2');
  assert.match(condition.message, 'OVN_Southbound: leader node n1');
  assert.is(databases.length, 2);
  assert.is(databases[0]?.leader, uuidOf(1));
  assert.equal(
    databases[1]?.members.map(({ node }) => node),
    ['n1', 'n2', 'n3'],
  );
});

type Case = readonly [id: string, round: CentralRound, head: string, ...words: string[]];

const other = 'dddddddd-0000-4000-8000-00000000000f';
const four = (n: number): DatabaseFacts['members'][number] => ({
  sid: uuidOf(n).slice(0, 4),
  address: `ssl:10.0.0.${n}:6643`,
  self: false,
});
/** What the leader counts, with a change. */
const counted = (...members: DatabaseFacts['members'][number][]) => ({ members });

const cases: Case[] = [
  [
    'E6 another cluster id',
    centralRound(3, withNb(2, { cid: other })),
    'False/ClusterSplit',
    'belong to 2 clusters',
    `${other} on n2`,
  ],
  [
    'E6 the same server id twice',
    centralRound(3, withNb(3, { sid: uuidOf(2), members: [] })),
    'False/ServerIDTwice',
    'node n2 (pod ovn-central-2) and node n3',
    uuidOf(2),
  ],
  ['E6 no positive index', centralRound(3, withNb(2, { index: '0' })), 'False/IndexMissing', 'node n2', 'the index 0'],
  [
    'E6 storage not connected',
    centralRound(3, withNb(2, { connected: false })),
    'False/MemberNotMember',
    'node n2',
    'not connected to its storage',
  ],
  [
    'E6 no leader',
    centralRound(3, withNb(1, { role: 'follower', leading: false })),
    'Unknown/NoLeader',
    'no member leads',
  ],
  [
    'E6 two leaders',
    centralRound(3, withNb(2, { role: 'leader', term: '6' })),
    'False/LeaderTwice',
    'node n1 (pod ovn-central-1) in term 5 and node n2 (pod ovn-central-2) in term 6',
  ],
  [
    'E6 a standalone file in a cluster',
    centralRound(3, withNb(2, { model: 'standalone', status: 'standalone' })),
    'False/DatabaseOther',
    'is standalone, wanted clustered',
  ],
  [
    'W2 a pod where none is wanted',
    { ...centralRound(), strays: [podFacts('ovn-central', 9)] },
    'False/MemberMisplaced',
    'pod ovn-central-9',
    'runs on n9',
    'wanted only n1, n2, n3',
  ],
  [
    'W6 a member that no pod is',
    centralRound(3, withNb(1, counted(four(1), four(2), four(3), four(9)))),
    'False/GhostMember',
    '0009 at ssl:10.0.0.9:6643',
    'none of the pods',
  ],
  [
    'W35 the address taken by a server with another id',
    centralRound(3, withNb(1, counted(four(1), four(2), { ...four(3), sid: 'beef' }))),
    'False/GhostMember',
    'beef at ssl:10.0.0.3:6643',
  ],
  [
    'W40 a pod that the cluster does not count',
    centralRound(3, withNb(1, counted(four(1), four(2)))),
    'False/MemberUnlisted',
    'node n3',
  ],
  [
    'W6 members that disagree on the members',
    centralRound(3, withNb(2, counted(four(1), four(2)))),
    'False/MembersDisagree',
    'node n2',
    'counts [0001',
    'the leader counts',
  ],
  [
    'W10 the disk is full',
    centralRound(3, withNb(2, { storage: 'I/O error: write failed', status: 'failed' })),
    'False/StorageFailed',
    'I/O error: write failed',
    'wanted ok',
  ],
  [
    'W32 leaving',
    centralRound(3, withNb(3, { status: 'leaving' })),
    'False/MemberNotMember',
    'is leaving, wanted member',
  ],
  [
    'E22 an election under way',
    centralRound(3, withNb(2, { role: 'candidate', leader: 'unknown' })),
    'Unknown/MemberElecting',
    'node n2',
  ],
  [
    'G3 another term',
    centralRound(3, withNb(2, { term: '4' })),
    'Unknown/LeaderMoving',
    'it is in term 4, wanted term 5',
  ],
  [
    'G3 another leader',
    centralRound(3, withNb(2, { leader: '0003' })),
    'Unknown/LeaderMoving',
    'its leader is 0003, wanted 0001',
  ],
  [
    'G4 no live link with the leader',
    centralRound(3, (n) =>
      n === 3
        ? centralSample(3, 3, { nb: databaseFacts('nb', 3, 3, { connections: [] }) })
        : withNb(1, { connections: [] })(n),
    ),
    'False/MemberUnlinked',
    'no connection with the leader is up',
  ],
  [
    'G4 not heard of within the election timer',
    centralRound(3, withNb(1, counted(four(1), { ...four(2), lastMessageMs: '9000' }, four(3)))),
    'False/MemberUnlinked',
    'heard of it 9000ms ago, its election timer is 5000ms',
  ],
  [
    'X7 one ovsdb-server killed',
    centralRound(3, withoutComponent(3, 'nb', 'refused')),
    'False/DaemonDown',
    'ovsdb-server of OVN_Northbound of node n3 (pod ovn-central-3)',
    'OVN_Northbound: leader node n1, term 5, 2 of 3 members, quorum 2',
  ],
  [
    'X7 one pod gone',
    centralRound(3, (n) => (n === 3 ? gone() : undefined)),
    'False/MemberMissing',
    'wanted on node n3',
    'no pod of it runs there',
    '2 of 3 members, quorum 2',
  ],
  [
    'W7 quorum lost',
    centralRound(3, (n) => (n === 1 ? undefined : withoutComponent(n, 'nb', 'refused')(n))),
    'False/DaemonDown',
    'besides QuorumLost',
    '1 of 3 members, quorum 2',
  ],
  [
    'W7 four members need three',
    centralRound(4, (n) => (n > 2 ? withoutComponent(n, 'nb', 'refused', 4)(n) : undefined)),
    'False/DaemonDown',
    '2 of 4 members, quorum 3',
    '4 members bear no more losses than 3',
  ],
  [
    'E13 a server that hangs',
    centralRound(3, withoutComponent(2, 'nb', 'timeout')),
    'Unknown/EvidenceHung',
    'ovsdb-server of OVN_Northbound of node n2',
    'within 5s',
  ],
  [
    'E13 an answer that can not be read',
    centralRound(3, withoutComponent(2, 'sb', 'protocol')),
    'Unknown/EvidenceIncomplete',
    'OVN_Southbound',
  ],
  ['E9 nobody expected', { workload: undefined, samples: [], strays: [] }, 'Unknown/NothingExpected'],
];

function gone(): CentralSample {
  const sample = centralSample(3, 3);
  const outcome = { type: 'Broken', message: 'no pod of it runs there' } as const;
  return { target: { ...sample.target, pod: undefined }, first: outcome, second: outcome };
}

for (const [id, round, head, ...words] of cases)
  test(id, () => {
    const found = told(round);
    assert.is(found.head, head, found.message);
    for (const word of words) assert.match(found.message, word);
    assert.ok(found.message.length <= 1024);
    // The order in which the members were asked says nothing.
    assert.is(told({ ...round, samples: round.samples.toReversed() }).message.length, found.message.length);
  });

test('E6: NB and SB are judged apart: what is wrong with one is told of that one', () => {
  const sb = told(
    centralRound(3, (n) =>
      n === 2 ? centralSample(2, 3, { sb: databaseFacts('sb', 2, 3, { status: 'disconnected' }) }) : undefined,
    ),
  );
  assert.match(sb.message, 'OVN_Southbound of node n2 (pod ovn-central-2) is disconnected, wanted member');
});

test('E6: no leader is broken when a second round finds it again: an election takes a moment', () => {
  const none = centralRound(3, withNb(1, { role: 'follower', leading: false }));
  const first = judge(none);
  const silent = judge(centralRound(3, withOutcome(1, silences[0] as never)), 'clustered', 1, first.memory);
  const second = judge(none, 'clustered', 2, silent.memory);
  assert.equal(
    [first, silent, second].map(({ condition }) => condition.status),
    ['Unknown', 'Unknown', 'False'],
  );
  const over = judge(centralRound(), 'clustered', 3, second.memory);
  assert.equal([over.condition.status, over.memory.nb.leaderless], ['True', 0]);
});

test('E7: a standalone database is the model that was asked for, connected to its storage', () => {
  const alone = (changes: Partial<DatabaseFacts> = {}) =>
    centralRound(1, (n) =>
      centralSample(n, 1, {
        nb: databaseFacts('nb', 1, 1, {
          model: 'standalone',
          status: 'standalone',
          members: [],
          connections: [],
          ...changes,
        }),
        sb: databaseFacts('sb', 1, 1, { model: 'standalone', status: 'standalone', members: [], connections: [] }),
      }),
    );
  assert.is(told(alone(), 'standalone').head, 'True/DatabaseServed');
  assert.is(told(alone({ connected: false }), 'standalone').head, 'False/MemberNotMember');
  assert.is(told(alone({ storage: 'log is inconsistent' }), 'standalone').head, 'False/StorageFailed');
  assert.match(told(centralRound(1), 'standalone').message, 'is clustered, wanted standalone');
});

test('W3: joining is told at first as work under way, after two minutes as broken, whatever the pod says; a silence between does not start it anew', () => {
  const joining = centralRound(
    3,
    withNb(3, {
      status: 'joining',
      role: undefined,
      index: undefined,
      members: [],
    } as unknown as Partial<DatabaseFacts>),
  );
  const first = judge(joining, 'clustered', 1_000);
  assert.is(first.condition.reason, 'MemberJoining');
  assert.is(first.condition.status, 'Unknown');
  const silent = judge(centralRound(3, withOutcome(3, silences[0] as never)), 'clustered', 60_000, first.memory);
  assert.is(silent.condition.reason, 'EvidenceUnreachable');
  const last = judge(joining, 'clustered', 122_000, silent.memory);
  assert.is(`${last.condition.status}/${last.condition.reason}`, 'False/MemberNotMember');
  assert.match(last.condition.message, 'joining for 2m1s, wanted member');
  const over = judge(centralRound(), 'clustered', 130_000, last.memory);
  assert.is(over.condition.status, 'True');
  assert.equal(over.memory.nb.joining, {});
});

test('G6: a leader that changed between its two answers makes the observation stale', () => {
  const cases: [Partial<DatabaseFacts>, string][] = [
    [{ term: '6' }, 'leader of term 6, wanted the leader of term 5'],
    [{ members: [four(1), four(2)] }, 'it counts [0001'],
  ];
  for (const [changes, words] of cases) {
    const found = told(centralRound(3, secondNb(1, changes)));
    assert.match(found.message, words);
  }
  assert.is(told(centralRound(3, secondNb(1, { term: '6' }))).head, 'Unknown/LeaderMoving');
});

test('X8: leadership that moved between two reads is stale, and the next look is True again without a word of it', () => {
  const asLeader = { role: 'leader', leading: true, leader: 'self', term: '6' } as const;
  const moved = centralRound(3, (n) =>
    n === 1
      ? secondNb(1, { role: 'follower', leading: false, leader: '0002', term: '6' })(n)
      : secondNb(n, n === 2 ? asLeader : { leader: '0002', term: '6' })(n),
  );
  const stale = judge(moved);
  assert.is(`${stale.condition.status}/${stale.condition.reason}`, 'Unknown/LeaderMoving');
  const settled = centralRound(3, (n) =>
    withNb(n, n === 2 ? asLeader : { role: 'follower', leading: false, leader: '0002', term: '6' })(n),
  );
  assert.is(judge(settled, 'clustered', 1, stale.memory).condition.status, 'True');
});

test('E14: a server that was started anew between its two answers was not observed', () => {
  const found = told(centralRound(3, secondNb(2, { daemon: { socketInode: '8', startTicks: '300' } })));
  assert.is(found.head, 'Unknown/EvidenceMoved');
});

test('G5: behind the leader though connected: not known once, broken twice', () => {
  const log = { first: '2', last: '12', committed: '7', applied: '7', unapplied: '5', uncommitted: '5' };
  const lagging = centralRound(3, withNb(2, { log }));
  const first = judge(lagging);
  assert.is(`${first.condition.status}/${first.condition.reason}`, 'Unknown/MemberLagging');
  assert.match(first.condition.message, 'has applied 7, the leader had committed 12 before');
  assert.is(judge(lagging, 'clustered', 1, first.memory).condition.status, 'False');
  assert.equal(judge(centralRound(), 'clustered', 1, first.memory).memory.nb.lagging, []);
});

test('4.10: an index that goes backwards within one cluster is lost data; a new cluster counts anew', () => {
  const before = judge(centralRound(3, withNb(2, { index: '90' })));
  const after = judge(centralRound(3, withNb(2, { index: '11' })), 'clustered', 1, before.memory);
  assert.is(after.condition.reason, 'IndexBackwards');
  assert.match(after.condition.message, 'the index 11, and told 90 before');
  const anew = centralRound(3, (n) => withNb(n, { cid: other, index: '2' })(n));
  assert.is(judge(anew, 'clustered', 1, before.memory).condition.status, 'True');
});

test('G2: a shared beginning of two ids names nobody: addresses tell them apart', () => {
  const twin = `${uuidOf(2).slice(0, 4)}1111-0000-4000-8000-000000000000`;
  const members = [four(1), four(2), { ...four(3), sid: twin.slice(0, 4) }];
  const round = centralRound(3, (n) => withNb(n, n === 3 ? { sid: twin, members } : { members })(n));
  assert.is(told(round).head, 'True/MembersAgree');
});

test("W6: a silent member may be counted at an address that is not its node's; a member more than are silent is a ghost", () => {
  const silent = withOutcome(3, silences[0] as never)(3) as CentralSample;
  const moved = {
    ...silent,
    target: { ...silent.target, node: { ...silent.target.node, addresses: ['192.168.0.3'] } },
  };
  assert.is(told(centralRound(3, (n) => (n === 3 ? moved : undefined))).head, 'Unknown/EvidenceUnreachable');
  const more = centralRound(3, (n) => (n === 3 ? silent : withNb(1, counted(four(1), four(2), four(3), four(9)))(n)));
  const { head, message } = told(more);
  assert.is(head, 'False/GhostMember');
  assert.match(message, 'ssl:10.0.0.9:6643');
});

test('14.1: members that look for a leader can vote: while they do, the quorum is not lost', () => {
  const electing = centralRound(3, (n) => withNb(n, { role: 'candidate', leader: 'unknown', leading: false })(n));
  const { findings, condition } = judge(electing);
  assert.not(findings.some(({ reason }) => reason === 'QuorumLost'));
  assert.match(condition.message, '3 of 3 members, quorum 2');
});

test('W37: different election timers, little room and half a link are told, and are no fault', () => {
  const { condition, findings } = judge(
    centralRound(3, (n) =>
      n === 3
        ? withNb(3, {
            electionTimerMs: 1_000,
            freeBytes: '1000',
            connections: [{ direction: 'in', sid: '0001', up: false }],
          })(n)
        : undefined,
    ),
  );
  assert.is(condition.status, 'True');
  assert.equal(findings.map(({ reason }) => reason).sort(), [
    'DiskNearlyFull',
    'ElectionTimersDiffer',
    'LinkPartlyDown',
  ]);
});

test('1.13: one endpoint has one spelling', () => {
  assert.ok(sameEndpoint('tcp:[10.0.0.1]:6643', 'tcp:10.0.0.1:6643'));
  assert.ok(sameEndpoint('ssl:[FD00:0:0::1]:6643', 'ssl:[fd00::1]:6643'));
  assert.not(sameEndpoint('tcp:10.0.0.1:6643', 'tcp:10.0.0.10:6643'));
  assert.not(sameEndpoint('tcp:10.0.0.1:6643', 'ssl:10.0.0.1:6643'));
  assert.is(plainEndpoint('punix:/run/x.sock'), 'punix:/run/x.sock');
});

test.run();
