/** Leases of one operation, always in the same order: installation, then central. */
import { type AcquireOutcome, type AcquireWait, acquireLease } from './acquire.ts';
import type { LeaseToken } from './decide.ts';
import type { HeldLease, ReleaseOutcome } from './held.ts';
import type { LeaseOptions } from './record.ts';

/** Several Leases held together: lost as soon as one of them is. */
export interface HeldLeases {
  readonly tokens: readonly LeaseToken[];
  /** Aborts with the first loss. */
  readonly signal: AbortSignal;
  /** To be called before every write. @throws LeaseLost unless all are surely ours. */
  check(): readonly LeaseToken[];
  /** Gives them up, the last acquired first. */
  release(): Promise<readonly ReleaseOutcome[]>;
}

export type AcquireAllOutcome =
  | { readonly type: 'held'; readonly leases: HeldLeases }
  | Exclude<AcquireOutcome, { readonly type: 'held' }>;

/**
 * Acquires Leases in the given order, which must be the same for all who want several. When a later one cannot be had, the
 * earlier ones are given up. The limit counts for all of them together.
 * @throws LeaseLost when an earlier one is lost while a later one is waited for; the signal's reason on abort.
 */
export async function acquireInOrder(wanted: readonly LeaseOptions[], wait: AcquireWait): Promise<AcquireAllOutcome> {
  const held: HeldLease[] = [];
  const started = wanted[0]?.clock.monotonic() ?? 0;
  try {
    for (const options of wanted) {
      const spent = options.clock.monotonic() - started;
      // A Lease that was lost while waiting for the next ends the wait.
      const signal = AbortSignal.any([wait.signal, ...held.map((lease) => lease.signal)]);
      const limit = wait.limitMs === undefined ? {} : { limitMs: Math.max(0, wait.limitMs - spent) };
      const outcome = await acquireLease(options, { signal, ...limit });
      if (outcome.type !== 'held') {
        await releaseAll(held);
        return outcome;
      }
      held.push(outcome.lease);
    }
  } catch (error) {
    await releaseAll(held);
    throw error;
  }
  return { type: 'held', leases: together(held) };
}

function together(held: readonly HeldLease[]): HeldLeases {
  return {
    tokens: held.map((lease) => lease.token),
    signal: AbortSignal.any(held.map((lease) => lease.signal)),
    check: () => held.map((lease) => lease.check()),
    release: () => releaseAll(held),
  };
}

async function releaseAll(held: readonly HeldLease[]): Promise<ReleaseOutcome[]> {
  const outcomes: ReleaseOutcome[] = [];
  for (const lease of held.toReversed()) outcomes.push(await lease.release());
  return outcomes;
}
