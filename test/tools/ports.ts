import { createServer } from 'node:net';

/**
 * A TCP port of the loopback address on which nobody listens. It lies below the range from which the kernel takes the
 * local ports of outgoing connections, so a server can come back on it after a restart.
 * @throws when fifty random ports in a row were in use.
 */
export async function freePort(random: () => number = Math.random): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const port = 12_000 + Math.floor(random() * 20_000);
    if (await isFree(port)) return port;
  }
  throw new Error('no free port found on 127.0.0.1 between 12000 and 32000');
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
