// time limit: 180s
/** Many folders in several threads of the real program: the same bytes and words as in one, and nothing half-written. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { threadsFor } from '../../bin/render/shares.ts';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { runKeelson, type Said } from '../commandline.ts';
import { exampleFolder } from './render-support.ts';

const program = join(import.meta.dirname, '../../bin/keelson.ts');
const count = 17;

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-render-threads-'));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Copies of the plain cluster, each with a name and one value of its own; answers the `-c` options for all. */
async function makeClusters(home: string): Promise<string[]> {
  await mkdir(join(home, 'clusters'));
  const args: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const folder = join(home, 'clusters', `plain-${n}`);
    await cp(exampleFolder, folder, { recursive: true });
    for (const file of await readdir(folder, { withFileTypes: true })) {
      if (!file.isFile() || !file.name.endsWith('.yaml')) continue;
      const text = await readFile(join(folder, file.name), 'utf8');
      await writeFile(join(folder, file.name), text.replace(/name: example$/m, `name: plain-${n}`));
    }
    args.push('-c', `clusters/plain-${n}`);
  }
  return args;
}

async function contents(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = paths.map(async (path) => [path.slice(folder.length), sha256Hex(await readFile(path))] as const);
  return Object.fromEntries((await Promise.all(read)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const environment = (home: string): Record<string, string> => ({
  HOME: home,
  PATH: process.env.PATH ?? '',
  KEELSON_CACHE: join(home, 'cache'),
});

/** As its own process, which may use threads. */
function inThreads(home: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { cwd: home, env: environment(home) }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out: out.trimEnd(), err: err.trimEnd() });
    });
  });
}

/** Inside of this one, which has no threads to give. */
const inOne = (home: string, args: readonly string[]): Promise<Said> =>
  runKeelson(args, { env: environment(home), cwd: home });

test('threads are for many folders and no more than there are cores', () => {
  assert.equal(
    [
      [1, 2],
      [15, 2],
      [16, 2],
      [100, 2],
      [100, 1],
      [100, 64],
      [40, 64],
    ].map(([folders = 0, cores = 0]) => threadsFor(folders, cores)),
    [1, 1, 2, 2, 1, 8, 5],
  );
});

test('the same bytes and words, cold and known', () =>
  inFolder(async (home) => {
    const args = ['render', ...(await makeClusters(home))];
    const cold = await inThreads(home, [...args, '--out', 'threads']);
    assert.is(cold.code, 0, cold.err);
    const single = await inOne(home, [...args, '--out', 'one', '--no-cache']);
    assert.is(single.code, 0, single.err);
    const wanted = await contents(join(home, 'one'));
    assert.ok(Object.keys(wanted).length > count * 10);
    assert.equal(await contents(join(home, 'threads')), wanted);
    assert.is(cold.out.replaceAll('/threads/', '/one/'), single.out);
    const known = await inThreads(home, [...args, '--out', 'threads', '--check']);
    assert.is(known.code, 0, known.err);
    assert.match(known.out, 'nothing differs');
  }));

test('one bad folder keeps all of them from being written, and every problem is told', () =>
  inFolder(async (home) => {
    const args = ['render', ...(await makeClusters(home)), '--out', 'out'];
    for (const n of [3, 4]) await writeFile(join(home, `clusters/plain-${n}/bad.yaml`), 'a: 1\na: 2\n');
    const { code, err } = await inThreads(home, args);
    assert.is(code, 2, err);
    assert.match(err, 'clusters/plain-3/bad.yaml');
    assert.match(err, 'clusters/plain-4/bad.yaml');
    assert.equal(await contents(join(home, 'out')), {});
  }));

test.run();
