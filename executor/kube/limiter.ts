/**
 * How many requests may be under way: additive increase, halved when the API server answers 429. While the server asks for a
 * pause, nothing new is sent.
 */
import type { Clock } from '../../constructs/lib/clock.ts';

export interface LimiterOptions {
  readonly min: number;
  readonly max: number;
}

/** One permission to send. `release` is called once, with what was learnt. */
export interface Slot {
  /** @param pauseMs how long the server asked to be left alone. */
  release(result: 'answered' | 'throttled' | 'failed', pauseMs?: number): void;
}

interface Waiter {
  readonly grant: (slot: Slot) => void;
}

export const defaultLimits: LimiterOptions = { min: 4, max: 16 };

/**
 * Starts half way, grows by one per full round of answered requests, halves on 429, between `min` and `max`. A burst of
 * 429 answers to requests that were sent together counts once, else one overload would end at the minimum.
 */
export class Limiter {
  readonly #options: LimiterOptions;
  readonly #clock: Clock;
  readonly #waiting: Waiter[] = [];
  #limit: number;
  #active = 0;
  #cuts = 0;
  /** Until when, by the monotonic clock, the server wants to be left alone. */
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, options: LimiterOptions = defaultLimits) {
    if (options.min < 1 || options.max < options.min) throw new RangeError('limiter: 1 <= min <= max is required');
    this.#clock = clock;
    this.#options = options;
    this.#limit = Math.max(options.min, Math.ceil(options.max / 2));
  }

  /** How many requests may be under way now. */
  get limit(): number {
    return Math.floor(this.#limit);
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Waits for a slot, first come first served, and for the end of a pause. Rejects with the signal's reason. */
  async acquire(signal?: AbortSignal): Promise<Slot> {
    for (;;) {
      const slot = await this.#queue(signal);
      const pauseMs = this.#pausedUntil - this.#clock.monotonic();
      if (pauseMs <= 0) return slot;
      slot.release('failed');
      await this.#clock.sleep(pauseMs, signal);
    }
  }

  #queue(signal: AbortSignal | undefined): Promise<Slot> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#waiting.length === 0 && this.#active < this.limit) return Promise.resolve(this.#take());
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        grant: (slot) => {
          signal?.removeEventListener('abort', give);
          resolve(slot);
        },
      };
      const give = (): void => {
        const at = this.#waiting.indexOf(waiter);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', give, { once: true });
      this.#waiting.push(waiter);
    });
  }

  #take(): Slot {
    this.#active += 1;
    const cutsAtStart = this.#cuts;
    let released = false;
    return {
      release: (result, pauseMs = 0) => {
        if (released) return;
        released = true;
        this.#active -= 1;
        if (pauseMs > 0) this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.monotonic() + pauseMs);
        this.#learn(result, cutsAtStart);
        this.#next();
      },
    };
  }

  #learn(result: 'answered' | 'throttled' | 'failed', cutsAtStart: number): void {
    const { min, max } = this.#options;
    if (result === 'answered') this.#limit = Math.min(max, this.#limit + 1 / this.#limit);
    if (result !== 'throttled' || cutsAtStart !== this.#cuts) return;
    this.#cuts += 1;
    this.#limit = Math.max(min, this.#limit / 2);
  }

  #next(): void {
    while (this.#active < this.limit) {
      const waiter = this.#waiting.shift();
      if (waiter === undefined) return;
      waiter.grant(this.#take());
    }
  }
}
