/**
 * The decisions about a Lease, without clock or network. Times are milliseconds of the caller's own monotonic clock; what
 * another process wrote into a Lease as a time is never looked at.
 */
import type { Clock } from '../../constructs/lib/clock.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';
import type { LeaseTimings } from './timings.ts';

/** One moment on both clocks of a process. */
export interface Instant {
  readonly monotonic: number;
  readonly wall: number;
}

export const instantOf = (clock: Clock): Instant => ({ monotonic: clock.monotonic(), wall: clock.now() });

/** What a Lease says. An empty holder means that it is free. */
export interface LeaseView {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly holder: string;
  readonly durationMs: number | undefined;
  readonly transitions: number;
}

/** One uncached look: when it was asked for, and when its answer came. */
export interface Look {
  readonly sentAt: number;
  readonly receivedAt: number;
  readonly lease: LeaseView | undefined;
}

/** Proof of one acquisition: no other acquisition of any Lease has the same. */
export interface LeaseToken {
  readonly leaseUid: string;
  readonly holder: string;
  readonly transitions: number;
}

/** Who wants a Lease, and since when it has seen the Lease of another unchanged. */
export interface Contender {
  readonly identity: string;
  /** An acquisition of this very process that is over, and under which nothing is written any more. */
  readonly former?: LeaseToken;
  readonly watched?: { readonly uid: string; readonly resourceVersion: string; readonly since: number };
}

/**
 * `create`: there is none. `take`: it is free, or was ours in an earlier term, or its holder did not renew for its whole
 * duration. `resume`: it is ours
 * already (an earlier write of ours arrived though its reply was lost). `wait`: look again after `ms`.
 */
export type Contention =
  | { readonly type: 'create' }
  | { readonly type: 'take'; readonly lease: LeaseView; readonly transitions: number }
  | { readonly type: 'resume'; readonly lease: LeaseView }
  | { readonly type: 'wait'; readonly ms: number; readonly holder: string };

/** The view of a Lease object. */
export function viewOf(object: KubeObject): LeaseView {
  const spec = isObject(object.spec) ? object.spec : {};
  const seconds = spec.leaseDurationSeconds;
  return {
    uid: object.metadata.uid ?? '',
    resourceVersion: object.metadata.resourceVersion ?? '',
    holder: typeof spec.holderIdentity === 'string' ? spec.holderIdentity : '',
    durationMs: typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined,
    transitions: typeof spec.leaseTransitions === 'number' ? spec.leaseTransitions : 0,
  };
}

/**
 * What a contender does after a look. It takes the Lease of another only when two looks, the later asked for at least the
 * Lease's duration after the earlier was answered, saw the same UID and version.
 */
export function contend(
  contender: Contender,
  look: Look,
  timings: LeaseTimings,
): { readonly contender: Contender; readonly action: Contention } {
  const { lease } = look;
  // A former acquisition that was once seen not to stand never counts again: a restored copy of the Lease would name it,
  // while another may lead since.
  const { watched, former, ...plain } = contender;
  const { identity } = plain;
  if (lease === undefined) return { contender: plain, action: { type: 'create' } };
  if (lease.holder === identity) return { contender: plain, action: { type: 'resume', lease } };
  const take: Contention = { type: 'take', lease, transitions: lease.transitions + 1 };
  if (lease.holder === '') return { contender: plain, action: take };
  // Nobody has taken it since: there is no other whose end would have to be waited for.
  if (former !== undefined && isOurs(former, lease)) return { contender: { ...plain, former }, action: take };
  const same = watched !== undefined && watched.uid === lease.uid && watched.resourceVersion === lease.resourceVersion;
  const since = same ? watched.since : look.receivedAt;
  const left = since + (lease.durationMs ?? timings.durationMs) - look.sentAt;
  const next = { ...plain, watched: { uid: lease.uid, resourceVersion: lease.resourceVersion, since } };
  if (same && left <= 0) return { contender: next, action: take };
  return {
    contender: next,
    action: { type: 'wait', ms: Math.max(1, Math.min(timings.retryMs, left)), holder: lease.holder },
  };
}

/** True when the Lease still is the acquisition that the token proves. */
export function isOurs(token: LeaseToken, lease: LeaseView | undefined): lease is LeaseView {
  return (
    lease !== undefined &&
    lease.uid === token.leaseUid &&
    lease.holder === token.holder &&
    lease.transitions === token.transitions
  );
}

/** Until when a holder may write: measured from when its last acknowledged renewal was sent, on either clock. */
export function deadlineOf(sentAt: number, timings: LeaseTimings): number {
  return sentAt + timings.durationMs - timings.marginMs;
}
