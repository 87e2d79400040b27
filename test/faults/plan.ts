import { appendFileSync } from 'node:fs';
import type { KubeRequest } from './request.ts';

/** What happens to a request that a rule hits. */
export type Fault =
  /** The connection breaks before the server sees the request. */
  | { readonly kind: 'dropBefore' }
  /** The server carries the request out; its reply is lost. */
  | { readonly kind: 'dropAfter' }
  | { readonly kind: 'delay'; readonly ms: number; readonly when?: 'before' | 'after' }
  /** No answer until the client gives up or the plan is cleared. */
  | { readonly kind: 'hang' }
  /** Answered without the server: 429, 5xx, 410 and so on, with a Status body. */
  | {
      readonly kind: 'status';
      readonly code: number;
      readonly retryAfterSeconds?: number;
      readonly reason?: string;
      readonly message?: string;
    }
  /** A watch ends with an ERROR event (410 Expired by default) after so many events. */
  | { readonly kind: 'watchError'; readonly afterEvents: number; readonly code?: number }
  /** A response breaks off in the middle of the line after so many whole lines. */
  | { readonly kind: 'halfLine'; readonly afterLines: number }
  /** A response is cut after so many bytes. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** A response drips: so many bytes at a time. */
  | { readonly kind: 'slowStream'; readonly chunkBytes: number; readonly intervalMs: number };

/** Which requests a rule means: every given field equal (a RegExp tests the path), or a predicate. */
export type RequestMatch =
  | ((request: KubeRequest) => boolean)
  | (Partial<Omit<KubeRequest, 'path' | 'body'>> & { readonly path?: string | RegExp });

export interface FaultRule {
  readonly match: RequestMatch;
  /** The first matching request that is hit, counted from 1; 1 by default. */
  readonly nth?: number;
  /** How many matching requests are hit from there on; 1 by default. */
  readonly times?: number;
  readonly fault: Fault;
}

/** One request as it passed, in the order of arrival. */
export interface RequestRecord extends KubeRequest {
  /** Counts from 1 over all requests of the plan. */
  readonly sequence: number;
  /** The kind of fault that hit it. */
  fault?: Fault['kind'] | 'forceRefused';
  /** The status that the client got; absent while it runs and when no answer arrived. */
  status?: number;
  /** When it came, and when the head of its answer was sent, on the monotonic clock of the proxy's process. */
  readonly arrivedAt?: number;
  answeredAt?: number;
}

/** Names the file to which proxies add violations; the runner sets it and fails the run when the file is not empty. */
export const violationsVariable = 'KEELSON_TEST_VIOLATIONS';

export interface FaultPlanOptions {
  /** A file to which violations are added, one a line. */
  readonly violationsFile?: string | undefined;
}

/**
 * Rules, counts and the ordered log, shared by the proxy and the transport. A request with `force=true` is never let
 * through: it answers 500 and stays remembered as a violation.
 */
export class FaultPlan {
  readonly log: RequestRecord[] = [];
  readonly violations: string[] = [];
  readonly #rules: { readonly rule: FaultRule; seen: number; hits: number }[] = [];
  readonly #violationsFile: string | undefined;
  #cleared = new AbortController();

  constructor(options: FaultPlanOptions = {}) {
    this.#violationsFile = options.violationsFile;
  }

  /** Adds a rule; the first rule that hits a request decides. Returns how often it has hit so far. */
  inject(rule: FaultRule): () => number {
    const entry = { rule, seen: 0, hits: 0 };
    this.#rules.push(entry);
    return () => entry.hits;
  }

  /** Removes all rules and lets hanging requests break off. Log and violations stay. */
  clear(): void {
    this.#rules.length = 0;
    this.#cleared.abort(new Error('the fault plan was cleared'));
    this.#cleared = new AbortController();
  }

  /** Aborts at the next {@link clear}: what hangs waits on it. */
  get cleared(): AbortSignal {
    return this.#cleared.signal;
  }

  /** Records a request and decides what happens to it. */
  admit(request: KubeRequest): { record: RequestRecord; fault: Fault | undefined } {
    const record: RequestRecord = { ...request, sequence: this.log.length + 1, arrivedAt: performance.now() };
    this.log.push(record);
    if (request.force) {
      record.fault = 'forceRefused';
      record.status = 500;
      this.#violate(
        `${request.method} ${request.path} was sent with force=true by ${request.fieldManager ?? 'nobody'}`,
      );
      return { record, fault: { kind: 'status', code: 500, reason: 'ForceRefused' } };
    }
    const fault = this.#decide(request);
    if (fault !== undefined) record.fault = fault.kind;
    return { record, fault };
  }

  #decide(request: KubeRequest): Fault | undefined {
    let decided: Fault | undefined;
    for (const entry of this.#rules) {
      if (!matches(entry.rule.match, request)) continue;
      entry.seen += 1;
      const first = entry.rule.nth ?? 1;
      const hit = entry.seen >= first && entry.seen < first + (entry.rule.times ?? 1);
      if (!hit || decided !== undefined) continue;
      entry.hits += 1;
      decided = entry.rule.fault;
    }
    return decided;
  }

  #violate(text: string): void {
    this.violations.push(text);
    if (this.#violationsFile !== undefined) appendFileSync(this.#violationsFile, `${text}\n`);
  }

  /** Requests of the log that match, in order. */
  requests(match: RequestMatch = {}): RequestRecord[] {
    return this.log.filter((record) => matches(match, record));
  }

  count(match: RequestMatch = {}): number {
    return this.requests(match).length;
  }

  /** The requests that changed, or tried to change, the cluster, in order. */
  mutations(): RequestRecord[] {
    return this.requests({ mutating: true });
  }

  /** Counts by `verb resource`, dry runs apart as `verb resource (dry run)`. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { verb, resource, path, dryRun } of this.log) {
      const key = `${verb} ${resource || path}${dryRun ? ' (dry run)' : ''}`;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  }

  /** Forgets the log, so that a test can count from here. */
  resetLog(): void {
    this.log.length = 0;
  }
}

export function matches(match: RequestMatch, request: KubeRequest): boolean {
  if (typeof match === 'function') return match(request);
  return Object.entries(match).every(([key, want]) => {
    const have = request[key as keyof KubeRequest];
    if (want instanceof RegExp) return typeof have === 'string' && want.test(have);
    return have === want;
  });
}

/** The Status object that the API server would answer with. */
export function statusBody(
  code: number,
  reason = 'FaultInjected',
  message = `injected by the test: ${reason}`,
): string {
  return JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code,
  });
}

const usualReasons: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** Status, headers and body of an injected answer. */
export function injectedAnswer(fault: Extract<Fault, { kind: 'status' }>): {
  status: number;
  headers: Record<string, string>;
  body: string;
} {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (fault.retryAfterSeconds !== undefined) headers['retry-after'] = String(fault.retryAfterSeconds);
  return {
    status: fault.code,
    headers,
    body: statusBody(fault.code, fault.reason ?? usualReasons[fault.code], fault.message),
  };
}
