import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { done } from '../commandline.ts';
import { layerOf, putWholeImage, shelfOf } from '../pure/mirror-support.ts';
import { selfSigned } from '../standins/certificate.ts';
import { startCrane } from '../standins/crane.ts';
import { type Fault, startRegistry } from '../standins/registry.ts';
import { exited, kill9, spawnTied } from '../tools/process.ts';
import { ensureTool } from '../tools/tools.ts';
import { commandBed } from './command-bed.ts';

/** `keelson mirror` from a registry to a registry by another hand, to a folder and back, killed and refused on the way. */

const crane = await startCrane();
const craneTool = await ensureTool('crane');

/** The path of a blob whose answer is held back, once. */
let hold: ((path: string) => boolean) | undefined;
let held = 0;
const fault: Fault = (request, response) => {
  if (request.method !== 'GET' || hold?.(request.path) !== true) return false;
  held += 1;
  response.writeHead(200, { 'content-length': '1000' });
  response.write('the first bytes');
  return true;
};
const origin = await startRegistry({ fault });
const images = {
  'keelson/keelson': await putWholeImage(shelfOf(origin, 'keelson/keelson'), '0.1.0', [layerOf('executor', 90_000)]),
  'demo/web': await putWholeImage(shelfOf(origin, 'demo/web'), '1.4', [layerOf('web', 60_000)]),
};

const bed = commandBed();
const { keelson, root } = bed;
const lockFile = join(bed.folder, 'keelson.lock.yaml');
for (const path of ['cluster.yaml', 'manifests/demo/30-web/web.yaml'])
  bed.edit(path, (text) => text.replaceAll('registry.example.com', origin.host));
rmSync(lockFile);

const withRules = (rules: object[]): void =>
  bed.edit('cluster.yaml', (text) =>
    `${text.replace(/\n {2}registries: .*\n/, '\n')}  registries: ${JSON.stringify(rules)}\n`.replace(/\n\n/g, '\n'),
  );

const rendered = async (): Promise<string[]> => {
  rmSync(join(root, 'out'), { recursive: true, force: true });
  done(await keelson(['render', '--out', '../out']));
  const files = readdirSync(join(root, 'out'), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const texts = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
  return [
    ...new Set(texts.flatMap((text) => text.match(/127\.0\.0\.1:[0-9]+\/\S+@sha256:[0-9a-f]{64}/g) ?? [])),
  ].sort();
};

const listed = (...parts: string[]): string[] => readdirSync(join(...parts)).sort();

test('everything is mirrored to another registry: it pulls by the mirrored name, and locks and renders alike', async () => {
  done(await keelson(['lock']));
  const locked = readFileSync(lockFile);
  const early = await keelson(['mirror', '--to', crane.host]);
  assert.is(early.code, 1);
  assert.is(early.err.match(/\[MirrorRuleMissing\]/g)?.length, 2, early.err);
  assert.match(
    early.err,
    new RegExp(`add \\{match: ${origin.host}, mirror: ${crane.host}/127.0.0.1\\} to spec.registries`),
  );

  withRules([{ match: origin.host, mirror: `${crane.host}/m` }]);
  const said = done(await keelson(['mirror', '--to', crane.host, '-o', 'json']));
  const [result] = JSON.parse(said.out);
  assert.is(result.mirrored.length, 2);
  for (const line of said.err.split('\n')) assert.type(JSON.parse(line), 'object');
  const again = JSON.parse(done(await keelson(['mirror', '-o', 'json'])).out)[0];
  assert.equal([again.bytes.copied, again.bytes.present], [0, result.bytes.total]);

  // From here on the origin is not asked: whoever does is told.
  hold = () => true;
  const before = origin.requests.length;
  const names = await rendered();
  assert.equal(
    names,
    Object.entries(images)
      .map(([repository, digest]) => `${crane.host}/m/${repository}@${digest}`)
      .sort(),
  );
  for (const name of names) {
    execFileSync(craneTool, ['pull', '--format=oci', name, join(root, 'pulled')], { stdio: 'pipe' });
    assert.is(execFileSync(craneTool, ['digest', name], { encoding: 'utf8' }).trim(), name.split('@')[1]);
  }
  rmSync(lockFile);
  done(await keelson(['lock']));
  assert.equal(readFileSync(lockFile), locked);
  assert.is(origin.requests.length, before);
  hold = undefined;
});

test('a folder crosses the gap, and what the lock needs and the folder lacks is told', async () => {
  const folder = join(root, 'gap');
  const said = done(await keelson(['mirror', '--oci', folder]));
  assert.match(said.out, /^example: 2 mirrored \([0-9.]+ KiB copied, 0 B there already\)/);
  const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'));
  assert.equal(
    index.manifests.map((entry: { annotations: object; digest: string }) => [
      Object.values(entry.annotations)[0],
      entry.digest,
    ]),
    [
      [`${origin.host}/demo/web:1.4`, images['demo/web']],
      [`${origin.host}/keelson/keelson:0.1.0`, images['keelson/keelson']],
    ],
  );
  withRules([{ match: origin.host, mirror: `${crane.host}/over/there` }]);
  hold = () => true;
  const before = origin.requests.length;
  done(await keelson(['mirror', '--from', folder, '--to', `${crane.host}/over`]));
  for (const name of await rendered())
    execFileSync(craneTool, ['pull', '--format=oci', name, join(root, 'over')], { stdio: 'pipe' });
  assert.is(origin.requests.length, before);
  hold = undefined;

  // A folder of yesterday's lock, one with a hole, and none.
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ ...index, manifests: index.manifests.slice(1) }));
  const older = await keelson(['mirror', '--from', folder, '--to', crane.host]);
  assert.is(older.code, 1);
  assert.match(
    older.err,
    /keelson\.lock\.yaml spec\.images\[0\]: .*gap does not hold what the lock names .*demo\/web:1\.4/,
  );
  const blob = join(folder, 'blobs/sha256', images['keelson/keelson'].slice(7));
  writeFileSync(blob, `${readFileSync(blob, 'utf8')} `);
  const torn = await keelson(['mirror', '--from', folder, '--to', crane.host]);
  assert.match(torn.err, /the file of manifest sha256:.* is damaged/);
  assert.is((await keelson(['mirror', '--from', join(root, 'none')])).code, 2);
});

