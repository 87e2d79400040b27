/** A Lease while it is ours: renewed behind the scenes, checked before every write, lost in time. */

import { isRejection } from '../kube/outcome.ts';
import { describeRef } from '../kube/types.ts';
import type { LeaseObject } from '../kube/verbs/update.ts';
import { deadlineOf, type Instant, instantOf, isOurs, type LeaseToken } from './decide.ts';
import { discardRejection } from './quiet.ts';
import { freeLease, type LeaseOptions, leaseRef, look, renewLease } from './record.ts';
import type { LeaseTimings } from './timings.ts';

/** Why a Lease is no longer ours. `released` is the only one that we wanted. */
export type LossReason = 'expired' | 'taken' | 'deleted' | 'refused' | 'released';

/** The reason of the signal, and what {@link HeldLease.check} throws. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
  readonly reason: LossReason;
  readonly token: LeaseToken;

  constructor(reason: LossReason, message: string, token: LeaseToken) {
    super(message);
    this.reason = reason;
    this.token = token;
  }
}

/** `notOurs`: a successor (or nobody) holds it; it was left alone. */
export type ReleaseOutcome =
  | { readonly type: 'released' }
  | { readonly type: 'notOurs'; readonly holder: string }
  | { readonly type: 'failed'; readonly message: string };

export interface LeaseState {
  readonly held: boolean;
  /** Milliseconds left to write; 0 when lost. */
  readonly remainingMs: number;
  readonly renewals: number;
  readonly lost: LeaseLost | undefined;
}

const releaseTries = 3;

/** Made by an acquisition only. */
export class HeldLease {
  readonly token: LeaseToken;
  readonly #options: LeaseOptions;
  readonly #timings: LeaseTimings;
  readonly #lost = new AbortController();
  readonly #stop = new AbortController();
  readonly #renewing: Promise<void>;
  #object: LeaseObject;
  /** When the last renewal that the server acknowledged was sent. */
  #acked: Instant;
  #renewals = 0;
  #loss: LeaseLost | undefined;

