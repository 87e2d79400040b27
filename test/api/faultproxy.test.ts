import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type AdminClient, adminClient, type Reply } from '../apiserver/client.ts';
import { kubectl } from '../apiserver/kubectl.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { sharedApiServer, writeKubeconfig } from '../apiserver/shared.ts';
import type { FaultRule } from '../faults/plan.ts';
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from '../faults/proxy.ts';

const server = await sharedApiServer();

interface Bed {
  readonly proxy: FaultProxy;
  readonly through: AdminClient;
  readonly namespace: string;
  readonly maps: string;
}

async function withProxy(work: (bed: Bed) => Promise<void>, options: FaultProxyOptions = {}): Promise<void> {
  const proxy = await startFaultProxy(server, options);
  const through = adminClient({ url: proxy.url, ca: server.ca, token: server.token });
  try {
    const namespace = await freshNamespace(server.admin, 'faults');
    await work({ proxy, through, namespace, maps: `/api/v1/namespaces/${namespace}/configmaps` });
  } finally {
    await through.close();
    await proxy.stop({ forgive: true });
  }
}

const map = (name: string): object => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
const create = (bed: Bed, name: string): Promise<Reply> => bed.through.request('POST', bed.maps, { body: map(name) });
const answered = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  );

test('requests are counted and mutations logged in order, over TLS and plain http', async () => {
  for (const plain of [false, true]) {
    await withProxy(
      async (bed) => {
        assert.ok(bed.proxy.url.startsWith(plain ? 'http:' : 'https:'));
        await bed.through.expect('POST', bed.maps, { body: map('dry'), query: { dryRun: 'All' } });
        for (const name of ['a', 'b']) assert.is((await create(bed, name)).status, 201);
        assert.is((await bed.through.expect('GET', bed.maps)).body.items.length, 2);
        assert.equal(bed.proxy.plan.counts(), {
          'create configmaps (dry run)': 1,
          'create configmaps': 2,
          'list configmaps': 1,
        });
        const written = bed.proxy.plan.mutations();
        assert.equal(
          written.map(({ body, status }) => [body, status]),
          [
            [map('a'), 201],
            [map('b'), 201],
          ],
        );
      },
      { plain },
    );
  }
});

test('kubectl works through it with a client configuration of its own', async () => {
  await withProxy(async ({ proxy, namespace }) => {
    const file = await writeKubeconfig(join(server.directory, `${namespace}.kubeconfig`), server, {
      url: proxy.url,
      namespace,
    });
    const applied = await kubectl(server, ['apply', '--server-side', '-f', '-'], {
      kubeconfig: file,
      input: JSON.stringify(map('from-kubectl')),
    });
    assert.is(applied.code, 0, applied.stderr);
    assert.is(proxy.plan.count({ verb: 'apply', name: 'from-kubectl' }), 1);
    await rm(file);
  });
});

test('a dropped request has no effect, one whose reply is lost has', async () => {
  const cases: readonly [FaultRule['fault'], number][] = [
    [{ kind: 'dropBefore' }, 404],
    [{ kind: 'dropAfter' }, 200],
  ];
  for (const [fault, stored] of cases) {
    await withProxy(async (bed) => {
      const hits = bed.proxy.plan.inject({ match: { mutating: true }, nth: 2, fault });
      assert.is((await create(bed, 'first')).status, 201);
      assert.not(await answered(create(bed, 'second')), fault.kind);
      assert.is((await create(bed, 'third')).status, 201);
      assert.is((await server.admin.request('GET', `${bed.maps}/second`)).status, stored, fault.kind);
      assert.is(hits(), 1);
    });
  }
});

