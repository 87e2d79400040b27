/** Deeds at a rate, whatever becomes of those before: nobody who is served waits for who is not. */
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from '../statistics.ts';

export interface Pace {
  /** A second. */
  readonly rate: number;
  readonly seconds: number;
}

export interface Latencies {
  readonly pace: Pace;
  readonly asked: number;
  readonly served: number;
  /** Milliseconds from the first request of a deed to its end. */
  readonly p50: number;
  readonly p95: number;
  readonly longest: number;
  /** How far behind its time the last deed began: a machine that can not keep the rate measures another one. */
  readonly lateMs: number;
}

/**
 * @param begin sends what a deed asks for.
 * @param ended when it was done, on the clock of `performance`; undefined: not in time.
 */
export async function paced(
  pace: Pace,
  begin: (n: number) => Promise<unknown>,
  ended: (n: number) => Promise<number | undefined>,
): Promise<Latencies> {
  const count = Math.round(pace.rate * pace.seconds);
  const deeds: Promise<number | undefined>[] = [];
  const start = performance.now();
  let lateMs = 0;
  for (let n = 0; n < count; n += 1) {
    const due = start + (n * 1000) / pace.rate;
    if (performance.now() < due) await delay(due - performance.now());
    const began = performance.now();
    lateMs = began - due;
    deeds.push(
      begin(n)
        .then(() => ended(n))
        .then((at) => (at === undefined ? undefined : at - began)),
    );
  }
  const times = (await Promise.all(deeds)).filter((one) => one !== undefined);
  return {
    pace,
    asked: count,
    served: times.length,
    p50: percentile(times, 0.5),
    p95: percentile(times, 0.95),
    longest: percentile(times, 1),
    lateMs,
  };
}