  constructor(options: LeaseOptions, timings: LeaseTimings, token: LeaseToken, object: LeaseObject, sentAt: Instant) {
    this.token = token;
    this.#options = options;
    this.#timings = timings;
    this.#object = object;
    this.#acked = sentAt;
    this.#renewing = this.#renew();
    discardRejection(this.#watchDeadline());
  }

  /** Aborts when the Lease is lost or released; its reason is a {@link LeaseLost}. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  state(): LeaseState {
    this.#noticeDeadline();
    const remainingMs = this.#loss === undefined ? this.#remaining(instantOf(this.#options.clock)) : 0;
    return { held: this.#loss === undefined, remainingMs, renewals: this.#renewals, lost: this.#loss };
  }

  /** To be called before every write. @throws LeaseLost when the Lease is not surely ours any more. */
  check(): LeaseToken {
    this.#noticeDeadline();
    if (this.#loss !== undefined) throw this.#loss;
    return this.token;
  }

  /** Gives the Lease up, if it still is this very acquisition: same holder, UID and transition. Also after a loss; safe to call twice. */
  async release(): Promise<ReleaseOutcome> {
    this.#stop.abort();
    this.#lose('released', 'it was released');
    await this.#renewing;
    let message = '';
    for (let attempt = 0; attempt < releaseTries; attempt += 1) {
      const seen = await look(this.#options, this.#timings);
      if (seen.type !== 'seen') {
        message = seen.message;
        continue;
      }
      if (!isOurs(this.token, seen.look.lease) || seen.object === undefined)
        return { type: 'notOurs', holder: seen.look.lease?.holder ?? '' };
      const freed = await freeLease(this.#options, this.#timings, seen.object);
      if (freed.type === 'updated') return { type: 'released' };
      message = freed.type === 'absent' ? 'the Lease was deleted' : freed.message;
    }
    return { type: 'failed', message: `${this.#describe()}: ${message}; it is free after its duration` };
  }

  #describe(): string {
    return describeRef(leaseRef(this.#options));
  }

  /**
   * Milliseconds until this Lease is over, by the clock that says so first. The monotonic clock stands still while a
   * machine sleeps or is moved; the wall clock is set by others, and may be behind the truth but not before a write.
   */
  #remaining(at: Instant): number {
    const monotonic = deadlineOf(this.#acked.monotonic, this.#timings) - at.monotonic;
    return Math.min(monotonic, deadlineOf(this.#acked.wall, this.#timings) - at.wall);
  }

  #noticeDeadline(): void {
    if (this.#remaining(instantOf(this.#options.clock)) <= 0)
      this.#lose('expired', 'no renewal was acknowledged in time');
  }

  #lose(reason: LossReason, why: string): void {
    if (this.#loss !== undefined) return;
    this.#loss = new LeaseLost(reason, `${this.#describe()} held as ${this.token.holder}: ${why}`, this.token);
    this.#stop.abort();
    this.#lost.abort(this.#loss);
  }

  async #watchDeadline(): Promise<void> {
    const { clock } = this.#options;
    while (this.#loss === undefined) {
      await clock.sleep(Math.max(1, this.#remaining(instantOf(clock))), this.#stop.signal);
      this.#noticeDeadline();
    }
  }

  async #renew(): Promise<void> {
    const { clock } = this.#options;
    const stop = this.#stop.signal;
    let pauseMs = this.#acked.monotonic + this.#timings.renewEveryMs - clock.monotonic();
    while (!stop.aborted) {
      try {
        await clock.sleep(Math.max(0, pauseMs), stop);
        pauseMs = await this.#renewOnce();
      } catch (error) {
        if (stop.aborted) return;
        this.#lose('refused', error instanceof Error ? error.message : String(error));
      }
    }
  }

  /** One renewal; answers after how many milliseconds the next is due. */
  async #renewOnce(): Promise<number> {
    const { clock } = this.#options;
    // A clock that jumped while nobody looked: a Lease that is over is not renewed.
    this.#noticeDeadline();
    const sentAt = instantOf(clock);
    const left = this.#remaining(sentAt);
    if (this.#loss !== undefined) return this.#timings.retryMs;
    const outcome = await renewLease(
      this.#options,
      this.#timings,
      this.#object,
      this.token.transitions,
      left,
      this.#stop.signal,
    );
    if (outcome.type === 'updated') {
      this.#object = outcome.object as LeaseObject;
      // After the deadline the Lease was lost, whatever the server says of a late renewal.
      this.#noticeDeadline();
      if (this.#loss === undefined) this.#acked = sentAt;
      this.#renewals += 1;
      return sentAt.monotonic + this.#timings.renewEveryMs - clock.monotonic();
    }
    if (outcome.type === 'stale') return this.#reread();
    if (outcome.type === 'absent') this.#lose('deleted', 'the Lease was deleted');
    // What can pass is tried again until the deadline; a refusal is final.
    else if (outcome.type !== 'unavailable' && outcome.type !== 'unauthorized') this.#lose('refused', outcome.message);
    return this.#timings.retryMs;
  }

  /** Another version than ours: our own write whose reply was lost, a label set by a person, or a successor. */
  async #reread(): Promise<number> {
    const seen = await look(this.#options, this.#timings, this.#stop.signal);
    if (isRejection(seen)) return this.#timings.retryMs;
    if (isOurs(this.token, seen.look.lease) && seen.object !== undefined) {
      this.#object = seen.object;
      return 0;
    }
    const { lease } = seen.look;
    if (lease === undefined) this.#lose('deleted', 'the Lease was deleted');
    else this.#lose('taken', `it is now held by ${lease.holder || 'nobody'} (transition ${lease.transitions})`);
    return this.#timings.retryMs;
  }
}
