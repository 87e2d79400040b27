import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import {
  defaultTarLimits,
  gzipFixed,
  packTar,
  readPacked,
  readTarGz,
  UnsafeArchive,
} from '../../constructs/lib/tar.ts';

type Entry = {
  name: string;
  type?: 'file' | 'symlink' | 'link' | 'directory' | 'fifo';
  linkname?: string;
  body?: string;
};

async function archive(entries: Entry[]): Promise<Uint8Array> {
  const out = pack();
  for (const { body, ...header } of entries) out.entry(header, body ?? '');
  out.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of out) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}

const refusal = async (bytes: Uint8Array, limits = defaultTarLimits): Promise<string> => {
  const error = await readTarGz(bytes, limits).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  assert.instance(error, UnsafeArchive);
  return String(error);
};

test('an entry for the top folder is no file and no way out', async () => {
  for (const top of ['.', './'])
    assert.equal(
      (
        await readTarGz(
          await archive([
            { name: top, type: 'directory' },
            { name: 'a', body: 'a' },
          ]),
        )
      ).map((f) => f.path),
      ['a'],
    );
  const error = await readTarGz(await archive([{ name: '.', body: 'a' }])).catch((e: unknown) => e);
  assert.match(String(error), 'has no name');
});

test('files that are not wanted are let go, and checked all the same', async () => {
  const wanted = (path: string): boolean => path.startsWith('in/');
  const plain = await archive([
    { name: 'in/a', body: 'a' },
    { name: 'out/b', body: 'b' },
  ]);
  assert.equal(
    (await readTarGz(plain, defaultTarLimits, wanted)).map(({ path }) => path),
    ['in/a'],
  );
  for (const [entries, words] of [
    [[{ name: 'out/l', type: 'symlink', linkname: '/' }], 'symlink'],
    [[{ name: 'out/../../x' }], 'leaves its folder'],
    [[{ name: 'out/b' }, { name: 'out/b' }], 'two entries'],
  ] as const) {
    const error = await readTarGz(await archive([...entries]), defaultTarLimits, wanted).catch((e: unknown) => e);
    assert.instance(error, UnsafeArchive);
    assert.match(String(error), words);
  }
});

test('files come out as they went in, whatever the order', async () => {
  const files = [
    { path: 'b/c.txt', bytes: Buffer.from('c') },
    { path: 'a.txt', bytes: Buffer.from('a') },
  ];
  const one = gzipFixed(await packTar(files));
  const two = gzipFixed(await packTar([...files].reverse()));
  assert.is(sha256Hex(one), sha256Hex(two));
  assert.equal(
    (await readTarGz(one)).map((file) => [file.path, Buffer.from(file.bytes).toString()]),
    [
      ['a.txt', 'a'],
      ['b/c.txt', 'c'],
    ],
  );
});

test('the bytes are the same on every machine', async () => {
  const bytes = gzipFixed(await packTar([{ path: 'index.json', bytes: Buffer.from('{"formatVersion":1}') }]));
  assert.is(sha256Hex(bytes), '09e71210de567092e4b0a07e73a741256c05b75128a31bb16a55f4069932df4b');
});

for (const [what, entries] of [
  ['an absolute path', [{ name: '/etc/passwd' }]],
  ['a climbing path', [{ name: 'a/../../b' }]],
  ['a symbolic link', [{ name: 'a', type: 'symlink', linkname: '/etc/passwd' }]],
  ['a hard link', [{ name: 'a', type: 'link', linkname: 'b' }]],
  ['a device', [{ name: 'a', type: 'fifo' }]],
  ['a name given twice', [{ name: 'a' }, { name: './a' }]],
  ['a back slash', [{ name: 'a\\b' }]],
] as [string, Entry[]][]) {
  test(`refuses ${what}`, async () => {
    await refusal(await archive([{ name: 'fine', body: 'x' }, ...entries]));
  });
}

