import type { Clock } from './clock.ts';
import { formatDuration } from './duration.ts';

/** The limit of a wait passed. `what` and `last` say what it was waiting for and what it last saw. */
export class WaitTimeout extends Error {
  override readonly name = 'WaitTimeout';
  readonly what: string;
  readonly limitMs: number;

  constructor(what: string, limitMs: number, last: string | undefined) {
    super(`waited ${formatDuration(limitMs)} for ${what}${last === undefined ? '' : `; last seen: ${last}`}`);
    this.what = what;
    this.limitMs = limitMs;
  }
}

export interface WaitOptions<T> {
  /** What is waited for, as the message of a time-out names it. */
  readonly what: string;
  readonly limitMs: number;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  /** Answers the result, or undefined to go on waiting. `saw` records what the time-out's message tells. */
  readonly probe: (saw: (text: string) => void) => Promise<T | undefined>;
}

/**
 * Asks `probe` until it answers. Every wait has a limit, a reason and a cancel.
 * @throws WaitTimeout after the limit; the signal's reason on abort; whatever `probe` throws.
 */
export async function waitFor<T>(options: WaitOptions<T>): Promise<T> {
  const { clock, signal } = options;
  const deadline = clock.monotonic() + options.limitMs;
  let last: string | undefined;
  for (;;) {
    signal?.throwIfAborted();
    const answer = await options.probe((text) => {
      last = text;
    });
    if (answer !== undefined) return answer;
    const left = deadline - clock.monotonic();
    if (left <= 0) throw new WaitTimeout(options.what, options.limitMs, last);
    await clock.sleep(Math.min(options.intervalMs, left), signal);
  }
}
