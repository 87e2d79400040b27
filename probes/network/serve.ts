import { createServer, type Server, type ServerResponse } from 'node:http';
import { networkProbe } from '../../constructs/api/constants.ts';
import type { ServerIdentity } from '../../constructs/api/evidence/question.ts';
import { noncePattern } from '../../constructs/api/evidence/words.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import { listenSomewhere } from '../server/listen.ts';
import { echoPath, echoText } from './echo.ts';

/**
 * The server of the network probe: it says which pod it is, to whoever asks, and nothing else. It has no account, no state, and
 * bounds on everything that a stranger in the cluster could make it hold.
 */

export interface EchoOptions {
  readonly identity: ServerIdentity;
  /** Addresses of the pod, of both families. */
  readonly addresses: readonly string[];
  readonly port: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: (message: string) => void;
  readonly onListening?: (address: string, port: number) => void;
}

/** Connections at a time, for each address; milliseconds that one may take; bytes of what it asks. */
const limits = { connections: 256, requestMs: 5_000, headerBytes: 4 * 1024 } as const;

function echoServer(identity: ServerIdentity): Server {
  const server = createServer(
    {
      requestTimeout: limits.requestMs,
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: 1_000,
      keepAlive: false,
      maxHeaderSize: limits.headerBytes,
    },
    (request, response) => {
      // Taken apart by hand: the parser of URLs throws on what a stranger may ask for, `//` for one.
      const [path = '', query = ''] = (request.url ?? '').split('?', 2);
      if (request.method !== 'GET') return send(response, 405, {});
      if (path === networkProbe.readyPath) return send(response, 200, {});
      if (path !== echoPath) return send(response, 404, {});
      const nonce = new URLSearchParams(query).get('nonce') ?? '';
      return noncePattern.test(nonce) ? send(response, 200, echoText(identity, nonce)) : send(response, 400, {});
    },
  );
  // One question, one connection: each proves a way of its own.
  server.maxRequestsPerSocket = 1;
  server.maxConnections = limits.connections;
  server.timeout = limits.requestMs;
  return server;
}

function send(response: ServerResponse, status: number, body: string | object): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    connection: 'close',
  });
  response.end(text);
}

/** Serves on every address until the signal aborts. An address that can not be listened on yet is tried again. */
export async function runEchoServer(options: EchoOptions, signal: AbortSignal): Promise<void> {
  await Promise.all(options.addresses.map((address) => serveAt(address, options, signal)));
}

async function serveAt(address: string, options: EchoOptions, signal: AbortSignal): Promise<void> {
  const { log, onListening } = options;
  const server = echoServer(options.identity);
  const told = (message: string): void => log(`${address}: ${message}`);
  const port = await listenSomewhere({ ...options, server, ports: [options.port], host: address, log: told }, signal);
  if (port === undefined) return;
  server.on('error', (error) => told(error.message));
  told(`listening on port ${port}`);
  onListening?.(address, port);
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
