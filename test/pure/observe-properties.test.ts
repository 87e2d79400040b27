import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { DomainCondition } from '../../constructs/api/conditions.ts';
import type { CentralFacts, DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import type { CentralSample, ChassisSample, Outcome } from '../../executor/observe/round.ts';
import { emptyMemory, judgeRound, type Memory, type Round } from '../../executor/observe/verdict.ts';
import { networkRound } from './observe-network-support.ts';
import {
  answer,
  centralFacts,
  centralRound,
  centralSample,
  chassisFacts,
  chassisListOf,
  chassisRound,
  chassisSample,
  databaseFacts,
  podFacts,
  silences,
  uuidOf,
} from './observe-support.ts';
import { healthy, statuses, time, wanted } from './observe-verdict-support.ts';

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
  { role: 'candidate', leader: 'unknown', members: databaseFacts('nb', 1, 5).members },
  { status: 'disconnected', role: 'candidate', connected: false },
  { leading: true },
  { row: uuidOf(70) },
  { members: databaseFacts('nb', 1, 3).members.map((one) => ({ ...one, matchIndex: '3', lastMessageMs: '9000' })) },
  { members: databaseFacts('nb', 1, 5).members.map((one) => ({ ...one, lastMessageMs: '100' })) },
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
/** Sidecars of one version: all of them tell the chassis of their replica, some of which is behind. */
const chassisLists: Pick<DatabaseFacts, 'chassis'>[] = [
  { chassis: chassisListOf(['system-1', 'system-2', 'system-3'], ['system-3']) },
  { chassis: chassisListOf(['system-1', 'system-2']) },
];
const listedWell = (n: number): DatabaseFacts => databaseFacts('sb', n, 3, chassisLists[0]);
const silence = fc.constantFrom(...silences);

const centralOutcome = (n: number): fc.Arbitrary<Outcome<'central'>> => {
  const pod = podFacts('ovn-central', n);
  const facts = fc
    .tuple(
      fc.constantFrom(...databaseChanges),
      fc.constantFrom(...databaseChanges.slice(0, 12)),
      fc.constantFrom(...centralChanges),
      fc.constantFrom(...chassisLists),
    )
    .map(([nb, sb, other, listed]) =>
      centralFacts(n, 3, {
        nb: databaseFacts('nb', n, 3, nb),
        sb: databaseFacts('sb', n, 3, { ...sb, ...listed, ...(sb.sid === undefined ? {} : { sid: uuidOf(102) }) }),
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
    { weight: 6, arbitrary: fc.constant(answer('central', pod, centralFacts(n, 3, { sb: listedWell(n) }))) },
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

test('property: an executor that starts anew, and remembers nothing, makes nothing False that was not', () => {
  fc.assert(
    fc.property(anyRound(0), anyMemory, (round, memory) => {
      const before = judgeRound(round, wanted, memory).conditions;
      const after = judgeRound(round, wanted, emptyMemory).conditions;
      before.forEach((condition, n) => {
        const now = after[n] as DomainCondition;
        const what = `${condition.type}: ${condition.message} -> ${now.message}`;
        if (goodness(condition) !== 'False') assert.is.not(goodness(now), 'False', what);
      });
    }),
    { numRuns: 1_000 },
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
      for (const { message } of verdict.conditions) assert.ok(message.length > 0 && message.length <= 1_024);
      assert.ok(JSON.stringify(verdict.memory).length < 8_192);
    }),
    { numRuns: 300 },
  );
});

test.run();