test('a run that is killed goes on where it was, and leaves nothing behind', async () => {
  // This registry keeps its blobs once for all repositories: an empty one is needed.
  const fresh = await startCrane();
  for (const target of ['layout', 'registry'] as const) {
    withRules([{ match: origin.host, mirror: fresh.host }]);
    const folder = join(root, 'killed');
    let blobs = 0;
    held = 0;
    hold = (path) => path.includes('/blobs/') && ++blobs > 4;
    const args = target === 'layout' ? ['--oci', folder] : ['--to', fresh.host];
    const program = join(import.meta.dirname, '../../bin/keelson.ts');
    const child = spawnTied(process.execPath, [program, 'mirror', '-c', bed.folder, '--jobs', '2', ...args], {
      env: { ...bed.env, TMPDIR: tmpdir() },
      cwd: bed.specs,
      stdio: 'ignore',
    });
    await waitFor({
      what: 'a blob to be under way',
      limitMs: 30_000,
      intervalMs: 20,
      clock: systemClock,
      probe: async () => (held > 0 ? true : undefined),
    });
    await kill9(child);
    await exited(child);
    const spools = (): string[] =>
      target === 'layout'
        ? listed(folder).filter((name) => name.startsWith('.part-'))
        : listed(tmpdir()).filter((name) => name.startsWith('keelson-mirror-') && name.includes(`-${child.pid}-`));
    assert.is(spools().length, 1);
    if (target === 'layout') assert.not(existsSync(join(folder, 'index.json')));
    hold = undefined;
    const result = JSON.parse(done(await keelson(['mirror', ...args, '-o', 'json'])).out)[0];
    assert.is(result.mirrored.length, 2);
    assert.ok(result.bytes.present > 0 && result.bytes.copied > 0, JSON.stringify(result.bytes));
    assert.equal(spools(), []);
  }
  await fresh.close();
});

