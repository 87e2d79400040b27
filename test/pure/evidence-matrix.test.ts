import { readFile } from 'node:fs/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { findReason } from '../../constructs/api/reasons.ts';
import {
  type ConditionState,
  judgeFault,
  judgeRepair,
  type Move,
  parts,
  readyOf,
  type Seen,
  type Snapshot,
  storyOf,
} from '../cluster/faults/evidence-judge.ts';
import { type Fault, faults, faultTable, movesOn } from '../cluster/faults/evidence-matrix.ts';
import { probeCounts, stillFailing } from '../cluster/faults/evidence-probes.ts';

/** The judge of the fault matrix: exactly the right conditions, in time, and nothing else. */

const well: ConditionState = { status: 'True', reason: 'Fine', message: 'all is well' };
const down: ConditionState = {
  status: 'False',
  reason: 'DaemonDown',
  message: 'nb of node n3 (pod p) does not run: gone',
};
const open: ConditionState = { status: 'Unknown', reason: 'EvidenceMoved', message: 'it was started anew' };
const move: Move = {
  type: 'OVNDBReady',
  status: 'False',
  reason: 'DaemonDown',
  message: 'nb of node n3 (pod *) does not run: *',
};

type Changes = Readonly<Record<string, ConditionState>>;

/** A write at a second, with what follows of its conditions. */
function write(second: number, changes: Changes = {}, derived: Changes = {}): Snapshot {
  const conditions: Record<string, ConditionState> = {
    ...Object.fromEntries(parts.map((type) => [type, well])),
    ...changes,
  };
  const bad = Object.values(changes);
  const degraded = bad.some(({ status }) => status === 'False') ? 'True' : bad.length > 0 ? 'Unknown' : 'False';
  return {
    at: second * 1_000,
    conditions: {
      ...conditions,
      Degraded: { status: degraded, reason: degraded, message: '' },
      Ready: { status: readyOf(conditions), reason: readyOf(conditions), message: '' },
      ...derived,
    },
  };
}

const seenOf = (snapshots: readonly Snapshot[], roundsAt: readonly number[], now: number, from = write(0)): Seen => ({
  before: write(0),
  from,
  doneAt: 1_000,
  snapshots,
  rounds: roundsAt.map((second) => second * 1_000),
  now: now * 1_000,
});

const patience = { limitMs: 30_000, rounds: 3 };
const fault = (seen: Seen, moves: readonly Move[] = [move], follow: readonly string[] = []) =>
  judgeFault(seen, moves, follow, patience);
const whyOf = (judged: ReturnType<typeof judgeFault>): string => ('why' in judged ? judged.why : '');

test('a condition that moves as it has to, and stands for three rounds, is right; before that it is waited for', () => {
  const turned = write(8, { OVNDBReady: down });
  assert.equal(fault(seenOf([turned], [7, 12, 17, 22], 23)), { type: 'right', afterMs: 7_000 });
  const early = fault(seenOf([turned], [7, 12, 17], 18));
  assert.equal([early.type, whyOf(early)], ['waiting', '2 of 3 rounds have ended since']);
  const silent = fault(seenOf([], [7], 8));
  assert.is(silent.type, 'waiting');
  assert.match(whyOf(silent), 'OVNDBReady is True Fine: all is well, wanted False DaemonDown');
});

test('on the way it may be unknown, and nothing but that', () => {
  const way = [write(5, { OVNDBReady: open }), write(8, { OVNDBReady: down })];
  assert.is(fault(seenOf(way, [9, 10, 11], 12)).type, 'right');
  const alarm = write(5, { OVNDBReady: { ...down, reason: 'NoLeader' } });
  const judged = fault(seenOf([alarm, ...way.slice(1)], [9, 10, 11], 12));
  assert.is(judged.type, 'wrong');
  const other = { ...down, message: 'nb of node n2 (pod p) does not run: gone' };
  assert.is(fault(seenOf([write(8, { OVNDBReady: other })], [9], 40)).type, 'wrong', 'another node');
});

test('too late, not standing, and a condition that moves as well are wrong', () => {
  const late = fault(seenOf([write(32, { OVNDBReady: down })], [33, 34, 35], 36));
  assert.match(whyOf(late), 'later than 30.0 s');
  assert.is(late.type, 'wrong');
  const shaky = fault(seenOf([write(8, { OVNDBReady: down }), write(12, { OVNDBReady: open })], [9, 13, 14], 15));
  assert.match(whyOf(shaky), 'after 11.0 s: it did not stand');
  const both = [write(8, { OVNDBReady: down }), write(12, { OVNDBReady: down, NorthdReady: open })];
  assert.match(whyOf(fault(seenOf(both, [9, 13, 14], 15))), 'NorthdReady moved from True Fine');
  assert.is(fault(seenOf(both, [9, 13, 14], 15), [move], ['NorthdReady']).type, 'right', 'it may follow');
  assert.is(fault(seenOf([], [9], 31.5)).type, 'wrong', 'nothing came at all');
});

test('a condition that follows may go on once it has moved, and not before', () => {
  const further = { ...down, reason: 'NoLeader' };
  const turned = [write(8, { OVNDBReady: down }), write(12, { OVNDBReady: further })];
  assert.is(fault(seenOf(turned, [9, 13, 14], 15)).type, 'wrong');
  assert.equal(fault(seenOf(turned, [9, 13, 14], 15), [move], ['OVNDBReady']), { type: 'right', afterMs: 7_000 });
  const never = fault(seenOf(turned.slice(1), [13, 14, 15], 16), [move], ['OVNDBReady']);
  assert.match(whyOf(never), 'OVNDBReady went to False NoLeader');
});

