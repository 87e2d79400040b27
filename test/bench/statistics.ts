/** Medians and ranges: few runs on a small machine bear no finer statistics. */

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly runs: number;
}

/** @throws RangeError for no values. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number): number => {
    const value = sorted[index];
    if (value === undefined) throw new RangeError('a spread of no values');
    return value;
  };
  const middle = Math.floor((sorted.length - 1) / 2);
  const median = sorted.length % 2 === 1 ? at(middle) : (at(middle) + at(middle + 1)) / 2;
  return { median, min: at(0), max: at(sorted.length - 1), runs: sorted.length };
}

/**
 * How many times as long the peer takes, by the medians. The range pairs the contenders' runs of the same round, which
 * had the machine in the same mood.
 */
export function ratioOf(peer: readonly number[], ours: readonly number[]): Spread {
  const pairs = peer.slice(0, ours.length).map((value, n) => value / (ours[n] ?? value));
  return { ...spread(pairs), median: spread(peer).median / spread(ours).median };
}

/** The value below which the given share of values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? 0;
}
