/** `keelson image`: what goes to a registry, what is printed, and how each way to fail reads. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { isPinned } from '../../constructs/lib/imageref.ts';
import { buildImage } from '../../images/build.ts';
import { bundleProgram } from '../../images/bundle.ts';
import { probeFlags } from '../../images/probe.ts';
import manifest from '../../package.json' with { type: 'json' };
import { done, runKeelson, type Said } from '../commandline.ts';
import { startRegistry } from '../standins/registry.ts';
import { run } from '../tools/process.ts';

const { version } = manifest;

interface Place {
  readonly folder: string;
  /** A small image, as `image build --oci` leaves one. */
  readonly digest: string;
  keelson(...args: string[]): Promise<Said>;
}

async function inPlace(body: (place: Place) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'keelson-image-test-'));
  try {
    const { digest } = await buildImage({
      layout: join(folder, 'built'),
      layers: [[{ type: 'file', path: 'keelson', mode: 0o755, content: '#!/bin/node\n' }]],
      config: { entrypoint: ['/keelson'] },
      architecture: 'amd64',
    });
    const env = { PATH: process.env.PATH, HOME: folder, DOCKER_CONFIG: folder };
    await body({ folder, digest, keelson: (...args) => runKeelson(args, { env, cwd: folder }) });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const push = ['image', 'push', '--from', 'built', '--to'] as const;
const reasons = (said: Said): string[] => JSON.parse(said.err).problems.map(({ reason }: { reason: string }) => reason);

test('it is pushed under the tag of this version, or the one that is named, and the line for cluster.yaml is printed', () =>
  inPlace(async ({ digest, keelson }) => {
    const registry = await startRegistry();
    try {
      const repository = `${registry.host}/platform/keelson`;
      const said = done(await keelson(...push, repository));
      const reference = `${repository}:${version}@${digest}`;
      assert.is(said.out, `spec:\n  images:\n    executor: ${reference}`);
      assert.ok(isPinned(reference));
      assert.is(registry.blobs().filter((blob) => blob.startsWith('platform/keelson ')).length, 2);
      const named = JSON.parse(done(await keelson(...push, `${repository}:stable`, '-o', 'json')).out);
      assert.equal(named, { reference: `${repository}:stable@${digest}`, digest });
      for (const tag of [version, 'stable']) {
        const found = await fetch(`${registry.url}/v2/platform/keelson/manifests/${tag}`);
        const bytes = Buffer.from(await found.arrayBuffer());
        assert.is(`sha256:${createHash('sha256').update(bytes).digest('hex')}`, digest, tag);
      }
      const sent = registry.requests.filter(({ method }) => method === 'POST').length;
      assert.is(sent, 2, 'what is there is not sent again');
    } finally {
      await registry.close();
    }
  }));

test('without a login, with a wrong one, and without a registry it fails with 1 and says which', () =>
  inPlace(async ({ folder, keelson }) => {
    const auth = { kind: 'basic', username: 'ci', password: 'canary-51e0' } as const;
    const registry = await startRegistry({ auth });
    const to = `${registry.host}/platform/keelson`;
    try {
      const without = await keelson(...push, to, '-o', 'json');
      assert.equal([without.code, reasons(without)], [1, ['ImageNotPushed']]);
      assert.match(without.err, /log in|credentials|401/i);
      const login = (password: string): void =>
        writeFileSync(
          join(folder, 'config.json'),
          JSON.stringify({ auths: { [registry.host]: { auth: Buffer.from(`ci:${password}`).toString('base64') } } }),
        );
      login('canary-wrong');
      const wrong = await keelson(...push, to, '-o', 'json');
      assert.equal([wrong.code, reasons(wrong)], [1, ['ImageNotPushed']]);
      login(auth.password);
      const right = done(await keelson(...push, to));
      for (const { out, err } of [without, wrong, right]) assert.not.match(`${out}${err}`, /canary-/);
    } finally {
      await registry.close();
    }
    const down = await keelson(...push, to, '-o', 'json');
    assert.equal([down.code, reasons(down)], [1, ['ImageNotPushed']]);
    assert.match(down.err, registry.host);
  }));

test('a wrong target, and a folder that holds no image or something else, are refused with 2 before anything is sent', () =>
  inPlace(async ({ folder, digest, keelson }) => {
    for (const to of ['keelson', 'platform/keelson', 'reg.example.com/Keelson', `reg.example.com/keelson@${digest}`]) {
      const said = await keelson(...push, to, '-o', 'json');
      assert.equal([said.code, reasons(said)], [2, ['CommandInvalid']], to);
    }
    assert.is((await keelson('image', 'push')).code, 2);
    const none = await keelson('image', 'push', '--from', 'none', '--to', 'reg.example.com/keelson', '-o', 'json');
    assert.equal([none.code, reasons(none)], [2, ['LayoutInvalid']]);
    writeFileSync(join(folder, 'precious'), '');
    const before = readdirSync(folder);
    const full = await keelson('image', 'build', '--oci', '.', '-o', 'json');
    assert.equal([full.code, reasons(full)], [2, ['LayoutInvalid']]);
    assert.equal(readdirSync(folder), before);
  }));

test('what is built is this program: Node, the program in parts, and a start that runs them', () =>
  inPlace(async ({ folder, keelson }) => {
    const built = JSON.parse(done(await keelson('image', 'build', '--oci', 'image', '-o', 'json')).out);
    const index = JSON.parse(readFileSync(join(folder, 'image/index.json'), 'utf8'));
    assert.is(index.manifests[0].digest, built.digest);
    const read = (name: string) =>
      JSON.parse(readFileSync(join(folder, 'image/blobs/sha256', name.replace('sha256:', '')), 'utf8'));
    const manifest = read(read(built.digest).manifests[0].digest);
    const { Entrypoint, User, Labels } = read(manifest.config.digest).config;
    assert.equal([Entrypoint, User], [['/keelson'], '65532:65532']);
    assert.equal(Labels, { 'org.opencontainers.image.version': version });
  }));

test('the image of the probes is built and pushed as well, for a line of its own', () =>
  inPlace(async ({ folder, keelson }) => {
    const built = JSON.parse(done(await keelson('image', 'build', '--probe', '--oci', 'probe', '-o', 'json')).out);
    const read = (name: string) =>
      JSON.parse(readFileSync(join(folder, 'probe/blobs/sha256', name.replace('sha256:', '')), 'utf8'));
    const manifest = read(read(built.digest).manifests[0].digest);
    const { Entrypoint, User, Labels } = read(manifest.config.digest).config;
    assert.equal([Entrypoint, User], [['/bin/node', ...probeFlags, '/keelson'], '65532:65532']);
    assert.equal(Labels, { 'org.opencontainers.image.version': version });
    const registry = await startRegistry();
    try {
      const to = `${registry.host}/platform/probe`;
      const said = done(await keelson('image', 'push', '--probe', '--from', 'probe', '--to', to));
      assert.is(said.out, `spec:\n  images:\n    probe: ${to}:${version}@${built.digest}`);
      const both = `${registry.host}/own/keelson:stable`;
      const lines = done(await keelson('image', 'push', '--both', '--to', both)).out.split('\n');
      assert.equal(lines.slice(0, 2), ['spec:', '  images:']);
      assert.match(lines[2] ?? '', new RegExp(`^    executor: ${both}@sha256:[0-9a-f]{64}$`));
      assert.is(lines[3], `    probe: ${registry.host}/own/keelson-probe:stable@${built.digest}`);
      for (const line of lines.slice(2)) {
        const [, repository, digest] = /:[0-9]+\/(.*):stable@(.*)$/.exec(line) ?? [];
        assert.is((await fetch(`${registry.url}/v2/${repository}/manifests/${digest}`)).status, 200, line);
      }
      const odd = await keelson('image', 'push', '--both', '--from', 'probe', '--to', both, '-o', 'json');
      assert.equal([odd.code, reasons(odd)], [2, ['CommandInvalid']]);
    } finally {
      await registry.close();
    }
  }));

test('the program as one file, which the image holds, starts where there are no packages', () =>
  inPlace(async ({ folder }) => {
    const program = join(folder, 'keelson.mjs');
    await bundleProgram({ entry: join(import.meta.dirname, '../../bin/keelson.ts'), output: program });
    const options = { cwd: folder, env: { HOME: folder }, limitMs: 30_000 };
    const told = await run(process.execPath, [program, '--version'], options);
    assert.equal([told.code, told.stdout.trim(), told.stderr], [0, version, '']);
    const executor = await run(process.execPath, [program, 'executor', '--help'], options);
    assert.is(executor.code, 0, executor.stderr);
    assert.match(executor.stdout, '--role');
  }));

test.run();
