import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { isIPv6 } from 'node:net';
import type { ServerIdentity } from '../../constructs/api/evidence/question.ts';
import { echoLimit, echoPath, readEcho } from './echo.ts';
import type { SourcePorts } from './source-ports.ts';

/** What one question to one address came to. */
export type Echoed =
  | { readonly type: 'answered'; readonly by: ServerIdentity }
  /** Somebody answers, and not as a server of the probe answers this nonce. */
  | { readonly type: 'stranger'; readonly message: string }
  | { readonly type: 'timeout' | 'refused' | 'failed'; readonly message: string };

export interface EchoQuestion {
  readonly address: string;
  readonly port: number;
  readonly nonce: string;
  /** Name by which the address was found; the address itself, otherwise. */
  readonly host?: string;
}

/** So many ports in a row may be somebody else's before the kernel chooses one. */
const mostTaken = 16;
const isTaken = (echoed: Echoed): boolean =>
  echoed.type === 'failed' && ['EADDRINUSE', 'EADDRNOTAVAIL'].includes(echoed.message);

/**
 * Asks over a connection of its own, from a port of its own. The signal's end means that no answer came in time; it never
 * rejects.
 */
export async function askEcho(question: EchoQuestion, from: SourcePorts, signal: AbortSignal): Promise<Echoed> {
  for (let n = 0; n < mostTaken; n += 1) {
    const echoed = await askOnce(question, { localPort: from() }, signal);
    if (!isTaken(echoed)) return echoed;
  }
  return askOnce(question, {}, signal);
}

function askOnce(
  { address, port, nonce, host }: EchoQuestion,
  local: { readonly localPort?: number },
  signal: AbortSignal,
): Promise<Echoed> {
  return new Promise((resolve) => {
    let waitingFor = 'no connection';
    const asked: ClientRequest = request({
      host: address,
      port,
      path: `${echoPath}?nonce=${nonce}`,
      agent: false,
      ...local,
      headers: { host: host ?? (isIPv6(address) ? `[${address}]` : address), connection: 'close' },
    });
    const end = (echoed: Echoed): void => {
      signal.removeEventListener('abort', late);
      asked.destroy();
      resolve(echoed);
    };
    const late = (): void => end({ type: 'timeout', message: `${waitingFor} in time` });
    signal.addEventListener('abort', late, { once: true });
    asked.on('error', (error: NodeJS.ErrnoException) => end(faultOf(error)));
    if (signal.aborted) return late();
    asked.once('socket', (socket) =>
      socket.once('connect', () => {
        waitingFor = 'connected, but no answer';
      }),
    );
    asked.once('response', (response) => read(response, nonce, end));
    asked.end();
  });
}

function faultOf({ code, message }: NodeJS.ErrnoException): Echoed {
  const refused = code === 'ECONNREFUSED';
  // Whoever speaks another protocol is somebody else.
  if (code?.startsWith('HPE_') === true) return { type: 'stranger', message: 'the answer is not HTTP' };
  return { type: refused ? 'refused' : 'failed', message: code ?? message.slice(0, 128) };
}

function read(response: IncomingMessage, nonce: string, end: (echoed: Echoed) => void): void {
  if (response.statusCode !== 200) {
    end({ type: 'stranger', message: `the answer has status ${response.statusCode}` });
    return;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    chunks.push(chunk);
    if (bytes > echoLimit) end({ type: 'stranger', message: `the answer has more than ${echoLimit} bytes` });
  });
  response.on('error', (error) => end(faultOf(error)));
  response.once('end', () => {
    const by = readEcho(Buffer.concat(chunks).toString('utf8'), nonce);
    end(
      by === undefined
        ? { type: 'stranger', message: 'the answer is to no question of ours' }
        : { type: 'answered', by },
    );
  });
}
