import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import fetch, { type Response } from 'node-fetch';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Digest } from '../../constructs/lib/digest.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import type { Agents } from './agents.ts';
import { LimitError, SinkError } from './failures.ts';
import type { HttpReply, HttpRequest } from './types.ts';

/** What one exchange with one address needs. `deadline` is on the monotonic clock. */
export interface ExchangeContext {
  readonly clock: Clock;
  readonly agents: Agents;
  readonly maxBytes: number;
  readonly idleMs: number;
  readonly totalMs: number;
  readonly deadline: number;
  /** Called when the head has arrived: later errors are errors of reading. */
  readonly onHead: () => void;
}

/** Aborts `controller` when nothing moved for the idle limit, or at the deadline. Ends when `done` aborts. */
function guard(context: ExchangeContext, controller: AbortController, done: AbortSignal): { touch(): void } {
  const { clock } = context;
  let last = clock.monotonic();
  const watch = async (): Promise<void> => {
    for (;;) {
      const now = clock.monotonic();
      if (now >= context.deadline) {
        const message = `no complete answer within ${formatDuration(context.totalMs)}`;
        controller.abort(new LimitError('timeout', message, false, 'check the server and the way to it'));
        return;
      }
      if (now - last >= context.idleMs) {
        controller.abort(new LimitError('timeout', `nothing arrived for ${formatDuration(context.idleMs)}`, true));
        return;
      }
      await clock.sleep(Math.min(context.deadline - now, context.idleMs - (now - last)), done);
    }
  };
  watch().catch(() => undefined);
  return {
    touch() {
      last = clock.monotonic();
    },
  };
}

function tooLarge(maxBytes: number): LimitError {
  return new LimitError('tooLarge', `the body is larger than ${maxBytes} bytes`, false);
}

/** The parts of a body as they come, counted and bounded. */
async function* partsOf(
  response: Response,
  context: ExchangeContext,
  seen: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const part of response.body ?? []) {
    const chunk = typeof part === 'string' ? Buffer.from(part) : part;
    size += chunk.length;
    if (size > context.maxBytes) throw tooLarge(context.maxBytes);
    seen(chunk);
    yield chunk;
  }
}

/** Hands a body on; an error of whoever takes it is told apart from one of the connection. */
async function pour(parts: AsyncGenerator<Uint8Array>, into: NonNullable<HttpRequest['into']>): Promise<void> {
  let broken: { readonly error: unknown } | undefined;
  async function* watched(): AsyncGenerator<Uint8Array> {
    try {
      yield* parts;
    } catch (error) {
      broken = { error };
      throw error;
    }
  }
  try {
    await into(watched());
  } catch (error) {
    throw broken === undefined ? new SinkError(error) : broken.error;
  }
}

async function readBody(
  response: Response,
  request: HttpRequest,
  context: ExchangeContext,
  touch: () => void,
): Promise<{ body: Uint8Array; size: number; digest: Digest }> {
  const hash = createHash('sha256');
  const chunks: Uint8Array[] = [];
  let size = 0;
  const parts = partsOf(response, context, (chunk) => {
    touch();
    size += chunk.length;
    hash.update(chunk);
  });
  if (request.into !== undefined && response.status === 200) await pour(parts, request.into);
  else for await (const chunk of parts) chunks.push(chunk);
  return { body: Buffer.concat(chunks), size, digest: `sha256:${hash.digest('hex')}` };
}

/** The body of a request as the library takes it. What is read of a file counts as movement. */
function bodyOf(request: HttpRequest, touch: () => void): { body?: string | Buffer | Readable } {
  const { body } = request;
  if (body === undefined) return {};
  if (typeof body === 'string') return { body };
  if (body instanceof Uint8Array) return { body: Buffer.from(body) };
  const { file } = body;
  async function* touched(): AsyncGenerator<Uint8Array> {
    for await (const chunk of createReadStream(file)) {
      touch();
      yield chunk as Buffer;
    }
  }
  return { body: Readable.from(touched(), { objectMode: false }) };
}

/** A body that streams has no length of its own, and not every registry takes chunks. */
const lengthOf = ({ body }: HttpRequest): Record<string, string> =>
  typeof body === 'object' && 'file' in body ? { 'content-length': String(body.size) } : {};

function declaredLength(response: Response): number | undefined {
  const text = response.headers.get('content-length');
  return text !== null && /^[0-9]+$/.test(text) ? Number(text) : undefined;
}

/**
 * One request to one address: no redirect is followed, nothing is decoded, the body is complete or the call throws.
 * @throws LimitError for our limits, the request's abort reason, or what the connection threw.
 */
export async function exchange(
  url: URL,
  request: HttpRequest,
  headers: Readonly<Record<string, string>>,
  context: ExchangeContext,
): Promise<HttpReply & { readonly location?: string }> {
  const controller = new AbortController();
  const finished = new AbortController();
  const cancel = (): void => controller.abort(request.signal?.reason);
  request.signal?.throwIfAborted();
  request.signal?.addEventListener('abort', cancel, { once: true });
  const { touch } = guard(context, controller, finished.signal);
  const method = request.method ?? 'GET';
  try {
    const response = await fetch(url, {
      method,
      headers: { 'accept-encoding': 'identity', 'user-agent': 'keelson', ...lengthOf(request), ...headers },
      redirect: 'manual',
      compress: false,
      agent: context.agents.agentFor(url),
      signal: controller.signal,
      ...bodyOf(request, touch),
    });
    // Aborting makes the library emit an error on the body even after we stopped reading it.
    response.body?.on('error', () => undefined);
    touch();
    context.onHead();
    const length = method === 'HEAD' ? undefined : declaredLength(response);
    if (length !== undefined && length > context.maxBytes) throw tooLarge(context.maxBytes);
    const { body, size, digest } = await readBody(response, request, context, touch);
    if (length !== undefined && size !== length)
      throw new LimitError('truncated', `${size} of ${length} announced bytes arrived`, true);
    const location = response.headers.get('location');
    return {
      status: response.status,
      headers: new Map([...response.headers].map(([name, value]) => [name.toLowerCase(), value])),
      body,
      digest,
      url: url.href,
      ...(location === null ? {} : { location }),
    };
  } catch (error) {
    // The abort of our own limits is what explains the library's error; an early end must also stop the connection.
    if (controller.signal.aborted) throw controller.signal.reason;
    controller.abort(error);
    throw error;
  } finally {
    finished.abort();
    request.signal?.removeEventListener('abort', cancel);
  }
}
