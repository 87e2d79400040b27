/** Which server to try next, and when: pure, so that a test can walk through every day of it. */
import { type BackoffPolicy, backoff } from '../../constructs/lib/backoff.ts';
import type { Random } from '../../constructs/lib/clock.ts';

export interface Attempts {
  /** Index of the server to try. */
  readonly server: number;
  /** Failures in a row. */
  readonly failures: number;
}

export const firstAttempt: Attempts = { server: 0, failures: 0 };

export interface NextAttempt {
  readonly attempts: Attempts;
  readonly delayMs: number;
}

/**
 * A connection that gave rows is opened again to the same server, one that gave none to the next. The delay grows with every
 * failure, and only a connection that held for longer than the longest delay starts it anew: a server that gives rows and
 * falls at once is a failure like another.
 * @param heldMs for how long the rows were those of the server; undefined when they never were.
 */
export function nextAttempt(
  attempts: Attempts,
  servers: number,
  heldMs: number | undefined,
  policy: BackoffPolicy,
  random: Random,
): NextAttempt {
  const failures = heldMs !== undefined && heldMs > policy.maxMs ? 1 : attempts.failures + 1;
  const server = heldMs === undefined ? (attempts.server + 1) % servers : attempts.server;
  return { attempts: { server, failures }, delayMs: backoff(policy, failures - 1, random) };
}
