import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { plainEndpoint, sameEndpoint } from '../../executor/observe/endpoint.ts';
import type { CentralRound, CentralSample } from '../../executor/observe/round.ts';
import { counted, four, judge, other, secondNb, told } from './observe-ovndb-support.ts';
import {
  centralRound,
  centralSample,
  databaseFacts,
  silences,
  uuidOf,
  withNb,
  withOutcome,
  withoutComponent,
} from './observe-support.ts';

/** The second answer of member 2 with a change of NB. */
const secondOf = (changes: Partial<DatabaseFacts>): CentralSample['second'] =>
  centralSample(2, 3, { nb: databaseFacts('nb', 2, 3, changes) }).second;

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

test('a leader that told no log at first leaves open who is behind: less evidence makes nothing True', () => {
  const mute = centralRound(3, (n) => {
    const sample = centralSample(n, 3);
    const { log: _log, ...nb } = databaseFacts('nb', n, 3);
    return n === 1 ? { ...sample, first: centralSample(n, 3, { nb }).first } : sample;
  });
  const { condition } = judge(mute);
  assert.is(`${condition.status}/${condition.reason}`, 'Unknown/EvidenceIncomplete');
});

test('4.10: an index that goes backwards within one cluster is lost data; a new cluster counts anew', () => {
  const before = judge(centralRound(3, withNb(2, { index: '90' })));
  const after = judge(centralRound(3, withNb(2, { index: '11' })), 'clustered', 1, before.memory);
  assert.is(after.condition.reason, 'IndexBackwards');
  assert.match(after.condition.message, 'the index 11, and told 90 before');
  const anew = centralRound(3, (n) => withNb(n, { cid: other, index: '2' })(n));
  assert.is(judge(anew, 'clustered', 1, before.memory).condition.status, 'True');
});

