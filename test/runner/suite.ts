import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { violationsVariable } from '../faults/plan.ts';
import { tiedDirectory } from '../tools/directory.ts';
import { type FileResult, runFile } from './file.ts';
import type { Gate } from './gates.ts';
import { allowance, type Layer, latestEnds } from './layers.ts';
import { mapAtMost } from './pool.ts';
import type { Report } from './report.ts';

/** A layer with what was chosen to run of it. */
export interface LayerRun {
  readonly layer: Layer;
  readonly files: readonly string[];
}

/** What a layer's files find in their environment, and what is done after the last of them. */
export interface LayerSetting {
  readonly env: Readonly<Record<string, string>>;
  /** Ends what was started and returns what went wrong while the layer ran. */
  end(): Promise<readonly string[]>;
}

export interface SuiteOptions {
  readonly top: string;
  readonly env: NodeJS.ProcessEnv;
  readonly runs: readonly LayerRun[];
  readonly gates: readonly Gate[];
  readonly repeat: number;
  readonly jobs: number | undefined;
  readonly signal: AbortSignal;
  readonly report: Report;
  /** Gets tools and packages of all layers; started at once, each layer waits for its own. */
  readonly prepare: (layer: Layer) => Promise<void>;
  /** Starts what the layer's files share. */
  readonly open: (layer: Layer) => Promise<LayerSetting>;
}

/** Runs gates and layers in order and reports; true when nothing failed. */
export async function runSuite(options: SuiteOptions): Promise<boolean> {
  const { report, runs, signal } = options;
  const start = performance.now();
  const preparations = startPreparations(options);
  for (const gate of options.gates) {
    const began = performance.now();
    const problem = await gate.check(signal).catch((error: unknown) => String(error));
    report.gate(gate.name, problem, performance.now() - began);
  }
  if (runs.length === 0) report.failure('no layer to run');
  const ends = latestEnds(runs.map(({ layer }) => layer));
  let savedMs = 0;
  for (const [index, run] of runs.entries()) {
    if (run.files.length === 0) {
      report.failure(`layer ${run.layer.name}: no test file under ${run.layer.folder} was chosen`);
      continue;
    }
    try {
      await preparations.get(run.layer);
      const budgetMs = run.layer.budgetMs * options.repeat;
      const began = performance.now();
      await runLayer(run, allowance(budgetMs, savedMs, ends[index] ?? 0, began - start), options);
      savedMs = Math.max(0, savedMs + budgetMs - (performance.now() - began));
    } catch (error) {
      report.failure(`layer ${run.layer.name} did not run: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return report.end();
}

/** One preparation after the other, in the order of the layers, beside everything else. */
function startPreparations({ runs, prepare }: SuiteOptions): Map<Layer, Promise<void>> {
  const started = new Map<Layer, Promise<void>>();
  let last: Promise<void> = Promise.resolve();
  for (const { layer, files } of runs) {
    if (files.length === 0) continue;
    const mine = last.then(() => prepare(layer));
    // A failure is told by the layer that waits for it; the next preparation goes on.
    last = mine.catch(() => undefined);
    started.set(layer, mine);
  }
  return started;
}

async function runLayer({ layer, files }: LayerRun, budgetMs: number, options: SuiteOptions): Promise<void> {
  const { report } = options;
  const folder = await tiedDirectory('keelson-layer-');
  const violations = join(folder.path, 'violations');
  const began = performance.now();
  const setting = await options.open(layer);
  try {
    const env = { ...options.env, ...setting.env, [violationsVariable]: violations, NO_COLOR: '1' };
    const rounds = Array.from({ length: options.repeat }, () => files).flat();
    await mapAtMost(rounds, options.jobs ?? layer.jobs, async (file) => {
      const left = budgetMs - (performance.now() - began);
      report.file(layer.name, await runOrRefuse(file, left, env, options));
    });
  } finally {
    const problems = await setting.end();
    for (const problem of [...problems, ...(await readLines(violations))]) report.failure(`${layer.name}: ${problem}`);
    await folder.remove();
    const used = formatDuration(Math.round(performance.now() - began));
    report.line(`layer    ${layer.name}  ${used} of ${formatDuration(budgetMs)}`);
  }
}

async function runOrRefuse(
  file: string,
  budgetMs: number,
  env: NodeJS.ProcessEnv,
  options: SuiteOptions,
): Promise<FileResult> {
  const refused = options.signal.aborted
    ? 'the run was cancelled'
    : budgetMs <= 0
      ? "the layer's budget is used up"
      : '';
  if (refused === '') return runFile(file, { top: options.top, env, budgetMs, signal: options.signal });
  return { file, passed: 0, failed: 1, problems: [`not run: ${refused}`], durationMs: 0, output: '' };
}

async function readLines(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}
