import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonValue } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { cachedDocuments } from '../../renderer/cache/documents.ts';
import { helmCache } from '../../renderer/cache/helm.ts';
import { outcomeCache } from '../../renderer/cache/outcome.ts';
import { createRenderCache, type RenderCache, type RenderCacheOptions } from '../../renderer/cache/store.ts';
import { loadCluster } from '../../renderer/load/load.ts';
import type { ClusterFiles } from '../../renderer/load/source.ts';

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-render-cache-'));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const open = (folder: string, more: Partial<RenderCacheOptions> = {}): RenderCache =>
  createRenderCache({ folder, program: 'this', clock: systemClock, ...more });

/** Paths of everything that the cache holds, parts of writes included. */
async function entries(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function onlyEntry(folder: string): Promise<string> {
  const [only, ...more] = await entries(folder);
  assert.equal(more, []);
  return only ?? '';
}

test('an answer belongs to its question, its kind and its program', () =>
  inFolder(async (folder) => {
    const cache = open(folder);
    const value: JsonValue = { a: [1, 'zwei', null, { tiefer: true }] };
    await cache.write('helm', { chart: 'x' }, value);
    assert.equal(await cache.read('helm', { chart: 'x' }), value);
    assert.is(await cache.read('helm', { chart: 'y' }), undefined);
    assert.is(await cache.read('document', { chart: 'x' }), undefined);
    assert.is(await open(folder, { program: 'another' }).read('helm', { chart: 'x' }), undefined);
    assert.is((await stat(await onlyEntry(folder))).mode & 0o077, 0, 'nobody else reads or writes it');
  }));

test('a damaged entry is no answer, and goes', () =>
  inFolder(async (folder) => {
    const cache = open(folder);
    const damages: ((text: string) => string)[] = [
      (text) => text.replace('good', 'evil'),
      (text) => text.slice(0, -3),
      (text) => text.slice(0, 30),
      () => '',
      (text) => `${text} `,
      (text) => text.replace('\n', ' '),
    ];
    for (const damage of damages) {
      await cache.write('document', 'question', 'good');
      const path = await onlyEntry(folder);
      await writeFile(path, damage(await readFile(path, 'utf8')));
      assert.is(await cache.read('document', 'question'), undefined, String(damage));
      assert.equal(await entries(folder), [], String(damage));
    }
  }));

test('an entry under the name of another is no answer', () =>
  inFolder(async (folder) => {
    const cache = open(folder);
    await cache.write('document', 'one', 'first');
    const whole = await readFile(await onlyEntry(folder), 'utf8');
    await rm(await onlyEntry(folder));
    await cache.write('document', 'two', 'second');
    await writeFile(await onlyEntry(folder), whole);
    assert.is(await cache.read('document', 'two'), undefined);
  }));

test('a full disk costs nothing but the entry', () =>
  inFolder(async (folder) => {
    const write = async (path: string, text: string): Promise<void> => {
      await writeFile(path, text.slice(0, 10));
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    };
    const cache = open(folder, { files: { read: (path) => readFile(path, 'utf8'), write } });
    await cache.write('document', 'question', 'answer');
    assert.is(await cache.read('document', 'question'), undefined);
    assert.equal(await entries(folder), []);
    const nowhere = open(join(folder, 'file'));
    await writeFile(join(folder, 'file'), 'a file stands where the folder should be');
    await nowhere.write('document', 'question', 'answer');
    await nowhere.sweep();
    assert.is(await nowhere.read('document', 'question'), undefined);
  }));

test('several writers and readers of one entry see whole answers', () =>
  inFolder(async (folder) => {
    const caches = [open(folder), open(folder)];
    const value = 'x'.repeat(200_000);
    const answers: (JsonValue | undefined)[] = [];
    await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const cache = caches[n % 2];
        await cache?.write('helm', 'shared', value);
        answers.push(await cache?.read('helm', 'shared'));
      }),
    );
    for (const answer of answers) assert.is(answer, value);
    await onlyEntry(folder);
  }));

test('what was not used for longest goes first, down below the bound', () =>
  inFolder(async (folder) => {
    const cache = open(folder, { maxBytes: 10_000 });
    const paths = new Map<string, string>();
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const before = new Set(await entries(folder));
      await cache.write('document', name, name.repeat(2_500));
      const path = (await entries(folder)).find((one) => !before.has(one)) ?? '';
      paths.set(name, path);
      const day = 24 * 3_600_000;
      const used = new Date(Date.now() - 10 * day + paths.size * day);
      await utimes(path, used, used);
    }
    // A read is a use.
    assert.ok(await cache.read('document', 'a'));
    await cache.sweep();
    const left = new Set(await entries(folder));
    assert.equal(
      [...paths].filter(([, path]) => left.has(path)).map(([name]) => name),
      ['a', 'd', 'e'],
    );
    await cache.sweep();
    assert.is((await entries(folder)).length, 3);
  }));

const text = (...lines: string[]): Uint8Array => Buffer.from(`${lines.join('\n')}\n`);
const sourceOf = (files: Record<string, Uint8Array>): ClusterFiles => ({
  folder: 'clusters/plain',
  files: new Map(Object.entries(files)),
});

