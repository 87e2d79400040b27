import { createConnection, type Socket } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type Clock, systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { admitUrl } from '../../renderer/http/address.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import { proxyFor, proxyFromEnvironment } from '../../renderer/http/proxy.ts';
import type { HttpClientOptions, HttpFailure, HttpReply, HttpRequest } from '../../renderer/http/types.ts';
import { selfSigned } from '../standins/certificate.ts';
import { type Handler, type ServerOptions, type StandInServer, startServer } from '../standins/httpserver.ts';

const canary = 'canary-7f3a91';
const defaults: HttpClientOptions = {
  allowedHosts: ['127.0.0.1', '[::1]'],
  allowField: 'spec.allow.chartHosts',
  clock: systemClock,
  random: () => 0.5,
  retry: { initialMs: 1, maxMs: 20 },
};

async function ask(request: HttpRequest | string, options: Partial<HttpClientOptions> = {}) {
  const client = createHttpClient({ ...defaults, ...options });
  try {
    return await client.request(typeof request === 'string' ? { url: request } : request);
  } finally {
    client.close();
  }
}

async function fails(request: HttpRequest | string, options: Partial<HttpClientOptions> = {}): Promise<HttpFailure> {
  const outcome = await ask(request, options);
  if (outcome.ok) throw new Error(`expected a failure, got status ${outcome.reply.status}`);
  assert.not.match(JSON.stringify(outcome.failure), canary);
  return outcome.failure;
}

async function answers(request: HttpRequest | string, options: Partial<HttpClientOptions> = {}): Promise<HttpReply> {
  const outcome = await ask(request, options);
  if (!outcome.ok) throw new Error(`${outcome.failure.kind}: ${outcome.failure.message}`);
  return outcome.reply;
}

async function serving(
  handler: Handler,
  body: (server: StandInServer) => Promise<void>,
  options: ServerOptions = {},
): Promise<void> {
  const server = await startServer(handler, options);
  try {
    await body(server);
  } finally {
    await server.close();
  }
}

test('only https, and http to literal loopback addresses, pass', () => {
  const admit = (url: string, hosts: string[]): string => {
    const admitted = admitUrl(url, hosts, 'spec.allow.chartHosts');
    return admitted.ok ? 'ok' : admitted.failure.message;
  };
  const hosts = ['charts.test', '127.0.0.1', '127.9.8.7', '[::1]', 'localhost', '0.0.0.0', '[::ffff:7f00:1]'];
  for (const url of [
    'https://charts.test/a',
    'http://127.0.0.1:8080/a',
    'http://127.9.8.7/a',
    'http://[::1]:1/a',
    'https://CHARTS.test/',
  ])
    assert.is(admit(url, hosts), 'ok', url);
  for (const url of [
    'http://charts.test/a',
    'http://localhost/a',
    'http://localhost.:80/a',
    'http://0.0.0.0/a',
    'http://127.1/a',
    'http://0x7f000001/a',
    'http://2130706433/a',
    'http://[::ffff:127.0.0.1]/a',
    'http://127.0.0.1.charts.test/a',
    'ftp://charts.test/a',
    'file:///etc/passwd',
    'data:text/plain,x',
    'https://user:pw@charts.test/a',
    'charts.test/a',
  ])
    assert.is.not(admit(url, hosts), 'ok', url);
});

test('the host list is exact, port and all', () => {
  const allowed = (url: string, ...hosts: string[]): boolean => admitUrl(url, hosts, 'x').ok;
  assert.ok(allowed('https://charts.test/', 'charts.test'));
  assert.ok(allowed('https://charts.test:443/', 'charts.test:443'));
  assert.ok(allowed('https://charts.test:8443/', 'charts.test:8443'));
  assert.ok(allowed('http://127.0.0.1:8443/', '127.0.0.1'));
  assert.not.ok(allowed('https://charts.test:8443/', 'charts.test'));
  assert.not.ok(allowed('https://a.charts.test/', 'charts.test'));
  assert.not.ok(allowed('https://charts.test.evil.test/', 'charts.test'));
  assert.not.ok(allowed('http://127.0.0.1:8443/', '127.0.0.1:8444'));
  assert.not.ok(allowed('https://charts.test/'));
});