test('Ready and Degraded come of the same write', () => {
  const proud = write(8, { OVNDBReady: down }, { Ready: well });
  assert.match(whyOf(fault(seenOf([proud], [9, 10, 11], 12))), 'Ready is True Fine: all is well where OVNDBReady');
  const whole = write(8, { OVNDBReady: down }, { Degraded: { status: 'False', reason: 'Redundant', message: '' } });
  assert.match(whyOf(fault(seenOf([whole], [9, 10, 11], 12))), 'Degraded is False Redundant: , wanted True');
});

test('a fault that moves nothing is right when nothing moved for three rounds; words may change', () => {
  const words = write(
    5,
    { OVNDBReady: { ...well, message: 'another one leads' } },
    { Degraded: write(0).conditions.Degraded ?? well },
  );
  assert.equal(fault(seenOf([words], [2, 6, 9], 10), []), { type: 'right', afterMs: 0 });
  assert.is(fault(seenOf([write(5, { NorthdReady: open })], [2, 6, 9], 10), []).type, 'wrong');
  const cordoned: Move = { type: 'Degraded', status: 'True', reason: 'NodeUnschedulable', message: 'node n3 of *' };
  const weak = write(4, {}, { Degraded: { status: 'True', reason: 'NodeUnschedulable', message: 'node n3 of it' } });
  assert.is(fault(seenOf([weak], [5, 6, 7], 8), [cordoned]).type, 'right');
});

test('back is back for all, and only what is mended may move on the way', () => {
  const broken = write(0, { OVNDBReady: down });
  const repair = (snapshots: readonly Snapshot[], rounds: readonly number[], now: number) =>
    judgeRepair(seenOf(snapshots, rounds, now, broken), ['OVNDBReady', 'WorkloadsReady'], {
      limitMs: 30_000,
      rounds: 1,
    });
  const way = [write(3, { OVNDBReady: open, WorkloadsReady: down }), write(5, { WorkloadsReady: down })];
  assert.is(repair([], [2, 3], 4).type, 'waiting', 'it is still broken');
  assert.match(whyOf(repair(way, [6], 7)), 'WorkloadsReady is still False DaemonDown');
  assert.equal(repair([...way, write(8)], [7, 9], 10), { type: 'right', afterMs: 7_000 });
  assert.is(repair([...way, write(8), write(9, { OVNDBReady: open })], [9.5], 10).type, 'waiting', 'it left again');
  assert.is(repair([write(3, { NetworkReady: open })], [4], 5).type, 'wrong');
  assert.is(repair(way, [6], 32).type, 'wrong', 'too late');
});

test('what went wrong is told with what was seen, in its order', () => {
  const seen = seenOf([write(5, { OVNDBReady: open }), write(8, { OVNDBReady: down })], [0.5, 6], 9);
  assert.equal(storyOf(seen), [
    '  4.0 s: OVNDBReady Unknown EvidenceMoved: it was started anew',
    '  4.0 s: Degraded Unknown Unknown: ',
    '  4.0 s: Ready Unknown Unknown: ',
    '  5.0 s: a round ended',
    `  7.0 s: OVNDBReady False DaemonDown: ${down.message}`,
    '  7.0 s: Degraded True True: ',
    '  7.0 s: Ready False False: ',
  ]);
});

test('a probe that failed is at rest once one has passed that began later', () => {
  const metrics = (passed: number, failed: number): string =>
    ['successful', 'failed']
      .map((result, n) => {
        const labels = `container="c",namespace="kube-system",pod="p",pod_uid="u",probe_type="Readiness",result="${result}"`;
        return `prober_probe_total{${labels}} ${n === 0 ? passed : failed}`;
      })
      .concat('prober_probe_duration_seconds_sum{container="c",pod="p"} 0.5')
      .join('\n');
  const of = (passed: number, failed: number) => probeCounts(metrics(passed, failed));
  assert.equal([...of(3, 1)], [['Readiness of p/c u', { passed: 3, failed: 1 }]]);
  const nobody = new Set<string>();
  const bad = new Set(['Readiness of p/c u']);
  assert.equal(stillFailing(nobody, undefined, of(3, 1)), nobody, 'of before the first look nothing is known');
  assert.equal(stillFailing(nobody, of(3, 1), of(3, 2)), bad);
  assert.equal(stillFailing(bad, of(3, 2), of(3, 2)), bad, 'no news');
  assert.equal(stillFailing(bad, of(3, 2), of(4, 3)), bad, 'which came last nobody knows');
  assert.equal(stillFailing(bad, of(4, 3), of(5, 3)), nobody);
  assert.equal(stillFailing(bad, of(4, 3), new Map()), nobody, 'a container that is gone');
  assert.equal(stillFailing(nobody, new Map(), of(0, 1)), bad, 'one that is new');
});

test('every fault names reasons of the table, moves what Ready rests on, and tells which node', () => {
  const all: readonly Fault[] = faults;
  assert.is(new Set(all.map(({ name }) => name)).size, all.length);
  for (const one of all) {
    for (const { type, reason } of one.moves) {
      assert.ok(type === 'Degraded' || (parts as readonly string[]).includes(type), `${one.name}: ${type}`);
      assert.ok(findReason(reason) !== undefined, `${one.name}: ${reason}`);
    }
    for (const { message, mentions = '' } of movesOn(one, 'n7'))
      assert.match(`${message} ${mentions}`, 'node n7', one.name);
  }
});

test('operations.md has the matrix as it is tested', async () => {
  const docs = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  assert.ok(docs.includes(faultTable(faults)), `docs/operations.md wants:\n${faultTable(faults)}`);
});

test.run();
