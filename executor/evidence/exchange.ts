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

/** `let go`: the peer ended the connection before it had answered. */
export type Exchanged =
  | { readonly type: 'answer'; readonly status: number; readonly body: Buffer }
  | { readonly type: 'tooLarge' }
  | { readonly type: 'letGo'; readonly message: string }
  | { readonly type: 'hung' };

/** One request over one connection, which is closed afterwards. The signal's end means that no answer came. */
export function exchange(socket: TLSSocket, question: Question, signal: AbortSignal): Promise<Exchanged> {
  return new Promise((resolve) => {
    const { method, path, body, limitBytes } = question;
    const end = (answer: Exchanged): void => {
      signal.removeEventListener('abort', aborted);
      socket.destroy();
      resolve(answer);
    };
    const aborted = (): void => end({ type: 'hung' });
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) return aborted();
    const letGo = (error: NodeJS.ErrnoException): void => end({ type: 'letGo', message: refusalBehind(error) });
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
    asked.end(body);
  });
}
