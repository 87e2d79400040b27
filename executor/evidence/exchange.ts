import { request } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { refusalBehind } from './handshake.ts';

export interface Question {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: string;
  /** Bytes of the answer; more end it. */
  readonly limitBytes: number;
}

/** `letGo`: the peer ended the connection before it had answered. `garbled`: what it said is no whole answer of HTTP. */
export type Exchanged =
  | { readonly type: 'answer'; readonly status: number; readonly body: Buffer }
  | { readonly type: 'tooLarge' }
  | { readonly type: 'garbled' }
  | { readonly type: 'letGo'; readonly message: string }
  | { readonly type: 'hung' };

/** Of everything around the body of an answer. */
const aroundBytes = 32 * 1024;

/** One request over one connection, which is closed afterwards. The signal's end means that no answer came. */
export function exchange(socket: TLSSocket, question: Question, signal: AbortSignal): Promise<Exchanged> {
  return new Promise((resolve) => {
    const { method, path, body, limitBytes } = question;
    let [heard, begun] = [0, false];
    // Not all of what a parser takes becomes part of an answer: promises of one, and empty lines, have no end of their own.
    const count = (chunk: Buffer): void => {
      heard += chunk.byteLength;
      if (heard > limitBytes + aroundBytes) end({ type: 'tooLarge' });
    };
    socket.on('data', count);
    const end = (answer: Exchanged): void => {
      signal.removeEventListener('abort', aborted);
      socket.off('data', count);
      socket.destroy();
      resolve(answer);
    };
    const aborted = (): void => end({ type: 'hung' });
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) return aborted();
    const letGo = (error: NodeJS.ErrnoException): void =>
      // Whoever has begun to answer, or speaks, does not doubt the executor.
      end(
        begun || error.code?.startsWith('HPE_')
          ? { type: 'garbled' }
          : { type: 'letGo', message: refusalBehind(error) },
      );
    const asked = request(
      {
        createConnection: () => socket,
        method,
        path,
        headers: {
          host: 'probe',
          connection: 'close',
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        begun = true;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.byteLength;
          if (bytes > limitBytes) end({ type: 'tooLarge' });
          else chunks.push(chunk);
        });
        response.on('error', letGo);
        response.once('end', () =>
          end({ type: 'answer', status: response.statusCode ?? 0, body: Buffer.concat(chunks) }),
        );
      },
    );
    asked.on('error', letGo);
    asked.once('upgrade', () => end({ type: 'garbled' }));
    asked.end(body);
  });
}
