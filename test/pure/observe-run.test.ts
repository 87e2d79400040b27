import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { timings } from '../../constructs/api/constants.ts';
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import { pullAll } from '../../executor/observe/pull-all.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import { type AskedBefore, type RanRound, type RoundDeps, runRound } from '../../executor/observe/run-round.ts';
import { emptyMemory, judgeRound, type Wanted } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { centralNodes, clusterLook, networkNames } from './observe-look-support.ts';
import { answer, centralFacts, chassisFacts, databaseFacts } from './observe-support.ts';
import { VirtualClock } from './virtualClock.ts';

const wanted: Wanted = {
  spec: specOf(),
  installation: { namespace: 'kube-system', name: 'main', uid: 'uid-1' },
  chartReplicas: 3,
  pin: undefined,
};
const numberOf = ({ node }: { node: string }): number => Number(node.slice(1));

type Ask = (target: ProbeTarget, times: number) => Outcome<EvidenceKind> | undefined;

interface Bed {
  readonly deps: RoundDeps;
  readonly clock: VirtualClock;
  /** Ids of whom was asked, in order. */
  readonly asked: string[];
  most: number;
}

const podOf = (target: ProbeTarget) => ({
  namespace: target.namespace,
  name: target.pod,
  uid: target.podUID,
  node: target.node,
  addresses: [],
  containers: [],
});

/** Sidecars that answer after 50 ms, unless `ask` says otherwise. */
function bed(
  ask: Ask = () => undefined,
  looks: (() => ReturnType<typeof clusterLook>)[] = [],
  atOnce: number = timings.evidence.nodeConcurrency,
): Bed {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const times = new Map<string, number>();
  let running = 0;
  let look = 0;
  const made: Bed = {
    clock,
    asked,
    most: 0,
    deps: {
      clock,
      atOnce,
      containers: { central: 'probe', chassis: 'probe', network: 'probe' },
      look: () => (looks[Math.min(look++, looks.length - 1)] ?? clusterLook)(),
      peer: () => Promise.resolve({ type: 'noProvider' }),
      record: () => Promise.resolve(undefined),
      async ask(target, signal) {
        const id = `${target.kind} ${target.node}`;
        const nth = (times.get(id) ?? 0) + 1;
        times.set(id, nth);
        asked.push(id);
        if (target.kind === 'chassis') made.most = Math.max(made.most, ++running);
        const other = ask(target, nth);
        const takes = other?.type === 'Hung' ? other.limitMs : other?.type === 'Unreachable' ? 5 : 50;
        await clock.sleep(takes, signal);
        if (target.kind === 'chassis') running -= 1;
        const n = numberOf(target);
        const well: Outcome<EvidenceKind> =
          target.kind === 'central'
            ? answer('central', podOf(target), centralFacts(n, 3))
            : answer('chassis', podOf(target), chassisFacts(n));
        return (other ?? well) as never;
      },
    },
  };
  return made;
}

const input = (before: AskedBefore = new Map()) => ({
  wanted,
  centralNodes,
  networkNames,
  memory: emptyMemory,
  before,
});

/** Runs a round on virtual time. */
async function run(made: Bed, before?: AskedBefore): Promise<RanRound & { tookMs: number }> {
  const from = made.clock.monotonic();
  let done = false;
  const round = runRound(input(before), made.deps, new AbortController().signal).finally(() => {
    done = true;
  });
  while (!done && (await made.clock.next()));
  const ran = await round;
  return { ...ran, tookMs: made.clock.monotonic() - from };
}

const judged = (ran: RanRound) =>
  judgeRound(ran.round, wanted, emptyMemory).conditions.map(
    ({ type, status, reason }) => `${type} ${status}/${reason}`,
  );

test('E13: a round asks every member twice, every node once, at most four nodes at a time', async () => {
  const made = bed(undefined, [() => clusterLook(20)]);
  const ran = await run(made);
  assert.is(made.most, 4);
  assert.is(made.asked.filter((id) => id.startsWith('central')).length, 6);
  assert.is(new Set(made.asked.filter((id) => id.startsWith('chassis'))).size, 20);
  assert.is(made.asked.filter((id) => id.startsWith('chassis')).length, 20);
  assert.equal(judged(ran).slice(0, 3), [
    'OVNDBReady True/MembersAgree',
    'NorthdReady True/OneActive',
    'DataPlaneReady True/ChassisConnected',
  ]);
  assert.ok(ran.round.time.endedAt - ran.round.time.startedAt === ran.tookMs);
});

test('E13: the next round asks first who changed, then who was not well', async () => {
  const ill: Ask = (target) =>
    target.kind === 'chassis' && target.node === 'n17' ? { type: 'Unreachable', message: 'refused' } : undefined;
  const first = await run(bed(ill, [() => clusterLook(20)]));
  const changed = clusterLook(20);
  changed.pods = changed.pods.map((pod) =>
    pod.metadata.name === 'ovs-ovn-n12'
      ? {
          ...pod,
          status: { ...pod.status, containerStatuses: [{ name: 'main', containerID: 'other', restartCount: 1 }] },
        }
      : pod,
  );
  const next = bed(undefined, [() => changed]);
  await run(next, first.asked);
  assert.equal(next.asked.filter((id) => id.startsWith('chassis')).slice(0, 3), [
    'chassis n12',
    'chassis n17',
    'chassis n1',
  ]);
});

