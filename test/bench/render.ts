/** How long rendering takes: one installation, and many cluster folders of one repository. */
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleInParts } from '../../images/bundle.ts';
import { maxChartBytes } from '../../renderer/charts/acquire.ts';
import { createChartCache } from '../../renderer/charts/cache.ts';
import { packageChart } from '../charts/build.ts';
import { tiedDirectory } from '../tools/directory.ts';
import { run } from '../tools/process.ts';
import { ensureTool } from '../tools/tools.ts';
import type { BenchOptions } from './options.ts';
import { busyShare, type MachineFacts, machineFacts } from './proc.ts';
import { markdownTable } from './report.ts';

const top = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const limitMs = 10 * 60_000;

interface Timing {
  readonly what: string;
  readonly seconds: number;
  readonly wanted?: number;
  readonly busyBefore: number;
}

/** Folders of clusters that differ as clusters do: by name and by the addresses of their nodes. */
async function makeFolders(home: string, count: number): Promise<string[]> {
  const folders: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const folder = join(home, 'clusters', `cluster-${n}`);
    await mkdir(join(home, 'clusters'), { recursive: true });
    await cp(top('clusters/example'), folder, { recursive: true });
    for (const file of ['cluster.yaml', 'inventory.yaml', 'keelson.lock.yaml', 'network.yaml']) {
      const text = await readFile(join(folder, file), 'utf8');
      const own = text
        .replaceAll('192.0.2.', `10.20.${n}.`)
        .replace('  name: example\n', `  name: cluster-${n}\n`)
        .replace('path: example\n', `path: cluster-${n}\n`);
      await writeFile(join(folder, file), own);
    }
    folders.push(folder);
  }
  return folders;
}

/** Drops everything that earlier renders left in the cache but the chart and the proofs that a lock would hold. */
async function forget(cache: string): Promise<void> {
  for (const name of await readdir(cache))
    if (name !== 'sha256' && name !== 'determinism') await rm(join(cache, name), { recursive: true });
}

async function git(home: string, ...args: string[]): Promise<void> {
  const env = { HOME: home, PATH: process.env.PATH, GIT_CONFIG_NOSYSTEM: '1' };
  const identity = ['-c', 'user.name=bench', '-c', 'user.email=bench@example.com', '-c', 'init.defaultBranch=main'];
  const result = await run('git', [...identity, ...args], { cwd: home, env, limitMs: 60_000 });
  if (result.code !== 0) throw new Error(`git ${args[0]}: ${result.stderr}`);
}

export interface RenderResults {
  readonly machine: MachineFacts;
  readonly folders: number;
  readonly timings: readonly Timing[];
}

/** Processes that prove determinism at once: a proof is two renders of Helm and a second of waiting between them. */
const provers = 6;

/** Renders one installation, and many cluster folders of one repository, as people do: each time in a new process. */
export async function measureRendering(
  options: BenchOptions,
  progress: (line: string) => void,
): Promise<RenderResults> {
  const helm = await ensureTool('helm', { onProgress: progress });
  const work = await tiedDirectory('keelson-bench-render-');
  try {
    const home = work.path;
    const cache = join(home, 'cache');
    const chart = await packageChart('new');
    const trouble = await createChartCache(cache, maxChartBytes).write(chart.digest, chart.bytes);
    if (trouble !== undefined) throw new Error(trouble);
    await bundleInParts(top('bin/keelson.ts'), join(home, 'program'));
    const repository = join(home, 'specs');
    const folders = await makeFolders(repository, options.folders);
    await git(repository, 'init', '--quiet');
    await git(repository, 'add', '.');
    await git(repository, 'commit', '--quiet', '-m', 'specs');
    const program = async (of: readonly string[], ...more: string[]): Promise<void> => {
      const profiling = options.profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profile}`];
      const args = [...profiling, join(home, 'program/keelson.mjs'), 'render', ...more];
      const result = await run(process.execPath, [...args, ...of.flatMap((folder) => ['-c', folder])], {
        cwd: repository,
        env: { HOME: home, PATH: process.env.PATH, KEELSON_CACHE: cache, KEELSON_HELM: helm },
        limitMs,
      });
      if (result.code !== 0) throw new Error(`render ended with ${result.code}: ${result.stderr}`);
    };
    const render = async (what: string, of: readonly string[], wanted?: number): Promise<Timing> => {
      const busyBefore = await busyShare();
      const began = performance.now();
      await program(of, '--out', join(home, 'rendered'));
      const seconds = (performance.now() - began) / 1_000;
      progress(`${what}: ${seconds.toFixed(2)} s`);
      return { what, seconds, busyBefore, ...(wanted === undefined ? {} : { wanted }) };
    };
    const [first = ''] = folders;
    progress('proofs of determinism, which a lock would hold');
    const shares = Array.from({ length: provers }, (_, share) => folders.filter((_folder, n) => n % provers === share));
    await Promise.all(shares.filter((share) => share.length > 0).map((share) => program(share, '--no-cache')));
    const many = `${folders.length} cluster folders`;
    const timings = [
      await render('one installation, cache empty', [first], 3),
      await render('one installation, unchanged', [first], 3),
    ];
    await rm(join(home, 'rendered'), { recursive: true });
    await forget(cache);
    timings.push(await render(`${many}, cache empty`, folders, 60));
    timings.push(await render(`${many}, nothing changed`, folders, 10));
    await change(join(first, 'manifests/web/10-config/config.yaml'));
    timings.push(await render(`${many}, one changed`, folders, 10));
    await rm(join(home, 'rendered'), { recursive: true });
    timings.push(await render(`${many}, known, into an empty place`, folders, 60));
    return { machine: machineFacts(), folders: folders.length, timings };
  } finally {
    await work.remove();
  }
}

/** Whether every figure is as wanted. */
export const asWanted = ({ timings }: RenderResults): boolean =>
  timings.every(({ seconds, wanted }) => wanted === undefined || seconds < wanted);

/** A change that changes what is rendered. */
async function change(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('greeting: hello', 'greeting: good day'));
}

/** The results as a table. */
export function describeRendering({ timings }: RenderResults): string {
  const rows = timings.map(({ what, seconds, wanted, busyBefore }) => [
    what,
    seconds.toFixed(2),
    wanted === undefined ? '' : `under ${wanted}`,
    busyBefore.toFixed(2),
  ]);
  return markdownTable(['what', 'seconds', 'wanted', 'busy before'], rows);
}
