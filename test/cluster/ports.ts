import { createServer } from 'node:net';
import { freePort } from '../tools/ports.ts';

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Different ports on which nobody listens, neither on the loopback nor on `address`. */
export async function freePorts(address: string, count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = await freePort();
    if (await isFree(address, port)) ports.add(port);
  }
  return [...ports];
}
