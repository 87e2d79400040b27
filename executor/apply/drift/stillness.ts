/** Notices when what keeps changing has come to rest. */
import { type Clock, rest } from '../../../constructs/lib/clock.ts';

/** How long nothing may change for it to count as rest: changes that belong together come closer than this. */
const quietMs = 50;

export class Stillness {
  readonly #clock: Clock;
  #stirredAt = Number.NEGATIVE_INFINITY;
  #next = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something changed. */
  stir(): void {
    this.#stirredAt = this.#clock.monotonic();
    const told = this.#next;
    this.#next = new AbortController();
    told.abort();
  }

  /**
   * Waits for `ms`; only until there is rest again, or nothing to wait for any more, when anything stirred since `since`, by the
   * monotonic clock, but for no less than a quarter of `ms`. Rejects with the signal's reason.
   * @param over asked after each change whether what is waited for has come.
   */
  async wait(ms: number, since: number, signal: AbortSignal, over: () => boolean = () => false): Promise<void> {
    const began = this.#clock.monotonic();
    for (;;) {
      const next = this.#next.signal;
      const now = this.#clock.monotonic();
      const left = began + ms - now;
      const stirred = this.#stirredAt > since;
      const restAt = stirred && over() ? now : this.#stirredAt + quietMs;
      const pause = stirred ? Math.min(left, Math.max(restAt, began + ms / 4) - now) : left;
      if (pause <= 0) return;
      await rest(this.#clock, pause, AbortSignal.any([signal, next]));
      signal.throwIfAborted();
    }
  }
}