test('a body arrives as it was sent, with its digest', async () => {
  const bytes = Buffer.alloc(300_000, 'x');
  const handler: Handler = (_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    response.end(bytes);
  };
  await serving(handler, async ({ url, requests }) => {
    const reply = await answers(`${url}/a.tgz`);
    assert.equal(Buffer.from(reply.body), bytes);
    assert.is(reply.digest, sha256Digest(bytes));
    assert.is(requests[0]?.headers['accept-encoding'], 'identity');
  });
});

test('[::1] is a loopback literal', async () => {
  await serving(
    (_, response) => response.end('six'),
    async ({ url }) => {
      assert.is(Buffer.from((await answers(`${url}/`)).body).toString(), 'six');
    },
    { address: '::1' },
  );
});

test('a redirect to a foreign host is refused before anything is sent there', async () => {
  await serving(
    (_, response) => response.end('never'),
    async (foreign) => {
      const handler: Handler = (_, response) => {
        response.writeHead(302, { location: `${foreign.url}/chart.tgz?sig=${canary}` });
        response.end();
      };
      await serving(handler, async ({ url, host }) => {
        const failure = await fails(`${url}/chart.tgz`, { allowedHosts: [host] });
        assert.is(failure.kind, 'refused');
        assert.match(failure.message, /redirect from .*: the host '127\.0\.0\.1:\d+' is not allowed/);
        assert.match(failure.remedy ?? '', 'spec.allow.chartHosts');
        assert.is(foreign.connections(), 0);
      });
    },
  );
});

test('redirects to other schemes and endless redirects are refused', async () => {
  const targets: Record<string, string> = {
    '/name': 'http://localhost/x',
    '/data': 'data:text/plain,hello',
    '/file': 'file:///etc/passwd',
    '/decimal': 'http://2130706433/x',
    '/empty': 'http://',
    '/loop': '/loop',
  };
  const handler: Handler = (request, response) => {
    response.writeHead(307, { location: targets[request.path] ?? '' });
    response.end();
  };
  await serving(handler, async ({ url }) => {
    for (const path of Object.keys(targets))
      assert.ok(['refused', 'redirect'].includes((await fails(`${url}${path}`)).kind), path);
    assert.match((await fails(`${url}/loop`)).message, 'more than 5 redirects');
  });
});

test('Authorization follows a redirect on the same host and is dropped on the way to another', async () => {
  await serving(
    (_, response) => response.end('ok'),
    async (second) => {
      const handler: Handler = (request, response) => {
        const to = request.path === '/first' ? '/again' : `${second.url}/blob`;
        response.writeHead(307, { location: to });
        response.end();
      };
      await serving(handler, async (first) => {
        await answers({ url: `${first.url}/first`, headers: { Authorization: `Bearer ${canary}` } });
        assert.equal(
          first.requests.map((request) => request.headers.authorization),
          [`Bearer ${canary}`, `Bearer ${canary}`],
        );
        assert.is(second.requests[0]?.headers.authorization, undefined);
      });
    },
  );
});

test('a body above the cap is refused, announced or not', async () => {
  const handler: Handler = (request, response) => {
    const body = Buffer.alloc(5_000, 'x');
    if (request.path === '/announced') response.writeHead(200, { 'content-length': String(body.length) });
    else response.writeHead(200, { 'transfer-encoding': 'chunked' });
    response.end(body);
  };
  await serving(handler, async ({ url, requests }) => {
    for (const path of ['/announced', '/chunked']) {
      const failure = await fails(`${url}${path}`, { limits: { maxBytes: 4_999 } });
      assert.is(failure.kind, 'tooLarge', path);
    }
    assert.is(requests.length, 2);
    assert.is((await answers(`${url}/chunked`, { limits: { maxBytes: 5_000 } })).body.length, 5_000);
  });
});

