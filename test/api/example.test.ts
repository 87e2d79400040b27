// time limit: 180s
/** The committed example: its lock is current, and it renders offline to the frozen bytes wherever that is done. */
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { packageChart } from '../charts/build.ts';
import { type StandInServer, startServer } from '../standins/httpserver.ts';
import { run } from '../tools/process.ts';
import {
  type Bench,
  exampleFolder,
  fillCache,
  goldenFile,
  goldenOf,
  openBench,
  startExampleRegistry,
} from './example-bed.ts';

interface Context {
  bench: Bench;
  /** Counts connections where Helm's kubeconfig and the proxy of the environment point. */
  trap: StandInServer;
}

const test = suite<Context>('example');
const again = 'when the change is meant: node bootstrap.mjs test/api/example-freeze.ts';
const nowhere = 'https://127.0.0.1:1';

test.before(async (context) => {
  context.bench = await openBench();
  context.trap = await startServer((_, response) => response.end('{}'));
  await fillCache(context.bench.env.KEELSON_CACHE ?? '', await packageChart('new'));
});
test.after(async ({ bench, trap }) => {
  await trap.close();
  await bench.dispose();
});

/** Contents of all files below a folder, by path. */
async function contents(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = paths.map(async (path) => [path.slice(folder.length), sha256Hex(await readFile(path))] as const);
  return Object.fromEntries((await Promise.all(read)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A Helm whose kubeconfig leads to the trap instead of nowhere; it fails when it was given no such kubeconfig. */
async function trappedHelm({ bench, trap }: Context): Promise<string> {
  const file = join(bench.folder, 'helm');
  const script = [
    '#!/bin/sh -e',
    `/bin/grep -q '${nowhere}' "$KUBECONFIG"`,
    `/bin/sed -i 's#${nowhere}#${trap.url}#' "$KUBECONFIG"`,
    `exec '${bench.env.KEELSON_HELM}' "$@"`,
  ];
  await writeFile(file, `${script.join('\n')}\n`);
  await chmod(file, 0o755);
  return file;
}

test('lock resolves the committed chart and images to the committed digests', async ({ bench }) => {
  const registry = await startExampleRegistry(bench.folder);
  try {
    const folder = await bench.copy('locked', registry.host);
    const lock = join(folder, 'keelson.lock.yaml');
    const unchanged = await bench.keelson(['lock', '-c', folder]);
    assert.is(unchanged.code, 0, unchanged.err);
    assert.match(unchanged.out, /nothing changed/);
    await rm(lock);
    // An empty cache: the chart, too, comes from the registry.
    const fresh = await bench.keelson(['lock', '-c', folder], { KEELSON_CACHE: join(bench.folder, 'empty') });
    assert.is(fresh.code, 0, `${fresh.err}\n${again}`);
    assert.is(await readFile(lock, 'utf8'), await readFile(join(exampleFolder, 'keelson.lock.yaml'), 'utf8'), again);
  } finally {
    await registry.close();
  }
});

test('it renders offline to the frozen tree and payloads, and Helm contacts no API server', async (context) => {
  const { bench, trap } = context;
  const folder = await bench.copy('golden');
  const out = join(bench.folder, 'golden-out');
  const locked = { KEELSON_HELM: await trappedHelm(context), HTTPS_PROXY: trap.url };
  const rendered = await bench.keelson(['render', '-c', folder, '--out', out], locked);
  assert.is(rendered.code, 0, rendered.err);
  assert.is(trap.connections(), 0, 'connections of Helm, or through the proxy');
  const frozen = JSON.parse(await readFile(goldenFile, 'utf8'));
  assert.equal(await goldenOf(join(out, 'example')), frozen, again);
  const unchanged = await bench.keelson(['render', '-c', folder, '--out', out, '--check']);
  assert.is(unchanged.code, 0, unchanged.out);
  // Beside the daemons, and in pods of its own, by the digest of the lock.
  const payload = join(out, 'example/payload/network-example');
  const files = (await readdir(payload, { recursive: true })).filter((file) => file.endsWith('.yaml'));
  const probes = await Promise.all(
    files.map(async (file) => {
      const found = (await readFile(join(payload, file), 'utf8')).match(/keelson\/probe@sha256:[0-9a-f]{64}/g);
      return found === null ? [] : [`${file.replace(/^.*_/, '')} ${found.length}`];
    }),
  );
  const workloads = ['keelson-network-client', 'keelson-network-server', 'ovn-central', 'ovs-ovn'];
  assert.equal(
    probes.flat().sort(),
    workloads.map((name) => `${name}.yaml ${name === 'ovs-ovn' ? 2 : 1}`),
  );
});

test('the trap would count what Helm sends to a cluster', async (context) => {
  const kubeconfig = join(context.bench.folder, 'kubeconfig');
  const cluster = { name: 'none', cluster: { server: nowhere } };
  const config = { apiVersion: 'v1', kind: 'Config', clusters: [cluster], users: [], contexts: [] };
  const chosen = {
    contexts: [{ name: 'none', context: { cluster: 'none', user: 'none' } }],
    'current-context': 'none',
  };
  await writeFile(kubeconfig, JSON.stringify({ ...config, ...chosen }));
  const env = { HOME: context.bench.folder, KUBECONFIG: kubeconfig };
  await run(await trappedHelm(context), ['list'], { env, limitMs: 30_000 });
  assert.ok(context.trap.connections() > 0);
});

test('the same bytes in other processes, whatever the time zone, language, umask and order of folders', async ({
  bench,
}) => {
  const program = join(import.meta.dirname, '../../bin/keelson.ts');
  const shuffle = join(import.meta.dirname, 'shuffled-folders.ts');
  const variants: { env: Record<string, string>; umask: string; node: string[] }[] = [
    { env: { TZ: 'UTC', LANG: 'C' }, umask: '022', node: [] },
    {
      env: { TZ: 'Pacific/Chatham', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' },
      umask: '077',
      node: ['--import', shuffle],
    },
    { env: { TZ: 'America/St_Johns', LANG: 'sv_SE.UTF-8' }, umask: '002', node: ['--import', shuffle] },
  ];
  const trees: Record<string, string>[] = [];
  const chart = await packageChart('new');
  for (const [index, { env, umask, node }] of variants.entries()) {
    const folder = await bench.copy(`variant-${index}`);
    const out = join(bench.folder, `variant-${index}-out`);
    await mkdir(out);
    const cache = join(bench.folder, `cache-${index}`);
    await fillCache(cache, chart);
    const argv = [process.execPath, ...node, program, 'render', '-c', folder, '--out', out];
    const result = await run('/bin/sh', ['-c', `umask ${umask}; exec "$0" "$@"`, ...argv], {
      env: { ...bench.env, ...env, KEELSON_CACHE: cache },
      limitMs: 60_000,
    });
    assert.is(result.code, 0, result.stderr);
    trees.push(await contents(join(out, 'example')));
  }
  const [first, ...others] = trees;
  assert.ok(Object.keys(first ?? {}).length > 80);
  for (const tree of others) assert.equal(tree, first);
  assert.is(`sha256:${first?.['/.keelson/tree.json']}`, JSON.parse(await readFile(goldenFile, 'utf8')).tree);
});

test.run();
