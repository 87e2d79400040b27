import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readTreeIndex, treeFile } from '../../constructs/api/tree.ts';
import { type Digest, sha256Digest } from '../../constructs/lib/digest.ts';
import { formatProblems } from '../../constructs/lib/problems.ts';
import { buildImage } from '../../images/build.ts';
import { pushImage } from '../../images/push.ts';
import { maxChartBytes } from '../../renderer/charts/acquire.ts';
import { createChartCache } from '../../renderer/charts/cache.ts';
import { type PackagedChart, packageChart } from '../charts/build.ts';
import { runKeelson } from '../commandline.ts';
import { startCrane } from '../standins/crane.ts';
import { pushArtifact, pushBlob } from '../standins/push.ts';
import { ensureTool } from '../tools/tools.ts';

export const exampleFolder = join(import.meta.dirname, '../../clusters/example');
export const goldenFile = join(import.meta.dirname, 'example.golden.json');

/** What the example renders to, frozen. */
export interface Golden {
  /** Digest of the list of all files. */
  readonly tree: Digest;
  /** Payload digests by release. */
  readonly payloads: Readonly<Record<string, string>>;
}

/** Where images and the chart of the example come from, as references say. */
export const images: readonly (readonly [repository: string, tag: string])[] = [
  ['kubeovn/kube-ovn', 'v1.16.13'],
  ['kubeovn/vpc-nat-gateway', 'v1.16.13'],
  ['keelson/keelson', '0.1.0'],
  ['keelson/probe', '0.1.0'],
  ['demo/web', '1.4'],
];

export interface ExampleRegistry {
  readonly host: string;
  readonly chart: PackagedChart;
  close(): Promise<void>;
}

/** A real registry that holds the example's chart, and for each of its images a small one whose bytes never change. */
export async function startExampleRegistry(folder: string): Promise<ExampleRegistry> {
  const { host, close } = await startCrane();
  try {
    const chart = await packageChart('new');
    const digest = await pushBlob(host, 'charts/kube-ovn', chart.bytes);
    const mediaType = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';
    const layers = [{ mediaType, digest, size: chart.bytes.length }];
    await pushArtifact(host, 'charts/kube-ovn', 'v1.16.13', { config: {}, layers });
    for (const [repository, tag] of images) {
      const image = await buildImage({
        layout: join(folder, 'layouts', repository),
        layers: [[{ type: 'file', path: 'name', mode: 0o644, content: `${repository}:${tag}\n` }]],
        config: { entrypoint: ['/name'] },
        architecture: 'amd64',
      });
      await pushImage(image, { registry: host, repository, tag });
    }
    return { host, chart, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A folder of its own for one test, with copies of the example in it; outside of any Git repository. */
export interface Bench {
  readonly folder: string;
  /** A copy of the example. With a registry, everything that it names is found there. */
  copy(name: string, registry?: string): Promise<string>;
  /** Runs the program as its own process would. */
  keelson(args: readonly string[], env?: Record<string, string>): Promise<{ code: number; out: string; err: string }>;
  /** The environment that the program needs. */
  readonly env: Readonly<Record<string, string>>;
  dispose(): Promise<void>;
}

export async function openBench(): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-example-'));
  const env = {
    HOME: join(folder, 'home'),
    PATH: process.env.PATH ?? '',
    KEELSON_CACHE: join(folder, 'cache'),
    KEELSON_HELM: await ensureTool('helm', { onProgress: (line) => console.error(line) }),
  };
  return {
    folder,
    env,
    async copy(name, registry) {
      const copy = join(folder, name, 'clusters', 'example');
      await mkdir(join(folder, name, 'clusters'), { recursive: true });
      await cp(exampleFolder, copy, { recursive: true });
      if (registry !== undefined) await redirect(join(copy, 'cluster.yaml'), registry);
      return copy;
    },
    keelson: (args, more = {}) => runKeelson(args, { env: { ...env, ...more }, cwd: folder }),
    dispose: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Lets a mirror on this machine stand for the example's registry; references, and so the lock, stay as they are. */
async function redirect(file: string, registry: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const changed = text
    .replace('mirror: registry.example.com/kubeovn', `mirror: ${registry}/kubeovn`)
    .replace('  registries:\n', `  registries:\n    - match: registry.example.com\n      mirror: ${registry}\n`);
  await writeFile(file, changed);
}

/** Puts a chart where the program looks before it looks elsewhere. */
export async function fillCache(folder: string, chart: PackagedChart): Promise<void> {
  const trouble = await createChartCache(folder, maxChartBytes).write(chart.digest, chart.bytes);
  if (trouble !== undefined) throw new Error(trouble);
}

/** The golden of a tree in a folder. */
export async function goldenOf(folder: string): Promise<Golden> {
  const list = await readFile(join(folder, treeFile));
  const index = readTreeIndex(list);
  if (!index.ok) throw new Error(formatProblems(index.problems));
  const payloads = Object.fromEntries(index.value.releases.map(({ name, digest }) => [name, digest]));
  return { tree: sha256Digest(list), payloads };
}
