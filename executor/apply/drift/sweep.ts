/** When everything is looked at anew although no watch said anything, and in which order. Pure. */
import type { Random } from '../../../constructs/lib/clock.ts';

export interface SweepPolicy {
  /** Milliseconds between two sweeps; infinite for none. */
  readonly everyMs: number;
  /** By how large a share the pause varies, so that releases and clusters do not sweep together. */
  readonly jitter: number;
}

/** Milliseconds until the next sweep. */
export const sweepPause = ({ everyMs, jitter }: SweepPolicy, random: Random): number =>
  everyMs * (1 + jitter * (2 * random() - 1));

/** Every place once, beginning elsewhere in each round: what always comes last would be starved by what ends sweeps early. */
export function sweepOrder<T>(places: readonly T[], round: number): T[] {
  if (places.length === 0) return [];
  const start = round % places.length;
  return [...places.slice(start), ...places.slice(0, start)];
}
