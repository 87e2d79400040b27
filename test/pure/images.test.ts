import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { extract } from 'tar-stream';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { type BuiltImage, buildImage } from '../../images/build.ts';
import { parseDepends } from '../../images/debian.ts';
import { completeEntries, type LayerEntry, treeEntries } from '../../images/layer.ts';
import { parseLdd } from '../../images/libraries.ts';

let directory = '';
test.before(() => {
  directory = mkdtempSync(join(tmpdir(), 'keelson-images-'));
});
test.after(() => rmSync(directory, { recursive: true, force: true }));

function blob(image: BuiltImage, digest: string): Buffer {
  return readFileSync(join(image.layout, 'blobs', 'sha256', digest.slice('sha256:'.length)));
}

async function tarHeaders(bytes: Buffer): Promise<string[]> {
  const archive = extract();
  archive.end(bytes);
  const lines: string[] = [];
  for await (const entry of archive) {
    const { type, name, mode, uid, gid, mtime, linkname } = entry.header;
    lines.push(`${type} ${name} ${(mode ?? 0).toString(8)} ${uid}:${gid} ${mtime?.getTime()} ${linkname ?? ''}`.trim());
    entry.resume();
  }
  return lines;
}

function tree(name: string, time: number): string {
  const root = join(directory, name);
  mkdirSync(join(root, 'bin'), { recursive: true });
  writeFileSync(join(root, 'bin', 'tool'), 'tool');
  chmodSync(join(root, 'bin', 'tool'), 0o750);
  symlinkSync('tool', join(root, 'bin', 'alias'));
  utimesSync(join(root, 'bin', 'tool'), time, time);
  return root;
}

async function build(root: string, layout: string): Promise<BuiltImage> {
  return buildImage({
    layout: join(directory, layout),
    layers: [
      await treeEntries(root, 'opt'),
      [
        { type: 'file', path: 'etc/x/y', mode: 0o644, content: 'y', uid: 7, gid: 8 },
        { type: 'directory', path: 'tmp', mode: 0o1777 },
      ],
    ],
    config: { entrypoint: ['/opt/bin/tool'], user: '1:2', env: { A: 'b' } },
    architecture: 'amd64',
  });
}

test('the same files give the same image, whatever their times and places', async () => {
  const one = await build(tree('one', 1_000), 'layout-one');
  const two = await build(tree('two', 2_000_000), 'layout-two');
  assert.is(one.digest, two.digest);
  const other = tree('three', 1);
  writeFileSync(join(other, 'bin', 'tool'), 'TOOL');
  assert.is.not((await build(other, 'layout-three')).digest, one.digest);
});

test('digests and sizes are those of the bytes, from the index down to the layers', async () => {
  const image = await build(tree('four', 1), 'layout-four');
  for (const part of [image.index, image.manifest, ...image.blobs]) {
    assert.is(sha256Digest(blob(image, part.digest)), part.digest);
    assert.is(blob(image, part.digest).length, part.size);
  }
  const index = JSON.parse(blob(image, image.digest).toString());
  assert.equal(index.manifests[0].platform, { architecture: 'amd64', os: 'linux' });
  const manifest = JSON.parse(blob(image, index.manifests[0].digest).toString());
  const config = JSON.parse(blob(image, manifest.config.digest).toString());
  assert.equal(
    config.rootfs.diff_ids,
    manifest.layers.map((layer: { digest: string }) => layer.digest),
  );
  assert.equal(config.config, { Entrypoint: ['/opt/bin/tool'], User: '1:2', Env: ['A=b'] });
  const layout = JSON.parse(readFileSync(join(image.layout, 'index.json'), 'utf8'));
  assert.is(layout.manifests[0].digest, image.digest);
});

test('a layer has every parent, sorted, without times, with the owners given', async () => {
  const image = await build(tree('five', 1), 'layout-five');
  const [, tools, files] = image.blobs;
  assert.equal(await tarHeaders(blob(image, tools?.digest ?? '')), [
    'directory opt 755 0:0 0',
    'directory opt/bin 755 0:0 0',
    'symlink opt/bin/alias 777 0:0 0 tool',
    'file opt/bin/tool 750 0:0 0',
  ]);
  assert.equal(await tarHeaders(blob(image, files?.digest ?? '')), [
    'directory etc 755 0:0 0',
    'directory etc/x 755 0:0 0',
    'file etc/x/y 644 7:8 0',
    'directory tmp 1777 0:0 0',
  ]);
});

test('two entries for one path are refused', () => {
  const entry: LayerEntry = { type: 'file', path: 'a', mode: 0o644, content: '' };
  assert.throws(() => completeEntries([entry, { ...entry }]), /two entries for \/a/);
});

test('what ldd and apt-cache print is read', () => {
  const ldd = [
    '\tlinux-vdso.so.1 (0x00007f00)',
    '\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f01)',
    '\t/lib64/ld-linux-x86-64.so.2 (0x00007f02)',
  ];
  assert.equal(parseLdd(ldd.join('\n')), ['/lib/x86_64-linux-gnu/libc.so.6', '/lib64/ld-linux-x86-64.so.2']);
  const depends = [
    'ovn-host',
    ' |Depends: lsb-release',
    '  PreDepends: libc6',
    '  Depends: <python3:any>',
    '    python3',
  ];
  assert.equal(parseDepends([...depends, '  Depends: libssl3', '  Suggests: x'].join('\n')), [
    'lsb-release',
    'libc6',
    'libssl3',
  ]);
});

test('builds of one image at once do not take away what another one is writing', async () => {
  const root = tree('at-once', 1000);
  const layout = 'at-once-layout';
  const built = await Promise.all(Array.from({ length: 20 }, () => build(root, layout)));
  assert.is(new Set(built.map(({ digest }) => digest)).size, 1);
  for (const part of built[0]?.blobs ?? []) assert.is(blob(built[0] as BuiltImage, part.digest).length, part.size);
  const left = readdirSync(join(directory, layout, 'blobs', 'sha256')).filter((name) => !/^[0-9a-f]{64}$/.test(name));
  assert.equal(left, []);
});

test.run();
