/** Getting a Lease: look, decide, write, and again until it is ours or the limit passes. */
import { isRejection, type Rejection } from '../kube/outcome.ts';
import { describeRef } from '../kube/types.ts';
import type { LeaseObject } from '../kube/verbs/update.ts';
import { type Contender, type Contention, contend, instantOf, type LeaseToken, viewOf } from './decide.ts';
import { HeldLease } from './held.ts';
import { createLease, type LeaseOptions, leaseRef, look, renewLease, takeLease } from './record.ts';
import { checkTimings, defaultLeaseTimings, type LeaseTimings } from './timings.ts';

/** `busy`: the limit passed while another held it, or while the API server did not answer. */
export type AcquireOutcome =
  | { readonly type: 'held'; readonly lease: HeldLease }
  | { readonly type: 'busy'; readonly holder: string; readonly message: string }
  | Exclude<Rejection, { readonly type: 'unavailable' }>;

export interface AcquireWait {
  readonly signal: AbortSignal;
  /** How long to try. Absent: until the signal aborts. At least one look is taken. */
  readonly limitMs?: number;
  /** An earlier acquisition of this process whose work has ended: while nobody else has taken the Lease, it is not waited for. */
  readonly former?: LeaseToken;
}

/**
 * Waits for a Lease. The holder's name must be new: an acquisition is known by it when a reply is lost.
 * @throws the signal's reason on abort; then a write under way may still have made it ours until its duration passes.
 */
export async function acquireLease(options: LeaseOptions, wait: AcquireWait): Promise<AcquireOutcome> {
  const timings: LeaseTimings = { ...defaultLeaseTimings, ...options.timings };
  checkTimings(timings);
  const { clock } = options;
  const giveUpAt = wait.limitMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + wait.limitMs;
  let contender: Contender = {
    identity: options.holder,
    ...(wait.former === undefined ? {} : { former: wait.former }),
  };
  let holder = '';
  let trouble = '';
  for (;;) {
    wait.signal.throwIfAborted();
    let pauseMs = timings.retryMs;
    const seen = await look(options, timings, wait.signal);
    if (isRejection(seen)) {
      if (seen.type !== 'unavailable') return seen;
      trouble = seen.message;
    } else {
      const decided = contend(contender, seen.look, timings);
      contender = decided.contender;
      if (decided.action.type === 'wait') {
        ({ holder, ms: pauseMs } = decided.action);
        trouble = '';
      } else {
        const result = await carryOut(options, timings, decided.action, seen.object, wait.signal);
        if (result.type === 'held') return result;
        if (result.type === 'refused') return result.rejection;
        trouble = result.message;
      }
    }
    const left = giveUpAt - clock.monotonic();
    if (left <= 0) return { type: 'busy', holder, message: busyMessage(options, holder, trouble) };
    await clock.sleep(Math.min(pauseMs, left), wait.signal);
  }
}

function busyMessage(options: LeaseOptions, holder: string, trouble: string): string {
  const by = holder === '' ? '' : `, held by ${holder}`;
  return `${describeRef(leaseRef(options))} could not be had in time${by}${trouble === '' ? '' : `; ${trouble}`}`;
}

type Carried =
  | { readonly type: 'held'; readonly lease: HeldLease }
  | { readonly type: 'again'; readonly message: string }
  | { readonly type: 'refused'; readonly rejection: Exclude<Rejection, { readonly type: 'unavailable' }> };

async function carryOut(
  options: LeaseOptions,
  timings: LeaseTimings,
  action: Exclude<Contention, { readonly type: 'wait' }>,
  object: LeaseObject | undefined,
  signal: AbortSignal,
): Promise<Carried> {
  const sentAt = instantOf(options.clock);
  const outcome = await write(options, timings, action, object, signal);
  if (outcome.type === 'created' || outcome.type === 'updated') {
    const lease = outcome.object as LeaseObject;
    const { uid, transitions } = viewOf(lease);
    const token = { leaseUid: uid, holder: options.holder, transitions };
    return { type: 'held', lease: new HeldLease(options, timings, token, lease, sentAt) };
  }
  if (outcome.type === 'exists' || outcome.type === 'stale' || outcome.type === 'absent')
    return { type: 'again', message: 'another was faster' };
  return outcome.type === 'unavailable'
    ? { type: 'again', message: outcome.message }
    : { type: 'refused', rejection: outcome };
}

function write(
  options: LeaseOptions,
  timings: LeaseTimings,
  action: Exclude<Contention, { readonly type: 'wait' }>,
  object: LeaseObject | undefined,
  signal: AbortSignal,
): ReturnType<typeof createLease> | ReturnType<typeof takeLease> {
  if (action.type === 'create' || object === undefined) return createLease(options, timings, signal);
  if (action.type === 'take') return takeLease(options, timings, object, action.transitions, signal);
  return renewLease(options, timings, object, action.lease.transitions, timings.requestMs, signal);
}
