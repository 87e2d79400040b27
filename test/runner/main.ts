/** `npm test`: gates, then the layers. The counts stand alone on the last line; the exit status is 1 on any failure. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { formatProblems, type Problem } from '../../constructs/lib/problems.ts';
import { debianProblems, ensureDebian } from '../tools/debian.ts';
import { missingDefinitions, readDefinitions } from '../tools/definitions.ts';
import { goProblem, onPath } from '../tools/prerequisites.ts';
import type { ToolOptions } from '../tools/store.ts';
import { ensureTools, missingTools } from '../tools/tools.ts';
import { openApiLayer } from './api.ts';
import { findTests } from './discover.ts';
import { gatesOf } from './gates.ts';
import { type Layer, layers } from './layers.ts';
import { type Options, parseOptions, usage } from './options.ts';
import { createReport } from './report.ts';
import { type LayerRun, runSuite } from './suite.ts';

const top = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');
const say = (text: string): void => console.log(text);

/** Layers whose folder does not exist yet are named and left out, unless the user asked for them. */
function choose(options: Options): LayerRun[] {
  return layers.flatMap((layer) => {
    const wanted = options.layers?.includes(layer.name) ?? (!layer.named && existsSync(join(top, layer.folder)));
    const files = wanted ? findTests(top, layer.folder, options.files) : [];
    if (options.layers === undefined && options.files !== undefined && files.length === 0) return [];
    if (!wanted && !layer.named && options.layers === undefined)
      say(`layer    ${layer.name} is not part of this tree (no ${layer.folder})`);
    return wanted ? [{ layer, files }] : [];
  });
}

/** Everything that this machine lacks and can not get, at once. */
async function lacking(runs: readonly LayerRun[]): Promise<Problem[]> {
  const needed = runs.filter(({ files }) => files.length > 0).map(({ layer }) => layer);
  const problems = await debianProblems([...new Set(needed.flatMap(({ packages }) => packages))]);
  const toGet = [
    ...missingTools(needed.flatMap(({ tools }) => tools)),
    ...missingDefinitions(needed.flatMap(({ definitions }) => definitions)),
  ];
  const go = toGet.length > 0 ? await goProblem(process.env) : undefined;
  if (go !== undefined) problems.push(go);
  if (!onPath('setpriv', process.env)) {
    problems.push({
      reason: 'MissingTool',
      message: 'setpriv is needed (package util-linux)',
      remedy: 'install util-linux',
    });
  }
  return problems;
}

/** Aborts when a layer's tools and packages had to be there. */
function lateFor({ name, readyByMs }: Layer, began: number): AbortSignal {
  const late = new AbortController();
  const words = `tools and packages of layer ${name} were not there ${formatDuration(readyByMs)} after the start`;
  setTimeout(() => late.abort(new Error(words)), Math.max(0, began + readyByMs - performance.now())).unref();
  return late.signal;
}

async function prepare(layer: Layer, tools: ToolOptions): Promise<void> {
  await ensureDebian(layer.packages, tools);
  for (const name of layer.definitions) await readDefinitions(name, tools);
  await ensureTools(layer.tools, tools);
}

async function main(options: Options): Promise<boolean> {
  const runs = choose(options);
  if (options.list) {
    for (const { layer, files } of runs) for (const file of files) say(`${layer.name.padEnd(8)} ${file}`);
    return true;
  }
  const report = createReport((text) => process.stdout.write(text));
  const problems = await lacking(runs);
  if (problems.length > 0) {
    report.line(formatProblems(problems));
    report.line('Without these the layers pure and api may still run: npm test -- --layers pure,api');
    report.failure('this machine lacks what the tests need');
    return report.end();
  }
  const cancel = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => cancel.abort(new Error(`stopped by ${signal}`)));
  }
  // Killing the shell or npm above does not always reach us: without them nobody waits for the result.
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && cancel.abort(new Error('the calling process has ended')), 1000).unref();
  const began = performance.now();
  const tools = (layer: Layer): ToolOptions => ({
    onProgress: (line) => report.line(`tools    ${line}`),
    signal: AbortSignal.any([cancel.signal, lateFor(layer, began)]),
  });
  return runSuite({
    top,
    env: process.env,
    runs,
    gates: options.gates ? gatesOf(top) : [],
    repeat: options.repeat,
    jobs: options.jobs,
    signal: cancel.signal,
    report,
    prepare: (layer) => prepare(layer, tools(layer)),
    open: async (layer) => (layer.sharedServer ? openApiLayer({}) : { env: {}, end: async () => [] }),
  });
}

try {
  process.exitCode = (await main(parseOptions(process.argv.slice(2)))) ? 0 : 1;
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
  console.error(`${error.message}\n${usage}`);
  process.exitCode = 2;
}
