/** The results as text. */
import type { BenchResults, ContenderResult, Summary } from './results.ts';
import type { Spread } from './statistics.ts';

const fixed = (value: number, digits: number): string => value.toFixed(digits);

/** `3.10 (2.95-3.40)` */
const range = ({ median, min, max, runs }: Spread, digits = 2): string =>
  runs === 1 ? fixed(median, digits) : `${fixed(median, digits)} (${fixed(min, digits)}-${fixed(max, digits)})`;

/** A table as Markdown, which is also readable as it is. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function summaryRow(title: string, summary: Summary | undefined): string[][] {
  if (summary === undefined) return [];
  return [
    [
      title,
      range(summary.doneSeconds),
      range(summary.storedSeconds),
      range(summary.requestsPerObject),
      range(summary.clientCpuSeconds),
      range(summary.apiserverCpuSeconds),
      range(summary.etcdCpuSeconds),
      range(summary.clientPeakMiB, 0),
      range(summary.busyBefore),
    ],
  ];
}

const summaryHead = [
  'contender',
  'done, s',
  'last object stored, s',
  'requests for an object',
  'client CPU, s',
  'API server CPU, s',
  'etcd CPU, s',
  'client peak, MiB',
  'busy before',
];

function section(
  title: string,
  contenders: readonly ContenderResult[],
  pick: (contender: ContenderResult) => Summary | undefined,
): string[] {
  const rows = contenders.flatMap((contender) => summaryRow(contender.title, pick(contender)));
  return rows.length === 0 ? [] : [`### ${title}`, '', markdownTable(summaryHead, rows), ''];
}

function driftSection(contenders: readonly ContenderResult[]): string[] {
  const rows = contenders.flatMap(({ title, drift }) =>
    drift === undefined
      ? []
      : [[title, `${drift.repaired} of ${drift.changed}`, range(drift.medianSeconds), range(drift.p95Seconds)]],
  );
  if (rows.length === 0) return [];
  const head = ['contender', 'brought back', 'median, s', '95 of 100, s'];
  return ['### One object of a hundred altered by hand', '', markdownTable(head, rows), ''];
}

const counts = (requests: Readonly<Record<string, number>>): string =>
  Object.entries(requests)
    .map(([key, count]) => `${key}: ${count}`)
    .join(', ');

/** Everything, as Markdown. */
export function describe(results: BenchResults): string {
  const { machine, objects, manyObjects, runs, ratios, ratioRanges, targets } = results;
  const contenders = Object.values(results.contenders).filter((contender) => contender !== undefined);
  const problems = contenders.flatMap(({ title, problems: found }) => found.map((problem) => `${title}: ${problem}`));
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Linux ${machine.kernel}, Node ${machine.node}; load ${machine.loadAverage.join(' ')}; ${runs} runs of each`,
    '',
    ...section(`${objects} mixed objects, cold`, contenders, ({ cold }) => cold),
    ...section('The same again, nothing changed', contenders, ({ again }) => again),
    ...section('Half of the objects removed, no definition among them', contenders, ({ half }) => half),
    ...driftSection(contenders),
    ...section(`${manyObjects} mixed objects, cold`, contenders, ({ many }) => many),
    '### Ratios, cold: time of the peer by ours',
    '',
    `without dry run: kustomize-controller ${ratios.kustomizeController ?? '-'}, kubectl ${ratios.kubectl ?? '-'}`,
    `with dry run: kustomize-controller ${ratios.withDryRun.kustomizeController ?? '-'}, kubectl ${ratios.withDryRun.kubectl ?? '-'}`,
    ...Object.entries(ratioRanges).map(([pair, spread]) => `${pair}: single rounds ${range(spread)}`),
    '',
    '### Targets',
    '',
    markdownTable(
      ['what', 'wanted', 'seen', 'met'],
      targets.map(({ what, wanted, seen, met }) => [what, wanted, seen, met ? 'yes' : 'no']),
    ),
    '',
    '### Requests of the run in the middle, cold',
    '',
    ...contenders.flatMap(({ title, cold }) => (cold === undefined ? [] : [`${title}: ${counts(cold.requests)}`])),
    ...(problems.length === 0 ? [] : ['', '### Runs that did not do what they said', '', ...problems.slice(0, 40)]),
  ].join('\n');
}