test('answers of the server can be replaced and delayed', async () => {
  await withProxy(async (bed) => {
    bed.proxy.plan.inject({ match: { verb: 'list' }, fault: { kind: 'status', code: 429, retryAfterSeconds: 3 } });
    bed.proxy.plan.inject({ match: { verb: 'list' }, nth: 2, fault: { kind: 'status', code: 503 } });
    const [busy, down] = [await bed.through.request('GET', bed.maps), await bed.through.request('GET', bed.maps)];
    assert.equal([busy.status, busy.headers.get('retry-after'), busy.body.reason], [429, '3', 'TooManyRequests']);
    assert.equal([down.status, down.body.kind], [503, 'Status']);
    bed.proxy.plan.inject({ match: { verb: 'list' }, fault: { kind: 'delay', ms: 150 } });
    const began = performance.now();
    assert.is((await bed.through.request('GET', bed.maps)).status, 200);
    assert.ok(performance.now() - began >= 149);
  });
});

async function watch(bed: Bed, events: number): Promise<{ text: string; broken: boolean }> {
  const { metadata } = (await server.admin.expect('GET', bed.maps)).body;
  const query = { watch: 'true', resourceVersion: metadata.resourceVersion, timeoutSeconds: '1' };
  for (let n = 0; n < events; n += 1) await server.admin.expect('POST', bed.maps, { body: map(`event-${n}`) });
  return bed.through.request('GET', bed.maps, { query }).then(
    ({ body }) => ({ text: typeof body === 'string' ? body : JSON.stringify(body), broken: false }),
    (error: Error) => ({ text: error.message, broken: true }),
  );
}

test('a watch passes through, ends in an ERROR event, in half a line, or is cut', async () => {
  await withProxy(async (bed) => {
    const { plan } = bed.proxy;
    plan.inject({ match: { verb: 'watch' }, fault: { kind: 'watchError', afterEvents: 0 } });
    const expired = await watch(bed, 1);
    assert.match(expired.text, '"ERROR"');
    assert.match(expired.text, '"code":410');
    plan.inject({ match: { verb: 'watch' }, fault: { kind: 'halfLine', afterLines: 0 } });
    await server.admin.expect('DELETE', bed.maps);
    assert.ok((await watch(bed, 1)).broken);
    plan.inject({ match: { verb: 'watch' }, fault: { kind: 'cut', afterBytes: 20 } });
    await server.admin.expect('DELETE', bed.maps);
    assert.ok((await watch(bed, 1)).broken);
  });
});

test('open connections can be cut, a hanging request ends when the plan is cleared', async () => {
  await withProxy(async (bed) => {
    bed.proxy.plan.inject({ match: { verb: 'get' }, times: 2, fault: { kind: 'hang' } });
    const first = answered(bed.through.request('GET', `${bed.maps}/a`));
    while (bed.proxy.plan.count({ verb: 'get' }) < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(bed.proxy.cutConnections() >= 1);
    assert.not(await first);
    const second = answered(bed.through.request('GET', `${bed.maps}/a`));
    while (bed.proxy.plan.count({ verb: 'get' }) < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    bed.proxy.plan.clear();
    assert.not(await second);
    assert.is((await bed.through.request('GET', `${bed.maps}/a`)).status, 404);
  });
});

test('force is refused before it reaches the server, written down, and fails the stop', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-violations-'));
  const violationsFile = join(folder, 'violations');
  await withProxy(
    async (bed) => {
      const reply = await bed.through.request('PATCH', `${bed.maps}/forced`, {
        body: map('forced'),
        type: 'application/apply-patch+yaml',
        query: { fieldManager: 'keelson', force: 'true' },
      });
      assert.equal([reply.status, reply.body.reason], [500, 'ForceRefused']);
      assert.is((await server.admin.request('GET', `${bed.maps}/forced`)).status, 404);
      assert.match(await readFile(violationsFile, 'utf8'), 'force=true');
      const failure = await bed.proxy.stop().catch((error: Error) => error);
      assert.match(String(failure), 'refused by the proxy');
    },
    { violationsFile },
  );
  await rm(folder, { recursive: true });
});

test.after(() => server.admin.close());

test.run();
