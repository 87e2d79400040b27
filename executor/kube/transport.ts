/** The one seam between Keelson and the network: everything above it can be driven by tests, everything below is undici. */
import type { Readable } from 'node:stream';
import { createSecureContext, type SecureContext } from 'node:tls';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { CredentialSource, Credentials } from './credentials.ts';
import { Endings, exchange } from './exchange.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** One HTTP request to the API server. `query` values are sent in the given order, undefined ones left out. */
export interface TransportRequest {
  readonly method: Method;
  /** Absolute path, already percent-encoded, without a query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  /** Lower-case names. Credentials are added by the transport, never by a caller. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  /** Limit in milliseconds for the whole exchange, the body included. */
  readonly timeoutMs: number;
  /** A long-lived answer (watch): kept out of the connection limit of ordinary requests. */
  readonly stream?: boolean;
  /**
   * Asked when a connection is there, right before the first byte leaves: the wait for one may have been long. Streams, which
   * only read, are not asked about.
   * @throws when the request must not be sent any more; that is what `send` rejects with.
   */
  readonly beforeSend?: () => void;
}

/** Header names are lower-case; repeated headers are joined by ', '. The body is read once, or discarded. */
export interface TransportResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Sends one request. Rejects with {@link TransportError} when there is no answer, and with the signal's reason when the
 * caller aborted. While the body is read the same two may be thrown by its iterator.
 */
export type Transport = (request: TransportRequest) => Promise<TransportResponse>;

/** No answer: `sent` is false only when the request surely never reached a server. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly sent: boolean;

  constructor(message: string, sent: boolean, options?: ErrorOptions) {
    super(message, options);
    this.sent = sent;
  }
}

export interface TransportOptions {
  readonly credentials: CredentialSource;
  /**
   * Most connections for ordinary requests: as many as the client's limit lets under way, and a few for Leases, which pass
   * it. Streams have a pool of their own. Default 20.
   */
  readonly connections?: number;
  readonly connectTimeoutMs?: number;
  readonly userAgent?: string;
}

/** A transport that owns sockets; `close` ends them, after which nothing of it keeps the process alive. */
export interface OwnedTransport {
  readonly send: Transport;
  close(): Promise<void>;
}

interface Pools {
  /** What they were made for. */
  readonly credentials: Credentials;
  readonly key: string;
  readonly origin: string;
  /** Path below which the API is served; mostly empty. */
  readonly prefix: string;
  readonly requests: Dispatcher;
  readonly streams: Dispatcher;
}

/** Codes of failures that happen before a byte of the request leaves. */
const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  if (typeof code === 'string') return code;
  if (Array.isArray(errors) && errors.length > 0) return codeOf(errors[0]);
  return cause === undefined ? '' : codeOf(cause);
}

function failure(error: unknown, target: string): TransportError {
  const code = codeOf(error);
  const text = error instanceof Error && error.message !== '' ? error.message : String(error);
  const tls = code.startsWith('ERR_TLS') || code.includes('CERT') || code.startsWith('ERR_SSL');
  return new TransportError(
    `${target}: ${code === '' || text.includes(code) ? text : `${code} ${text}`}`,
    !(tls || neverSent.has(code)),
    {
      cause: error,
    },
  );
}

/** A signal that aborts with the caller's signal or after `ms`; `end` removes timer and listener. */
function deadline(
  ms: number,
  outer: AbortSignal | undefined,
): { signal: AbortSignal; expired: () => boolean; end: () => void } {
  const controller = new AbortController();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    controller.abort();
  }, ms);
  const forward = (): void => controller.abort(outer?.reason);
  if (outer?.aborted) forward();
  else outer?.addEventListener('abort', forward, { once: true });
  return {
    signal: controller.signal,
    expired: () => late,
    end: () => {
      clearTimeout(timer);
      outer?.removeEventListener('abort', forward);
    },
  };
}

function flatHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) out[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  return out;
}

