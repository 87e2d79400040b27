import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttp } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { createClient } from '../../executor/kube/client.ts';
import {
  type CredentialSource,
  hostPort,
  inClusterCredentials,
  kubeConfigCredentials,
} from '../../executor/kube/credentials.ts';
import {
  createTransport,
  discard,
  readText,
  TransportError,
  type TransportRequest,
} from '../../executor/kube/transport.ts';
import { type SharedServer, sharedApiServer, writeKubeconfig } from '../apiserver/shared.ts';
import { staticCredentials } from './kubeBed.ts';

let server: SharedServer;
let dir: string;

test.before(async () => {
  server = await sharedApiServer();
  dir = await mkdtemp(join(tmpdir(), 'keelson-transport-'));
});

test.after(async () => {
  await rm(dir, { recursive: true });
  await server.admin.close();
});

const version: TransportRequest = {
  method: 'GET',
  path: '/api/v1/namespaces/kube-system',
  query: {},
  headers: {},
  timeoutMs: 5000,
};

async function statusThrough(credentials: CredentialSource): Promise<number> {
  const transport = createTransport({ credentials });
  try {
    const response = await transport.send(version);
    await discard(response);
    return response.status;
  } finally {
    await transport.close();
  }
}

test('a service account: explicit endpoint without a ClusterIP, and a token that rotates in its file', async () => {
  await writeFile(join(dir, 'ca.crt'), server.ca);
  await writeFile(join(dir, 'token'), 'expired\n');
  const endpoint = new URL(server.url).host;
  const credentials = inClusterCredentials({
    accountDir: dir,
    apiServer: endpoint,
    serviceHost: '10.96.0.1',
    servicePort: '443',
    clock: systemClock,
  });
  assert.is((await credentials.current()).headers.authorization, 'Bearer expired');
  await writeFile(join(dir, 'token'), `${server.token}\n`);
  // What is remembered is the expired one: the 401 makes it read the file again.
  assert.is((await credentials.current()).headers.authorization, 'Bearer expired');
  assert.is(await statusThrough(credentials), 200);
  await writeFile(join(dir, 'token'), 'revoked');
  assert.is(await statusThrough(credentials), 200, 'the good one is still remembered');
  assert.is(
    await statusThrough(inClusterCredentials({ accountDir: dir, apiServer: endpoint, clock: systemClock })),
    401,
  );
  assert.throws(() => inClusterCredentials({ clock: systemClock }), /--api-server/);
  assert.is(hostPort('fd00::1', '6443'), '[fd00::1]:6443');
});

test('a token file that cannot be read is no answer, not a crash', async () => {
  const credentials = inClusterCredentials({
    accountDir: join(dir, 'nothing-here'),
    apiServer: new URL(server.url).host,
    clock: systemClock,
  });
  const transport = createTransport({ credentials });
  const client = createClient({
    transport: transport.send,
    clock: systemClock,
    random: Math.random,
    backoff: { initialMs: 1, factor: 1, maxMs: 1, jitter: 0 },
  });
  const outcome = await client.getPath('/version');
  assert.is(outcome.type === 'unavailable' && outcome.mayHaveHappened, false);
  assert.match(outcome.type === 'unavailable' ? outcome.message : '', /credentials: .*token/);
  await transport.close();
});

