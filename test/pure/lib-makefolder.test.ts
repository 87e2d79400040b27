import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { makeFolder } from '../../constructs/lib/makefolder.ts';

async function inFolder(body: (root: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keelson-folder-'));
  try {
    await body(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const codeOf = async (folder: string): Promise<string | undefined> =>
  makeFolder(folder).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  );

test('folders are made at any depth, at once by several, and again', () =>
  inFolder(async (root) => {
    const deep = join(root, 'a/b/c/d');
    await Promise.all(Array.from({ length: 8 }, () => makeFolder(deep, 0o700)));
    await makeFolder(deep, 0o755);
    assert.equal(
      ['a', 'a/b/c/d'].map((path) => statSync(join(root, path)).mode & 0o777),
      [0o700, 0o700],
    );
    assert.is(await codeOf('/'), undefined);
  }));

test('makers of neighbours do not trip over each other', () =>
  inFolder(async (root) => {
    const depths = ['', '/1', '/1/2', '/1/2/3'];
    for (let round = 0; round < 50; round += 1) {
      const place = join(root, String(round));
      const folders = depths.flatMap((depth) => [`${place}${depth}/left`, `${place}${depth}/right`]);
      const codes = await Promise.all(folders.map((folder) => codeOf(folder)));
      assert.equal([...new Set(codes)], [undefined], `round ${round}`);
    }
  }));

test('a link to a folder is one; a file, or a link to nothing, is not', () =>
  inFolder(async (root) => {
    mkdirSync(join(root, 'real'));
    symlinkSync(join(root, 'real'), join(root, 'link'));
    symlinkSync(join(root, 'nothing'), join(root, 'dangling'));
    writeFileSync(join(root, 'file'), '');
    await makeFolder(join(root, 'link/below'));
    assert.ok(existsSync(join(root, 'real/below')));
    assert.is(await codeOf(join(root, 'file')), 'EEXIST');
    assert.is(await codeOf(join(root, 'file/below')), 'ENOTDIR');
    assert.is(await codeOf(join(root, 'dangling')), 'EEXIST');
    assert.is(await codeOf(join(root, 'dangling/below')), 'EEXIST');
    assert.not(existsSync(join(root, 'nothing')));
  }));

if (process.platform === 'linux')
  test('a file system that takes no folders says so, and the attempt ends', async () => {
    assert.is(await codeOf('/proc/keelson/below'), 'ENOENT');
    assert.is(await codeOf('/proc/keelson'), 'ENOENT');
  });

test.run();
