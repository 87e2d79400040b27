/** An API server with a kubelet behind it, as far as port-forward over WebSocket goes; and a proxy on the way, for who asks it. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';

/** A message of a channel: 0 for data, 1 for errors; at most 124 bytes. */
export const forwarded = (channel: number, bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.of(0x82, bytes.length + 1, channel), bytes]);

/** The kubelet names both streams of a port first. */
export const streamNames = Buffer.concat([0, 1].map((channel) => forwarded(channel, Buffer.of(0, 0))));

interface ForwardServer {
  readonly url: string;
  close(): void;
}

/** @param told says what there is to say on a connection that was upgraded */
export async function forwardServer(told: (socket: Duplex) => void): Promise<ForwardServer> {
  const server = createServer();
  const sockets = new Set<Duplex>();
  const keep = (socket: Duplex): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  };
  server.on('upgrade', (request, socket) => {
    keep(socket);
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const head = [
      'HTTP/1.1 101 Switching Protocols',
      'upgrade: websocket',
      'connection: upgrade',
      'sec-websocket-protocol: v4.channel.k8s.io',
      `sec-websocket-accept: ${createHash('sha1').update(key).digest('base64')}`,
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    told(socket);
  });
  server.on('connect', (request, socket) => {
    const [host, port] = (request.url ?? '').split(':');
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    for (const end of [socket, onward]) keep(end);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