test('a disk that takes no more is told by its place, and a run with room goes on', async () => {
  const folder = join(root, 'full');
  const program = join(import.meta.dirname, '../../bin/keelson.ts');
  // Files may have 64 KiB: one layer fits, the other does not.
  const script = `trap '' XFSZ; ulimit -f 64; exec "$0" "$@"`;
  const args = ['-c', script, process.execPath, program, 'mirror', '-c', bed.folder, '--oci', folder, '-o', 'json'];
  const child = spawnTied('bash', args, { env: bed.env, cwd: bed.specs, stdio: ['ignore', 'ignore', 'pipe'] });
  const parts: Buffer[] = [];
  child.stderr?.on('data', (part: Buffer) => parts.push(part));
  assert.is((await exited(child)).code, 1);
  const told = JSON.parse(Buffer.concat(parts).toString().trim().split('\n').at(-1) ?? '');
  assert.is(told.problems.length, 1);
  assert.match(
    told.problems[0].message,
    /full\/\.part-\S+ can not be written: the limit for the size of files is reached/,
  );
  assert.not(existsSync(join(folder, 'index.json')));
  assert.equal(listed(folder), ['blobs', 'oci-layout']);
  assert.is(JSON.parse(done(await keelson(['mirror', '--oci', folder, '-o', 'json'])).out)[0].mirrored.length, 2);
});

test('a lock that can not be written leaves the one before', async () => {
  const program = join(import.meta.dirname, '../../bin/keelson.ts');
  withRules([]);
  const before = readFileSync(lockFile);
  writeFileSync(lockFile, before.toString().replace(/digest: sha256:.{10}/, 'digest: sha256:0123456789'));
  const stale = readFileSync(lockFile);
  const script = `trap '' XFSZ; ulimit -f 0; exec "$0" "$@"`;
  const args = ['-c', script, process.execPath, program, 'lock', '--update', 'web', '-c', bed.folder, '-o', 'json'];
  const child = spawnTied('bash', args, { env: bed.env, cwd: bed.specs, stdio: ['ignore', 'ignore', 'pipe'] });
  const parts: Buffer[] = [];
  child.stderr?.on('data', (part: Buffer) => parts.push(part));
  assert.is((await exited(child)).code, 1);
  const [problem] = JSON.parse(Buffer.concat(parts).toString()).problems;
  assert.match(
    problem.message,
    /keelson\.lock\.yaml can not be written: the limit .*what stood there before is unchanged/,
  );
  assert.equal(readFileSync(lockFile), stale);
  assert.equal(
    readdirSync(bed.folder).filter((name) => name.endsWith('.part')),
    [],
  );
  done(await keelson(['lock', '--update', 'web']));
  assert.equal(readFileSync(lockFile), before);
});

test('a mirror with a CA of its own and a login, also by a helper', async () => {
  const tls = selfSigned(['127.0.0.1']);
  const secure = await startRegistry({ tls, auth: { kind: 'bearer', username: 'robot', password: 'canary-4711' } });
  try {
    writeFileSync(join(root, 'ca.pem'), tls.cert);
    const rule = { match: origin.host, mirror: `${secure.host}/tls` };
    withRules([{ ...rule, caFile: join(root, 'ca.pem'), pullSecret: 'mirror-pull' }]);
    const denied = await keelson(['mirror', '--to', secure.host]);
    assert.is(denied.code, 1);
    assert.match(denied.err, /token answered 401/);
    const bin = join(root, 'bin');
    mkdirSync(bin);
    mkdirSync(join(root, '.docker'));
    writeFileSync(
      join(bin, 'docker-credential-test'),
      `#!/bin/sh\nprintf '{"Username":"robot","Secret":"canary-4711"}'\n`,
      { mode: 0o755 },
    );
    writeFileSync(join(root, '.docker/config.json'), JSON.stringify({ credHelpers: { [secure.host]: 'test' } }));
    bed.env.PATH = `${bin}:${bed.env.PATH}`;
    const said = done(await keelson(['mirror', '--to', secure.host]));
    assert.not.match(said.out + said.err, /canary/);
    assert.is(secure.blobs().length, new Set(origin.blobs()).size);
    const names = await rendered();
    assert.ok(names.every((name) => name.startsWith(`${secure.host}/tls/`)));
    const system = readdirSync(join(root, 'out'), { recursive: true }).map(String);
    const deployment = system.find((path) => /deployment.*keelson-executor\.yaml$/.test(path)) ?? '';
    assert.match(readFileSync(join(root, 'out', deployment), 'utf8'), /imagePullSecrets:\n +- name: mirror-pull/);
  } finally {
    await secure.close();
  }
});

test.before.each(() => {
  hold = undefined;
});

test.after(async () => {
  await origin.close();
  await crane.close();
  bed.dispose();
});

test.run();
