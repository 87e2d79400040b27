import { spawn } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { replaceFile } from '../../constructs/lib/replacefile.ts';

async function inFolder(body: (root: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keelson-replace-'));
  try {
    await body(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

test('a file is made and replaced, and nothing is left beside it', () =>
  inFolder(async (root) => {
    const file = join(root, 'file');
    for (const text of ['one', 'two']) {
      await replaceFile(file, text);
      assert.is(readFileSync(file, 'utf8'), text);
    }
    await replaceFile(file, 'three', join(root, '.file.part'));
    assert.is(readFileSync(file, 'utf8'), 'three');
    assert.equal(readdirSync(root), ['file']);
  }));

test('a link where the new content grows is not written through', () =>
  inFolder(async (root) => {
    const victim = join(root, 'victim');
    const nowhere = join(root, 'nowhere');
    mkdirSync(join(root, 'out'));
    const file = join(root, 'out/file');
    for (const part of [undefined, join(root, 'out/.file.part')])
      for (const to of [victim, nowhere]) {
        const name = part ?? `${file}.part`;
        writeFileSync(victim, 'precious');
        symlinkSync(to, name);
        await replaceFile(file, 'new', part);
        assert.is(readFileSync(victim, 'utf8'), 'precious', name);
        assert.not(readdirSync(root).includes('nowhere'), name);
        assert.ok(lstatSync(file).isFile(), name);
        assert.is(readFileSync(file, 'utf8'), 'new');
        assert.equal(readdirSync(join(root, 'out')), ['file']);
        rmSync(file);
      }
  }));

test('what is left over of a process that ended midway is no obstacle', () =>
  inFolder(async (root) => {
    const file = join(root, 'file');
    writeFileSync(`${file}.part`, 'half');
    await replaceFile(file, 'whole');
    assert.is(readFileSync(file, 'utf8'), 'whole');
    assert.equal(readdirSync(root), ['file']);
  }));

test('a link in the place of the file is replaced, and what it leads to stays', () =>
  inFolder(async (root) => {
    const [file, victim] = [join(root, 'file'), join(root, 'victim')];
    writeFileSync(victim, 'precious');
    symlinkSync(victim, file);
    await replaceFile(file, 'new');
    assert.ok(lstatSync(file).isFile());
    assert.equal([readFileSync(file, 'utf8'), readFileSync(victim, 'utf8')], ['new', 'precious']);
  }));

test('what can not be written leaves the old content, and nothing beside it', () =>
  inFolder(async (root) => {
    const file = join(root, 'file');
    mkdirSync(join(file, 'below'), { recursive: true });
    const error = await replaceFile(file, 'new').then(
      () => undefined,
      (reason: Error) => reason,
    );
    assert.match(error?.message ?? '', `${file} can not be written: a folder stands in its place`);
    assert.equal(readdirSync(root), ['file']);
  }));

test('of two processes that write one file at once, each by a name of its own, each ends well, and every look finds one content whole', () =>
  inFolder(async (root) => {
    const file = join(root, 'file');
    const [size, times] = [1 << 20, 60];
    const program = join(root, 'writer.mjs');
    const source = join(import.meta.dirname, '../../constructs/lib/replacefile.ts');
    writeFileSync(
      program,
      `import { replaceFile } from ${JSON.stringify(source)};
       const [file, letter] = process.argv.slice(2);
       for (let n = 0; n < ${times}; n += 1) await replaceFile(file, letter.repeat(${size}), file + '.part.' + process.pid);`,
    );
    let running = 2;
    const ends = ['a', 'b'].map(
      (letter) =>
        new Promise<{ code: number | null; err: string }>((resolve) => {
          const child = spawn(process.execPath, [program, file, letter], { stdio: ['ignore', 'ignore', 'pipe'] });
          let err = '';
          child.stderr.on('data', (chunk) => {
            err += chunk;
          });
          child.on('close', (code) => {
            running -= 1;
            resolve({ code, err });
          });
        }),
    );
    const whole = (): boolean => {
      const text = readFileSync(file, 'utf8');
      return text.length === size && text === text[0]?.repeat(size);
    };
    await replaceFile(file, 'a'.repeat(size));
    while (running > 0) {
      assert.ok(whole(), 'a part was seen');
      await new Promise(setImmediate);
    }
    assert.equal(await Promise.all(ends), Array(2).fill({ code: 0, err: '' }));
    assert.ok(whole());
    assert.equal(readdirSync(root).sort(), ['file', 'writer.mjs']);
  }));

test.run();
