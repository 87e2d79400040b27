import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Stillness } from '../../executor/apply/drift/stillness.ts';
import { settled, VirtualClock } from './virtualClock.ts';

/** A wait under way, and when it ended. */
function waiting(ms: number, since?: number, over?: () => boolean) {
  const clock = new VirtualClock();
  const stillness = new Stillness(clock);
  const stop = new AbortController();
  const seen: { ended?: number; reason?: unknown } = {};
  const begin = (): void => {
    stillness.wait(ms, since ?? clock.monotonic(), stop.signal, over).then(
      () => {
        seen.ended = clock.monotonic();
      },
      (reason: unknown) => {
        seen.reason = reason;
      },
    );
  };
  return { clock, stillness, stop, seen, begin };
}

test('without a change it waits to the end', async () => {
  const { clock, seen, begin } = waiting(400);
  begin();
  await clock.advance(399);
  assert.is(seen.ended, undefined);
  await clock.advance(1);
  assert.is(seen.ended, 400);
});

test('after the last of many changes it waits no longer than for rest', async () => {
  const { clock, stillness, seen, begin } = waiting(1_000);
  begin();
  await clock.advance(300);
  for (let n = 0; n < 5; n += 1) {
    stillness.stir();
    await clock.advance(30);
  }
  assert.is(seen.ended, undefined);
  await clock.advance(30);
  assert.is(seen.ended, 470);
});

test('what changes all the time is looked at when the wait is over', async () => {
  const { clock, stillness, seen, begin } = waiting(200);
  begin();
  for (let n = 0; n < 30; n += 1) {
    stillness.stir();
    await clock.advance(10);
  }
  assert.is(seen.ended, 200);
});

test('a change during the look before counts, and a wait is never shorter than a quarter', async () => {
  const { clock, stillness, seen, begin } = waiting(1_000, 0);
  await clock.advance(5);
  stillness.stir();
  await clock.advance(5);
  begin();
  await clock.advance(1_000);
  assert.is(seen.ended, 260);
});

test('when nothing is left to wait for it does not wait for rest', async () => {
  let come = 0;
  const { clock, stillness, seen, begin } = waiting(1_000, undefined, () => come >= 3);
  begin();
  await clock.advance(300);
  while (come < 3) {
    come += 1;
    stillness.stir();
    await clock.advance(10);
  }
  assert.is(seen.ended, 320);
});

test('but for a quarter all the same, and to the end when nothing has changed', async () => {
  const early = waiting(1_000, undefined, () => true);
  early.begin();
  await early.clock.advance(100);
  early.stillness.stir();
  await early.clock.advance(200);
  assert.is(early.seen.ended, 250);
  const still = waiting(1_000, undefined, () => true);
  still.begin();
  await still.clock.advance(2_000);
  assert.is(still.seen.ended, 1_000);
});

test('a change before the look means nothing', async () => {
  const { clock, stillness, seen, begin } = waiting(1_000);
  stillness.stir();
  await clock.advance(10);
  begin();
  await clock.advance(900);
  assert.is(seen.ended, undefined);
});

test('an abort ends it with its reason at once', async () => {
  const { stop, seen, begin } = waiting(1_000);
  begin();
  stop.abort('enough');
  await settled();
  assert.is(seen.reason, 'enough');
});

test.run();
