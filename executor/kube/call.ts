/** One call: a slot, an attempt, and again while that can help. The only place that retries. */
import { type BackoffPolicy, backoff } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import { parseRetryAfter } from '../../constructs/lib/retryafter.ts';
import type { Limiter, Slot } from './limiter.ts';
import { readText, type Transport, TransportError, type TransportRequest } from './transport.ts';

/** What every verb accepts. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Limit in milliseconds of each attempt. Default 15 s. */
  readonly timeoutMs?: number;
  /** How often a call is sent at most, while it meets 429, 5xx or no answer. Default 5. */
  readonly attempts?: number;
}

export interface Caller {
  readonly transport: Transport;
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly random: Random;
  readonly backoff: BackoffPolicy;
  /** The longest `Retry-After` that is waited for inside a call; a longer one is handed to the caller. */
  readonly maxRetryAfterMs: number;
  /** Told once per attempt, for metrics. `status` is absent when there was no answer. */
  readonly onAttempt?: (attempt: AttemptInfo) => void;
}

export interface AttemptInfo {
  readonly method: string;
  readonly path: string;
  readonly status?: number;
  readonly elapsedMs: number;
  readonly attempt: number;
}

/** An answer that came, whatever it says. */
export interface Answer {
  readonly type: 'answer';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** An earlier attempt was sent and got no reply. */
  readonly retried: boolean;
}

export interface NoAnswer {
  readonly type: 'none';
  readonly message: string;
  readonly mayHaveHappened: boolean;
}

export type CallRequest = Omit<TransportRequest, 'signal' | 'timeoutMs'>;

const defaultTimeoutMs = 15_000;
const defaultAttempts = 5;

/** Milliseconds of a `Retry-After` header (seconds or an HTTP date), or undefined. */
export function retryAfterMs(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  return parseRetryAfter(headers['retry-after'], now);
}

/** Answers that may be different next time. A typed-patch failure is a 500 that never will. */
export function isTransient(status: number, text: string): boolean {
  if (status === 429 || status === 502 || status === 503 || status === 504) return true;
  return status === 500 && !isTypedPatchFailure(text);
}

/** The API server answers 500 to an apply whose object does not fit the kind's schema, or cannot be decoded as the kind. */
export function isTypedPatchFailure(text: string): boolean {
  return /field not declared in schema|failed to create typed (patch|live) object|failed to convert (new|live) object/.test(
    text,
  );
}

/** Lost: whether the request may have had its effect although no reply came. */
function mayHaveHappened(request: CallRequest, error: TransportError): boolean {
  return request.method !== 'GET' && error.sent;
}

/**
 * Sends a request until it is answered by something else than 429 or 5xx, or the attempts are spent. Between attempts the
 * slot is free. Leases pass no limiter, since a renewal must never queue behind bulk work.
 * @throws the signal's reason on abort; nothing else of its own.
 */
export async function call(
  caller: Caller,
  request: CallRequest,
  options: CallOptions,
  limited = true,
): Promise<Answer | NoAnswer> {
  const attempts = Math.max(1, options.attempts ?? defaultAttempts);
  let lost = false;
  for (let attempt = 0; ; attempt += 1) {
    const result = await attemptOnce(caller, request, options, limited, attempt);
    const last = attempt + 1 >= attempts;
    if (result instanceof TransportError) {
      lost ||= mayHaveHappened(request, result);
      if (last) return { type: 'none', message: result.message, mayHaveHappened: lost };
      await caller.clock.sleep(backoff(caller.backoff, attempt, caller.random), options.signal);
      continue;
    }
    const answer: Answer = { ...result, retried: lost };
    if (last || !isTransient(answer.status, answer.text)) return answer;
    // A 500 or 504 to a write may come after its effect.
    lost ||= request.method !== 'GET' && (answer.status === 500 || answer.status === 504);
    // How long a cache takes to be filled nobody knows; mostly it is a moment, and the header says a second regardless.
    const wanted = isFilling(answer) ? undefined : retryAfterMs(answer.headers, caller.clock.now());
    if (wanted !== undefined && wanted > caller.maxRetryAfterMs) return answer;
    await caller.clock.sleep(Math.max(wanted ?? 0, backoff(caller.backoff, attempt, caller.random)), options.signal);
  }
}

async function attemptOnce(
  caller: Caller,
  request: CallRequest,
  options: CallOptions,
  limited: boolean,
  attempt: number,
): Promise<Omit<Answer, 'retried'> | TransportError> {
  const slot = limited ? await caller.limiter.acquire(options.signal) : undefined;
  const started = caller.clock.monotonic();
  let learnt: Parameters<Slot['release']> = ['failed'];
  let status: number | undefined;
  try {
    const response = await caller.transport({
      ...request,
      timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    status = response.status;
    const text = await readText(response);
    const overload = status === 429 && !isFilling({ status, text });
    learnt = overload ? ['throttled', pauseOf(response.headers, caller)] : ['answered'];
    return { type: 'answer', status, headers: response.headers, text };
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    return error;
  } finally {
    slot?.release(...learnt);
    caller.onAttempt?.({
      method: request.method,
      path: request.path,
      ...(status === undefined ? {} : { status }),
      elapsedMs: caller.clock.monotonic() - started,
      attempt,
    });
  }
}

/** A list of a kind whose cache is being filled is asked to wait with a 429, too: that is about this kind alone. */
function isFilling({ status, text }: Pick<Answer, 'status' | 'text'>): boolean {
  return status === 429 && text.includes('storage is (re)initializing');
}

/** What the server asks one request to wait it asks everything of this account, since it counts by account. */
function pauseOf(headers: Readonly<Record<string, string>>, { clock, maxRetryAfterMs }: Caller): number {
  return Math.min(retryAfterMs(headers, clock.now()) ?? 0, maxRetryAfterMs);
}
