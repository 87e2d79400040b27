/** What all runs come to: spreads, requests for an object, ratios, and whether the targets are met. */
import type { ApplyResults } from './apply.ts';
import type { Contender, ContenderName } from './contenders/types.ts';
import { corpus, halfOf } from './corpus.ts';
import type { Measured } from './measure.ts';
import type { BenchOptions } from './options.ts';
import type { MachineFacts } from './proc.ts';
import { type RequestCounts, sumOf } from './requests.ts';
import type { CheckedRun } from './run.ts';
import { ratioOf, type Spread, spread } from './statistics.ts';

export interface Summary {
  readonly doneSeconds: Spread;
  readonly storedSeconds: Spread;
  readonly requestsPerObject: Spread;
  /** Of the run in the middle. */
  readonly requests: RequestCounts;
  readonly clientCpuSeconds: Spread;
  readonly clientPeakMiB: Spread;
  readonly apiserverCpuSeconds: Spread;
  readonly etcdCpuSeconds: Spread;
  readonly busyBefore: Spread;
}

export interface DriftSummary {
  readonly changed: number;
  readonly repaired: number;
  readonly medianSeconds: Spread;
  readonly p95Seconds: Spread;
  readonly requests: RequestCounts;
}

export interface ContenderResult {
  readonly title: string;
  readonly cold?: Summary;
  readonly again?: Summary;
  readonly half?: Summary;
  readonly drift?: DriftSummary;
  readonly many?: Summary;
  readonly problems: readonly string[];
}

export interface Ratios {
  readonly kustomizeController?: number;
  readonly kubectl?: number;
}

export interface BenchResults {
  readonly machine: MachineFacts;
  readonly objects: number;
  readonly manyObjects: number;
  readonly runs: number;
  readonly contenders: Readonly<Partial<Record<ContenderName, ContenderResult>>>;
  /** How many times as long as ours the peers take, cold, ours without dry run; medians of the time until done. */
  readonly ratios: Ratios & { readonly withDryRun: Ratios };
  /** The same by pairs of one round: the range of single runs. */
  readonly ratioRanges: Readonly<Record<string, Spread>>;
  readonly targets: readonly Target[];
}

export interface Target {
  readonly what: string;
  readonly wanted: string;
  readonly seen: string;
  readonly met: boolean;
}

/** Requests that a contender makes for objects; the API server itself uses others for its own work. */
const forObjects = (key: string): boolean => /^(APPLY|PATCH|POST|GET|LIST|DELETE) /.test(key);

function summary(runs: readonly Measured[], objects: number): Summary | undefined {
  if (runs.length === 0) return undefined;
  const of = (value: (run: Measured) => number): Spread => spread(runs.map(value));
  const middle = [...runs].sort((a, b) => a.doneSeconds - b.doneSeconds)[Math.floor((runs.length - 1) / 2)];
  return {
    doneSeconds: of((run) => run.doneSeconds),
    storedSeconds: of((run) => run.storedSeconds),
    requestsPerObject: of((run) => sumOf(run.requests, forObjects) / objects),
    requests: middle?.requests ?? {},
    clientCpuSeconds: of((run) => run.client.cpuSeconds),
    clientPeakMiB: of((run) => run.client.peakMiB),
    apiserverCpuSeconds: of((run) => run.server.apiserverCpuSeconds),
    etcdCpuSeconds: of((run) => run.server.etcdCpuSeconds),
    busyBefore: of((run) => run.busyBefore),
  };
}

function driftSummary(runs: readonly CheckedRun[]): DriftSummary | undefined {
  const found = runs.flatMap(({ drift }) => (drift === undefined ? [] : [drift]));
  const [first] = found;
  if (first === undefined) return undefined;
  return {
    changed: found.reduce((sum, { changed }) => sum + changed, 0),
    repaired: found.reduce((sum, { repaired }) => sum + repaired, 0),
    medianSeconds: spread(found.map(({ medianSeconds }) => medianSeconds)),
    p95Seconds: spread(found.map(({ p95Seconds }) => p95Seconds)),
    requests: first.requests,
  };
}

/** An object without the members that are undefined. */
function present<T extends object>(value: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}

const measuredOf = (runs: readonly CheckedRun[], what: 'again' | 'half'): Measured[] =>
  runs.flatMap((run) => run[what] ?? []);

