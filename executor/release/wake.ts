import { type Clock, rest } from '../../constructs/lib/clock.ts';

/** Why a wait ended: for work of any kind, or only because something drifted. */
export type WakeReason = 'work' | 'drift';

/** A wait that others can end. A call that comes while nobody waits ends the next wait. */
export class Wake {
  readonly #clock: Clock;
  #pending: WakeReason | undefined;
  #current: AbortController | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  set(reason: WakeReason = 'work'): void {
    if (this.#pending !== 'work') this.#pending = reason;
    this.#current?.abort();
  }

  /** Waits for `ms`, for a call of `set`, or for the signal, whichever comes first. Never rejects. */
  async wait(ms: number, signal: AbortSignal): Promise<WakeReason> {
    if (this.#pending === undefined && !signal.aborted) {
      const current = new AbortController();
      this.#current = current;
      const ended = AbortSignal.any([signal, current.signal]);
      await rest(this.#clock, ms, ended);
      this.#current = undefined;
    }
    const reason = this.#pending ?? 'work';
    this.#pending = undefined;
    return signal.aborted ? 'work' : reason;
  }
}
