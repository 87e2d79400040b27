import { setTimeout as delay } from 'node:timers/promises';

/** Time as the program sees it; injected, so that tests own it. */
export interface Clock {
  /** Milliseconds since 1970; for what people read. May jump. */
  now(): number;
  /** Milliseconds of a clock that never jumps; for limits and Leases. */
  monotonic(): number;
  /** Settles after `ms`, or rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A timer of Node holds no more than 2^31-1 ms. */
const longestSleepMs = 2_000_000_000;

/** Sleeps for `ms`, and ends early by the signal without a word. What is longer than a timer holds ends early as well. */
export async function rest(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await clock.sleep(Math.max(0, Math.min(ms, longestSleepMs)), signal).catch(() => undefined);
}

/** A source of numbers in [0, 1); injected, so that jitter and identities can be repeated. */
export type Random = () => number;

/** The process's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    signal?.throwIfAborted();
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};
