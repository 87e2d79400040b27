/** Times of a Lease, in milliseconds. One object, so that tests can shorten all of them together. */
export interface LeaseTimings {
  /** How long a renewal counts; recorded in the Lease in whole seconds, rounded up. */
  readonly durationMs: number;
  readonly renewEveryMs: number;
  /** How much earlier than that the holder stops: time for a write that was sent just before to arrive. */
  readonly marginMs: number;
  /** How often a contender looks, and how soon a renewal without an answer is tried again. */
  readonly retryMs: number;
  /** Limit of one request. */
  readonly requestMs: number;
}

export const defaultLeaseTimings: LeaseTimings = {
  durationMs: 30_000,
  renewEveryMs: 10_000,
  marginMs: 5_000,
  retryMs: 2_000,
  requestMs: 5_000,
};

/** The usual times, all of them in proportion to another duration. */
export function leaseTimings(durationMs: number): LeaseTimings {
  const scaled = (ms: number): number => Math.round((ms * durationMs) / defaultLeaseTimings.durationMs);
  const { renewEveryMs, marginMs, retryMs, requestMs } = defaultLeaseTimings;
  return {
    durationMs,
    renewEveryMs: scaled(renewEveryMs),
    marginMs: scaled(marginMs),
    retryMs: scaled(retryMs),
    requestMs: scaled(requestMs),
  };
}

/** @throws RangeError for times that could not keep a Lease. */
export function checkTimings(timings: LeaseTimings): void {
  const { durationMs, renewEveryMs, marginMs, retryMs, requestMs } = timings;
  if (Math.min(durationMs, renewEveryMs, retryMs, requestMs) <= 0 || marginMs < 0)
    throw new RangeError('lease: every time must be positive');
  if (renewEveryMs >= durationMs - marginMs)
    throw new RangeError('lease: renewEveryMs must be below durationMs - marginMs');
}
