/** The topology that is recorded is one that was seen under the Leases. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Observations, Observed } from '../../executor/network/evidence.ts';
import { topologyFromNowOn } from '../../executor/network/record.ts';
import { emptyMemory, judgeRound } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { centralRound, withoutComponent } from './observe-support.ts';
import { VirtualClock } from './virtualClock.ts';

const wanted = {
  spec: specOf({ mode: 'centralOnly' }),
  installation: { namespace: 'kube-system', name: 'main', uid: 'uid-1' },
  chartReplicas: 3,
  pin: undefined,
};
const observedAt = (startedTick: number, central = centralRound()): Observed => {
  const time = { startedAt: startedTick, startedTick, endedAt: startedTick + 100, endedTick: startedTick + 100 };
  return { verdict: judgeRound({ time, central, peer: { type: 'pending' } }, wanted, emptyMemory), limitMs: 60_000 };
};

/** Asks at five seconds; `next` is what is known half a second later. */
async function ask(next: Observed | undefined, signal = new AbortController().signal) {
  const clock = new VirtualClock();
  await clock.advance(5_000);
  const hurried: string[] = [];
  let known: Observed | undefined = observedAt(4_900);
  const observations: Observations = { of: () => known, hurry: (uid) => hurried.push(uid) };
  const asked = topologyFromNowOn(observations, 'uid-1', { clock, limitMs: 30_000 }, signal);
  let over = false;
  void asked.then(
    () => {
      over = true;
    },
    () => {
      over = true;
    },
  );
  await clock.advance(400);
  const early = over;
  known = next;
  await clock.advance(30_000);
  return { asked, early, over, hurried };
}

test('J1: a round that began before the Leases were taken is not enough: another one is hurried, and that one counts', async () => {
  const { asked, early, hurried } = await ask(observedAt(5_000));
  assert.equal([early, hurried], [false, ['uid-1']]);
  const record = await asked;
  assert.equal(
    record?.members.map(({ node }) => node.name),
    ['n1', 'n2', 'n3'],
  );
});

test('J1: what the other round finds amiss is not recorded, nor is anything when none ends in time', async () => {
  const down = observedAt(5_000, centralRound(3, withoutComponent(2, 'sb', 'refused')));
  assert.is(await (await ask(down)).asked, undefined);
  for (const stale of [observedAt(4_999), undefined]) {
    const { asked, over } = await ask(stale);
    assert.is(over, true);
    assert.is(await asked, undefined);
  }
});

test('whoever loses the Leases waits no longer', async () => {
  const gone = new AbortController();
  gone.abort(new Error('the Lease was taken'));
  const { asked, over } = await ask(observedAt(4_999), gone.signal);
  assert.is(over, true);
  await asked.then(
    () => assert.unreachable(),
    (error: Error) => assert.is(error.message, 'the Lease was taken'),
  );
});

test.run();
