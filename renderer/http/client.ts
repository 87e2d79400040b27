import { backoff } from '../../constructs/lib/backoff.ts';
import { parseRetryAfter } from '../../constructs/lib/retryafter.ts';
import { admitUrl, parseUrl, safeUrl } from './address.ts';
import { createAgents } from './agents.ts';
import { type ExchangeContext, exchange } from './exchange.ts';
import { classifyError, SinkError } from './failures.ts';
import type {
  HttpClient,
  HttpClientOptions,
  HttpFailure,
  HttpLimits,
  HttpOutcome,
  HttpReply,
  HttpRequest,
  RetryPolicy,
} from './types.ts';

/** Bounds fit for charts and manifests. */
const defaultLimits: HttpLimits = {
  maxBytes: 32 * 1024 * 1024,
  totalMs: 120_000,
  idleMs: 20_000,
  maxRedirects: 5,
};

/** Four attempts within a few seconds. */
const defaultRetry: RetryPolicy = { attempts: 4, initialMs: 500, factor: 2, maxMs: 10_000, jitter: 0.2 };

const transientStatus = new Set([408, 425, 429, 500, 502, 503, 504]);
const redirectStatus = new Set([301, 302, 303, 307, 308]);

type Attempt =
  | { readonly kind: 'reply'; readonly reply: HttpReply }
  | { readonly kind: 'failure'; readonly failure: HttpFailure; readonly transient: boolean };

function redirectFailure(url: URL, message: string): Attempt {
  return { kind: 'failure', transient: false, failure: { kind: 'redirect', url: safeUrl(url), message } };
}

function without(headers: Readonly<Record<string, string>>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key.toLowerCase() !== name));
}

/** A client bound to one list of hosts; it keeps connections open until `close`. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const limits = { ...defaultLimits, ...options.limits };
  const retry = { ...defaultRetry, ...options.retry };
  const agents = createAgents(options.proxy ?? {}, options.ca ?? []);
  const { clock } = options;

  const admit = (text: string, more: readonly string[] = []) =>
    admitUrl(text, [...options.allowedHosts, ...more], options.allowField);

  /** The next address of a redirect, or why there is none. */
  function nextHop(url: URL, location: string | undefined, hop: number, request: HttpRequest): { url: URL } | Attempt {
    if (request.method === 'POST' || request.method === 'PUT' || request.method === 'DELETE')
      return redirectFailure(url, `a redirect of a ${request.method} is refused`);
    if (hop >= limits.maxRedirects) return redirectFailure(url, `more than ${limits.maxRedirects} redirects`);
    // Relative forms become absolute; a full URL is judged as it was written.
    const absolute = location === undefined ? undefined : parseUrl(location, url);
    if (location === undefined || absolute === undefined)
      return redirectFailure(url, 'a redirect without a usable Location');
    const more = request.redirects === 'https' && absolute.protocol === 'https:' ? [absolute.host] : [];
    const admitted = admit(URL.canParse(location) ? location : absolute.href, more);
    if (!admitted.ok) {
      const { failure } = admitted;
      return {
        kind: 'failure',
        transient: false,
        failure: { ...failure, message: `redirect from ${safeUrl(url)}: ${failure.message}` },
      };
    }
    if (url.protocol === 'https:' && admitted.url.protocol !== 'https:')
      return redirectFailure(url, 'a redirect from https to http is refused');
    return { url: admitted.url };
  }

  function contextOf(request: HttpRequest, deadline: number, onHead: () => void): ExchangeContext {
    const { idleMs, totalMs } = { ...limits, ...request.limits };
    return { clock, agents, maxBytes: request.maxBytes ?? limits.maxBytes, idleMs, totalMs, deadline, onHead };
  }

  async function attempt(first: URL, request: HttpRequest, deadline: number): Promise<Attempt> {
    let url = first;
    let headers: Readonly<Record<string, string>> = request.headers ?? {};
    for (let hop = 0; ; hop++) {
      let reading = false;
      const onHead = (): void => {
        reading = true;
      };
      let answer: Awaited<ReturnType<typeof exchange>>;
      try {
        answer = await exchange(url, request, headers, contextOf(request, deadline, onHead));
      } catch (error) {
        request.signal?.throwIfAborted();
        if (error instanceof SinkError) throw error.cause;
        return { kind: 'failure', ...classifyError(error, url, reading) };
      }
      if (!redirectStatus.has(answer.status)) return { kind: 'reply', reply: { ...answer, url: safeUrl(url) } };
      const next = nextHop(url, answer.location, hop, request);
      if (!('url' in next)) return next;
      if (next.url.host !== url.host || next.url.protocol !== url.protocol) headers = without(headers, 'authorization');
      url = next.url;
    }
  }

  /** How long to wait before another attempt, or undefined when this one is final. */
  function pause(result: Attempt, tried: number, deadline: number): number | undefined {
    const transient = result.kind === 'reply' ? transientStatus.has(result.reply.status) : result.transient;
    if (!transient || tried >= retry.attempts) return undefined;
    const plain = backoff(retry, tried - 1, options.random);
    const asked =
      result.kind === 'reply' ? parseRetryAfter(result.reply.headers.get('retry-after'), clock.now()) : undefined;
    const wait = Math.max(plain, Math.min(asked ?? 0, retry.maxMs));
    return clock.monotonic() + wait < deadline ? wait : undefined;
  }

  return {
    async request(request): Promise<HttpOutcome> {
      const admitted = admit(request.url);
      if (!admitted.ok) return admitted;
      const deadline = clock.monotonic() + (request.limits?.totalMs ?? limits.totalMs);
      for (let tried = 1; ; tried++) {
        const result = await attempt(admitted.url, request, deadline);
        const wait = request.retry === false ? undefined : pause(result, tried, deadline);
        if (wait === undefined)
          return result.kind === 'reply' ? { ok: true, reply: result.reply } : { ok: false, failure: result.failure };
        await clock.sleep(wait, request.signal);
      }
    },
    close: () => agents.close(),
  };
}
