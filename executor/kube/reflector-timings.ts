import type { BackoffPolicy } from '../../constructs/lib/backoff.ts';

/** Times of a list-watch. One object, so that tests can shorten them together. */
export interface ReflectorTimings {
  /** Bounds between which the server is asked to keep a watch, in seconds. */
  readonly watchSeconds: readonly [number, number];
  /** How much longer than that we wait for its end. */
  readonly graceMs: number;
  /** A watch on which nothing arrives for so long (bookmarks come every minute) is opened anew. */
  readonly idleMs: number;
  /** A whole list at least this often, and by how large a share it varies. */
  readonly relistMs: number;
  readonly relistJitter: number;
  readonly listTimeoutMs: number;
  readonly backoff: BackoffPolicy;
  /** Failures in a row after which the place in the watch is given up for a new list. */
  readonly failuresBeforeRelist: number;
  /** A watch that ends without an event within this time counts as a failure, else a broken server is asked in a tight loop. */
  readonly shortestWatchMs: number;
  /** A watch that was open for so long ends a row of failures, however it ends. */
  readonly stableWatchMs: number;
}

export const defaultReflectorTimings: ReflectorTimings = {
  watchSeconds: [300, 600],
  graceMs: 30_000,
  idleMs: 180_000,
  relistMs: 600_000,
  relistJitter: 0.1,
  listTimeoutMs: 60_000,
  backoff: { initialMs: 800, factor: 2, maxMs: 30_000, jitter: 0.2 },
  failuresBeforeRelist: 3,
  shortestWatchMs: 1_000,
  stableWatchMs: 10_000,
};
