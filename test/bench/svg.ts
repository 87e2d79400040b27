/** A picture of the results: bars of the cold runs with their range, drawn by hand. */
import type { BenchResults, ContenderResult } from './results.ts';

const width = 760;
const left = 230;
const barHeight = 26;
const rowHeight = 44;
const top = 64;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

interface Bar {
  readonly title: string;
  readonly ours: boolean;
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

function barsOf(contenders: readonly ContenderResult[]): Bar[] {
  return contenders
    .flatMap(({ title, cold }) =>
      cold === undefined ? [] : [{ title, ours: /keelson/i.test(title), ...cold.doneSeconds }],
    )
    .sort((a, b) => a.median - b.median);
}

function drawn(bar: Bar, row: number, scale: number): string[] {
  const y = top + row * rowHeight;
  const at = (seconds: number): string => (left + seconds * scale).toFixed(1);
  const middle = y + barHeight / 2;
  const color = bar.ours ? '#2563eb' : '#94a3b8';
  return [
    `<text x="${left - 10}" y="${middle + 5}" text-anchor="end">${escaped(bar.title)}</text>`,
    `<rect x="${left}" y="${y}" width="${(bar.median * scale).toFixed(1)}" height="${barHeight}" fill="${color}"/>`,
    `<path d="M${at(bar.min)} ${middle}H${at(bar.max)}M${at(bar.min)} ${middle - 5}v10M${at(bar.max)} ${middle - 5}v10" stroke="#0f172a" fill="none"/>`,
    `<text x="${(left + bar.max * scale + 8).toFixed(1)}" y="${middle + 5}">${bar.median.toFixed(2)} s</text>`,
  ];
}

/** An SVG document of the cold runs. */
export function drawResults(results: BenchResults): string {
  const contenders = Object.values(results.contenders).filter((contender) => contender !== undefined);
  const bars = barsOf(contenders);
  const longest = Math.max(0.001, ...bars.map(({ max }) => max));
  const scale = (width - left - 90) / longest;
  const height = top + bars.length * rowHeight + 30;
  const { objects, runs, machine } = results;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="14">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="16" y="28" font-size="17" font-weight="600">${objects} mixed objects into an empty cluster</text>`,
    `<text x="16" y="48" fill="#475569">seconds until done; median and range of ${runs} runs, ${machine.cores} cores for everything, etcd with fsync</text>`,
    ...bars.flatMap((bar, row) => drawn(bar, row, scale)),
    '</svg>',
    '',
  ].join('\n');
}
