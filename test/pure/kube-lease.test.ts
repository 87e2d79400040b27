import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createClient } from '../../executor/kube/client.ts';
import { acquireLease } from '../../executor/lease/acquire.ts';
import { type Contender, contend, type LeaseView } from '../../executor/lease/decide.ts';
import { LeaseLost } from '../../executor/lease/held.ts';
import { checkTimings, defaultLeaseTimings } from '../../executor/lease/timings.ts';
import { discoveryAnswer, scriptedTransport, statusOf } from './fakeTransport.ts';
import { acquired, bed, type LeaseServer, lossOf, timed } from './kube-lease-support.ts';

const timings = defaultLeaseTimings;

function view(change: Partial<LeaseView> = {}): LeaseView {
  return { uid: 'u', resourceVersion: '1', holder: 'other', durationMs: 30_000, transitions: 4, ...change };
}

function look(
  contender: Contender,
  sentAt: number,
  receivedAt: number,
  lease: LeaseView | undefined,
): ReturnType<typeof contend> {
  return contend(contender, { sentAt, receivedAt, lease }, timings);
}

test('absent is made, free is taken, ours is resumed, held is watched', () => {
  const me = { identity: 'me' };
  assert.equal(look(me, 0, 1, undefined).action, { type: 'create' });
  assert.equal(look(me, 0, 1, view({ holder: '' })).action, {
    type: 'take',
    lease: view({ holder: '' }),
    transitions: 5,
  });
  assert.equal(look(me, 0, 1, view({ holder: 'me' })).action, { type: 'resume', lease: view({ holder: 'me' }) });
  assert.equal(look(me, 0, 1, view()).action, { type: 'wait', ms: 2000, holder: 'other' });
});

test('a former acquisition of the same process is not waited for, and is a new one; anything newer is', () => {
  const former = { leaseUid: 'u', holder: 'other', transitions: 4 };
  const me = { identity: 'me', former };
  assert.equal(look(me, 0, 1, view()).action, { type: 'take', lease: view(), transitions: 5 });
  // A renewal of it whose reply was lost makes no difference; another acquisition, holder or Lease does.
  assert.is(look(me, 0, 1, view({ resourceVersion: '2' })).action.type, 'take');
  for (const change of [{ transitions: 5 }, { holder: 'another' }, { uid: 'v' }])
    assert.is(look(me, 0, 1, view(change)).action.type, 'wait');
  const waiting = look(me, 0, 1, view({ holder: 'another' })).contender;
  // The Lease as it was before another took it: a restored copy, while that other may still lead.
  assert.is(look(waiting, 10, 11, view()).action.type, 'wait', 'what was taken by another once counts no more');
  // A take that met another write looks again, and is as good as before while the Lease still is ours.
  assert.is(look(look(me, 0, 1, view()).contender, 10, 11, view({ resourceVersion: '2' })).action.type, 'take');
});

test('takeover needs a whole duration between the answer of one look and the request of another', () => {
  const first = look({ identity: 'me' }, 0, 500, view());
  assert.is(look(first.contender, 30_499, 90_000, view()).action.type, 'wait');
  assert.is(look(first.contender, 30_500, 30_600, view()).action.type, 'take');
  // One look alone says nothing, however long the Lease lay there.
  assert.is(look({ identity: 'me' }, 1e9, 1e9, view()).action.type, 'wait');
  // The recorded duration counts, not ours; without one, ours does.
  assert.is(look(first.contender, 30_500, 30_600, view({ durationMs: 60_000 })).action.type, 'wait');
  assert.is(look(first.contender, 30_500, 30_600, view({ durationMs: undefined })).action.type, 'take');
});

test('any change of version or UID begins the watch anew', () => {
  const changes = fc.record({
    after: fc.integer({ min: 1, max: 40_000 }),
    change: fc.constantFrom('none', 'version', 'uid'),
  });
  fc.assert(
    fc.property(fc.array(changes, { minLength: 1, maxLength: 30 }), (steps) => {
      let contender: Contender = { identity: 'me' };
      let now = 0;
      let lease = view();
      let unchangedSince: number | undefined;
      let version = 1;
      for (const { after, change } of steps) {
        now += after;
        if (change === 'version') lease = { ...lease, resourceVersion: String(++version) };
        if (change === 'uid') lease = { ...lease, uid: `u${++version}` };
        if (change !== 'none' || unchangedSince === undefined) unchangedSince = undefined;
        const { contender: next, action } = look(contender, now, now + 10, lease);
        const expected = unchangedSince !== undefined && now - unchangedSince >= 30_000 ? 'take' : 'wait';
        assert.is(action.type, expected);
        unchangedSince ??= now + 10;
        contender = next;
      }
    }),
  );
});

test('times that cannot keep a Lease are refused', () => {
  checkTimings(timings);
  assert.throws(() => checkTimings({ ...timings, renewEveryMs: 25_000 }), /renewEveryMs/);
  assert.throws(() => checkTimings({ ...timings, retryMs: 0 }), /positive/);
});

test('a Lease outlives its duration by renewals, and its token stays', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  assert.equal(lease.check(), { leaseUid: 'uid-1', holder: 'one', transitions: 0 });
  await clock.advance(300_000);
  assert.equal(lease.check(), { leaseUid: 'uid-1', holder: 'one', transitions: 0 });
  assert.is(lease.state().renewals, 30);
  assert.equal(await timed(clock, lease.release()), { type: 'released' });
  assert.is(server.stored.get('lease')?.spec.holderIdentity, undefined);
  assert.is(clock.sleeping, 0);
  const next = await acquired(server, 'two');
  assert.equal(next.token, { leaseUid: 'uid-1', holder: 'two', transitions: 1 });
  await timed(clock, next.release());
});

