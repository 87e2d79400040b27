import type { BackoffPolicy } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { Digest } from '../../constructs/lib/digest.ts';

/** Bounds of one request, redirects and retries included where it says so. */
export interface HttpLimits {
  /** Largest body in bytes; reading stops at the first byte above. */
  readonly maxBytes: number;
  /** Milliseconds for everything: all attempts, all redirects, the whole body. */
  readonly totalMs: number;
  /** Longest silence in milliseconds while connecting or reading. */
  readonly idleMs: number;
  /** Redirects followed within one attempt. */
  readonly maxRedirects: number;
}

/** How often and how fast a transient failure is tried again. `attempts` counts the first one. */
export interface RetryPolicy extends BackoffPolicy {
  readonly attempts: number;
}

/**
 * The way out of the site. Only https goes through the proxy: plain http is spoken to loopback addresses alone, and those
 * are always reached directly. `noProxy` has the usual comma-separated form: names, `.suffixes`, addresses, CIDRs, `*`.
 */
export interface ProxySettings {
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** Certificates (PEM) trusted beside the system's: for every host, or for `host[:port]` only. */
export interface ExtraCA {
  readonly host?: string;
  readonly pem: string;
}

export interface HttpClientOptions {
  /**
   * The exact hosts that may be contacted, `host` or `host:port`. Without a port the scheme's own port is meant, except
   * for literal loopback addresses, where it means every port. Redirects are held to the same list.
   */
  readonly allowedHosts: readonly string[];
  /** The field that holds the list, for remedies: `spec.allow.chartHosts`. */
  readonly allowField: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly proxy?: ProxySettings;
  readonly ca?: readonly ExtraCA[];
  readonly limits?: Partial<HttpLimits>;
  readonly retry?: Partial<RetryPolicy>;
}

/** A file that is sent as a body, from its beginning at every attempt. */
export interface FileBody {
  readonly file: string;
  readonly size: number;
}

export interface HttpRequest {
  readonly url: string;
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | FileBody;
  /** Lower (or raise) the client's cap for this request. */
  readonly maxBytes?: number;
  /** Other bounds of time than the client's, for a body that is large. */
  readonly limits?: Partial<Pick<HttpLimits, 'totalMs' | 'idleMs'>>;
  /** One attempt: trying again as a whole is the caller's business. */
  readonly retry?: false;
  /**
   * Where a redirect of a GET or HEAD may lead. `https` adds every https host to the list, and is for content whose
   * digest is known before: stores of registries are at hosts that nobody can list.
   */
  readonly redirects?: 'listed' | 'https';
  /**
   * Takes the body of a 200 answer as it arrives, from the beginning at every attempt; the reply's own body is empty
   * then. What it throws, the request throws.
   */
  readonly into?: (chunks: AsyncIterable<Uint8Array>) => Promise<void>;
  readonly signal?: AbortSignal;
}

/** An answer of any status, its body complete. Headers have lower-case names; `digest` is that of the body as received. */
export interface HttpReply {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
  readonly digest: Digest;
  /** Where the answer came from after redirects, without credentials and query. */
  readonly url: string;
}

/**
 * Why there is no answer. `refused`: our own rules (scheme, host list, redirect) forbid the address; nothing was sent to it.
 * Messages carry neither credentials nor queries.
 */
export interface HttpFailure {
  readonly kind: 'refused' | 'redirect' | 'tooLarge' | 'timeout' | 'truncated' | 'tls' | 'network';
  readonly message: string;
  readonly url: string;
  readonly remedy?: string;
}

export type HttpOutcome =
  | { readonly ok: true; readonly reply: HttpReply }
  | { readonly ok: false; readonly failure: HttpFailure };

/** The one way out of the process over HTTP. */
export interface HttpClient {
  /** @throws the signal's reason when the request's signal aborts, and what `into` throws; everything else is an outcome. */
  request(request: HttpRequest): Promise<HttpOutcome>;
  /** Closes idle connections. */
  close(): void;
}
