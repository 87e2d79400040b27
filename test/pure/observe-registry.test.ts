/** What SB knows of chassis, against what the nodes say of themselves; and who is behind. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type DataPlaneMemory, judgeDataPlane } from '../../executor/observe/dataplane.ts';
import { emptyNorthdMemory, judgeNorthd } from '../../executor/observe/northd.ts';
import { behindText, registryOf } from '../../executor/observe/registry.ts';
import type { CentralRound, ChassisRound } from '../../executor/observe/round.ts';
import { emptyMemory, judgeRound } from '../../executor/observe/verdict.ts';
import { chassisList } from '../../probes/central/chassis.ts';
import {
  centralFacts,
  centralRound,
  centralSample,
  chassisFacts,
  chassisListOf,
  chassisRound,
  chassisSample,
  databaseFacts,
  silences,
  uuidOf,
  withOutcome,
  withoutComponent,
} from './observe-support.ts';
import { healthy, statuses, time, wanted, well } from './observe-verdict-support.ts';

const all = ['system-1', 'system-2', 'system-3'];
/** Replicas of SB that know these chassis; undefined: a sidecar that tells none. */
const knows = (...lists: readonly (readonly string[] | undefined)[]): CentralRound =>
  centralRound(3, (n) => {
    const names = lists[n - 1];
    return centralSample(n, 3, {
      sb: databaseFacts('sb', n, 3, names === undefined ? {} : { chassis: chassisListOf(names) }),
    });
  });

function judge(central: CentralRound, memory: DataPlaneMemory = {}, round: ChassisRound = chassisRound()) {
  const registry = registryOf(central);
  const judged = judgeDataPlane(round, { tick: 0, bridge: 'br-int', northd: undefined, registry }, memory);
  const { status, reason, message } = judged.condition;
  return { head: `${status}/${reason}`, message, memory: judged.memory };
}

test('21.12: a chassis that is connected and that SB does not know: not known once, broken once all members say so again', () => {
  const lacks = knows(['system-1', 'system-3'], ['system-1', 'system-3'], ['system-1', 'system-3']);
  const first = judge(lacks);
  assert.is(first.head, 'Unknown/ChassisUnlisted');
  assert.match(first.message, 'SB knows no chassis system-2 of node n2');
  assert.is(judge(lacks, first.memory).head, 'False/ChassisUnlisted');
  // A member that said nothing, or that tells no names, may know it.
  const silent = { ...lacks, samples: lacks.samples.slice(0, 2).concat(withOutcome(3, silences[0] as never)(3) ?? []) };
  const untold = knows(['system-1', 'system-3'], ['system-1', 'system-3'], undefined);
  for (const round of [silent, untold]) assert.is(judge(round, first.memory).head, 'Unknown/ChassisUnlisted');
  const back = judge(knows(all, all, all), judge(lacks, first.memory).memory);
  assert.equal([back.head, back.memory['node-2']?.unlisted], ['True/ChassisConnected', undefined]);
});

test('21.12: what one replica knows is known: the others may be behind', () => {
  assert.is(judge(knows(['system-1'], all, ['system-1', 'system-2'])).head, 'True/ChassisConnected');
});

test('a round in which nobody tells leaves what was lacking unknown, and nothing else', () => {
  const first = judge(knows(['system-1', 'system-3'], ['system-1', 'system-3'], ['system-1', 'system-3']));
  assert.is(judge(knows(undefined, undefined, undefined), first.memory).head, 'Unknown/ChassisUnlisted');
  assert.is(judge(knows(undefined, undefined, undefined)).head, 'True/ChassisConnected');
  const nobody = centralRound(3, (n) => withoutComponent(n, 'sb', 'timeout')(n));
  assert.is(judge(nobody).head, 'Unknown/EvidenceIncomplete');
  assert.is(
    judge(centralRound(3, (n) => (n < 3 ? withoutComponent(n, 'sb', 'refused')(n) : undefined))).head,
    'True/ChassisConnected',
  );
});

test('servers of SB that are not connected to their cluster tell of no chassis: what nodes are connected to may be another SB', () => {
  const apart = centralRound(3, (n) => centralSample(n, 3, { sb: databaseFacts('sb', n, 3, { connected: false }) }));
  assert.is(judge(apart).head, 'Unknown/EvidenceIncomplete');
  const one = centralRound(3, (n) => centralSample(n, 3, { sb: databaseFacts('sb', n, 3, { connected: n === 2 }) }));
  assert.is(judge(one).head, 'True/ChassisConnected');
});

