// time limit: 240s
/** The published package: packed, installed into an empty folder, run by the Node that is there and by the pinned one. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { packageChart } from '../charts/build.ts';
import { type RunResult, run } from '../tools/process.ts';
import { type Bench, fillCache, goldenFile, goldenOf, openBench } from './example-bed.ts';

interface Context {
  folder: string;
  /** Where the package was installed. */
  home: string;
  files: string[];
  bench: Bench;
}

const test = suite<Context>('package');
const top = join(import.meta.dirname, '../..');
const limitMs = 120_000;
const manifestOf = async (folder: string): Promise<Record<string, Record<string, string>>> =>
  JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));

async function done(result: Promise<RunResult>): Promise<string> {
  const { code, stdout, stderr } = await result;
  assert.is(code, 0, `${stdout}\n${stderr}`);
  return stdout.trim();
}

test.before(async (context) => {
  context.folder = await mkdtemp(join(tmpdir(), 'keelson-package-'));
  context.home = join(context.folder, 'home');
  context.bench = await openBench();
  await mkdir(context.home);
  await writeFile(join(context.home, 'package.json'), '{"private":true}\n');
  const packed = JSON.parse(
    await done(run('npm', ['pack', '--json', '--pack-destination', context.folder], { cwd: top, limitMs })),
  );
  const [{ filename, files }] = Array.isArray(packed) ? packed : Object.values(packed);
  context.files = files.map(({ path }: { path: string }) => path);
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  await done(run('npm', [...install, join(context.folder, filename)], { cwd: context.home, limitMs }));
});
test.after(async ({ folder, bench }) => {
  await bench.dispose();
  await rm(folder, { recursive: true, force: true });
});

test('the program, the readme and the licence are packed, and nothing of tests or the quickstart', ({ files }) => {
  const others = files.filter((path) => !/^dist\/[\w-]+\.mjs$/.test(path));
  const probe = ['keelson', 'keelson-offer', 'network-probe'].map((name) => `dist/probe/${name}`);
  assert.equal(others.sort(), ['LICENSE', 'README.md', 'bin/keelson.mjs', ...probe, 'package.json']);
  assert.ok(files.includes('dist/keelson.mjs'));
});

test('nothing else is needed but a Node', async ({ home }) => {
  const installed = await manifestOf(join(home, 'node_modules/keelson'));
  assert.is(installed.dependencies, undefined);
  const optional = Object.keys(installed.optionalDependencies ?? {});
  assert.ok(optional.length > 0 && optional.every((name) => name.startsWith('node-linux-')), optional.join());
  const names = (await readdir(join(home, 'node_modules'))).filter((name) => !name.startsWith('.'));
  assert.equal(names, ['keelson', `node-${process.platform}-${process.arch}`]);
});

test('npx runs it', async ({ home }) => {
  const { version } = await manifestOf(top);
  assert.is(await done(run('npx', ['--no-install', 'keelson', '--version'], { cwd: home, limitMs })), version);
  const told = await done(run('npx', ['--no-install', 'keelson', 'explain', 'GatesBypassed'], { cwd: home, limitMs }));
  assert.match(told, /^GatesBypassed \(info\)/);
  const unknown = await run('npx', ['--no-install', 'keelson', 'explain', 'NoSuchReason'], { cwd: home, limitMs });
  assert.is(unknown.code, 2, unknown.stderr);
});

test('it builds its own images, of its programs and the pinned Node, with nothing else at hand', async ({ home }) => {
  for (const which of [[], ['--probe']]) {
    const build = ['--no-install', 'keelson', 'image', 'build', ...which, '--oci', 'image', '-o', 'json'];
    const built = JSON.parse(await done(run('npx', build, { cwd: home, limitMs })));
    const index = JSON.parse(await readFile(join(home, 'image/index.json'), 'utf8'));
    assert.is(index.manifests[0].digest, built.digest);
    await rm(join(home, 'image'), { recursive: true });
  }
});

test('whatever Node starts it, exit status and output are the same', async ({ home }) => {
  const shim = join(home, 'node_modules/keelson/bin/keelson.mjs');
  // The one on the PATH may be too old for the program itself.
  for (const node of [process.execPath, 'node']) {
    const wrong = await run(node, [shim, 'render', '-c', 'missing'], { cwd: home, limitMs });
    assert.is(wrong.code, 2, `${node}: ${wrong.stderr}`);
    assert.match(wrong.stderr, /FolderMissing/, node);
  }
});

test('the bundle renders the example to the frozen bytes', async ({ home, bench }) => {
  await fillCache(bench.env.KEELSON_CACHE ?? '', await packageChart('new'));
  const out = join(home, 'out');
  const argv = ['--no-install', 'keelson', 'render', '-c', await bench.copy('packaged'), '--out', out];
  await done(run('npx', argv, { cwd: home, env: { ...bench.env }, limitMs }));
  assert.equal(await goldenOf(join(out, 'example')), JSON.parse(await readFile(goldenFile, 'utf8')));
});

test('start-up time is told', async ({ home }) => {
  const program = join(home, 'node_modules/keelson/dist/keelson.mjs');
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const began = performance.now();
    await done(run(process.execPath, [program, '--version'], { limitMs }));
    times.push(performance.now() - began);
  }
  const [fastest = 0, , median = 0] = times.sort((a, b) => a - b);
  console.log(`start-up: ${Math.round(fastest)} ms at best, median ${Math.round(median)} ms (300 ms wanted)`);
  assert.ok(fastest > 0);
});

test.run();