export function summarise(
  options: BenchOptions,
  contenders: readonly Contender[],
  results: ApplyResults,
  machine: MachineFacts,
): BenchResults {
  const all: Partial<Record<ContenderName, ContenderResult>> = {};
  const removed = options.objects - halfOf(corpus(options.objects, options.seed)).length;
  for (const { name, title } of contenders) {
    const runs = results.runs.get(name) ?? [];
    const many = results.many.get(name);
    all[name] = present<ContenderResult>({
      title,
      cold: summary(
        runs.map(({ cold }) => cold),
        options.objects,
      ),
      again: summary(measuredOf(runs, 'again'), options.objects),
      half: summary(measuredOf(runs, 'half'), removed),
      drift: driftSummary(runs),
      many: many === undefined ? undefined : summary([many.cold], options.manyObjects),
      problems: [...runs, ...(many === undefined ? [] : [many])].flatMap(({ problems }) => problems),
    });
  }
  const ranges: Record<string, Spread> = {};
  const ratio = (peer: ContenderName, ours: ContenderName): number | undefined => {
    const of = (name: ContenderName): number[] => (results.runs.get(name) ?? []).map(({ cold }) => cold.doneSeconds);
    if (of(peer).length === 0 || of(ours).length === 0) return undefined;
    const found = ratioOf(of(peer), of(ours));
    ranges[`${peer}/${ours}`] = found;
    return found.median;
  };
  const against = (ours: ContenderName): Ratios =>
    present<Ratios>({
      kustomizeController: ratio('kustomizeController', ours),
      kubectl: ratio('kubectl', ours),
    });
  const exact = { ...against('keelsonWithoutDryRun'), withDryRun: against('keelson') };
  const { withDryRun, ...withoutDryRun } = exact;
  return {
    machine,
    objects: options.objects,
    manyObjects: options.manyObjects,
    runs: options.runs,
    contenders: all,
    ratios: { ...rounded(withoutDryRun), withDryRun: rounded(withDryRun) },
    ratioRanges: ranges,
    targets: targetsOf(options.objects, exact, all),
  };
}

/** To hundredths; a target shows what was seen rounded away from what was wanted, so that it never looks met when it is not. */
const hundredths = (value: number, whole: (value: number) => number): number =>
  whole(Number((value * 100).toFixed(6))) / 100;

const rounded = (ratios: Ratios): Ratios =>
  Object.fromEntries(Object.entries(ratios).map(([peer, value]) => [peer, hundredths(value, Math.round)]));

const appliesFor = (summary: Summary | undefined, objects: number): number | undefined =>
  summary === undefined ? undefined : sumOf(summary.requests, (key) => key.startsWith('APPLY ')) / objects;

function targetsOf(
  objects: number,
  ratios: BenchResults['ratios'],
  { keelson }: Partial<Record<ContenderName, ContenderResult>>,
): Target[] {
  const least = (what: string, wanted: number, seen: number | undefined, unit = 'x'): Target[] =>
    seen === undefined
      ? []
      : [
          {
            what,
            wanted: `at least ${wanted}${unit}`,
            seen: `${hundredths(seen, Math.floor)}${unit}`,
            met: seen >= wanted,
          },
        ];
  const most = (what: string, wanted: number, seen: number | undefined, unit: string): Target[] =>
    seen === undefined
      ? []
      : [
          {
            what,
            wanted: `at most ${wanted}${unit}`,
            seen: `${hundredths(seen, Math.ceil)}${unit}`,
            met: seen <= wanted,
          },
        ];
  const drift = keelson?.drift;
  return [
    ...least('as fast as kustomize-controller, with dry run', 2, ratios.withDryRun.kustomizeController),
    ...least('as fast as kubectl, with dry run', 1, ratios.withDryRun.kubectl),
    ...least('as fast as kustomize-controller, without dry run', 3, ratios.kustomizeController),
    ...least('as fast as kubectl, without dry run', 1.5, ratios.kubectl),
    // A handful belongs to the ledger and the copies, and not to any object.
    ...most('applies for a new object, dry ones included', 2.1, appliesFor(keelson?.cold, objects), ''),
    ...most('applies for an unchanged object', 0.01, appliesFor(keelson?.again, objects), ''),
    ...most('memory with many objects', 200, keelson?.many?.clientPeakMiB.max, ' MiB'),
    ...(drift === undefined || drift.repaired < drift.changed
      ? []
      : most('drift repaired, 95 of 100', 5, drift.p95Seconds.max, ' s')),
  ];
}
