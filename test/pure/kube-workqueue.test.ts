import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WorkQueue, type WorkResult } from '../../executor/kube/workqueue.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

function queueOn(clock: VirtualClock): WorkQueue {
  return new WorkQueue({
    clock,
    random: seededRandom(1),
    backoff: { initialMs: 100, factor: 2, maxMs: 1000, jitter: 0 },
  });
}

test('keys wait once, in the order of their coming', async () => {
  const clock = new VirtualClock();
  const queue = queueOn(clock);
  const done: string[] = [];
  for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key);
  assert.is(queue.depth, 3);
  const stop = new AbortController();
  const running = queue.run(1, async (key) => ({ type: done.push(key) > 0 ? 'done' : 'done' }), stop.signal);
  await settled();
  assert.equal(done, ['a', 'b', 'c']);
  stop.abort();
  await running;
});

test('failures slow a key down, success forgets them', async () => {
  const clock = new VirtualClock();
  const queue = queueOn(clock);
  const at: number[] = [];
  const stop = new AbortController();
  const work = async (): Promise<WorkResult> => {
    at.push(clock.monotonic());
    if (at.length === 2) throw new Error('thrown counts as failed');
    return at.length < 4 ? { type: 'failed' } : { type: 'done' };
  };
  const running = queue.run(2, work, stop.signal);
  queue.add('a');
  await clock.advance(5000);
  assert.equal(at, [0, 100, 300, 700]);
  assert.is(queue.failures('a'), 0);
  queue.addFailed('a', 250);
  await clock.advance(249);
  assert.is(at.length, 4);
  await clock.advance(1);
  assert.is(at.length, 5);
  stop.abort();
  await running;
  assert.is(clock.sleeping, 0);
});

test('the earliest of several times counts, and an add ends the wait', async () => {
  const clock = new VirtualClock();
  const queue = queueOn(clock);
  const at: number[] = [];
  const stop = new AbortController();
  const running = queue.run(1, async () => ({ type: at.push(clock.monotonic()) > 0 ? 'done' : 'done' }), stop.signal);
  queue.addAfter('a', 500);
  queue.addAfter('a', 200);
  queue.addAfter('a', 900);
  await clock.advance(1000);
  assert.equal(at, [200]);
  queue.addAfter('a', 500);
  queue.add('a');
  await clock.advance(1000);
  assert.equal(at, [200, 1000]);
  stop.abort();
  await running;
});

test('abort waits for the work under way, keeps what was not done, leaves no timer', async () => {
  const clock = new VirtualClock();
  const queue = queueOn(clock);
  const stop = new AbortController();
  const gate: { open?: () => void } = {};
  const running = queue.run(
    1,
    () =>
      new Promise((resolve) => {
        gate.open = () => resolve({ type: 'failed' });
      }),
    stop.signal,
  );
  queue.add('busy');
  queue.add('waiting');
  queue.addAfter('later', 60_000);
  await settled();
  stop.abort();
  let over = false;
  void running.then(() => {
    over = true;
  });
  await settled();
  assert.is(over, false);
  gate.open?.();
  await running;
  assert.is(clock.sleeping, 0);
  assert.is(queue.busy, 0);
  const rest: string[] = [];
  const again = new AbortController();
  const second = queue.run(3, async (key) => ({ type: rest.push(key) > 0 ? 'done' : 'done' }), again.signal);
  await settled();
  again.abort();
  await second;
  assert.equal(rest.sort(), ['busy', 'later', 'waiting']);
});

type Step =
  | { readonly type: 'add' | 'addFailed'; readonly key: string }
  | { readonly type: 'addAfter'; readonly key: string; readonly ms: number }
  | { readonly type: 'advance'; readonly ms: number };

const key = fc.constantFrom('a', 'b', 'c', 'd');
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ type: fc.constantFrom('add' as const, 'addFailed' as const), key }),
  fc.record({ type: fc.constant('addAfter' as const), key, ms: fc.integer({ min: 0, max: 400 }) }),
  fc.record({ type: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 300 }) }),
);

test('never two workers on one key, and every add is followed by work that began after it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 40 }),
      fc.integer({ min: 1, max: 4 }),
      fc.nat(),
      async (steps, workers, seed) => {
        const clock = new VirtualClock();
        const random = seededRandom(seed);
        const queue = new WorkQueue({ clock, random, backoff: { initialMs: 50, factor: 2, maxMs: 400, jitter: 0.5 } });
        const busy = new Set<string>();
        const begun = new Map<string, number>();
        const added = new Map<string, number>();
        // What a worker throws is the queue's to swallow, so a violation is noted and judged outside.
        const doubles: string[] = [];
        let order = 0;
        const stop = new AbortController();
        const work = async (name: string): Promise<WorkResult> => {
          if (busy.has(name)) doubles.push(name);
          busy.add(name);
          begun.set(name, ++order);
          await clock.sleep(random() * 150);
          busy.delete(name);
          const dice = random();
          if (dice < 0.2) throw new Error('by chance');
          if (dice < 0.3) return { type: 'again', afterMs: random() * 100 };
          return dice < 0.4 ? { type: 'failed' } : { type: 'done' };
        };
        const running = queue.run(workers, work, stop.signal);
        for (const action of steps) {
          if (action.type === 'advance') {
            await clock.advance(action.ms);
            continue;
          }
          added.set(action.key, ++order);
          if (action.type === 'addAfter') queue.addAfter(action.key, action.ms);
          else if (action.type === 'add') queue.add(action.key);
          else queue.addFailed(action.key);
        }
        await clock.advance(60_000);
        for (const [name, at] of added) assert.ok((begun.get(name) ?? 0) > at, `${name} was lost`);
        assert.equal(doubles, []);
        assert.is(busy.size, 0);
        stop.abort();
        await running;
        assert.is(clock.sleeping, 0);
      },
    ),
    { numRuns: 60 },
  );
});

test.run();
