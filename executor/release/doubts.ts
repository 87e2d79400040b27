import type { Clock } from '../../constructs/lib/clock.ts';
import type { LedgerStore } from '../apply/ledger-store.ts';

/**
 * Writes that were cut off before their answer. The API server may still carry one out, after what a newer pass wrote; so
 * these objects are written once more when that can no longer happen.
 */
export class Doubts {
  readonly #clock: Clock;
  readonly #afterMs: number;
  readonly #since = new Map<string, number>();

  /** @param afterMs longer than the API server works on any request. */
  constructor(clock: Clock, afterMs: number) {
    this.#clock = clock;
    this.#afterMs = afterMs;
  }

  add(id: string): void {
    this.#since.set(id, this.#clock.monotonic());
  }

  /** Marks what is due in the ledger as not written yet. */
  settle(ledger: LedgerStore): void {
    for (const [id, since] of this.#since) {
      if (this.#clock.monotonic() - since < this.#afterMs) continue;
      this.#since.delete(id);
      const entry = ledger.ledger.get(id);
      if (entry?.state === 'applied') ledger.put({ ...entry, state: 'intended' });
    }
  }

  /** Milliseconds until the next is due; infinite when there is none. */
  next(): number {
    const oldest = Math.min(Number.POSITIVE_INFINITY, ...this.#since.values());
    return Math.max(0, oldest + this.#afterMs - this.#clock.monotonic());
  }
}