test("an index that two pods tell of one server is nobody's: the server is not held to it afterwards", () => {
  const stolen = { sid: uuidOf(2), index: '18446744073709551615' };
  const { condition, memory } = judge(centralRound(3, withNb(3, stolen)));
  assert.is(condition.reason, 'ServerIDTwice');
  assert.is(judge(centralRound(3), 'clustered', 1, memory).condition.status, 'True');
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

const candidate = { role: 'candidate', leader: 'unknown', leading: false } as const;
const five = [1, 2, 3, 8, 9].map(four);

test('14.1: what a cluster counts is what its members say, not how many pods there are; whoever runs elsewhere may vote once', () => {
  // Two of five that were seen, three pods wanted: nobody can lead, and two more pods would not bring the quorum back.
  const lost = centralRound(3, (n) =>
    n === 3
      ? withNb(3, { status: 'joining', role: undefined, index: undefined, members: [], sid: uuidOf(77) } as never)(n)
      : withNb(n, { ...candidate, members: five })(n),
  );
  const first = judge(lost);
  assert.match(first.condition.message, 'OVN_Northbound: no leader seen, 2 of 5 members, quorum 3');
  assert.not(first.findings.some(({ reason }) => reason === 'QuorumLost'));
  assert.is(first.condition.status, 'Unknown');
  const second = judge(lost, 'clustered', 1, first.memory);
  assert.is(second.condition.status, 'False');
  assert.match(second.findings.find(({ reason }) => reason === 'QuorumLost')?.message ?? '', '2 of 5 members answer');
  // The longest log has the newest members.
  const last = { first: '2', last: '40', committed: '40', applied: '40', unapplied: '0', uncommitted: '0' };
  const shrunk = centralRound(3, (n) =>
    withNb(n, { ...candidate, ...(n === 2 ? { log: last, members: [1, 2, 3].map(four) } : { members: five }) })(n),
  );
  assert.match(judge(shrunk).condition.message, '3 of 3 members, quorum 2');
});

test('W7, 14.1: a member that joins hides no lost quorum', () => {
  const joining = { status: 'joining', role: undefined, index: undefined, members: [], sid: uuidOf(77) } as never;
  const alone = centralRound(3, (n) =>
    n === 1
      ? withNb(1, { status: 'disconnected', ...candidate, connected: false })(1)
      : n === 2
        ? withNb(2, joining)(2)
        : withoutComponent(3, 'nb', 'refused')(3),
  );
  const { memory } = judge(alone);
  const { findings, condition } = judge(alone, 'clustered', 1, memory);
  assert.ok(
    findings.some(({ reason }) => reason === 'QuorumLost'),
    condition.message,
  );
  assert.match(condition.message, '0 of 3 members, quorum 2');
  // Of a cluster that nobody is a member of yet nothing is lost.
  const young = judge(centralRound(3, (n) => withNb(n, joining)(n)));
  assert.is(
    judge(
      centralRound(3, (n) => withNb(n, joining)(n)),
      'clustered',
      1,
      young.memory,
    ).condition.status,
    'Unknown',
  );
});

test('14.1: a server that comes or goes has no vote yet, or none any more', () => {
  for (const phase of ['adding', 'removing'] as const) {
    const members = [...[1, 2, 3].map(four), { ...four(9), phase, voting: false }];
    const { condition, findings } = judge(
      centralRound(3, (n) => (n === 3 ? withoutComponent(3, 'nb', 'refused')(3) : withNb(1, counted(...members))(n))),
    );
    assert.not(
      findings.some(({ reason }) => reason === 'QuorumLost'),
      phase,
    );
    assert.match(condition.message, '2 of 3 members, quorum 2');
  }
});

test('14.1: members that no pod is count as alive while the leader hears of them', () => {
  const members = [...[1, 2, 3].map(four), ...[8, 9].map((n) => ({ ...four(n), lastMessageMs: '900' }))];
  const { condition, findings } = judge(
    centralRound(3, (n) => (n > 1 ? withoutComponent(n, 'nb', 'refused')(n) : withNb(1, counted(...members))(n))),
  );
  assert.not(findings.some(({ reason }) => reason === 'QuorumLost'));
  assert.match(condition.message, '3 of 5 members, quorum 3');
  assert.ok(findings.some(({ reason, about }) => reason === 'GhostMember' && about.includes('10.0.0.9')));
});

test('14.1: a member that is away is counted once, also where members are known by names', () => {
  const named = (n: number): DatabaseFacts['members'][number] => ({
    ...four(n),
    address: `tcp:ovn-central-${n}.ovn-central.svc:6643`,
    lastMessageMs: '400',
  });
  const members = [1, 2, 3].map(named);
  const round = (third: CentralSample | undefined): CentralRound =>
    centralRound(3, (n) => (n === 3 ? third : withNb(n, { members, address: named(n).address })(n)));
  const silent = told(round(withOutcome(3, silences[0] as never)(3)));
  assert.is(silent.head, 'Unknown/EvidenceUnreachable');
  assert.match(silent.message, '2 of 3 members and 1 silent, quorum 2');
  const down = told(round(withoutComponent(3, 'nb', 'refused')(3)));
  assert.is(down.head, 'False/DaemonDown');
  assert.match(down.message, '2 of 3 members, quorum 2');
});

test('4.4: a database that was opened anew between two answers of one process was not observed', () => {
  const cases: Partial<DatabaseFacts>[] = [{ row: uuidOf(61) }, { sid: uuidOf(62) }, { cid: uuidOf(63) }];
  const before = { row: uuidOf(60) };
  for (const changes of cases) {
    const moved = (n: number): CentralSample | undefined =>
      n === 2 ? { ...(withNb(2, before)(2) as CentralSample), second: secondOf({ ...before, ...changes }) } : undefined;
    assert.is(told(centralRound(3, moved)).head, 'Unknown/EvidenceMoved', JSON.stringify(changes));
  }
  const same = (n: number): CentralSample | undefined =>
    n === 2 ? { ...(withNb(2, before)(2) as CentralSample), second: secondOf(before) } : undefined;
  assert.is(told(centralRound(3, same)).head, 'True/MembersAgree');
});

test('E6: a follower that tells clients that it leads is a look at something that moves', () => {
  assert.is(told(centralRound(3, withNb(2, { leading: true }))).head, 'Unknown/LeaderMoving');
});

test('6.20: the leader has to have heard that a member has what was committed: not known once, broken twice', () => {
  const members = [1, 2, 3].map((n) => ({ ...four(n), matchIndex: n === 3 ? '0' : '12' }));
  const round = centralRound(3, withNb(1, counted(...members)));
  const first = judge(round);
  assert.is(`${first.condition.status}/${first.condition.reason}`, 'Unknown/MemberLagging');
  assert.match(first.condition.message, 'node n3 (pod ovn-central-3) has confirmed 0, the leader had committed 12');
  assert.is(judge(round, 'clustered', 1, first.memory).condition.status, 'False');
  const all = members.map((one) => ({ ...one, matchIndex: '12' }));
  assert.is(told(centralRound(3, withNb(1, counted(...all)))).head, 'True/MembersAgree');
});

test('6.18: a link that two members could have is nobody’s; what the leader heard lately came over some link', () => {
  const twin = `${uuidOf(2).slice(0, 4)}1111-0000-4000-8000-000000000000`;
  const links = (up: boolean): DatabaseFacts['connections'] => [
    { direction: 'out', sid: '0002', up },
    { direction: 'out', sid: '0002', up: true },
  ];
  const round = (heard: string | undefined): CentralRound => {
    const members = [four(1), four(2), { ...four(3), sid: '0002', ...(heard && { lastMessageMs: heard }) }];
    return centralRound(3, (n) => {
      if (n === 1) return withNb(1, { members, connections: links(false) })(1);
      return withNb(n, { members, ...(n === 3 ? { sid: twin, connections: [] } : {}) })(n);
    });
  };
  assert.is(told(round(undefined)).head, 'Unknown/EvidenceIncomplete');
  assert.is(told(round('400')).head, 'True/MembersAgree');
  assert.is(told(round('9000')).head, 'False/MemberUnlinked');
});

test('W37: different election timers, little room and half a link are told, and are no fault', () => {
  const { condition, findings } = judge(
    centralRound(3, (n) =>
      n === 3
        ? withNb(3, {
            electionTimerMs: 1_000,
            freeBytes: '100000000',
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
