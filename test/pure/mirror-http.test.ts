import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import type { HttpClient } from '../../renderer/http/types.ts';
import { selfSigned } from '../standins/certificate.ts';
import { startServer } from '../standins/httpserver.ts';
import { withFolder } from './renderer-oci-support.ts';

/** What the HTTP client learned for content that does not fit into memory. */

const clientFor = (hosts: string[], pem?: string): HttpClient =>
  createHttpClient({
    allowedHosts: hosts,
    allowField: 'spec.registries',
    clock: systemClock,
    random: () => 0.5,
    retry: { attempts: 3, initialMs: 1, maxMs: 5 },
    ...(pem === undefined ? {} : { ca: [{ pem }] }),
  });

const collect = (into: Buffer[]) => async (chunks: AsyncIterable<Uint8Array>) => {
  into.length = 0;
  for await (const chunk of chunks) into.push(Buffer.from(chunk));
};

test('a body is handed on as it comes, from the beginning at every attempt, and only of a 200', async () => {
  const body = Buffer.alloc(300_000, 'layer');
  let asked = 0;
  const server = await startServer((request, response) => {
    asked += 1;
    if (request.path === '/gone') response.writeHead(404).end('not here');
    else if (asked === 1) {
      response.writeHead(200, { 'content-length': String(body.length) });
      response.write(body.subarray(0, 100_000), () => response.destroy());
    } else response.writeHead(200, { 'content-length': String(body.length) }).end(body);
  });
  const http = clientFor([server.host]);
  try {
    const parts: Buffer[] = [];
    const outcome = await http.request({ url: `${server.url}/blob`, into: collect(parts) });
    assert.ok(outcome.ok && outcome.reply.body.length === 0 && outcome.reply.digest === sha256Digest(body));
    assert.equal([asked, Buffer.concat(parts).equals(body)], [2, true]);
    const large = await http.request({ url: `${server.url}/blob`, maxBytes: 1_000, into: collect(parts) });
    assert.is(large.ok ? '' : large.failure.kind, 'tooLarge');
    const gone = await http.request({
      url: `${server.url}/gone`,
      into: () => Promise.reject(new Error('not for this')),
    });
    assert.is(gone.ok ? Buffer.from(gone.reply.body).toString() : '', 'not here');
    // What takes the body has failed: that is no matter of the connection, and not tried again.
    const before = asked;
    const full = Object.assign(new Error('the disk is full'), { code: 'ENOSPC' });
    const thrown = await http.request({ url: `${server.url}/blob`, into: () => Promise.reject(full) }).catch((e) => e);
    assert.equal([thrown, asked], [full, before + 1]);
  } finally {
    http.close();
    await server.close();
  }
});

test('a file is sent with its length, again from its beginning, or once where that was said', () =>
  withFolder(async (folder) => {
    const bytes = Buffer.alloc(200_000, 'file');
    const file = join(folder, 'blob');
    await writeFile(file, bytes);
    let failing = 1;
    const server = await startServer((_request, response) => response.writeHead(failing-- > 0 ? 503 : 201).end());
    const http = clientFor([server.host]);
    try {
      const put = { url: `${server.url}/up`, method: 'PUT' as const, body: { file, size: bytes.length } };
      const sent = await http.request(put);
      assert.is(sent.ok ? sent.reply.status : 0, 201);
      assert.is(server.requests.length, 2);
      for (const request of server.requests)
        assert.equal([request.headers['content-length'], request.bytes.equals(bytes)], [String(bytes.length), true]);
      failing = 1;
      const once = await http.request({ ...put, retry: false });
      assert.is(once.ok ? once.reply.status : 0, 503);
    } finally {
      http.close();
      await server.close();
    }
  }));

test('content whose digest is known may be redirected to any https host, and nothing else may', async () => {
  const tls = selfSigned(['127.0.0.1']);
  const store = await startServer((_request, response) => response.end('the blob'), { tls });
  const plain = await startServer((_request, response) => response.end('the blob'));
  const places: Record<string, string> = {
    '/https': `${store.url}/b`,
    '/plain': `${plain.url}/b`,
    '/up': `${store.url}/b`,
  };
  const registry = await startServer((request, response) =>
    response.writeHead(307, { location: places[request.path] ?? '' }).end(),
  );
  const http = clientFor([registry.host], tls.cert);
  try {
    const ask = async (path: string, more: object): Promise<string> => {
      const headers = { authorization: 'Bearer canary' };
      const outcome = await http.request({ url: `${registry.url}${path}`, headers, ...more });
      return outcome.ok ? Buffer.from(outcome.reply.body).toString() : outcome.failure.kind;
    };
    assert.is(await ask('/https', { redirects: 'https' }), 'the blob');
    assert.is(await ask('/https', {}), 'refused');
    assert.is(await ask('/plain', { redirects: 'https' }), 'refused');
    assert.is(await ask('/up', { redirects: 'https', method: 'PUT', body: 'x' }), 'redirect');
    assert.equal([store.requests.length, plain.requests.length], [1, 0]);
    assert.is(store.requests[0]?.headers.authorization, undefined);
  } finally {
    http.close();
    for (const server of [store, plain, registry]) await server.close();
  }
});

test.run();
