import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { kubeletWay } from '../../executor/evidence/forward.ts';
import type { Credentials } from '../../executor/kube/credentials.ts';

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

test.run();