test('a truncated download is an error, and is tried again', async () => {
  const whole = Buffer.alloc(10_000, 'y');
  let failures = 2;
  const handler: Handler = (request, response) => {
    if (request.path === '/announced') response.writeHead(200, { 'content-length': String(whole.length) });
    else response.writeHead(200);
    if (request.path === '/later' && failures-- <= 0) {
      response.end(whole);
      return;
    }
    response.write(whole.subarray(0, 4_000), () => response.socket?.destroy());
  };
  await serving(handler, async ({ url, requests }) => {
    for (const path of ['/announced', '/chunked']) assert.is((await fails(`${url}${path}`)).kind, 'truncated', path);
    assert.is(requests.length, 8);
    assert.is((await answers(`${url}/later`)).digest, sha256Digest(whole));
    assert.is(requests.length, 11);
  });
});

test('a silent server and a slow one run into their limits', async () => {
  const handler: Handler = (request, response) => {
    if (request.path === '/silent') return;
    response.writeHead(200);
    response.write('a');
    if (request.path === '/stalls') return;
    const timer = setInterval(() => response.write('a'), 10);
    response.on('close', () => clearInterval(timer));
  };
  await serving(handler, async ({ url }) => {
    const once = { retry: { attempts: 1 } };
    for (const path of ['/silent', '/stalls']) {
      const failure = await fails(`${url}${path}`, { ...once, limits: { idleMs: 60 } });
      assert.is(failure.kind, 'timeout');
      assert.match(failure.message, 'nothing arrived for 60ms');
    }
    const began = performance.now();
    const failure = await fails(`${url}/drips`, { limits: { idleMs: 1_000, totalMs: 150 } });
    assert.match(failure.message, 'no complete answer within 150ms');
    assert.ok(performance.now() - began < 1_000);
  });
});

test('transient answers are tried again, Retry-After is honoured up to the cap, others are final', async () => {
  const script: [number, string?][] = [[503], [429, '3600'], [500, '2'], [200]];
  const slept: number[] = [];
  const clock: Clock = {
    ...systemClock,
    // The long waits are those of the limits; only pauses between attempts are short enough to be recorded.
    sleep: (ms, signal) => {
      if (ms > 500) return systemClock.sleep(ms, signal);
      slept.push(ms);
      return systemClock.sleep(0, signal);
    },
  };
  const handler: Handler = (request, response) => {
    const [status, after] = request.path === '/final' ? [404] : (script.shift() ?? [200]);
    response.writeHead(status, after === undefined ? {} : { 'retry-after': after });
    response.end();
  };
  await serving(handler, async ({ url, requests }) => {
    const retry = { initialMs: 10, factor: 2, maxMs: 100, jitter: 0.2, attempts: 4 };
    assert.is((await answers(`${url}/`, { clock, retry })).status, 200);
    assert.equal(slept, [10, 100, 100]);
    assert.is(requests.length, 4);
    assert.is((await answers(`${url}/final`, { clock, retry })).status, 404);
    assert.is(requests.length, 5);
  });
});

test('an abort ends a request at once with the reason of the signal', async () => {
  await serving(
    () => undefined,
    async ({ url }) => {
      const controller = new AbortController();
      const client = createHttpClient(defaults);
      const reason = new Error('stopped by the test');
      setTimeout(() => controller.abort(reason), 20);
      const began = performance.now();
      const caught = await client.request({ url, signal: controller.signal }).catch((error: unknown) => error);
      client.close();
      assert.is(caught, reason);
      assert.ok(performance.now() - began < 1_000);
    },
  );
});

test('a refused connection is told without query and credentials', async () => {
  const { url, close } = await startServer((_, response) => response.end());
  await close();
  const failure = await fails(`${url}/a.tgz?token=${canary}`);
  assert.is(failure.kind, 'network');
  assert.is(failure.url, `${url}/a.tgz`);
  assert.match(failure.message, 'ECONNREFUSED');
});