test('refuses too many entries, a large entry, a gzip bomb and damage', async () => {
  const three = await archive([
    { name: 'a', body: 'x' },
    { name: 'b', body: 'x' },
    { name: 'c', body: 'x' },
  ]);
  assert.match(await refusal(three, { ...defaultTarLimits, maxFiles: 2 }), 'more than 2 entries');
  const large = await archive([{ name: 'a', body: 'x'.repeat(2000) }]);
  assert.match(await refusal(large, { ...defaultTarLimits, maxFileBytes: 1000 }), 'over 1000 bytes');
  const bomb = await archive([{ name: 'a', body: '0'.repeat(8 * 1024 * 1024) }]);
  assert.match(await refusal(bomb), 'unpacks to more than');
  assert.match(await refusal(three.slice(0, three.length - 12)), 'damaged or truncated');
  assert.match(await refusal(Buffer.from('not an archive')), 'damaged or truncated');
});

test('refuses an entry whose end would never come: a folder with content, a size that is no number', async () => {
  const plain = await packTar([{ path: 'a', bytes: Buffer.from('x'.repeat(600)) }]);
  for (const [at, byte] of [
    [156, 0x35],
    [124, 0xc6],
  ] as const) {
    const tar = Buffer.from(plain);
    // The sum of a header counts every byte of it.
    const sum = Number.parseInt(tar.toString('latin1', 148, 154), 8) - tar.readUInt8(at) + byte;
    tar.writeUInt8(byte, at);
    tar.write(sum.toString(8).padStart(6, '0'), 148, 'latin1');
    assert.match(await refusal(gzipSync(tar)), 'a size that means nothing');
  }
});

test('what is packed here is read in one go, to the same files', async () => {
  const sizes = [0, 1, 511, 512, 513, 1024, 70_000];
  const files = sizes.map((size, n) => ({ path: `objects/${n}.json`, bytes: Buffer.alloc(size, `${n}`) }));
  const packed = gzipFixed(await packTar(files));
  const [quick, usual] = [await readPacked(packed, defaultTarLimits), await readTarGz(packed)];
  const told = (read: typeof usual) => read.map(({ path, bytes }) => [path, sha256Hex(bytes)]);
  assert.equal(told(quick), told(usual));
  assert.is(quick.length, files.length);
});

const packedRefusal = async (bytes: Uint8Array, limits = defaultTarLimits): Promise<string> => {
  const error = await readPacked(bytes, limits).catch((caught: unknown) => caught);
  assert.instance(error, UnsafeArchive);
  return String(error);
};

test('read in one go, nothing passes that would not pass otherwise', async () => {
  const file = { path: 'a.txt', bytes: Buffer.from('x'.repeat(700)) };
  const tar = await packTar([file, { path: 'b.txt', bytes: Buffer.from('y') }]);
  const zip = (bytes: Uint8Array): Uint8Array => gzipSync(bytes);
  assert.match(await packedRefusal(zip(tar), { ...defaultTarLimits, maxFiles: 1 }), 'more than 1 entries');
  assert.match(await packedRefusal(zip(tar), { ...defaultTarLimits, maxFileBytes: 699 }), 'over 699 bytes');
  const bomb = zip(await packTar([{ path: 'a', bytes: Buffer.alloc(8 * 1024 * 1024) }]));
  assert.match(await packedRefusal(bomb), 'unpacks to more than');
  for (const [what, bytes] of [
    ['a cut archive', zip(tar).slice(0, 60)],
    ['no archive', Buffer.from('not an archive')],
    ['a tar that ends in a header', zip(tar.slice(0, 300))],
    ['a tar that ends in a file', zip(tar.slice(0, 700))],
    ['a tar without its end', zip(tar.slice(0, 512 + 1024))],
    ['more behind its end', zip(Buffer.concat([tar, tar]))],
  ] as const)
    assert.match(await packedRefusal(bytes), 'damaged or truncated', what);
  const twice = Buffer.concat([tar.slice(0, 512 + 1024), tar]);
  assert.match(await packedRefusal(zip(twice)), 'two entries');
  const sum = Buffer.from(tar);
  sum[0] = 0x62;
  assert.match(await packedRefusal(zip(sum)), 'does not have its sum');
  for (const entry of [
    { name: '/etc/passwd' },
    { name: 'a/../../b' },
    { name: 'a\\b' },
    { name: 'a', type: 'symlink', linkname: '/etc/passwd' },
    { name: 'a', type: 'link', linkname: 'b' },
    { name: 'a', type: 'directory' },
    { name: 'é' },
    { name: '.' },
    { name: `${'long/'.repeat(40)}a` },
  ] as Entry[])
    await packedRefusal(await archive([{ name: 'fine', body: 'x' }, entry]));
});

test.run();
