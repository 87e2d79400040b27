import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Certificate } from './certificate.ts';

/** One request that a stand-in saw. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** The same body, as it came. */
  readonly bytes: Buffer;
}

export interface StandInServer {
  /** `127.0.0.1:<port>` or `[::1]:<port>`. */
  readonly host: string;
  readonly port: number;
  /** `http(s)://host`. */
  readonly url: string;
  readonly requests: SeenRequest[];
  /** Connections accepted so far. */
  readonly connections: () => number;
  close(): Promise<void>;
}

export type Handler = (request: SeenRequest, response: ServerResponse) => unknown;

export interface ServerOptions {
  readonly address?: '127.0.0.1' | '::1';
  readonly tls?: Certificate;
  /** Handles CONNECT, for proxies. */
  readonly onConnect?: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A real server on a free loopback port that records what it is asked. */
export async function startServer(handler: Handler, options: ServerOptions = {}): Promise<StandInServer> {
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  let accepted = 0;
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const answer = async (): Promise<void> => {
      const bytes = await readAll(request);
      const seen = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: bytes.toString('utf8'),
        bytes,
      };
      requests.push(seen);
      await handler(seen, response);
    };
    answer().catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))));
  };
  const server = options.tls === undefined ? http.createServer(listener) : https.createServer(options.tls, listener);
  server.on('connection', (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  if (options.onConnect !== undefined) server.on('connect', options.onConnect);
  const address = options.address ?? '127.0.0.1';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, resolve);
  });
  const { port } = server.address() as AddressInfo;
  const host = `${address === '::1' ? '[::1]' : address}:${port}`;
  return {
    host,
    port,
    url: `${options.tls === undefined ? 'http' : 'https'}://${host}`,
    requests,
    connections: () => accepted,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