test('TLS: an unknown authority is refused, an extra one is accepted for its host only', async () => {
  const tls = selfSigned(['127.0.0.1']);
  await serving(
    (_, response) => response.end('secure'),
    async ({ url, host }) => {
      const unknown = await fails(`${url}/`);
      assert.is(unknown.kind, 'tls');
      assert.match(unknown.remedy ?? '', 'caFile');
      assert.is((await answers(`${url}/`, { ca: [{ pem: tls.cert }] })).status, 200);
      assert.is((await answers(`${url}/`, { ca: [{ host, pem: tls.cert }] })).status, 200);
      assert.is((await fails(`${url}/`, { ca: [{ host: 'other.test', pem: tls.cert }] })).kind, 'tls');
    },
    { tls },
  );
});

test('https goes through the proxy with its credentials, and the target is verified behind it', async () => {
  const tls = selfSigned(['charts.test']);
  await serving(
    (_, response) => response.end('behind'),
    async (target) => {
      const asked: string[] = [];
      const onConnect = (
        request: { url?: string | undefined; headers: Record<string, unknown> },
        socket: Socket,
      ): void => {
        asked.push(`${request.url} ${String(request.headers['proxy-authorization'])}`);
        const upstream = createConnection(target.port, '127.0.0.1', () => {
          socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
          upstream.pipe(socket).pipe(upstream);
        });
        upstream.on('error', () => socket.destroy());
      };
      await serving(
        (_, response) => response.end(),
        async (proxy) => {
          const options = {
            allowedHosts: ['charts.test'],
            ca: [{ pem: tls.cert }],
            proxy: { httpsProxy: `http://user:${canary}@${proxy.host}` },
          };
          assert.is(Buffer.from((await answers('https://charts.test/a.tgz', options)).body).toString(), 'behind');
          assert.equal(asked, [`charts.test:443 Basic ${Buffer.from(`user:${canary}`).toString('base64')}`]);
          const untrusted = await fails('https://charts.test/a.tgz', { ...options, ca: [] });
          assert.is(untrusted.kind, 'tls');
        },
        { onConnect },
      );
    },
    { tls },
  );
});

test('a proxy that is gone or refuses is told without its credentials', async () => {
  const { host, close } = await startServer((_, response) => response.end());
  await close();
  const options = { allowedHosts: ['charts.test'], proxy: { httpsProxy: `http://user:${canary}@${host}` } };
  assert.is((await fails('https://charts.test/', options)).kind, 'network');
});

test('NO_PROXY names, suffixes, addresses and ranges', () => {
  const via = (url: string, noProxy: string): boolean =>
    proxyFor(new URL(url), { httpsProxy: 'http://p:1', noProxy }) !== undefined;
  assert.ok(via('https://charts.test/', ''));
  assert.ok(via('https://charts.test/', 'other.test, .sub.test'));
  for (const entry of ['*', 'charts.test', 'test', '.test', 'CHARTS.test:443', '*.test'])
    assert.not.ok(via('https://charts.test/', entry), entry);
  assert.ok(via('https://charts.test/', '.charts.test'));
  assert.ok(via('https://charts.test/', 'charts.test:8443'));
  assert.not.ok(via('https://10.1.2.3/', '10.0.0.0/8'));
  assert.ok(via('https://11.1.2.3/', '10.0.0.0/8'));
  assert.not.ok(via('https://[fd00::5]/', 'fd00::/8'));
  assert.not.ok(via('https://127.0.0.1:8443/', ''));
  assert.is(proxyFor(new URL('http://127.0.0.1/'), { httpsProxy: 'http://p:1' }), undefined);
  assert.equal(
    proxyFromEnvironment({
      HTTPS_PROXY: 'http://a:1',
      https_proxy: 'http://b:1',
      NO_PROXY: ' ',
      HTTP_PROXY: 'http://c:1',
    }),
    {
      httpsProxy: 'http://b:1',
    },
  );
});

test.run();
