import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { timings } from '../../constructs/api/constants.ts';
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import { pullAll } from '../../executor/observe/pull-all.ts';
import type { AskedBefore } from '../../executor/observe/pull-pods.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import { type RanRound, type RoundDeps, runRound } from '../../executor/observe/run-round.ts';
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

test('X8: a northd on its way to the new leader is looked at once more, and is cut off only when it stays so', async () => {
  const onItsWay =
    (until: number) =>
    (target: ProbeTarget, nth: number): Outcome<EvidenceKind> | undefined => {
      if (target.kind !== 'central' || nth === 1 || nth >= until) return undefined;
      const n = numberOf(target);
      const { northd } = centralFacts(n, 3);
      return answer(
        'central',
        podOf(target),
        centralFacts(n, 3, { ...(northd && { northd: { ...northd, nb: false } }) }),
      );
    };
  const passed = judged(await run(bed(onItsWay(3))));
  assert.is(passed[1], 'NorthdReady True/OneActive');
  const stays = judged(await run(bed(onItsWay(99))));
  assert.is(stays[1], 'NorthdReady Unknown/NorthdDisconnected', 'and the next round makes it False');
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

const unreachable: Outcome<EvidenceKind> = { type: 'Unreachable', message: 'no connection' };

/** Sidecars of `nodes` nodes that nobody reaches straight; kubelets take 4 s, and reach those that `lead` names. */
function apart(nodes: number, lead: (n: number) => boolean, look = clusterLook(nodes)) {
  const retried: string[] = [];
  const straight: Ask = (target) => (target.kind === 'chassis' ? unreachable : undefined);
  const made = bed(straight, [() => look], 16);
  const { clock } = made;
  const deps: RoundDeps = {
    ...made.deps,
    async retry(target, signal) {
      retried.push(target.node);
      await clock.sleep(4_000, signal);
      const n = numberOf(target);
      const well: Outcome<EvidenceKind> = answer('chassis', podOf(target), chassisFacts(n));
      return (lead(n) ? well : { type: 'Unreachable', message: 'port-forward: no route' }) as never;
    },
  };
  return { made: { ...made, deps }, retried };
}

test('E10: whoever nobody reaches is asked once more through the kubelet, after all others, and counts as any other', async () => {
  const { made, retried } = apart(20, () => true);
  const ran = await run(made);
  assert.is(retried.length, 20);
  assert.is(new Set(retried).size, 20);
  assert.is(judged(ran)[2], 'DataPlaneReady True/ChassisConnected');
});

test('E10: however many are out of reach, their kubelets cost a round a limited time, and each has its turn', async () => {
  const look = clusterLook(300);
  const first = apart(300, () => false, look);
  const ran = await run(first.made);
  assert.is(first.retried.length, 48, 'three times sixteen: after 10 s none is begun');
  assert.ok(ran.tookMs < 15_000, `${ran.tookMs} ms`);
  const messages = ran.round.chassis?.samples.map(({ outcome }) => (outcome as { message: string }).message) ?? [];
  assert.is(messages.filter((one) => one === 'no connection; port-forward: no route').length, 48);
  assert.is(messages.filter((one) => /^no connection; its kubelet waits for its turn/.test(one)).length, 252);
  // The same nodes, and memories of the round before: others have their turn.
  const turns = new Set(first.retried);
  let { asked } = ran;
  for (let round = 2; round <= 7; round += 1) {
    const next = apart(300, () => false, look);
    await next.made.clock.advance(round * 60_000);
    ({ asked } = await run(next.made, asked));
    for (const node of next.retried) turns.add(node);
  }
  assert.is(turns.size, 300);
});

test('E10: a member of OVN central that nobody reaches is asked through its kubelet at once', async () => {
  const made = bed((target) => (target.kind === 'central' && target.node === 'n2' ? unreachable : undefined));
  const retried: string[] = [];
  const deps: RoundDeps = {
    ...made.deps,
    async retry(target) {
      retried.push(`${target.kind} ${target.node}`);
      return answer('central', podOf(target), centralFacts(numberOf(target), 3)) as never;
    },
  };
  assert.is(judged(await run({ ...made, deps }))[0], 'OVNDBReady True/MembersAgree');
  assert.equal(retried, ['central n2', 'central n2'], 'once for each of the two looks');
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
