import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Limiter, type Slot } from '../../executor/kube/limiter.ts';
import { settled, VirtualClock } from './virtualClock.ts';

test('it grows to its maximum by answers and halves on a 429, once per burst', async () => {
  const limiter = new Limiter(new VirtualClock(), { min: 4, max: 16 });
  assert.is(limiter.limit, 8);
  for (let n = 0; n < 300; n += 1) (await limiter.acquire()).release('answered');
  assert.is(limiter.limit, 16);
  const burst = await Promise.all(Array.from({ length: 10 }, () => limiter.acquire()));
  for (const slot of burst) slot.release('throttled');
  assert.is(limiter.limit, 8);
  (await limiter.acquire()).release('throttled');
  (await limiter.acquire()).release('throttled');
  assert.is(limiter.limit, 4);
  (await limiter.acquire()).release('failed');
  assert.is(limiter.limit, 4);
});

test('whoever gives up waiting takes no slot', async () => {
  const limiter = new Limiter(new VirtualClock(), { min: 1, max: 1 });
  const first = await limiter.acquire();
  const abort = new AbortController();
  const second = limiter.acquire(abort.signal);
  const third = limiter.acquire();
  abort.abort(new Error('no longer wanted'));
  await second.then(
    () => assert.unreachable('it had to reject'),
    (error: Error) => assert.is(error.message, 'no longer wanted'),
  );
  first.release('answered');
  first.release('answered');
  const slot = await third;
  assert.is(limiter.active, 1);
  slot.release('answered');
  assert.is(limiter.active, 0);
});

test('while the server asks for a pause nobody is let through, and then everybody is', async () => {
  const clock = new VirtualClock();
  const limiter = new Limiter(clock, { min: 1, max: 2 });
  const first = await limiter.acquire();
  let granted = 0;
  const waiting = [1, 2].map(async () => {
    const slot = await limiter.acquire();
    granted += 1;
    slot.release('answered');
  });
  first.release('throttled', 3_000);
  const late = limiter.acquire().then((slot) => slot.release('answered'));
  await clock.advance(2_999);
  assert.is(granted, 0);
  assert.is(limiter.active, 0);
  // A shorter wish does not shorten the pause; giving up does not wait for its end.
  const abort = new AbortController();
  const impatient = limiter.acquire(abort.signal).catch((error: Error) => error.message);
  await settled();
  abort.abort(new Error('no longer wanted'));
  assert.is(await impatient, 'no longer wanted');
  await clock.advance(1);
  await Promise.all([...waiting, late]);
  assert.is(granted, 2);
});

test('never more under way than allowed, never outside its bounds, nobody forgotten', async () => {
  const results = fc.constantFrom('answered' as const, 'throttled' as const, 'failed' as const);
  await fc.assert(
    fc.asyncProperty(fc.array(results, { minLength: 1, maxLength: 200 }), async (plan) => {
      const limiter = new Limiter(new VirtualClock(), { min: 2, max: 6 });
      const held: Slot[] = [];
      let granted = 0;
      const all = plan.map(() =>
        limiter.acquire().then((slot) => {
          granted += 1;
          held.push(slot);
        }),
      );
      for (const result of plan) {
        await new Promise((resolve) => setImmediate(resolve));
        assert.ok(limiter.active <= 6 && limiter.limit >= 2 && limiter.limit <= 6);
        held.shift()?.release(result);
      }
      await new Promise((resolve) => setImmediate(resolve));
      for (let slot = held.shift(); slot !== undefined; slot = held.shift()) {
        slot.release('answered');
        await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(all);
      assert.is(granted, plan.length);
      assert.is(limiter.active, 0);
    }),
    { numRuns: 50 },
  );
});

test.run();
