import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { CentralFacts, NorthdFacts } from '../../constructs/api/evidence/central.ts';
import { emptyNorthdMemory, judgeNorthd, type NorthdMemory } from '../../executor/observe/northd.ts';
import { northdVersion } from '../../executor/observe/progress.ts';
import type { CentralRound, CentralSample } from '../../executor/observe/round.ts';
import {
  answer,
  centralFacts,
  centralRound,
  centralSample,
  podFacts,
  silences,
  withOutcome,
  withoutComponent,
} from './observe-support.ts';

const daemon = { socketInode: '7', startTicks: '100' };
const northd = (changes: Partial<NorthdFacts>): NorthdFacts => ({
  state: 'standby',
  nb: true,
  sb: true,
  daemon,
  ...changes,
});
const withNorthd =
  (states: Readonly<Record<number, Partial<NorthdFacts>>>) =>
  (n: number): CentralSample =>
    centralSample(n, 3, { northd: northd(states[n] ?? {}) });
/** A round in which these are active. */
const active = (...members: number[]): CentralRound =>
  centralRound(3, withNorthd(Object.fromEntries(members.map((n) => [n, { state: 'active' as const }]))));

/** Judges rounds one after the other, ten seconds apart; answers `status/reason` of each. */
function run(
  rounds: readonly CentralRound[],
  everyMs = 10_000,
): { heads: string[]; last: string; memory: NorthdMemory } {
  let memory = emptyNorthdMemory;
  let last = '';
  const heads = rounds.map((round, n) => {
    const judged = judgeNorthd(round, n * everyMs, memory);
    memory = judged.memory;
    last = judged.condition.message;
    return `${judged.condition.status}/${judged.condition.reason}`;
  });
  return { heads, last, memory };
}

test('E11: one active, the others stand by, all connected', () => {
  const { heads, last } = run([active(1)]);
  assert.equal(heads, ['True/OneActive']);
  assert.is(last, 'node n1 (pod ovn-central-1) is active, 2 stand by');
});

test('E11: paused, or connected to one database only, is told with pod and database', () => {
  const paused = run([centralRound(3, withNorthd({ 1: { state: 'active' }, 2: { state: 'paused' } }))]);
  assert.equal(paused.heads, ['False/NorthdPaused']);
  assert.match(paused.last, 'northd of node n2 (pod ovn-central-2) is paused, wanted active or standby');
  const cut = centralRound(3, withNorthd({ 1: { state: 'active' }, 3: { sb: false } }));
  const half = run([cut, cut]);
  assert.equal(half.heads, ['Unknown/NorthdDisconnected', 'False/NorthdDisconnected'], 'once it may be on its way');
  assert.match(half.last, 'northd of node n3 (pod ovn-central-3) is not connected to SB');
});

test('X8: every northd that is on its way to a new leader in a round is no fault, and others in the next are none either', () => {
  const cut = (...pods: number[]) =>
    centralRound(3, withNorthd({ 1: { state: 'active' }, ...Object.fromEntries(pods.map((n) => [n, { nb: false }])) }));
  const { heads } = run([cut(2, 3), active(1), cut(2), cut(3), active(1)]);
  assert.equal(new Set(heads), new Set(['Unknown/NorthdDisconnected', 'True/OneActive']));
});

test('X7: an ovsdb-server that is down, and a pod that is gone, leave NorthdReady as it is while one is active', () => {
  assert.equal(run([centralRound(3, withoutComponent(3, 'nb', 'refused'))]).heads, ['True/OneActive']);
  const gone = { type: 'Broken', message: 'no pod of it runs there' } as const;
  assert.equal(run([centralRound(3, withOutcome(3, gone))]).heads, ['True/OneActive']);
});

test('X7: a member none of whose daemons runs is away as a whole: it takes a stand-by, unless it was the active one', () => {
  const { progress } = centralFacts(3, 3);
  const dead = answer('central', podFacts('ovn-central', 3), { ...(progress && { progress }) });
  assert.equal(run([centralRound(3, withOutcome(3, dead))]).heads, ['True/OneActive']);
  const first = answer('central', podFacts('ovn-central', 1), {});
  const heads = Array.from({ length: 2 }, () => centralRound(3, withOutcome(1, first)));
  assert.equal(run(heads).heads, ['Unknown/NorthdHandover', 'False/NorthdInactive']);
});