test('a kubeconfig: contexts, an explicit endpoint, a token file behind an auth provider that rotates', async () => {
  const file = await writeKubeconfig(join(dir, 'kubeconfig'), server);
  assert.is(await statusThrough(kubeConfigCredentials({ file, clock: systemClock })), 200);
  assert.is(await statusThrough(kubeConfigCredentials({ file, context: 'test', clock: systemClock })), 200);
  await kubeConfigCredentials({ file, context: 'other', clock: systemClock })
    .current()
    .then(
      () => assert.unreachable('no such context'),
      (error: Error) => assert.match(error.message, /no context 'other'; it has: test/),
    );
  const elsewhere = await writeKubeconfig(join(dir, 'elsewhere'), server, { url: 'https://127.0.0.1:1' });
  assert.is(
    await statusThrough(
      kubeConfigCredentials({ file: elsewhere, apiServer: new URL(server.url).host, clock: systemClock }),
    ),
    200,
  );
  const tokenFile = join(dir, 'rotating');
  await writeFile(tokenFile, 'expired');
  const config = {
    clusters: [{ name: 'c', cluster: { server: server.url, 'certificate-authority': server.caFile } }],
    users: [{ name: 'u', user: { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(join(dir, 'rotating.kubeconfig'), JSON.stringify(config));
  const credentials = kubeConfigCredentials({ file: join(dir, 'rotating.kubeconfig'), clock: systemClock });
  await credentials.current();
  await writeFile(tokenFile, server.token);
  assert.is(await statusThrough(credentials), 200);
});

test('a server with another authority is refused before anything is sent', async () => {
  const transport = createTransport({
    credentials: inClusterCredentials({
      accountDir: await foreign(),
      apiServer: new URL(server.url).host,
      clock: systemClock,
    }),
  });
  await transport.send(version).then(
    () => assert.unreachable('the certificate is not to be trusted'),
    (error: unknown) => {
      assert.ok(error instanceof TransportError);
      assert.is(error.sent, false);
      assert.not.match(error.message, server.token);
    },
  );
  await transport.close();
});

/** An account folder without the server's authority. */
async function foreign(): Promise<string> {
  const folder = await mkdtemp(join(dir, 'foreign-'));
  await writeFile(join(folder, 'token'), server.token);
  await writeFile(join(folder, 'ca.crt'), '');
  return folder;
}

interface Counted {
  readonly url: string;
  connections(): number;
  close(): Promise<void>;
}

/** A plain TCP relay that counts connections. */
async function relay(): Promise<Counted> {
  let count = 0;
  const target = new URL(server.url);
  const front: Server = createServer((client) => {
    count += 1;
    const upstream = connect(Number(target.port), target.hostname);
    for (const [a, b] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      a.on('error', () => b.destroy());
      a.on('close', () => b.destroy());
    }
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(front.address() as AddressInfo).port}`,
    connections: () => count,
    close: () => new Promise((resolve) => front.close(() => resolve())),
  };
}

test('connections are pooled and capped; streams do not starve requests; closing leaves none', async () => {
  const counted = await relay();
  const transport = createTransport({
    credentials: staticCredentials(server, server.token, counted.url),
    connections: 4,
  });
  const get = async (): Promise<number> => {
    const response = await transport.send(version);
    await readText(response);
    return response.status;
  };
  const statuses = await Promise.all(Array.from({ length: 100 }, get));
  assert.equal(new Set(statuses), new Set([200]));
  assert.ok(counted.connections() <= 4, `${counted.connections()} connections for 100 requests`);
  const before = counted.connections();
  const abort = new AbortController();
  const watch: TransportRequest = {
    ...version,
    path: '/api/v1/configmaps',
    query: { watch: 'true' },
    stream: true,
    signal: abort.signal,
  };
  const watches = await Promise.all(Array.from({ length: 6 }, () => transport.send(watch)));
  assert.is(await get(), 200);
  assert.ok(counted.connections() - before <= 6);
  abort.abort();
  for (const { body } of watches)
    await body[Symbol.asyncIterator]()
      .next()
      .then(
        () => assert.unreachable('the stream was aborted'),
        (error: Error) => assert.is(error.name, 'AbortError'),
      );
  await transport.close();
  await counted.close();
});

test('a limit covers the whole exchange, and an abort ends it at once', async () => {
  const sockets = new Set<{ destroy(): void }>();
  // One path never answers, another begins a body and never ends it.
  const slow = createHttp((request, response) => {
    if (request.url === '/half') response.writeHead(200).write('half');
  });
  slow.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
  const transport = createTransport({ credentials: staticCredentials(server, 'x', url) });
  const client = createClient({ transport: transport.send, clock: systemClock, random: Math.random });
  for (const path of ['/never', '/half']) {
    const began = performance.now();
    const outcome = await client.getPath(path, { timeoutMs: 100, attempts: 1 });
    assert.match(
      outcome.type === 'unavailable' ? outcome.message : outcome.type,
      /no answer within 100 ms|did not end in time/,
    );
    assert.ok(performance.now() - began < 1000);
    const abort = new AbortController();
    const reason = new Error('enough');
    const asked = performance.now();
    setTimeout(() => abort.abort(reason), 20);
    await client.getPath(path, { signal: abort.signal }).then(
      () => assert.unreachable('it was aborted'),
      (error) => assert.is(error, reason),
    );
    assert.ok(performance.now() - asked < 1000);
  }
  await transport.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => slow.close(resolve));
});

test('what must not be sent any more is not, although it has waited for a connection', async () => {
  const seen: string[] = [];
  const slow = createHttp((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.end('{}');
  });
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', () => resolve()));
  const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
  const credentials = { server: url, tls: { insecure: false }, headers: {} };
  const source: CredentialSource = { current: async () => credentials, renewed: async () => credentials };
  const transport = createTransport({ credentials: source, connections: 1 });
  const asked: string[] = [];
  const request = (path: string, beforeSend: () => void): TransportRequest => ({
    ...version,
    method: 'PATCH',
    path,
    beforeSend,
  });
  try {
    const first = await transport.send(request('/one', () => asked.push('asked')));
    await discard(first);
    const lost = new Error('the Lease is lost');
    const refused = transport.send(
      request('/two', () => {
        throw lost;
      }),
    );
    await refused.then(
      () => assert.unreachable('it was sent'),
      (error: unknown) => assert.is(error, lost),
    );
    await discard(await transport.send(request('/three', () => asked.push('asked'))));
    assert.equal(seen, ['PATCH /one', 'PATCH /three']);
    assert.is(asked.length, 2);
  } finally {
    await transport.close();
    await new Promise((resolve) => slow.close(resolve));
  }
});

test('a kubeconfig’s proxy is used', async () => {
  let tunnels = 0;
  const proxy = createHttp();
  proxy.on('connect', (request, client, head) => {
    tunnels += 1;
    const target = new URL(`http://${request.url}`);
    const upstream = connect(Number(target.port), target.hostname, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on('error', () => client.destroy());
    client.on('error', () => upstream.destroy());
    client.on('close', () => upstream.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const config = {
    clusters: [
      {
        name: 'c',
        cluster: {
          server: server.url,
          'certificate-authority': server.caFile,
          'proxy-url': `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
        },
      },
    ],
    users: [{ name: 'u', user: { token: server.token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(join(dir, 'proxied.kubeconfig'), JSON.stringify(config));
  assert.is(
    await statusThrough(kubeConfigCredentials({ file: join(dir, 'proxied.kubeconfig'), clock: systemClock })),
    200,
  );
  assert.is(tunnels, 1);
  await new Promise((resolve) => proxy.close(resolve));
});

test.run();
