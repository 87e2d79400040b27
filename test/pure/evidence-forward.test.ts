import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { kubeletWay } from '../../executor/evidence/forward.ts';
import type { Opened } from '../../executor/evidence/way.ts';
import type { Credentials } from '../../executor/kube/credentials.ts';
import { forwardServer, streamNames } from '../standins/portforward.ts';

test('a pod is one segment of the path, whatever its name says', async () => {
  const asked: string[] = [];
  const server = createServer((_request, response) => response.writeHead(404).end());
  server.on('upgrade', (request, socket) => {
    asked.push(request.url ?? '');
    socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const credentials: Credentials = {
      server: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
      tls: { insecure: false },
      headers: {},
    };
    const current = async (): Promise<Credentials> => credentials;
    const names = ['n1', '../../../../secrets/x?y#z', 'a/b?c', '%2e%2e', '..', '.'];
    for (const pod of names) {
      const way = kubeletWay({ current, renewed: current }, { namespace: 'a/../b', pod }, 5_000);
      const opened = await way(8_080, new AbortController().signal);
      assert.is(opened.type, 'unreachable', pod);
    }
    assert.equal(
      asked,
      ['n1', '..%2F..%2F..%2F..%2Fsecrets%2Fx%3Fy%23z', 'a%2Fb%3Fc', '%252e%252e'].map(
        (pod) => `/api/v1/namespaces/a%2F..%2Fb/pods/${pod}/portforward?ports=8080`,
      ),
      'names that can only lead elsewhere are not asked for at all',
    );
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

/** What a forwarded port comes to where this is said on it, and how long that takes. */
async function answered(bytes: Buffer, proxied: boolean): Promise<{ opened: Opened; tookMs: number }> {
  const { url, close } = await forwardServer((socket) => socket.write(bytes));
  const proxy = proxied ? { proxy: url } : {};
  const current = async (): Promise<Credentials> => ({ server: url, tls: { insecure: false }, headers: {}, ...proxy });
  const from = performance.now();
  try {
    const way = kubeletWay({ current, renewed: current }, { namespace: 'a', pod: 'b' }, 3_000);
    const opened = await way(8_080, new AbortController().signal);
    if (opened.type === 'open') opened.stream.destroy();
    return { opened, tookMs: performance.now() - from };
  } finally {
    close();
  }
}

for (const proxied of [false, true])
  test(`a message that would fill the memory ends the stream before it is there${proxied ? ', behind a proxy too' : ''}`, async () => {
    assert.is((await answered(streamNames, proxied)).opened.type, 'open');
    const large = Buffer.from([0x82, 127, 0, 0, 0, 0, 4, 0, 0, 0]);
    const { opened, tookMs } = await answered(large, proxied);
    assert.is(opened.type, 'unreachable');
    assert.ok(tookMs < 2_500, 'nobody waits for the rest of it');
  });

test.run();