/** The query of a request, with its question mark; empty when it has none. */
function queryOf({ query }: TransportRequest): string {
  let text = '';
  for (const name of Object.keys(query)) {
    const value = query[name];
    if (value === undefined) continue;
    text += `${text === '' ? '?' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
  }
  return text;
}

/** TLS material read once for all connections; undefined when it is no good, which connecting then tells. */
function sharedContext({ ca, cert, key }: Credentials['tls']): SecureContext | undefined {
  try {
    return createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
  } catch {
    return undefined;
  }
}

function makePools(credentials: Credentials, options: TransportOptions): Pools {
  const { server, tls, proxy } = credentials;
  const { origin, pathname } = new URL(server);
  const secureContext = sharedContext(tls);
  const shared = {
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    // The limit of each request is our own timer; undici's would cut slow lists and quiet watches.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      timeout: options.connectTimeoutMs ?? 5_000,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      ...(tls.cert === undefined ? {} : { cert: tls.cert }),
      ...(tls.key === undefined ? {} : { key: tls.key }),
      ...(tls.servername === undefined ? {} : { servername: tls.servername }),
      ...(tls.insecure ? { rejectUnauthorized: false } : {}),
      ...(secureContext === undefined ? {} : { secureContext }),
    },
  };
  const pool = (limits: { readonly connections?: number }): Dispatcher =>
    proxy === undefined
      ? new Agent({ ...shared, ...limits })
      : new ProxyAgent({ ...shared, ...limits, uri: proxy, requestTls: shared.connect });
  return {
    credentials,
    key: poolKey(credentials),
    origin,
    prefix: pathname.replace(/\/+$/, ''),
    requests: pool({ connections: options.connections ?? 20 }),
    streams: pool({}),
  };
}

function poolKey({ server, tls, proxy }: Credentials): string {
  return JSON.stringify([
    server,
    proxy ?? '',
    tls.ca ?? '',
    tls.cert ?? '',
    tls.key ?? '',
    tls.servername ?? '',
    tls.insecure,
  ]);
}

/** A request whose answer is read as it comes. */
async function streamed(
  dispatcher: Dispatcher,
  wanted: Dispatcher.RequestOptions,
  request: TransportRequest,
  failed: (error: unknown, late: boolean) => Error,
  target: string,
): Promise<TransportResponse> {
  const limit = deadline(request.timeoutMs, request.signal);
  try {
    const { statusCode, headers, body } = await dispatcher.request({ ...wanted, signal: limit.signal });
    return { status: statusCode, headers: flatHeaders(headers), body: bodyOf(body, target, limit, request.signal) };
  } catch (error) {
    limit.end();
    request.signal?.throwIfAborted();
    throw failed(error, limit.expired());
  }
}

async function* inOrder(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function* bodyOf(
  body: Readable,
  target: string,
  limit: ReturnType<typeof deadline>,
  outer: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) yield chunk as Uint8Array;
  } catch (error) {
    outer?.throwIfAborted();
    throw limit.expired()
      ? new TransportError(`${target}: the answer did not end in time`, true, { cause: error })
      : failure(error, target);
  } finally {
    limit.end();
    body.destroy();
  }
}

/**
 * The real transport. Connections are pooled by server and TLS material, so that a rotated certificate opens new ones and
 * nothing else does; on 401 the credentials are read again and the request is sent once more.
 */
export function createTransport(options: TransportOptions): OwnedTransport {
  let pools: Pools | undefined;
  const retired = new Set<Pools>();

  /** Requests under way end on the old sockets; idle ones close. */
  async function retire(old: Pools): Promise<void> {
    retired.add(old);
    await Promise.allSettled([old.requests.close(), old.streams.close()]);
    retired.delete(old);
  }

  function poolsFor(credentials: Credentials): Pools {
    if (pools?.credentials === credentials) return pools;
    if (pools?.key === poolKey(credentials)) {
      pools = { ...pools, credentials };
      return pools;
    }
    if (pools !== undefined) void retire(pools);
    pools = makePools(credentials, options);
    return pools;
  }

  /** Credentials that cannot be read now (a file being replaced, a plug-in that failed) are no answer, like a dead server. */
  async function credentials(fresh: boolean): Promise<Credentials> {
    try {
      return await (fresh ? options.credentials.renewed() : options.credentials.current());
    } catch (error) {
      throw new TransportError(`credentials: ${error instanceof Error ? error.message : String(error)}`, false, {
        cause: error,
      });
    }
  }

  const endings = new Endings();

  async function once(request: TransportRequest, credentials: Credentials): Promise<TransportResponse> {
    const pools = poolsFor(credentials);
    const target = `${request.method} ${pools.origin}${pools.prefix}${request.path}`;
    const wanted: Dispatcher.RequestOptions = {
      origin: pools.origin,
      path: `${pools.prefix}${request.path}${queryOf(request)}`,
      method: request.method,
      headers: {
        'user-agent': options.userAgent ?? 'keelson',
        accept: 'application/json',
        ...request.headers,
        ...credentials.headers,
      },
      ...(request.body === undefined ? {} : { body: request.body }),
    };
    const { timeoutMs, signal, beforeSend } = request;
    const failed = (error: unknown, late: boolean): TransportError =>
      late
        ? new TransportError(`${target}: no answer within ${timeoutMs} ms`, true, { cause: error })
        : failure(error, target);
    if (request.stream === true) return streamed(pools.streams, wanted, request, failed, target);
    const limits = { signal, timeoutMs, bodyBytes: mostBytes, beforeSend, failure: failed };
    const { status, headers, chunks } = await exchange(pools.requests, wanted, endings, limits);
    return { status, headers: flatHeaders(headers), body: inOrder(chunks) };
  }

  return {
    async send(request) {
      request.signal?.throwIfAborted();
      const first = await once(request, await credentials(false));
      if (first.status !== 401) return first;
      await discard(first);
      return once(request, await credentials(true));
    },
    async close() {
      const all = [...retired, ...(pools === undefined ? [] : [pools])];
      pools = undefined;
      await Promise.allSettled(all.flatMap((old) => [old.requests.destroy(), old.streams.destroy()]));
    },
  };
}

/** How large the answer to an ordinary request may be. */
const mostBytes = 64 * 1024 * 1024;

/** Gives up a body that nobody will read, so that its socket and its timer are free. */
export async function discard(response: TransportResponse): Promise<void> {
  const iterator = response.body[Symbol.asyncIterator]();
  try {
    await iterator.next();
    await iterator.return?.();
  } catch {
    // A body that fails while it is thrown away tells nobody anything.
  }
}

/**
 * The whole body as text.
 * @throws TransportError beyond `limitBytes`, or when the body ends early.
 */
export async function readText(response: TransportResponse, limitBytes = mostBytes): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.byteLength;
    if (bytes > limitBytes) throw new TransportError(`an answer of more than ${limitBytes} bytes`, true);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