test('without an acknowledged renewal it ends 25 s after the last one was sent, while a contender waits 30', async () => {
  const { clock, server, never } = bed();
  const lease = await acquired(server, 'one');
  await clock.advance(10_000);
  server.down = true;
  await clock.advance(24_999);
  assert.is(lossOf(lease), 'held');
  assert.is(lease.state().remainingMs, 1);
  await clock.advance(1);
  assert.is(lossOf(lease), 'expired');
  assert.is(lease.signal.aborted, true);
  server.down = false;
  const second = acquireLease(server.options('two'), { signal: never });
  await clock.advance(29_999);
  assert.is(server.stored.get('lease')?.spec.holderIdentity, 'one');
  const outcome = await timed(clock, second);
  assert.is(outcome.type === 'held' && outcome.lease.token.transitions, 1);
  assert.equal(await timed(clock, lease.release()), { type: 'notOurs', holder: 'two' });
  assert.is(server.stored.get('lease')?.spec.holderIdentity, 'two');
  if (outcome.type === 'held') await timed(clock, outcome.lease.release());
  assert.is(clock.sleeping, 0);
});

test('a renewal that is acknowledged after the deadline does not bring a Lease back', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  server.loss.delayMs = 200_000;
  await clock.advance(200_000);
  assert.is(lossOf(lease), 'expired');
  server.loss.delayMs = 0;
  await timed(clock, lease.release());
  assert.is(lossOf(lease), 'expired');
});

test('a wall clock that leaps past the deadline ends it, also when the monotonic clock stood still', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  const writes = server.writes;
  // The machine slept: nothing was renewed meanwhile, and another may hold it by now.
  clock.jump(24_999);
  assert.is(lossOf(lease), 'held');
  assert.is(lease.state().remainingMs, 1);
  clock.jump(1);
  assert.is(lossOf(lease), 'expired');
  assert.is(lease.signal.aborted, true);
  await clock.advance(60_000);
  assert.is(server.writes, writes, 'a Lease that is over is not renewed');
  await timed(clock, lease.release());
});

test('a leap that nobody looked at is noticed at the next renewal, which is not sent', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  const writes = server.writes;
  clock.jump(3_600_000);
  await clock.advance(10_000);
  assert.is(lease.signal.aborted, true);
  assert.is(server.writes, writes);
  await timed(clock, lease.release());
});

test('a leap within the time since the last renewal shortens only that, the next renewal counts in full', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  clock.jump(14_000);
  await clock.advance(10_000);
  assert.is(lossOf(lease), 'held');
  assert.is(lease.state().remainingMs, 25_000);
  await timed(clock, lease.release());
});

test('a wall clock set back does not prolong it: the monotonic deadline stands', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  server.down = true;
  clock.jump(-3_600_000);
  await clock.advance(24_999);
  assert.is(lossOf(lease), 'held');
  assert.is(lease.state().remainingMs, 1);
  await clock.advance(1);
  assert.is(lossOf(lease), 'expired');
  server.down = false;
  await timed(clock, lease.release());
});

test('taken, deleted and refused end it at once', async () => {
  for (const [change, expected] of [
    [(server: LeaseServer) => server.serve('PUT', 'lease', JSON.stringify(stolen(server))), 'taken'],
    [(server: LeaseServer) => server.stored.delete('lease'), 'deleted'],
  ] as const) {
    const { clock, server } = bed();
    const lease = await acquired(server, 'one');
    change(server);
    await clock.advance(10_000);
    assert.is(lossOf(lease), expected);
    assert.ok(lease.signal.reason instanceof LeaseLost);
    const released = await timed(clock, lease.release());
    assert.is(released.type, 'notOurs');
    assert.is(clock.sleeping, 0);
  }
});

function stolen(server: LeaseServer): object {
  return {
    metadata: { resourceVersion: String(server.stored.get('lease')?.version) },
    spec: { holderIdentity: 'thief', leaseTransitions: 9 },
  };
}

test('a label set by a person, and an own write whose reply was lost, cost nothing', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  const known = server.stored.get('lease');
  if (known !== undefined) server.store('lease', known, 200);
  await clock.advance(10_000);
  assert.is(lease.state().renewals, 1);
  server.loss.after = 1;
  await clock.advance(11_000);
  server.loss.after = 0;
  await clock.advance(20_000);
  assert.is(lossOf(lease), 'held');
  await timed(clock, lease.release());
});

test('an acquisition whose reply was lost is resumed as the same', async () => {
  const { clock, server, never } = bed();
  server.deaf = 'POST';
  const wanted = acquireLease(server.options('one'), { signal: never });
  await clock.advance(1000);
  assert.is(server.stored.get('lease')?.spec.holderIdentity, 'one');
  server.deaf = undefined;
  const outcome = await timed(clock, wanted);
  assert.equal(outcome.type === 'held' && outcome.lease.token, { leaseUid: 'uid-1', holder: 'one', transitions: 0 });
  if (outcome.type === 'held') await timed(clock, outcome.lease.release());
});

test('a limit ends the wait and names the holder; a refusal ends it at once', async () => {
  const { clock, server, never } = bed();
  const lease = await acquired(server, 'one');
  const outcome = await timed(clock, acquireLease(server.options('two'), { signal: never, limitMs: 5000 }));
  assert.is(outcome.type === 'busy' && outcome.holder, 'one');
  assert.is(clock.monotonic(), 5000);
  const { transport } = scriptedTransport(
    (request) => discoveryAnswer(request.path) ?? statusOf(403, 'Forbidden', 'x'),
  );
  const client = createClient({ transport, clock, random: Math.random });
  assert.is((await acquireLease({ ...server.options('two'), client }, { signal: never })).type, 'forbidden');
  await timed(clock, lease.release());
});

test.run();
