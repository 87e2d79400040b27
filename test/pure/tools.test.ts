import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { catalog, type ModuleName, modules } from '../tools/catalog.ts';
import { debianProblems, missingDebian } from '../tools/debian.ts';
import { missingDefinitions, readDefinitions } from '../tools/definitions.ts';
import { withLock } from '../tools/lock.ts';
import { freePort } from '../tools/ports.ts';
import { goProblem } from '../tools/prerequisites.ts';
import { exited, run, spawnTied } from '../tools/process.ts';
import { moduleDir, toolCache, toolPath } from '../tools/store.ts';
import { ensureTool, missingTools } from '../tools/tools.ts';

const top = fileURLToPath(new URL('../../', import.meta.url));

test('work under one name runs one after the other, under another name at once', async () => {
  const name = `test-${process.pid}`;
  const order: string[] = [];
  let free: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    free = resolve;
  });
  let waited: () => void = () => undefined;
  const waiting = new Promise<void>((resolve) => {
    waited = resolve;
  });
  const first = withLock(name, {}, async () => {
    order.push('first began');
    await held;
    order.push('first ended');
  });
  const second = withLock(name, { onWait: () => waited() }, async () => order.push('second'));
  await waiting;
  await withLock(`${name}-other`, {}, async () => order.push('other'));
  free();
  await Promise.all([first, second]);
  assert.equal(order, ['first began', 'other', 'first ended', 'second']);
});

test('a lock is free as soon as its holder is killed with -9; a waiter can give up', async () => {
  const name = `test-kill-${process.pid}`;
  const program = `
    import { withLock } from './test/tools/lock.ts';
    await withLock(${JSON.stringify(name)}, {}, async () => {
      console.log('held');
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    });`;
  const holder = spawnTied(process.execPath, ['--input-type=module', '-e', program], {
    cwd: top,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => holder.stdout?.once('data', resolve));
  const impatient = new AbortController();
  const gaveUp = withLock(
    name,
    { signal: impatient.signal, onWait: () => setImmediate(() => impatient.abort()) },
    async () => 'in',
  );
  assert.is(await gaveUp.catch((error: Error) => error.name), 'AbortError');
  const entered = withLock(name, { onWait: () => holder.kill('SIGKILL') }, async () => 'in');
  assert.is(await entered, 'in');
});

test('a tied program dies with the process that started it, also by kill -9', async () => {
  const program = `
    import { spawnTied } from './test/tools/process.ts';
    const child = spawnTied('sleep', ['60'], { stdio: 'inherit' });
    console.log(child.pid);`;
  const parent = spawnTied(process.execPath, ['--input-type=module', '-e', program], {
    cwd: top,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const pid = await new Promise<string>((resolve) =>
    parent.stdout?.once('data', (chunk) => resolve(String(chunk).trim())),
  );
  assert.ok(existsSync(`/proc/${pid}`));
  parent.kill('SIGKILL');
  // Both hold the same pipe: its end is the end of the grandchild.
  assert.equal(await exited(parent), { code: null, signal: 'SIGKILL' });
});

test('a program is stopped at its limit and by its caller', async () => {
  const late = await run('sleep', ['60'], { limitMs: 50 }).catch((error: Error) => error.message);
  assert.match(String(late), 'no end after 50 ms');
  const signal = AbortSignal.timeout(50);
  const aborted = await run('sleep', ['60'], { limitMs: 60_000, signal }).catch((error: Error) => error.name);
  assert.is(aborted, 'TimeoutError');
});

test('a free port can be listened on and lies below the outgoing range', async () => {
  const port = await freePort();
  assert.ok(port < 32_768);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await new Promise((resolve) => server.close(resolve));
});

test('every tool has a pinned module with checksums, and a place of its own', () => {
  const places = Object.entries(catalog).map(([name, { module }]) => {
    assert.ok(existsSync(join(moduleDir(module), 'go.mod')), name);
    assert.ok(existsSync(join(moduleDir(module), 'go.sum')), name);
    return toolPath(name as keyof typeof catalog, '/cache');
  });
  assert.is(new Set(places).size, places.length);
  assert.match(toolPath('etcd', '/cache'), new RegExp(`^/cache/etcd-${modules.etcd.version}-[0-9a-f]{12}/etcd$`));
  assert.is(toolCache({ XDG_CACHE_HOME: '/x' }), '/x/keelson/tools');
});

/** Version of every module that a tool is built of. */
function versions(module: ModuleName): Map<string, string> {
  const text = readFileSync(join(moduleDir(module), 'go.mod'), 'utf8');
  const lines = [...text.matchAll(/^(?:require )?\t?([\w./~-]+) (v\S+)/gm)];
  return new Map(lines.map(([, path = '', version = '']) => [path, version]));
}

test('MetalLB and kwok are built of the same versions: most of the two is compiled once, which counts from cold', () => {
  const [ours, theirs] = [versions('metallb'), versions('kwok')];
  const shared = [...ours].filter(([path]) => theirs.has(path));
  assert.ok(shared.length > 40);
  assert.equal(
    shared.filter(([path, version]) => theirs.get(path) !== version),
    [],
  );
});

test('without Go the answer is a problem with a remedy, and nothing is left in the cache', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'keelson-cache-'));
  const env = { PATH: '/nowhere' };
  assert.equal(missingTools(['crane'], { cacheDir }), ['crane']);
  assert.is((await goProblem(env))?.reason, 'MissingTool');
  const error = await ensureTool('crane', { cacheDir, env }).catch((problem: Error) => problem);
  assert.match(String(error), /Go is needed.*\n.*remedy: install Go/);
  assert.equal(await readdir(cacheDir), []);
  await rm(cacheDir, { recursive: true });
});

test('a build that fails says why and leaves nothing behind', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'keelson-cache-'));
  const env = {
    ...process.env,
    GOFLAGS: '',
    GOPROXY: 'off',
    GOMODCACHE: join(cacheDir, 'empty'),
    GOTOOLCHAIN: 'local',
  };
  if ((await goProblem(env)) !== undefined) return assert.ok(await goProblem(env));
  const error = await ensureTool('crane', { cacheDir: join(cacheDir, 'tools'), env }).catch(
    (problem: Error) => problem,
  );
  assert.match(String(error), 'go build of github.com/google/go-containerregistry/cmd/crane failed');
  assert.equal(await readdir(join(cacheDir, 'tools')), []);
  await rm(cacheDir, { recursive: true });
});

test('definitions that can not be had leave nothing behind', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'keelson-cache-'));
  const env = {
    ...process.env,
    GOFLAGS: '',
    GOPROXY: 'off',
    GOMODCACHE: join(cacheDir, 'empty'),
    GOTOOLCHAIN: 'local',
  };
  if ((await goProblem(env)) !== undefined) return assert.ok(await goProblem(env));
  const options = { cacheDir: join(cacheDir, 'tools'), env };
  assert.equal(missingDefinitions(['source-controller'], options), ['source-controller']);
  const error = await readDefinitions('source-controller', options).catch((problem: Error) => problem);
  assert.match(String(error), 'go mod download of github.com/fluxcd/source-controller failed');
  assert.not.ok(existsSync(options.cacheDir));
  await rm(cacheDir, { recursive: true });
});

test('packages are looked up, and named one by one where they can not be installed', async () => {
  const absent = 'keelson-no-such-package';
  assert.equal(await missingDebian([absent]), [absent]);
  const problems = await debianProblems([absent], { env: { PATH: '/nowhere' } });
  assert.is(problems.length, 1);
  assert.match(problems[0]?.remedy ?? '', absent);
});

test.run();
