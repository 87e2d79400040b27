/** What follows of what real members tell: a cluster that is well, moves, hangs, loses members and its quorum, and comes back. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CentralFacts } from '../../constructs/api/evidence/central.ts';
import { emptyDatabasesMemory, type JudgedDatabases, judgeDatabases } from '../../executor/observe/ovndb.ts';
import type { CentralRound, CentralSample, Outcome } from '../../executor/observe/round.ts';
import { answer, centralFacts, nodeFacts, podFacts } from '../pure/observe-support.ts';
import { eventually, OvnBed, pidOf } from './bed.ts';
import { RaftBed, raftAddress } from './raft-bed.ts';

interface Context {
  bed: OvnBed;
  raft: RaftBed;
}

const hungAfterMs = 400;

/** The answer of one member's sidecar; what is told of NB is told of SB too, since one cluster is what there is. */
async function outcomeOf(raft: RaftBed, n: number): Promise<Outcome<'central'>> {
  const nb = await raft.facts(n, hungAfterMs);
  const { northd, progress } = centralFacts(n, 3);
  const rest: CentralFacts = { ...(northd && { northd }), ...(progress && { progress }) };
  const pod = podFacts('ovn-central', n);
  if (nb.type === 'fault') return answer('central', pod, rest, nb.code as 'refused');
  return answer('central', pod, { nb: nb.value, sb: { ...nb.value, name: 'OVN_Southbound' }, ...rest });
}

/** A round over members, everybody once before anybody twice; `between` happens in the middle. */
async function round(
  raft: RaftBed,
  members: readonly number[],
  between?: () => Promise<unknown>,
): Promise<CentralRound> {
  const pass = () => Promise.all(members.map((n) => outcomeOf(raft, n)));
  const first = await pass();
  await between?.();
  const second = await pass();
  const samples = members.flatMap((n, at): CentralSample[] => {
    const [one, two] = [first[at], second[at]];
    const target = {
      node: { name: `n${n}`, uid: `node-${n}`, addresses: [`127.0.0.${n}`] },
      live: nodeFacts(n),
      pod: podFacts('ovn-central', n),
      storage: undefined,
    };
    return one === undefined || two === undefined ? [] : [{ target, first: one, second: two }];
  });
  return { workload: undefined, samples, strays: [] };
}

const judge = (seen: CentralRound): JudgedDatabases =>
  judgeDatabases(seen, { model: 'clustered', tick: 0 }, emptyDatabasesMemory);
const head = ({ condition }: JudgedDatabases): string => `${condition.status}/${condition.reason}`;

/** Looks until it is as described: elections and joining take their time. */
const until = (raft: RaftBed, members: readonly number[], wanted: string): Promise<JudgedDatabases> =>
  eventually(wanted, async (saw) => {
    const judged = judge(await round(raft, members));
    saw(`${head(judged)}: ${judged.condition.message}`);
    return head(judged) === wanted ? judged : undefined;
  });
const three = [1, 2, 3];

const test = suite<Context>('what follows of real members');
test.before(async (context) => {
  context.bed = await OvnBed.start();
  context.raft = new RaftBed(context.bed);
  const { raft } = context;
  await raft.create(1);
  for (const n of [2, 3]) await raft.join(n, raftAddress(1));
});
test.after(({ bed }) => bed.close());

test('E6: three members that agree', async ({ raft }) => {
  const { condition, databases } = await until(raft, three, 'True/MembersAgree');
  assert.match(condition.message, /OVN_Northbound: leader node n[123], term [0-9]+, 3 of 3 members, quorum 2/);
  assert.is(databases[0]?.members.length, 3);
});

test('W3: a member that finds nobody is joining, which is not known to be broken', async ({ raft }) => {
  await raft.join(9, 'tcp:127.0.0.8:6643');
  const { condition } = await until(raft, [...three, 9], 'Unknown/MemberJoining');
  assert.match(condition.message, 'OVN_Northbound of node n9');
  await raft.crash(9);
});

test('W6: a member that is none of the pods is a ghost, whichever of them leads', async ({ raft }) => {
  const { condition, findings } = await until(raft, [1, 2], 'False/GhostMember');
  assert.match(condition.message, 'tcp:127.0.0.3:6643');
  assert.match(condition.message, /[23] of 3 members, quorum 2/);
  assert.not(findings.some(({ reason }) => reason === 'QuorumLost'));
});