test('a chassis that is not connected is told as that, and so is one of a node that says nothing', () => {
  const { controller } = chassisFacts(2);
  const down = chassisRound(3, (n) =>
    n === 2 ? chassisSample(2, { ...(controller && { controller: { ...controller, connected: false } }) }) : undefined,
  );
  const lacks = knows(['system-1', 'system-3'], ['system-1', 'system-3'], ['system-1', 'system-3']);
  assert.is(judge(lacks, {}, down).head, 'False/ChassisDisconnected');
  const silent = chassisRound(3, (n) => (n === 2 ? chassisSample(2, {}, silences[0] as never) : undefined));
  assert.is(judge(lacks, {}, silent).head, 'Unknown/EvidenceUnreachable');
});

test('E3: in a whole round it moves DataPlaneReady and what is lost, and no other condition', () => {
  const lists = (names: readonly string[]) =>
    centralRound(3, (n) => centralSample(n, 3, { sb: databaseFacts('sb', n, 3, { chassis: chassisListOf(names) }) }));
  assert.equal(statuses(judgeRound(healthy({ central: lists(all) }), wanted, emptyMemory)), well);
  const first = judgeRound(healthy({ central: lists(['system-1']) }), wanted, emptyMemory);
  const second = judgeRound(healthy({ central: lists(['system-1']), time: time(1) }), wanted, first.memory);
  assert.equal(statuses(second), { ...well, DataPlaneReady: 'False', Degraded: 'True' });
});

test('9.6: who is behind is told by node, by the replica that is ahead, and so is a chassis that no node has', () => {
  const behind = (...lists: readonly (readonly string[])[]) =>
    centralRound(3, (n) =>
      centralSample(n, 3, {
        sb: databaseFacts('sb', n, 3, { chassis: chassisListOf(all, lists[n - 1] ?? []) }),
        progress: { nbCfg: '9', sbCfg: '9', hvCfg: '3' },
      }),
    );
  const round = behind(['system-1', 'system-2', 'gone-77'], ['system-2', 'gone-77'], ['system-2', 'gone-77']);
  const text = behindText(round, chassisRound());
  assert.is(text, 'node n2, chassis gone-77 of no node that answers');
  assert.is(behindText(centralRound(), chassisRound()), undefined);
  const { memory } = judgeNorthd(round, 0, emptyNorthdMemory, text);
  const [told] = judgeNorthd(round, 60_000, memory, text).chassis;
  assert.match(
    told?.message ?? '',
    /carried out 3, northd has handed out 9 for 1m0s; behind: node n2, chassis gone-77/,
  );
  const many = behind(all.concat('system-4'), all.concat('system-4'), all.concat('system-4'));
  assert.match(behindText(many, chassisRound()) ?? '', /node n1, node n2, node n3 and 1 more/);
});

type Rows = readonly Readonly<Record<string, string | number | bigint>>[];
const snapshotOf = (tables: Readonly<Record<string, Rows>>) =>
  new Map(
    Object.entries(tables).map(([table, rows]) => [table, new Map(rows.map((row, n) => [uuidOf(n), row] as const))]),
  );

test('19.4: the facts: names in order, those behind by how far; more than can be told are counted only', () => {
  const read = chassisList(
    snapshotOf({
      SB_Global: [{ nb_cfg: 7 }],
      Chassis: [{ name: 'b' }, { name: 'a' }, { name: 'c' }],
      Chassis_Private: [
        { name: 'a', nb_cfg: 7 },
        { name: 'b', nb_cfg: 6 },
        { name: 'c', nb_cfg: 0 },
      ],
    }),
  );
  assert.equal(read, { count: 3, names: ['a', 'b', 'c'], behind: ['c', 'b'] });
  assert.equal(chassisList(new Map()), { count: 0, names: [], behind: [] });
  const many = (count: number, name: (n: number) => string) =>
    chassisList(snapshotOf({ Chassis: Array.from({ length: count }, (_, n) => ({ name: name(n) })) }));
  const uuids = many(4_000, (n) => uuidOf(n));
  assert.is(uuids.names?.length, 4_000);
  assert.ok(JSON.stringify({ ...centralFacts(1, 9), ...uuids }).length < 256 * 1024);
  for (const one of [many(5_000, (n) => uuidOf(n)), many(2_000, (n) => `${n}${'x'.repeat(200)}`)])
    assert.equal([one.names, one.count >= 2_000], [undefined, true]);
});

test.run();
