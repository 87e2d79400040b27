/** Growing pauses per key. Times are monotonic milliseconds of the caller. */
import { type BackoffPolicy, backoff } from '../../../constructs/lib/backoff.ts';
import type { Random } from '../../../constructs/lib/clock.ts';

export class Pauses {
  readonly #policy: BackoffPolicy;
  readonly #random: Random;
  readonly #waits = new Map<string, { readonly tries: number; readonly until: number }>();

  constructor(policy: BackoffPolicy, random: Random) {
    this.#policy = policy;
    this.#random = random;
  }

  /** Begins a pause, longer than the one before. */
  begin(key: string, now: number): void {
    const tries = (this.#waits.get(key)?.tries ?? -1) + 1;
    this.#waits.set(key, { tries, until: now + backoff(this.#policy, tries, this.#random) });
  }

  /** Forgets a key; its next pause is a short one. */
  end(key: string): void {
    this.#waits.delete(key);
  }

  pausing(key: string, now: number): boolean {
    return now < (this.#waits.get(key)?.until ?? Number.NEGATIVE_INFINITY);
  }

  /** Keys whose pause is over. */
  due(now: number): string[] {
    return [...this.#waits].filter(([, { until }]) => until <= now).map(([key]) => key);
  }

  /** When the next of the pauses that still run is over; infinite when none runs. */
  next(now: number): number {
    const running = [...this.#waits.values()].map(({ until }) => until).filter((until) => until > now);
    return Math.min(Number.POSITIVE_INFINITY, ...running);
  }
}
