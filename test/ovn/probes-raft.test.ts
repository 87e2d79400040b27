/** What real members of a cluster tell, from the first one to a lost quorum, and how the client fares with them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { JsonRpcConnection } from '../../probes/jsonrpc/connection.ts';
import { dial } from '../../probes/jsonrpc/dial.ts';
import { listDatabases, select, snapshot, transact } from '../../probes/ovsdb/methods.ts';
import { follow, type SessionEvent } from '../../probes/ovsdb/session.ts';
import { eventually, OvnBed, pidOf } from './bed.ts';
import { RaftBed, raftAddress } from './raft-bed.ts';

interface Context {
  bed: OvnBed;
  raft: RaftBed;
}

const limits = {
  maxBytes: 4_000_000,
  maxDepth: 64,
  maxTokenBytes: 1_000_000,
  maxPending: 8,
  maxOutgoing: 1_000_000,
};
const db = 'OVN_Northbound';
const limit = { limitMs: 3000 };

async function connected<T>(path: string, use: (rpc: JsonRpcConnection) => Promise<T>): Promise<T> {
  const dialled = await dial({ type: 'unix', path }, { clock: systemClock, limitMs: 2000 });
  if (dialled.type !== 'ok') throw new Error(dialled.message);
  const rpc = new JsonRpcConnection(dialled.value, { peer: 'ovsdb-server', clock: systemClock, limits });
  try {
    return await use(rpc);
  } finally {
    rpc.close();
  }
}

const addSwitch = (name: string) => ({ op: 'insert', table: 'Logical_Switch', row: { name } });
const member = (size: number) => (facts: DatabaseFacts) =>
  facts.status === 'member' &&
  facts.members.length === size &&
  facts.members.every(({ phase = 'stable' }) => phase === 'stable') &&
  facts.log?.uncommitted === '0';

const test = suite<Context>('raft');
test.before(async (context) => {
  context.bed = await OvnBed.start();
  context.raft = new RaftBed(context.bed);
});
test.after(async ({ bed }) => bed.close());

test('one member leads itself', async ({ raft }) => {
  await raft.create(1);
  const facts = await raft.until(1, 'a leader', ({ role }) => role === 'leader');
  assert.equal(
    [facts.name, facts.model, facts.status, facts.leader, facts.leading, facts.connected, facts.storage],
    [db, 'clustered', 'member', 'self', true, true, 'ok'],
  );
  assert.is(facts.address, raftAddress(1));
  assert.equal(
    facts.members.map(({ sid, self, phase }) => [sid, self, phase]),
    [[facts.sid?.slice(0, 4), true, 'stable']],
  );
  assert.ok(BigInt(facts.freeBytes) > 0n && BigInt(facts.index ?? 0) > 0n && facts.electionTimerMs === 1000);
});

test('a member that finds nobody is joining: listed, and not connected', async ({ raft }) => {
  await raft.join(9, 'tcp:127.0.0.8:6643', 'tcp:[127.0.0.7]:6643');
  const facts = await raft.until(9, 'joining', ({ status }) => status === 'joining');
  assert.equal([facts.connected, facts.leading, facts.leader, facts.index], [false, false, 'unknown', undefined]);
  assert.equal(facts.joiningFrom?.toSorted(), ['tcp:127.0.0.8:6643', 'tcp:[127.0.0.7]:6643']);
  assert.equal(facts.members, []);
  assert.ok(facts.connections.length > 0 && facts.connections.every(({ up, sid }) => !up && sid === '0000'));
  const names = await connected(raft.socket(9), (rpc) => listDatabases(rpc, limit));
  assert.equal(names.type === 'ok' && [...names.value].sort(), [db, '_Server']);
  const rows = await connected(raft.socket(9), (rpc) =>
    select(rpc, db, [{ table: 'NB_Global', columns: ['nb_cfg'] }], limit),
  );
  assert.match(JSON.stringify(rows), /database not available/);
  await raft.crash(9);
});

test('three, then five members: one leader, one cluster, ids of their own', async ({ raft }) => {
  for (const [size, joining] of [
    [3, [2, 3]],
    [5, [4, 5]],
  ] as const) {
    for (const n of joining) await raft.join(n, raftAddress(1));
    const numbers = Array.from({ length: size }, (_, index) => index + 1);
    const all = await Promise.all(numbers.map((n) => raft.until(n, `one of ${size}`, member(size))));
    assert.is(all.filter(({ role }) => role === 'leader').length, 1);
    assert.is(new Set(all.map(({ cid }) => cid)).size, 1);
    assert.is(new Set(all.map(({ sid }) => sid)).size, size);
    const leader = all.find(({ role }) => role === 'leader');
    assert.ok(leader?.members.every(({ phase, matchIndex }) => phase === 'stable' && matchIndex !== undefined));
    const followers = all.filter(({ role }) => role === 'follower');
    assert.ok(followers.every((facts) => facts.leader === leader?.sid?.slice(0, 4)));
    assert.ok(followers.every((facts) => facts.members.every(({ phase }) => phase === undefined)));
  }
});

test('rows are followed on a follower; after a fall only what was missed is told', async ({ raft }) => {
  const events: SessionEvent[] = [];
  const end = new AbortController();
  const path = raft.socket(2);
  const running = follow(
    {
      servers: [
        {
          name: 'member 2',
          dial: (signal) => dial({ type: 'unix', path }, { clock: systemClock, limitMs: 2000, signal }),
        },
      ],
      db,
      wanted: { Logical_Switch: ['name', 'other_config', 'ports'] },
      clock: systemClock,
      random: () => 0.5,
      policy: { initialMs: 50, factor: 2, maxMs: 1000, jitter: 0 },
      limits,
      callMs: 3000,
      onEvent: (event) => events.push(event),
    },
    end.signal,
  );
  const seen = (name: string) =>
    eventually(`the switch ${name}`, async (saw) => {
      saw(events.map(({ type }) => type).join());
      const last = events.findLast((event) => event.type !== 'lost');
      return [...(last?.rows.get('Logical_Switch')?.values() ?? [])].some((row) => row.get('name') === name)
        ? true
        : undefined;
    });
  const write = (name: string) => connected(raft.socket(1), (rpc) => transact(rpc, db, [addSwitch(name)], limit));
  await write('before');
  await seen('before');
  await raft.command(2, 'ovsdb-server/reconnect');
  await write('meanwhile');
  await seen('meanwhile');
  const synced = events.filter((event) => event.type === 'synced');
  assert.equal(
    synced.map((event) => [event.method, event.resumed]),
    [
      ['monitor_cond_since', false],
      ['monitor_cond_since', true],
    ],
  );
  const last = events.findLast((event) => event.type !== 'lost');
  assert.is(last?.rows.get('Logical_Switch')?.size, 2);
  end.abort();
  await running;
});

test('the leadership moves: another leader, a higher term, the same members', async ({ raft }) => {
  const before = await raft.until(1, 'the leader', ({ role }) => role === 'leader');
  await raft.command(1, 'cluster/failure-test', 'transfer-leadership');
  const after = await raft.until(
    1,
    'a follower of another',
    ({ role, leader }) => role === 'follower' && leader !== 'unknown',
  );
  assert.ok(BigInt(after.term ?? 0) > BigInt(before.term ?? 0));
  assert.is(after.members.length, 5);
  assert.is(after.cid, before.cid);
  assert.equal(after.daemon, before.daemon, 'the same process');
});

test('a member that leaves lets the database go and runs on', async ({ raft }) => {
  const all = await Promise.all([2, 3, 4, 5].map((n) => raft.until(n, 'a member', member(5))));
  const leaving = all.findIndex(({ role }) => role === 'follower') + 2;
  await raft.command(leaving, 'cluster/leave', db);
  const gone = await raft.until(leaving, 'left', ({ status }) => status === 'left');
  assert.equal([gone.connected, gone.leading, gone.members.length], [false, false, 0]);
  assert.match(gone.storage, /Failed to find the database/);
  const rest = [1, 2, 3, 4, 5].filter((n) => n !== leaving);
  await Promise.all(rest.map((n) => raft.until(n, 'one of four', member(4))));
  await raft.crash(leaving);
});

test('a hung server is a fault that names it; it goes on where it was', async ({ bed, raft }) => {
  const pid = String(await pidOf(`${raft.folder(1)}/ovnnb_db.pid`));
  const before = await raft.until(1, 'a member', member(4));
  await bed.command(['kill', '-STOP', pid], bed.dirs('raft'));
  const hung = await raft.facts(1, 300);
  assert.ok(hung.type === 'fault' && hung.code === 'timeout', JSON.stringify(hung));
  assert.match(hung.message, /^ovsdb-server \(OVN_Northbound\): no answer to \S+ within 300 ms$/);
  await bed.command(['kill', '-CONT', pid], bed.dirs('raft'));
  const after = await raft.until(1, 'a member again', ({ status, connected: up }) => status === 'member' && up);
  assert.equal(after.daemon, before.daemon);
});

test('a server that was started anew is another daemon; one that is dead refuses', async ({ raft }) => {
  const before = await raft.until(1, 'a member', ({ status }) => status === 'member');
  await raft.crash(1);
  const dead = await eventually('a refusal', async (saw) => {
    const result = await raft.facts(1);
    saw(JSON.stringify(result));
    return result.type === 'fault' && result.code === 'refused' ? result : undefined;
  });
  assert.match(dead.message, /^ovsdb-server \(OVN_Northbound\): unix:/);
  raft.restart(1);
  const after = await raft.until(
    1,
    'a member again',
    ({ status, leader }) => status === 'member' && leader !== 'unknown',
  );
  assert.is(after.sid, before.sid);
  assert.is.not(after.daemon.startTicks, before.daemon.startTicks);
  assert.ok(before.row !== undefined && after.row !== before.row, 'the row of a database that was opened anew');
});

test('without a quorum: what was read is answered, a write is not, and then no transaction; the facts still come', async ({
  raft,
}) => {
  const found = await Promise.all([1, 2, 3, 4, 5].map(async (n) => ({ n, result: await raft.facts(n) })));
  const alive = found.flatMap(({ n, result }) => (result.type === 'ok' ? [{ n, facts: result.value }] : []));
  const leader = alive.find(({ facts }) => facts.role === 'leader')?.n ?? 0;
  await Promise.all(alive.filter(({ n }) => n !== leader).map(({ n }) => raft.crash(n)));
  const ask = (limitMs: number) =>
    connected(raft.socket(leader), (rpc) =>
      select(rpc, db, [{ table: 'Logical_Switch', columns: ['name'] }], { limitMs }),
    );
  const before = await ask(3000);
  assert.ok(before.type === 'ok' && before.value[0]?.length === 2, JSON.stringify(before));
  const write = await connected(raft.socket(leader), (rpc) => transact(rpc, db, [addSwitch('lost')], { limitMs: 300 }));
  assert.ok(write.type === 'fault' && write.code === 'timeout', JSON.stringify(write));
  const after = await ask(300);
  assert.ok(
    after.type === 'fault' && after.code === 'timeout',
    'a select waits behind the entry that is not committed',
  );
  const rows = await connected(raft.socket(leader), (rpc) => snapshot(rpc, db, { Logical_Switch: ['name'] }, limit));
  assert.ok(rows.type === 'ok' && rows.value.get('Logical_Switch')?.size === 2, JSON.stringify(rows));
  const waiting = await raft.facts(leader);
  assert.ok(waiting.type === 'ok' && waiting.value.log?.uncommitted !== '0', JSON.stringify(waiting));
  const facts = await raft.until(
    leader,
    'disconnected',
    ({ status, connected: up }) => status === 'disconnected' && !up,
  );
  assert.equal([facts.role, facts.leader], ['candidate', 'unknown']);
  assert.ok(facts.connections.every(({ direction, up }) => direction === 'in' || !up));
});

test.run();
