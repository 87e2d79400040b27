// time limit: 180s
/** The example through every state of the cache: the same bytes, and Helm only where it is needed. */
import { appendFile, chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { packageChart } from '../charts/build.ts';
import { type Bench, fillCache, openBench } from './example-bed.ts';

interface Context {
  bench: Bench;
  /** How often Helm rendered since the last question. */
  renders: () => Promise<number>;
  /** The environment with a Helm that counts. */
  env: Record<string, string>;
}

const test = suite<Context>('render cache');

test.before(async (context) => {
  context.bench = await openBench();
  const { folder, env } = context.bench;
  const [log, helm] = [join(folder, 'helm.log'), join(folder, 'counting-helm')];
  await writeFile(helm, `#!/bin/sh -e\necho "$1" >> '${log}'\nexec '${env.KEELSON_HELM}' "$@"\n`);
  await chmod(helm, 0o755);
  context.env = { KEELSON_HELM: helm };
  context.renders = async () => {
    const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n');
    await rm(log, { force: true });
    return lines.filter((line) => line === 'template').length;
  };
});
test.after(({ bench }) => bench.dispose());

/** Digests of all files below a folder, by path. */
async function contents(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = paths.map(async (path) => [path.slice(folder.length), sha256Hex(await readFile(path))] as const);
  return Object.fromEntries((await Promise.all(read)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A cache of its own that holds the chart. */
async function freshCache({ bench }: Context, name: string): Promise<string> {
  const cache = join(bench.folder, name);
  await fillCache(cache, await packageChart('new'));
  return cache;
}

async function cacheEntries(cache: string): Promise<string[]> {
  const found = await readdir(join(cache, 'render'), { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function render(
  { bench, env }: Context,
  cache: string,
  args: readonly string[],
): Promise<{ out: string; err: string }> {
  const { code, out, err } = await bench.keelson(['render', ...args], { ...env, KEELSON_CACHE: cache });
  assert.is(code, 0, err);
  return { out, err };
}

test('cold, warm, damaged, absent and unused: the same bytes and the same words', async (context) => {
  const { bench, renders } = context;
  const folder = await bench.copy('states');
  const cache = await freshCache(context, 'cache-states');
  const out = (name: string): string => join(bench.folder, 'out-states', name);
  const without = await render(context, cache, ['-c', folder, '--out', out('without'), '--no-cache']);
  const wanted = await contents(out('without'));
  assert.ok(Object.keys(wanted).length > 50);
  assert.is(await renders(), 1);
  assert.equal(await readdir(cache), ['sha256'], '--no-cache keeps nothing');

  await render(context, cache, ['-c', folder, '--out', out('cold')]);
  assert.is(await renders(), 1);
  assert.equal(await contents(out('cold')), wanted);

  // Over what stands already nothing is rendered, and the words are those of a render.
  const again = await render(context, cache, ['-c', folder, '--out', out('cold')]);
  const slow = await render(context, cache, ['-c', folder, '--out', out('without'), '--no-cache']);
  assert.is(await renders(), 1, 'the one without a cache');
  assert.is(again.out.replaceAll(out('cold'), ''), slow.out.replaceAll(out('without'), ''));
  assert.is(again.err, slow.err);
  assert.equal(await contents(out('cold')), wanted);
  const checked = await render(context, cache, ['-c', folder, '--out', out('cold'), '--check']);
  assert.match(checked.out, 'nothing differs');
  assert.is(await renders(), 0);

  // Another place to write to: the tree is made again, Helm's part is known.
  await render(context, cache, ['-c', folder, '--out', out('warm')]);
  assert.is(await renders(), 0);
  assert.equal(await contents(out('warm')), wanted);

  // A byte of every entry turned round.
  for (const path of await cacheEntries(cache)) {
    const bytes = await readFile(path);
    bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1;
    await writeFile(path, bytes);
  }
  await render(context, cache, ['-c', folder, '--out', out('damaged')]);
  assert.is(await renders(), 1);
  assert.equal(await contents(out('damaged')), wanted);
  assert.is(without.err, slow.err);
});

test('a standing tree that somebody touched is put right, known outcome or not', async (context) => {
  const { bench } = context;
  const folder = await bench.copy('touched');
  const cache = await freshCache(context, 'cache-touched');
  const out = join(bench.folder, 'out-touched');
  await render(context, cache, ['-c', folder, '--out', out]);
  const wanted = await contents(out);
  await render(context, cache, ['-c', folder, '--out', out]);
  const [file = ''] = Object.keys(wanted).filter((path) => path.includes('/sync/30-specs/'));
  await appendFile(join(out, file), '# touched\n');
  const { code } = await bench.keelson(['render', '-c', folder, '--out', out, '--check'], { KEELSON_CACHE: cache });
  assert.is(code, 3);
  await render(context, cache, ['-c', folder, '--out', out]);
  assert.equal(await contents(out), wanted);
});

test('a changed file is rendered as without a cache, and so is its way back', async (context) => {
  const { bench, renders } = context;
  const folder = await bench.copy('changed');
  const cache = await freshCache(context, 'cache-changed');
  const out = join(bench.folder, 'out-changed');
  await render(context, cache, ['-c', folder, '--out', out]);
  const before = await contents(out);
  const reference = join(bench.folder, 'out-changed-reference');
  await cp(out, reference, { recursive: true });
  const file = join(folder, 'manifests/web/10-config/config.yaml');
  const original = await readFile(file, 'utf8');
  await writeFile(file, original.replace('greeting: hello', 'greeting: good day'));
  await renders();
  await render(context, cache, ['-c', folder, '--out', out]);
  assert.is(await renders(), 0, 'the chart and its values are as before');
  await render(context, cache, ['-c', folder, '--out', reference, '--no-cache']);
  const after = await contents(out);
  assert.equal(after, await contents(reference));
  assert.not.equal(after, before);
  await writeFile(file, original);
  await render(context, cache, ['-c', folder, '--out', out]);
  await render(context, cache, ['-c', folder, '--out', reference, '--no-cache']);
  assert.equal(await contents(out), await contents(reference));
  // Without a place to write to, the words come from what is known.
  const known = await render(context, cache, ['-c', folder]);
  const asked = await render(context, cache, ['-c', folder, '--no-cache']);
  assert.is(known.out, asked.out);
});

test('two at once share a cache', async (context) => {
  const { bench } = context;
  const folder = await bench.copy('shared');
  const cache = await freshCache(context, 'cache-shared');
  const outs = ['a', 'b', 'c'].map((name) => join(bench.folder, 'out-shared', name));
  await Promise.all(outs.map((out) => render(context, cache, ['-c', folder, '--out', out])));
  await Promise.all(outs.map((out) => render(context, cache, ['-c', folder, '--out', out])));
  const [first, ...others] = await Promise.all(outs.map(contents));
  for (const other of others) assert.equal(other, first);
});

test('a cache that can not be written costs nothing else', async (context) => {
  const { bench } = context;
  const folder = await bench.copy('unwritable');
  const cache = await freshCache(context, 'cache-unwritable');
  await mkdir(cache, { recursive: true });
  await writeFile(join(cache, 'render'), 'a file stands where the folder should be');
  const out = join(bench.folder, 'out-unwritable');
  await render(context, cache, ['-c', folder, '--out', out]);
  const { out: said } = await render(context, cache, ['-c', folder, '--out', out]);
  assert.match(said, 'nothing differs');
});

test.run();
