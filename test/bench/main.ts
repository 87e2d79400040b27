/** `npm run bench`: how fast we are beside others, on this machine, now. Not part of the tests. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tiedDirectory } from '../tools/directory.ts';
import { ensureTools } from '../tools/tools.ts';
import { measureAddresses } from './addresses/measure.ts';
import { addressesProblems, describeAddresses } from './addresses/report.ts';
import { runAll } from './apply.ts';
import { bundleExecutors, keelson } from './contenders/keelson.ts';
import { kubectl } from './contenders/kubectl.ts';
import { kustomizeController } from './contenders/kustomize.ts';
import type { Contender } from './contenders/types.ts';
import { describeEvidence, evidenceProblems } from './evidence/report.ts';
import { measureEvidence } from './evidence/rounds.ts';
import { type BenchOptions, readOptions } from './options.ts';
import { machineFacts } from './proc.ts';
import { asWanted, describeRendering, measureRendering } from './render.ts';
import { describe } from './report.ts';
import { type BenchResults, summarise } from './results.ts';
import { saveResults } from './save.ts';
import { drawResults } from './svg.ts';

const progress = (line: string): void => console.error(line);
const docs = fileURLToPath(new URL('../../docs/', import.meta.url));

async function benchApplying(options: BenchOptions): Promise<BenchResults> {
  await ensureTools(['etcd', 'kube-apiserver', 'kubectl', 'kustomize-controller'], { onProgress: progress });
  const machine = machineFacts();
  const work = await tiedDirectory('keelson-bench-');
  try {
    const { product, withoutDryRun } = await bundleExecutors(join(work.path, 'programs'));
    const all: readonly Contender[] = [
      keelson({ name: 'keelson', title: 'Keelson', program: product, profile: options.profile }),
      keelson({ name: 'keelsonWithoutDryRun', title: 'Keelson, no dry run', program: withoutDryRun, profile: '' }),
      kubectl,
      kustomizeController,
    ];
    const contenders = options.only.length === 0 ? all : all.filter(({ name }) => options.only.includes(name));
    return summarise(options, contenders, await runAll(options, contenders, progress), machine);
  } finally {
    await work.remove();
  }
}

async function benchEvidence(options: BenchOptions): Promise<boolean> {
  await ensureTools(['etcd', 'kube-apiserver'], { onProgress: progress });
  const results = await measureEvidence(options, progress);
  const problems = evidenceProblems(results);
  for (const problem of problems) progress(problem);
  console.log(options.output === 'json' ? JSON.stringify(results, undefined, 2) : describeEvidence(results));
  return problems.length === 0;
}

async function benchAddresses(options: BenchOptions): Promise<boolean> {
  await ensureTools(['etcd', 'kube-apiserver', 'metallb-controller'], { onProgress: progress });
  const results = await measureAddresses(options, progress);
  const problems = addressesProblems(results);
  for (const problem of problems) progress(problem);
  console.log(options.output === 'json' ? JSON.stringify(results, undefined, 2) : describeAddresses(results));
  return problems.length === 0;
}

async function main(options: BenchOptions): Promise<boolean> {
  if (options.evidence) return benchEvidence(options);
  if (options.addresses) return benchAddresses(options);
  const applying = options.render ? undefined : await benchApplying(options);
  const rendering = options.render || options.save ? await measureRendering(options, progress) : undefined;
  const text = [
    applying === undefined ? [] : describe(applying),
    rendering === undefined ? [] : describeRendering(rendering),
  ]
    .flat()
    .join('\n\n### Rendering\n\n');
  if (applying !== undefined && options.svg !== '') await writeFile(options.svg, drawResults(applying));
  if (applying !== undefined && options.save) {
    await writeFile(join(docs, 'benchmarks.svg'), drawResults(applying));
    await saveResults(join(docs, 'benchmarks.md'), `![cold runs](benchmarks.svg)\n\n${text}`);
  }
  const all = { ...applying, ...(rendering === undefined ? {} : { rendering }) };
  console.log(options.output === 'json' ? JSON.stringify(all, undefined, 2) : text);
  const problems = Object.values(applying?.contenders ?? {}).flatMap((contender) => contender?.problems ?? []);
  return problems.length === 0 && (rendering === undefined || asWanted(rendering));
}

if (!(await main(readOptions(process.argv.slice(2))))) process.exitCode = 1;
