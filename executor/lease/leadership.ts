/** Leader election: terms of one Lease, each under a new name. */
import { acquireLease } from './acquire.ts';
import type { LeaseToken } from './decide.ts';
import type { HeldLease, LossReason } from './held.ts';
import type { LeaseOptions } from './record.ts';

export type LeadershipEvent =
  | { readonly type: 'leading'; readonly holder: string }
  | { readonly type: 'stopped'; readonly reason: LossReason | 'ended'; readonly message: string }
  | { readonly type: 'refused'; readonly message: string };

export interface LeadershipOptions extends Omit<LeaseOptions, 'holder'> {
  /** Begins every holder's name, for people: role and pod. */
  readonly identity: string;
  readonly uniqueId: () => string;
  /**
   * The work of one term. It must end soon after the signal aborts, which it does when the Lease is lost and when leading
   * shall end. What it throws otherwise ends the leading and is passed on.
   */
  readonly work: (lease: HeldLease, signal: AbortSignal) => Promise<void>;
  /** How long to wait after a refusal (access denied) before the next try. Default 10 s. */
  readonly refusedMs?: number;
  readonly onEvent?: (event: LeadershipEvent) => void;
}

/** A holder's name that no one had before. */
function holderName(identity: string, uniqueId: () => string): string {
  return `${identity}_${uniqueId()}`;
}

/**
 * Leads whenever it can until the signal aborts, then gives the Lease up. Returns when `work` returned on its own, too.
 * @throws what `work` throws, after the Lease was given up.
 */
export async function lead(options: LeadershipOptions, signal: AbortSignal): Promise<void> {
  let former: LeaseToken | undefined;
  while (!signal.aborted) {
    const outcome = await term(options, former, signal);
    if (outcome.type === 'ended') return;
    // Not kept over a refusal: what became of the Lease meanwhile was not seen.
    former = outcome.former;
  }
}

/** `former`: the acquisition of a term that is over. Its work has ended, so a further term need not outwait it. */
type TermEnd = { readonly type: 'ended' } | { readonly type: 'again'; readonly former?: LeaseToken };

async function term(options: LeadershipOptions, former: LeaseToken | undefined, signal: AbortSignal): Promise<TermEnd> {
  const { identity, uniqueId, onEvent, clock, refusedMs = 10_000 } = options;
  try {
    const outcome = await acquireLease(
      { ...options, holder: holderName(identity, uniqueId) },
      {
        signal,
        ...(former === undefined ? {} : { former }),
      },
    );
    if (outcome.type === 'held') return await serve(outcome.lease, options, signal);
    onEvent?.({ type: 'refused', message: outcome.message });
    await clock.sleep(refusedMs, signal);
    return { type: 'again' };
  } catch (error) {
    if (signal.aborted) return { type: 'ended' };
    throw error;
  }
}

async function serve(lease: HeldLease, options: LeadershipOptions, signal: AbortSignal): Promise<TermEnd> {
  const { work, onEvent } = options;
  onEvent?.({ type: 'leading', holder: lease.token.holder });
  let failure: { readonly error: unknown } | undefined;
  try {
    await work(lease, AbortSignal.any([signal, lease.signal]));
  } catch (error) {
    failure = { error };
  }
  const { held, lost } = lease.state();
  // Only after the work ended: a successor must never meet a predecessor that still writes.
  await lease.release();
  onEvent?.({ type: 'stopped', reason: lost?.reason ?? 'ended', message: lost?.message ?? 'the work ended' });
  // Work that was interrupted may say so in any way it likes.
  if (failure !== undefined && held && !signal.aborted) throw failure.error;
  return held ? { type: 'ended' } : { type: 'again', former: lease.token };
}
