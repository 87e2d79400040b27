import type { Clock } from '../../constructs/lib/clock.ts';

interface Sleeper {
  readonly at: number;
  readonly order: number;
  readonly wake: () => void;
}

/** A clock that stands still until it is told to move; sleepers wake in the order of their time. */
export class VirtualClock implements Clock {
  #ms = 0;
  #jumped = 0;
  #order = 0;
  #sleepers: Sleeper[] = [];

  now(): number {
    return 1_700_000_000_000 + this.#ms + this.#jumped;
  }

  /** Sets the wall clock forwards or backwards; the monotonic one does not notice. */
  jump(ms: number): void {
    this.#jumped += ms;
  }

  monotonic(): number {
    return this.#ms;
  }

  /** How many sleep now. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const give = (): void => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        reject(signal?.reason);
      };
      const wake = (): void => {
        signal?.removeEventListener('abort', give);
        resolve();
      };
      const sleeper: Sleeper = { at: this.#ms + Math.max(0, ms), order: this.#order++, wake };
      signal?.addEventListener('abort', give, { once: true });
      this.#sleepers.push(sleeper);
    });
  }

  /** Moves to the next sleeper and wakes it. False when nobody sleeps, or the next sleeps beyond `until`. */
  async next(until = Number.POSITIVE_INFINITY): Promise<boolean> {
    await settled();
    const [first] = this.#sleepers.toSorted((a, b) => a.at - b.at || a.order - b.order);
    if (first === undefined || first.at > until) return false;
    this.#sleepers = this.#sleepers.filter((other) => other !== first);
    this.#ms = Math.max(this.#ms, first.at);
    first.wake();
    await settled();
    return true;
  }

  /** Moves on by `ms`, waking everyone whose time comes on the way. */
  async advance(ms: number): Promise<void> {
    const until = this.#ms + ms;
    while (await this.next(until));
    this.#ms = until;
    await settled();
  }
}

/** Lets everything run that waits for no time. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A repeatable source of numbers in [0, 1) (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
