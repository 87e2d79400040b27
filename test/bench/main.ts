/** `npm run bench`: how fast we are beside others, on this machine, now. Not part of the tests. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tiedDirectory } from '../tools/directory.ts';
import { ensureTools } from '../tools/tools.ts';
import { runAll } from './apply.ts';
import { bundleExecutors, keelson } from './contenders/keelson.ts';
import { kubectl } from './contenders/kubectl.ts';
import { kustomizeController } from './contenders/kustomize.ts';
import type { Contender } from './contenders/types.ts';
import { type BenchOptions, readOptions } from './options.ts';
import { machineFacts } from './proc.ts';
import { measureRendering } from './render.ts';
import { describe } from './report.ts';
import { summarise } from './results.ts';
import { drawResults } from './svg.ts';

const progress = (line: string): void => console.error(line);

async function benchApplying(options: BenchOptions): Promise<boolean> {
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
    const results = summarise(options, contenders, await runAll(options, contenders, progress), machine);
    if (options.svg !== '') await writeFile(options.svg, drawResults(results));
    console.log(options.output === 'json' ? JSON.stringify(results, undefined, 2) : describe(results));
    return Object.values(results.contenders).every((contender) => contender?.problems.length === 0);
  } finally {
    await work.remove();
  }
}

const options = readOptions(process.argv.slice(2));
const good = options.render ? await measureRendering(options, progress) : await benchApplying(options);
if (!good) process.exitCode = 1;
