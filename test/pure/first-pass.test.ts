import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Gate, PayloadContent } from '../../constructs/api/payload.ts';
import { PassProgress } from '../../executor/apply/progress.ts';
import { tellFirst } from '../../executor/release/tell-first.ts';
import { settled, VirtualClock } from './virtualClock.ts';

/** The counts that are told of a phase of `total` objects, one of which is in place every `everyMs`. */
function counts(total: number, everyMs: number): number[] {
  let now = 0;
  const told: number[] = [];
  const content = { phases: [{ name: 'a', objects: Array.from({ length: total }) }] } as unknown as PayloadContent;
  const progress: PassProgress = new PassProgress(
    'digest',
    content,
    () => now,
    () => told.push(progress.done),
  );
  for (let n = 1; n <= total; n += 1) {
    now += everyMs;
    progress.applied('a', n);
    assert.is(progress.done, n, 'what is read is the newest');
  }
  return told;
}

test('of many counts that come fast few are told, and the last ones each', () => {
  const told = counts(1_000, 1);
  assert.equal(told.slice(0, 4), [1, 50, 100, 150]);
  assert.equal(told.slice(-3), [998, 999, 1_000]);
  assert.ok(told.length < 25, String(told.length));
});

test('every count is told of a small phase, and of a slow one', () => {
  assert.is(counts(39, 1).length, 39);
  assert.is(counts(1_000, 200).length, 1_000);
});

test('a gate that rounds find open again and again is told with a new time every five minutes, and no sooner', () => {
  const gate: Gate = { type: 'OVNDBReady', scope: 'central', softLimit: '10m' };
  const content = { phases: [{ name: 'a', objects: [] }] } as unknown as PayloadContent;
  const told: number[] = [];
  let evidenceTime = 0;
  const progress: PassProgress = new PassProgress(
    'digest',
    content,
    () => evidenceTime,
    (moved) => {
      if (moved) told.push(progress.phases[0]?.gates[0]?.verdict.evidenceTime ?? -1);
    },
  );
  const look = (reason: string): void =>
    progress.gates('a', [{ gate, verdict: { state: 'True', reason, message: 'seen', evidenceTime } }]);
  for (; evidenceTime <= 600_000; evidenceTime += 30_000) look('MembersAgree');
  assert.equal(told, [0, 300_000, 600_000]);
  look('DatabaseServed');
  assert.is(told.at(-1), 630_000, 'what is said otherwise is told at once');
});

/** What happens when the status takes so long. */
async function telling(statusMs: number) {
  const clock = new VirtualClock();
  const seen: string[] = [];
  const stop = new AbortController();
  const told = async (): Promise<void> => {
    await clock.sleep(statusMs);
    seen.push('told');
  };
  const keeping = { watch: () => seen.push(`watching after ${clock.monotonic()} ms`) };
  const over = tellFirst({ clock, told }, keeping, stop.signal);
  await settled();
  return { clock, seen, stop, over };
}

test('the status of a payload that is in place goes before the watch over it', async () => {
  const { clock, seen } = await telling(30);
  await clock.advance(100);
  assert.equal(seen, ['told', 'watching after 30 ms']);
});

test('the watch waits for no status that does not get through, and for none after an abort', async () => {
  const slow = await telling(60_000);
  await slow.clock.advance(1_500);
  assert.equal(slow.seen, ['watching after 1000 ms']);
  const ended = await telling(60_000);
  ended.stop.abort();
  await ended.over;
  assert.equal(ended.seen, ['watching after 0 ms']);
});

test.run();
