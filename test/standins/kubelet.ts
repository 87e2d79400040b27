import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { selfSigned } from './certificate.ts';

/** What of a kubelet an API server needs to forward ports of its pods: a WebSocket whose messages begin with a stream's number. */
export interface StandInKubelet {
  readonly port: number;
  /** Paths that were asked for. */
  readonly paths: readonly string[];
  close(): Promise<void>;
}

/** @param places where a port of a pod is really listened on. */
export async function startKubelet(places: ReadonlyMap<number, number>): Promise<StandInKubelet> {
  const { cert, key } = selfSigned(['127.0.0.1']);
  const server = createServer({ cert, key }, (_request, response) => response.writeHead(404).end());
  const sockets = new Set<Duplex>();
  const paths: string[] = [];
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.on('upgrade', (request, socket: Duplex) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    const url = new URL(request.url ?? '/', 'https://kubelet');
    paths.push(url.pathname);
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    socket.write(
      [
        'HTTP/1.1 101 Switching Protocols',
        'Upgrade: websocket',
        'Connection: Upgrade',
        `Sec-WebSocket-Accept: ${accept}`,
        'Sec-WebSocket-Protocol: v4.channel.k8s.io',
        '\r\n',
      ].join('\r\n'),
    );
    carry(socket, Number(url.searchParams.get('ports') ?? url.searchParams.get('port')), places);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    paths,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function carry(socket: Duplex, port: number, places: ReadonlyMap<number, number>): void {
  const name = Buffer.alloc(2);
  name.writeUInt16LE(port);
  for (const channel of [0, 1]) socket.write(frame(Buffer.concat([Buffer.of(channel), name])));
  const pod = connect({ host: '127.0.0.1', port: places.get(port) ?? 1 });
  pod.on('error', (error) => socket.write(frame(Buffer.concat([Buffer.of(1), Buffer.from(error.message)]))));
  pod.on('data', (chunk) => socket.write(frame(Buffer.concat([Buffer.of(0), chunk]))));
  pod.on('close', () => socket.end());
  socket.on('close', () => pod.destroy());
  let held: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    for (let read = unframe(held); read !== undefined; read = unframe(held)) {
      held = read.rest;
      if (read.opcode === 8) socket.end();
      else if (read.payload[0] === 0) pod.write(read.payload.subarray(1));
    }
  });
}

/** One binary message. */
function frame(payload: Buffer): Buffer {
  const size = payload.length;
  if (size < 126) return Buffer.concat([Buffer.of(0x82, size), payload]);
  const head = Buffer.alloc(10);
  head[0] = 0x82;
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(size), 2);
  return Buffer.concat([head, payload]);
}

/** The first message of a client, which masks what it sends; undefined while it is not all there. */
function unframe(bytes: Buffer): { opcode: number; payload: Buffer; rest: Buffer } | undefined {
  if (bytes.length < 2) return undefined;
  const code = (bytes[1] ?? 0) & 0x7f;
  const extra = code === 126 ? 2 : code === 127 ? 8 : 0;
  const start = 2 + extra + 4;
  if (bytes.length < start) return undefined;
  const size = code === 126 ? bytes.readUInt16BE(2) : code === 127 ? Number(bytes.readBigUInt64BE(2)) : code;
  if (bytes.length < start + size) return undefined;
  const mask = bytes.subarray(start - 4, start);
  const payload = Buffer.from(bytes.subarray(start, start + size).map((byte, n) => byte ^ (mask[n % 4] ?? 0)));
  return { opcode: (bytes[0] ?? 0) & 0x0f, payload, rest: bytes.subarray(start + size) };
}
