import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { Registry } from 'prom-client';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { serveMetrics } from '../../executor/telemetry/server.ts';

test('what is no path of a URL is answered as unknown, and metrics are served as before', async () => {
  const server = await serveMetrics(new Registry(), 0);
  try {
    for (const target of ['//', 'http://[/', '/none?x=/metrics']) {
      const socket = connect(server.port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write(`GET ${target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
      assert.match(await text(socket), /^HTTP\/1\.1 404 /, target);
    }
    for (const path of ['/metrics', '/metrics?x=1', '/healthz'])
      assert.is((await fetch(`http://127.0.0.1:${server.port}${path}`)).status, 200, path);
  } finally {
    await server.close();
  }
});

test.run();
