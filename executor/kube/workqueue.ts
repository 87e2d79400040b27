/** A queue of keys: each waiting once, never worked on twice at a time, slower after failures. */
import { type BackoffPolicy, backoff } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';

/** What a worker found: `done` forgets the key's failures; `again` comes back after `afterMs`; `failed` after a growing pause. */
export type WorkResult =
  | { readonly type: 'done' }
  | { readonly type: 'again'; readonly afterMs: number }
  | { readonly type: 'failed'; readonly atLeastMs?: number };

/** Works on one key. What it throws counts as `failed`. */
export type Worker = (key: string, signal: AbortSignal) => Promise<WorkResult>;

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly backoff?: BackoffPolicy;
  /** Told of what workers throw. */
  readonly onError?: (key: string, error: unknown) => void;
}

const defaultBackoff: BackoffPolicy = { initialMs: 500, factor: 2, maxMs: 120_000, jitter: 0.1 };

interface Delayed {
  readonly at: number;
  readonly cancel: AbortController;
}

/**
 * A key added while a worker has it is worked on once more when that ends. A key added with a delay waits for the earliest
 * of its times; an `add` without one ends the wait.
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #backoff: BackoffPolicy;
  readonly #onError: ((key: string, error: unknown) => void) | undefined;
  readonly #ready = new Set<string>();
  readonly #busy = new Set<string>();
  readonly #again = new Set<string>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  readonly #idle: (() => void)[] = [];

  constructor(options: WorkQueueOptions) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#backoff = options.backoff ?? defaultBackoff;
    this.#onError = options.onError;
  }

  /** Keys that wait for a worker now. */
  get depth(): number {
    return this.#ready.size;
  }

  /** Keys that wait for a time. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** Keys that a worker has. */
  get busy(): number {
    return this.#busy.size;
  }

  /** How often the key failed in a row. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  add(key: string): void {
    this.#undelay(key);
    if (this.#busy.has(key)) this.#again.add(key);
    else this.#ready.add(key);
    this.#wake();
  }

  addAfter(key: string, ms: number): void {
    if (ms <= 0) {
      this.add(key);
      return;
    }
    const at = this.#clock.monotonic() + ms;
    const known = this.#delayed.get(key);
    if (this.#ready.has(key) || this.#again.has(key) || (known !== undefined && known.at <= at)) return;
    this.#undelay(key);
    const cancel = new AbortController();
    this.#delayed.set(key, { at, cancel });
    this.#clock.sleep(ms, cancel.signal).then(
      () => this.add(key),
      // The wait was cancelled by an earlier one, or by the end of the queue.
      () => undefined,
    );
  }

  /** Adds the key after the pause that its failures in a row earn, at least `atLeastMs`. */
  addFailed(key: string, atLeastMs = 0): void {
    const failures = this.failures(key);
    this.#failures.set(key, failures + 1);
    this.addAfter(key, Math.max(atLeastMs, backoff(this.#backoff, failures, this.#random)));
  }

  /** Forgets the failures of a key. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /**
   * Works with `workers` at once until the signal aborts, then waits for those under way. No timer is left then, and no key
   * is lost: what was not done waits for a later run.
   */
  async run(workers: number, work: Worker, signal: AbortSignal): Promise<void> {
    const stop = (): void => {
      for (const key of [...this.#delayed.keys()]) this.add(key);
      this.#wake(true);
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      await Promise.all(Array.from({ length: workers }, () => this.#worker(work, signal)));
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  async #worker(work: Worker, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const [key] = this.#ready;
      if (key === undefined) {
        await new Promise<void>((resolve) => this.#idle.push(resolve));
        continue;
      }
      this.#ready.delete(key);
      this.#busy.add(key);
      const result = await this.#attempt(work, key, signal);
      this.#busy.delete(key);
      this.#settle(key, result, signal);
    }
  }

  async #attempt(work: Worker, key: string, signal: AbortSignal): Promise<WorkResult> {
    try {
      return await work(key, signal);
    } catch (error) {
      if (!signal.aborted) this.#onError?.(key, error);
      return { type: 'failed' };
    }
  }

  #settle(key: string, result: WorkResult, signal: AbortSignal): void {
    const again = this.#again.delete(key);
    if (result.type !== 'failed') this.forget(key);
    if (signal.aborted) {
      // A later run must find what this one left.
      if (again || result.type !== 'done') this.#ready.add(key);
    } else if (again) {
      if (result.type === 'failed') this.#failures.set(key, this.failures(key) + 1);
      this.add(key);
    } else if (result.type === 'again') {
      this.addAfter(key, result.afterMs);
    } else if (result.type === 'failed') {
      this.addFailed(key, result.atLeastMs);
    }
  }

  #undelay(key: string): void {
    this.#delayed.get(key)?.cancel.abort();
    this.#delayed.delete(key);
  }

  #wake(all = false): void {
    const count = all ? this.#idle.length : Math.min(1, this.#idle.length);
    for (const resolve of this.#idle.splice(0, count)) resolve();
  }
}
