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
