const units: readonly [string, number][] = [
  ['h', 3_600_000],
  ['ms', 1],
  ['m', 60_000],
  ['s', 1000],
];

/** A Go duration without sub-millisecond units, as the fields of our kinds take it: `90s`, `1h30m`, `250ms`. */
const durationPattern = /^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$/;

/**
 * Milliseconds of a Go duration. @throws TypeError when the text is not one.
 */
export function parseDuration(text: string): number {
  if (text === '0') return 0;
  if (!durationPattern.test(text)) throw new TypeError(`'${text}' is not a duration such as 90s, 10m or 1h30m`);
  let total = 0;
  for (const [, number, unit] of text.matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)/g)) {
    const scale = units.find(([name]) => name === unit)?.[1] ?? 0;
    total += Number(number) * scale;
  }
  return Math.round(total);
}

/** A duration in milliseconds as Go writes it, whole seconds from one second on: `1h2m0s`, `45s`, `250ms`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return 'for ever';
  const sign = ms < 0 ? '-' : '';
  const rest = Math.abs(ms);
  if (rest < 1000) return rest === 0 ? '0s' : `${sign}${Math.round(rest)}ms`;
  const seconds = Math.round(rest / 1000);
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  return `${sign}${h > 0 ? `${h}h` : ''}${h > 0 || m > 0 ? `${m}m` : ''}${s}s`;
}