test('X23: the active northd on a node whose Node is gone may run on: that none is active is not known then', () => {
  const gone = { type: 'Broken', message: 'the node is gone' } as const;
  const dark = run(Array.from({ length: 3 }, () => centralRound(3, withOutcome(1, gone))));
  assert.equal(dark.heads, ['Unknown/MemberMissing', 'Unknown/MemberMissing', 'Unknown/MemberMissing']);
  const removed = (n: number): CentralSample | undefined => {
    const sample = withOutcome(1, gone)(n);
    return sample && { ...sample, target: { ...sample.target, pod: undefined } };
  };
  assert.equal(run([centralRound(3, removed), centralRound(3, removed)]).heads, [
    'Unknown/NorthdHandover',
    'False/NorthdInactive',
  ]);
});

test('E11: a northd that does not run is broken, one that hangs is not known', () => {
  const down = run([centralRound(3, withoutComponent(3, 'northd', 'refused'))]);
  assert.equal(down.heads, ['False/DaemonDown']);
  assert.match(down.last, 'northd of node n3 (pod ovn-central-3) does not run');
  assert.equal(run([centralRound(3, withoutComponent(3, 'northd', 'timeout'))]).heads, ['Unknown/EvidenceHung']);
});

test('W32: a hand-over that a round catches is Unknown once and broken twice', () => {
  assert.equal(run([active(1), active(), active(2)]).heads, [
    'True/OneActive',
    'Unknown/NorthdHandover',
    'True/OneActive',
  ]);
  assert.equal(run([active(1), active(), active()]).heads.at(-1), 'False/NorthdInactive');
  const two = run([active(1), active(1, 2), active(1, 2)]);
  assert.equal(two.heads, ['True/OneActive', 'Unknown/NorthdHandover', 'False/NorthdTwice']);
  assert.match(two.last, 'node n1 (pod ovn-central-1) and node n2 (pod ovn-central-2) are active for 2 rounds');
});

test('a rollout of OVN central moves the active northd from pod to pod, and is no flap', () => {
  /** Members with the pod of this generation, of which one is active. */
  const rolled = (generations: readonly number[], activeMember: number): CentralRound => {
    const round = active(activeMember);
    return {
      ...round,
      samples: round.samples.map((sample, n) => {
        const { pod } = sample.target;
        if (pod === undefined) return sample;
        return { ...sample, target: { ...sample.target, pod: { ...pod, uid: `${pod.uid}-${generations[n]}` } } };
      }),
    };
  };
  const steps = [1, 2, 3].flatMap((generation) => [
    rolled([generation, generation - 1, generation - 1], 2),
    rolled([generation, generation, generation - 1], 3),
    rolled([generation, generation, generation], 1),
  ]);
  const { heads, memory } = run([rolled([0, 0, 0], 1), ...steps]);
  assert.equal(new Set(heads), new Set(['True/OneActive']));
  assert.equal(memory.changes, []);
});

test('W32: an active northd that keeps moving is a flap, counted, and over only when it has been calm', () => {
  const flapping = run([active(1), active(2), active(1), active(2)]);
  assert.equal(flapping.heads, ['True/OneActive', 'True/OneActive', 'True/OneActive', 'False/NorthdFlapping']);
  assert.match(flapping.last, 'the active northd changed 3 times within 20s, wanted at most 1');
  const once = run([active(1), active(2)]);
  assert.match(once.last, 'the active northd changed 1 times within 10m0s; node n2');
  // Changes at 0:10, 0:20 and 0:30: two of them are still within the window at 10:15, one at 10:25.
  const after = (tick: number, memory: NorthdMemory) => judgeNorthd(active(2), tick, memory);
  const still = after(615_000, flapping.memory);
  assert.is(still.condition.reason, 'NorthdFlapping');
  assert.is(after(625_000, still.memory).condition.status, 'True');
  // A process that starts anew has seen none of it, and counts from there.
  const anew = after(40_000, emptyNorthdMemory);
  assert.is(`${anew.condition.status}/${anew.condition.reason}`, 'True/OneActive');
  assert.not.match(anew.condition.message, 'changed');
  assert.equal(anew.memory.changes, []);
});