test('documents that were read before have the same values and lines; YAML is parsed for lines alone', () =>
  inFolder(async (folder) => {
    const bytes = text(
      'apiVersion: v1',
      'kind: List',
      'items:',
      '  - {kind: A, list: [1, 0755, no]}',
      '  - {kind: B}',
      '---',
      'kind: C',
      'deep:',
      '  deeper: true',
    );
    const source = sourceOf({ 'a.yaml': bytes });
    const first = await cachedDocuments(open(folder), source);
    const direct = parseYaml(Buffer.from(bytes).toString(), 'a.yaml').documents;
    assert.equal(
      first.parse(Buffer.from(bytes).toString(), 'a.yaml').documents.map(({ value }) => value),
      direct.map(({ value }) => value),
    );
    await first.keep();
    await onlyEntry(folder);
    const second = await cachedDocuments(open(folder), source);
    const { documents, problems } = second.parse(Buffer.from(bytes).toString(), 'a.yaml');
    assert.equal(problems, []);
    const told = ({ value, index, line }: (typeof direct)[number]): unknown => ({ value, index, line });
    assert.equal(documents.map(told), direct.map(told));
    for (const [n, document] of documents.entries())
      for (const path of [[], ['kind'], ['list', 1], ['deep', 'deeper'], ['absent']])
        assert.equal(document.locate(path), direct[n]?.locate(path));
  }));

test('problems are found again, with their lines, however often the folder was read', () =>
  inFolder(async (folder) => {
    const source = sourceOf({
      'cluster.yaml': text('apiVersion: keelson.dev/v1alpha1', 'kind: Cluster', 'metadata: {name: plain}', 'spec: {}'),
      'broken.yaml': text('a: 1', 'a: 2'),
    });
    const told: unknown[] = [];
    for (let n = 0; n < 3; n += 1) {
      const documents = await cachedDocuments(open(folder), source);
      const read = loadCluster(source, new Set(), documents.parse);
      await documents.keep();
      assert.not.ok(read.ok);
      told.push(read.ok ? [] : read.problems);
    }
    assert.ok((told[0] as { reason: string }[]).some(({ reason }) => reason === 'DuplicateKey'));
    assert.equal(told[1], told[0]);
    assert.equal(told[2], told[0]);
    assert.is((await entries(folder)).length, 1, 'only the file without a problem is kept');
  }));

test('what Helm gave is found by chart, values and version', () =>
  inFolder(async (folder) => {
    const cache = helmCache(open(folder));
    const proof = { chart: `sha256:${'1'.repeat(64)}`, values: `sha256:${'2'.repeat(64)}`, helm: '3.19.2' } as const;
    const output = { objects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }], stripped: ['x'] };
    assert.is(await cache.read(proof), undefined);
    await cache.write(proof, output);
    assert.equal(await cache.read(proof), output);
    for (const other of [
      { ...proof, chart: `sha256:${'3'.repeat(64)}` },
      { ...proof, values: `sha256:${'3'.repeat(64)}` },
      { ...proof, helm: '3.19.3' },
    ])
      assert.is(await cache.read(other as typeof proof), undefined);
  }));

test('a whole outcome is known for exactly these files, this folder and this standing tree', () =>
  inFolder(async (folder) => {
    const outcomes = outcomeCache(open(folder));
    const source = sourceOf({ 'cluster.yaml': text('a: 1'), 'network.yaml': text('b: 1') });
    const outcome = {
      cluster: 'plain',
      path: 'plain',
      releases: [{ name: 'r', digest: 'd', objects: 2, phases: 1 }],
      warnings: [{ reason: 'Word', message: 'mind' }],
    };
    await outcomes.write(source, outcome);
    assert.equal(await outcomes.read(source), outcome);
    const tree = new Map([['a', text('1')]]);
    await outcomes.writeLeaves(source, tree);
    assert.is(await outcomes.leaves(source, tree), true);
    const others: ClusterFiles[] = [
      sourceOf({ 'cluster.yaml': text('a: 2'), 'network.yaml': text('b: 1') }),
      sourceOf({ 'cluster.yaml': text('a: 1'), 'network.yml': text('b: 1') }),
      sourceOf({ 'cluster.yaml': text('a: 1') }),
      sourceOf({ 'cluster.yaml': text('a: 1'), 'network.yaml': text('b: 1'), 'more.yaml': text('') }),
      { ...source, folder: 'clusters/other' },
    ];
    for (const other of others) {
      assert.is(await outcomes.read(other), undefined);
      assert.is(await outcomes.leaves(other, tree), false);
    }
    for (const other of [new Map(), new Map([['a', text('2')]]), new Map([...tree, ['b', text('')]])])
      assert.is(await outcomes.leaves(source, other), false);
    // The order in which a system lists files says nothing.
    const reversed = { ...source, files: new Map([...source.files].reverse()) };
    assert.equal(await outcomes.read(reversed), outcome);
  }));

test.run();
