import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { adminClient } from '../apiserver/client.ts';
import { kubectl } from '../apiserver/kubectl.ts';
import { freshNamespace, serviceAccountToken } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { sharedApiServer } from '../apiserver/shared.ts';
import { run, spawnTied } from '../tools/process.ts';

const server = await sharedApiServer();

test('the shared server answers with the pinned version', async () => {
  const { body } = await server.admin.expect('GET', '/version');
  assert.is(body.gitVersion, 'v1.34.2');
  const { stdout } = await kubectl(server, ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']);
  assert.is(stdout, 'admin');
});

test('plain users and service accounts may do nothing until they are bound', async () => {
  const namespace = await freshNamespace(server.admin, 'accounts');
  const token = await serviceAccountToken(server.admin, namespace, 'worker', { audiences: ['somebody'] });
  assert.is(token.split('.').length, 3);
  for (const own of [server.tokens['user-1'] ?? '', await serviceAccountToken(server.admin, namespace, 'worker')]) {
    const client = adminClient({ url: server.url, ca: server.ca, token: own });
    assert.is((await client.request('GET', `/api/v1/namespaces/${namespace}/configmaps`)).status, 403);
    await client.close();
  }
});

test('what was stored is there after a kill -9 of the API server, on the same address', async () => {
  const began = performance.now();
  const own = await startApiServer();
  console.log(`API server ready after ${Math.round(performance.now() - began)} ms`);
  try {
    const namespace = await freshNamespace(own.admin, 'kill9');
    const before = own.pid();
    await own.kill9();
    assert.not(existsSync(`/proc/${before}`));
    const answered = await own.admin.request('GET', '/readyz').then(
      () => true,
      () => false,
    );
    assert.not(answered);
    await own.restart();
    assert.is.not(own.pid(), before);
    assert.is((await own.admin.expect('GET', `/api/v1/namespaces/${namespace}`)).body.metadata.name, namespace);
  } finally {
    await own.stop();
  }
  assert.not(existsSync(own.directory));
});

test('server and directory go when the process that started them is killed with -9', async () => {
  const program = `
    import { startApiServer } from './test/apiserver/server.ts';
    const server = await startApiServer();
    console.log(JSON.stringify({ directory: server.directory, pid: server.pid() }));
    setInterval(() => undefined, 1000);`;
  const child = spawnTied(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await child.stdout?.iterator({ destroyOnReturn: false }).next())?.value.toString().split('\n') ?? [];
  const { directory, pid } = JSON.parse(line) as { directory: string; pid: number };
  assert.ok(existsSync(directory));
  assert.match(readFileSync(`/proc/${pid}/cmdline`, 'utf8'), 'kube-apiserver');
  child.kill('SIGKILL');
  const deadline = performance.now() + 10_000;
  const busy = async (): Promise<string> => (await run('pgrep', ['-f', directory], { limitMs: 5000 })).stdout;
  while ((existsSync(directory) || (await busy()) !== '') && performance.now() < deadline) await delay(50);
  assert.not(existsSync(directory));
  assert.is(await busy(), '');
});

test.after(() => server.admin.close());

test.run();