test('E9: who says nothing leaves it Unknown, and neither ends nor begins a row of odd rounds', () => {
  for (const outcome of silences) {
    const { heads } = run([active(1), centralRound(3, withOutcome(1, outcome as never)), active(1)]);
    assert.is(heads[1]?.split('/')[0], 'Unknown', outcome.type);
    assert.is(heads[2], 'True/OneActive');
  }
  const hidden = centralRound(3, (n) => (n === 1 ? withOutcome(1, silences[0] as never)(1) : withNorthd({})(n)));
  assert.is(run([active(1), hidden, hidden, hidden]).heads.at(-1), 'Unknown/EvidenceUnreachable');
});

const progressing = (nbCfg: string, sbCfg: string, hvCfg: string, known: number[] = [1, 2, 3]): CentralRound =>
  centralRound(3, (n) => {
    const facts: CentralFacts = centralFacts(n, 3, { progress: { nbCfg, sbCfg, hvCfg } });
    if (!known.includes(n)) return withoutComponent(n, 'progress', 'timeout')(n);
    return centralSample(n, 3, facts);
  });

test('W24: changes that do not get through for a minute are told with what was seen and what was wanted', () => {
  const stuck = run([progressing('5', '3', '3'), progressing('5', '3', '3'), progressing('6', '3', '3')], 40_000);
  assert.equal(stuck.heads, ['True/OneActive', 'True/OneActive', 'False/NorthdStuck']);
  assert.match(stuck.last, 'sb_cfg is 3 for 1m20s, wanted 6');
  // It moves: a long way to go is no standstill.
  assert.equal(
    run([progressing('5', '3', '3'), progressing('9', '4', '3'), progressing('9', '5', '3')], 40_000).heads.at(-1),
    'True/OneActive',
  );
  // Whoever said nothing may know more.
  assert.equal(
    run(
      [progressing('5', '3', '3'), progressing('5', '3', '3', [1]), progressing('5', '3', '3', [1])],
      40_000,
    ).heads.at(-1),
    'Unknown/NorthdStuck',
  );
  assert.equal(run([progressing('5', '3', '3', [])]).heads, ['Unknown/EvidenceIncomplete']);
});

test('W24: a member that came during a round, and then said nothing, may know more than the others', () => {
  const came = (second: CentralSample['second']): CentralRound =>
    centralRound(3, (n) => {
      const facts = centralFacts(n, 3, { progress: { nbCfg: n === 2 ? '9' : '3', sbCfg: '3', hvCfg: '3' } });
      const sample = centralSample(n, 3, facts);
      if (n !== 2) return sample;
      return { ...sample, first: { type: 'Broken', message: 'no pod of it runs there' }, second };
    });
  const heard = came(
    answer(
      'central',
      podFacts('ovn-central', 2),
      centralFacts(2, 3, { progress: { nbCfg: '9', sbCfg: '3', hvCfg: '3' } }),
    ),
  );
  assert.is(run([heard, heard], 70_000).heads.at(-1), 'False/NorthdStuck');
  for (const silence of silences)
    assert.match(
      String(run([heard, heard, came(silence as CentralSample['second'])], 70_000).heads.at(-1)),
      /^Unknown/,
    );
});

test('W24: chassis that are behind northd for a minute take reserve away, and no more', () => {
  let memory = emptyNorthdMemory;
  const judged = [0, 70_000].map((tick) => {
    const one = judgeNorthd(progressing('5', '5', '2'), tick, memory);
    memory = one.memory;
    return one;
  });
  assert.is(judged[1]?.condition.status, 'True');
  assert.equal(
    judged.map(({ chassis }) => chassis.map(({ reason }) => reason)),
    [[], ['ChassisBehind']],
  );
  assert.match(judged[1]?.chassis[0]?.message ?? '', 'chassis have carried out 2, northd has handed out 5 for 1m10s');
});

test('9.4: the version of northd is what members agree on', () => {
  assert.is(northdVersion(centralRound()), '25.03.1-20.41.0-78.8');
  const other = centralSample(2, 3, {
    progress: { nbCfg: '3', sbCfg: '3', hvCfg: '3', northdInternalVersion: '24.03' },
  });
  assert.is(northdVersion(centralRound(3, (n) => (n === 2 ? other : undefined))), undefined);
});

test.run();
