/** How long what a status says may stand without a new look. */
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Contact } from '../kube/contact.ts';
import { Wake } from './wake.ts';

export interface Sight {
  /** When the last round of looks was complete; undefined before the first. */
  readonly lookedAt: number | undefined;
  /** Since when the API server answers; undefined while it does not. */
  readonly answersSince: number | undefined;
}

export interface TrustTimings {
  /** How often a round is due. */
  readonly everyMs: number;
  /** How much later than that, and how long after an outage, it may come. */
  readonly graceMs: number;
}

/**
 * Until when a status may say what the last round saw. While the API server does not answer nothing can be told, and the
 * last evidence is kept; from its return on a new round has the grace to complete. Pure.
 */
export function standsUntil({ lookedAt, answersSince }: Sight, { everyMs, graceMs }: TrustTimings): number {
  if (answersSince === undefined) return Number.POSITIVE_INFINITY;
  if (lookedAt === undefined || lookedAt < answersSince) return answersSince + graceMs;
  return lookedAt + everyMs + graceMs;
}

/**
 * From when on who begins now has its grace: from now, or from the server's return when that was within a grace, since the
 * statuses that are there are from before the outage. Pure.
 */
export const startOfGrace = (now: number, returned: number | undefined, graceMs: number): number =>
  returned !== undefined && now - returned < graceMs ? returned : now;

export interface TrustOptions extends TrustTimings {
  readonly clock: Clock;
  readonly contact: Contact;
  readonly lookedAt: () => number | undefined;
  /** Called when the time is over, once for each round that is overdue. */
  readonly over: () => void;
}

/** Watches over one status until the signal aborts. Never rejects. */
export async function watchTrust(options: TrustOptions, signal: AbortSignal): Promise<void> {
  const { clock, contact, lookedAt, over } = options;
  const begun = startOfGrace(clock.monotonic(), contact.returned, options.graceMs);
  const wake = new Wake(clock);
  const deaf = contact.listen(() => wake.set());
  let told: number | undefined;
  while (!signal.aborted) {
    const { since } = contact;
    const answersSince = since === undefined ? undefined : Math.max(since, begun);
    const until = standsUntil({ lookedAt: lookedAt(), answersSince }, options);
    const left = until - clock.monotonic();
    if (left <= 0 && told !== until) {
      told = until;
      over();
    }
    await wake.wait(left > 0 ? left : options.graceMs, signal);
  }
  deaf();
}