test('X8: leadership that moves in the middle of a round is stale, and soon over', async ({ raft }) => {
  const { databases } = await until(raft, three, 'True/MembersAgree');
  const leader = three.find((n) =>
    databases[0]?.members.some(({ node, serverID }) => node === `n${n}` && serverID === databases[0]?.leader),
  );
  const moved = judge(
    await round(raft, three, () => raft.command(leader ?? 1, 'cluster/failure-test', 'transfer-leadership')),
  );
  // Members are asked one after the other: for a moment none may seem to lead, or the old and the new leader both.
  const passing = ['MembersAgree', 'LeaderMoving', 'MemberElecting', 'NoLeader', 'LeaderTwice'];
  assert.ok(passing.includes(moved.condition.reason), moved.condition.message);
  await until(raft, three, 'True/MembersAgree');
});

test('E13: a member that hangs is Unknown, and well again when it goes on', async ({ bed, raft }) => {
  const pid = String(await pidOf(`${raft.folder(3)}/ovnnb_db.pid`));
  await bed.command(['kill', '-STOP', pid], bed.dirs('raft'));
  const { condition } = await until(raft, three, 'Unknown/EvidenceHung');
  assert.match(condition.message, 'node n3');
  await bed.command(['kill', '-CONT', pid], bed.dirs('raft'));
  await until(raft, three, 'True/MembersAgree');
});

test('X7: one server killed is broken with quorum told; two are a lost quorum; all are well after they come back', async ({
  raft,
}) => {
  await raft.crash(3);
  const one = await until(raft, three, 'False/DaemonDown');
  assert.match(one.condition.message, /node n3 .*2 of 3 members, quorum 2/);
  await raft.crash(2);
  const two = await eventually('the quorum to be lost', async (saw) => {
    const judged = judge(await round(raft, three));
    saw(judged.condition.message);
    return judged.findings.some(({ reason }) => reason === 'QuorumLost') ? judged : undefined;
  });
  assert.is(two.condition.status, 'False');
  assert.match(two.condition.message, 'quorum 2');
  // Whoever has only one pod, and knows of no other, counts what the member counts.
  const alone = await round(raft, [1]);
  assert.match(judge(alone).condition.message, /[01] of 3 members, quorum 2/);
  for (const n of [2, 3]) raft.restart(n);
  await until(raft, three, 'True/MembersAgree');
});

test('W10, 6.20: a member whose disk takes nothing more says that it has applied everything; the leader knows better', async ({
  bed,
  raft,
}) => {
  const in3 = (text: string) => bed.command(['bash', '-c', text], bed.dirs('raft'));
  await raft.crash(3);
  const small = `${raft.folder(3)}/small`;
  const file = `${raft.folder(3)}/db`;
  const moved = await in3(
    `mkdir ${small} && mount -t tmpfs -o size=128k small ${small} && mv ${file} ${small}/db && ln -s ${small}/db ${file}`,
  );
  assert.ok(moved.ok, moved.out);
  raft.restart(3);
  await until(raft, three, 'True/MembersAgree');
  for (let n = 0; n < 20; n += 1) {
    const row = { name: `s${n}`, external_ids: ['map', [['text', 'x'.repeat(8_000)]]] };
    const operation = ['OVN_Northbound', { op: 'insert', table: 'Logical_Switch', row }];
    const client = ['ovsdb-client', '--timeout=5', 'transact', `unix:${raft.socket(1)}`, JSON.stringify(operation)];
    const written = await bed.command(client, bed.dirs('raft'));
    assert.ok(written.ok, written.out);
  }
  const { findings, full } = await eventually('the member to be behind', async (saw) => {
    const judged = judge(await round(raft, three));
    saw(judged.condition.message);
    const behind = judged.findings.find(({ reason }) => reason === 'MemberLagging');
    return behind === undefined ? undefined : { ...judged, full: behind };
  });
  assert.match(full.message, /node n3 .* has confirmed [0-9]+, the leader had committed [0-9]+ before/);
  assert.not(findings.some(({ reason }) => reason === 'QuorumLost'));
  const facts = await raft.facts(3);
  assert.ok(facts.type === 'ok' && facts.value.status === 'member' && facts.value.storage === 'ok');
});

test.run();
