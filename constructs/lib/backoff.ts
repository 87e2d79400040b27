import type { Random } from './clock.ts';

/** Exponential backoff: `initialMs * factor^attempt`, at most `maxMs`, spread by plus or minus the share `jitter`. */
export interface BackoffPolicy {
  readonly initialMs: number;
  readonly factor: number;
  readonly maxMs: number;
  readonly jitter: number;
}

/** The delay in milliseconds before attempt `attempt` (0 is the first retry). Never negative, never above `maxMs * (1 + jitter)`. */
export function backoff(policy: BackoffPolicy, attempt: number, random: Random): number {
  const plain = Math.min(policy.maxMs, policy.initialMs * policy.factor ** Math.min(Math.max(attempt, 0), 64));
  return Math.max(0, plain * (1 + policy.jitter * (2 * random() - 1)));
}
