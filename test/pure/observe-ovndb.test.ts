import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import type { CentralRound, CentralSample } from '../../executor/observe/round.ts';
import { counted, four, judge, other, told } from './observe-ovndb-support.ts';
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
    'W10 a follower on a full disk, which says that all is well',
    centralRound(3, withNb(2, { freeBytes: '4096' })),
    'False/DiskFull',
    'OVN_Northbound of node n2',
    'its disk has 4 KiB left',
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

test.run();