test('X8: leadership that moves during the round is looked at once more in the same round', async () => {
  const leadership = (target: ProbeTarget, nth: number): Outcome<EvidenceKind> | undefined => {
    if (target.kind !== 'central' || nth === 1) return undefined;
    const n = numberOf(target);
    const leads = n === 2;
    const nb = databaseFacts('nb', n, 3, {
      role: leads ? 'leader' : 'follower',
      leading: leads,
      leader: leads ? 'self' : '0002',
      term: '6',
    });
    return answer('central', podOf(target), centralFacts(n, 3, { nb }));
  };
  const made = bed(leadership);
  const ran = await run(made);
  assert.is(made.asked.filter((id) => id.startsWith('central')).length, 9);
  assert.is(judged(ran)[0], 'OVNDBReady True/MembersAgree');
});

test('E14: whoever was replaced or started anew during the round was not observed', async () => {
  const later = clusterLook();
  later.pods = later.pods.map((pod) => {
    if (pod.metadata.name === 'ovs-ovn-n2') return { ...pod, metadata: { ...pod.metadata, uid: 'another' } };
    if (pod.metadata.name !== 'ovn-central-n3') return pod;
    return {
      ...pod,
      status: { ...pod.status, containerStatuses: [{ name: 'main', containerID: 'another', restartCount: 1 }] },
    };
  });
  const ran = await run(bed(undefined, [() => clusterLook(), () => later]));
  const [databases, , dataPlane] = judgeRound(ran.round, wanted, emptyMemory).conditions;
  assert.is(`${databases?.status}/${databases?.reason}`, 'Unknown/EvidenceMoved');
  assert.match(databases?.message ?? '', 'node n3');
  assert.is(`${dataPlane?.status}/${dataPlane?.reason}`, 'Unknown/EvidenceMoved');
  assert.match(dataPlane?.message ?? '', 'node n2 changed while it was looked at: its pod was replaced');
});

test('E14: a DaemonSet whose specification changed during the round spoils it', async () => {
  const later = clusterLook();
  later.daemonSets = later.daemonSets.map((one) => ({ ...one, metadata: { ...one.metadata, generation: 2 } }));
  const ran = await run(bed(undefined, [() => clusterLook(), () => later]));
  assert.equal(ran.round.chassis?.changed, ['DaemonSet ovs-ovn']);
});

test('E13: a member that hangs is waited for once, and the others are told', async () => {
  const made = bed((target) =>
    target.kind === 'central' && target.node === 'n2' ? { type: 'Hung', limitMs: 10_000 } : undefined,
  );
  const ran = await run(made);
  assert.is(made.asked.filter((id) => id === 'central n2').length, 1);
  assert.is(judged(ran)[0], 'OVNDBReady Unknown/EvidenceHung');
  assert.ok(ran.tookMs < 30_000);
});

test('4.12: a thousand nodes at 50 ms, of which 5 % hang and 2 % refuse: a round takes less than a minute at 16 at a time', async () => {
  const hangs = (n: number): boolean => n % 20 === 0;
  const refuses = (n: number): boolean => n % 50 === 7;
  const ask: Ask = (target) => {
    if (target.kind !== 'chassis') return undefined;
    const n = numberOf(target);
    if (hangs(n)) return { type: 'Hung', limitMs: timings.evidence.nodeProbeMs };
    return refuses(n) ? { type: 'Unreachable', message: 'ECONNREFUSED' } : undefined;
  };
  const look = clusterLook(1_000);
  const made = bed(ask, [() => look], 16);
  const first = await run(made);
  assert.is(made.most, 16);
  assert.ok(first.tookMs < 60_000, `${first.tookMs} ms`);
  // Those that hung are asked first the next time, which is the worst order there is.
  const again = bed(ask, [() => look], 16);
  const second = await run(again, first.asked);
  assert.ok(second.tookMs < 60_000, `${second.tookMs} ms`);
  assert.is(second.asked.size, 1_000);
  const [, , dataPlane] = judgeRound(second.round, wanted, emptyMemory).conditions;
  assert.is(`${dataPlane?.status}/${dataPlane?.reason}`, 'Unknown/EvidenceUnreachable');
  assert.match(dataPlane?.message ?? '', 'and 16 more');
});

test('a round that is given up ends at once, after those under way', async () => {
  const made = bed(() => ({ type: 'Hung', limitMs: 10_000 }));
  const stop = new AbortController();
  const round = runRound(input(), made.deps, stop.signal);
  await Promise.resolve();
  stop.abort(new Error('enough'));
  const why = await round.then(
    () => 'over',
    (error: Error) => error.message,
  );
  assert.is(why, 'enough');
  const ended: string[] = [];
  const over = new AbortController();
  const failing = pullAll(
    ['a', 'b', 'c'].map((id) => ({ id, changed: false, healthy: true })),
    2,
    async (id) => {
      await Promise.resolve();
      ended.push(id);
      over.abort(new Error('no more'));
    },
    over.signal,
  ).catch((error: Error) => error.message);
  assert.is(await failing, 'no more');
  assert.equal(ended, ['a', 'b']);
});

test.run();
