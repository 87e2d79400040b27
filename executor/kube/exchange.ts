/**
 * One exchange whose answer is taken in whole. undici's own answers are streams, made for bodies of any size; making one and
 * reading it costs more than everything else that an apply costs here.
 */
import type { Dispatcher } from 'undici';

export interface Exchanged {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly chunks: readonly Uint8Array[];
}

export interface ExchangeLimits {
  /** Ends it, before it is sent or after; its reason is what {@link exchange} rejects with. */
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  readonly bodyBytes: number;
  /** Asked once there is a connection, right before the first byte leaves; what it throws is what the exchange rejects with. */
  readonly beforeSend: (() => void) | undefined;
  /** What it rejects with when there is no answer, or none in time. */
  readonly failure: (error: unknown, late: boolean) => Error;
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** Signals that end exchanges. Of those that one signal ends it is listened to once: a listener for each costs as much as sending. */
export class Endings {
  readonly #ended = new WeakMap<AbortSignal, { readonly all: Set<() => void>; readonly listener: () => void }>();

  /** Has `end` called when the signal aborts, until the answer is called. */
  on(signal: AbortSignal, end: () => void): () => void {
    const known = this.#ended.get(signal) ?? this.#listen(signal);
    known.all.add(end);
    return () => {
      // A signal that is listened to is kept by those that it follows.
      if (known.all.delete(end) && known.all.size === 0) this.#deafen(signal, known.listener);
    };
  }

  #listen(signal: AbortSignal) {
    const all = new Set<() => void>();
    const listener = (): void => {
      for (const end of [...all]) end();
    };
    const known = { all, listener };
    this.#ended.set(signal, known);
    signal.addEventListener('abort', listener, { once: true });
    return known;
  }

  #deafen(signal: AbortSignal, listener: () => void): void {
    this.#ended.delete(signal);
    signal.removeEventListener('abort', listener);
  }
}

/** Sends a request and takes in its answer. */
export function exchange(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  endings: Endings,
  { signal, timeoutMs, bodyBytes, beforeSend, failure }: ExchangeLimits,
): Promise<Exchanged> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let over = false;
    let status = 0;
    let headers: Exchanged['headers'] = {};
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    const end = (settle: () => void): void => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      unheard?.();
      settle();
    };
    const giveUp = (error: unknown): void => {
      end(() => reject(error));
      controller?.abort(asError(error));
    };
    const timer = setTimeout(() => giveUp(failure(new Error('it took too long'), true)), timeoutMs);
    const unheard = signal === undefined ? undefined : endings.on(signal, () => giveUp(signal.reason));
    dispatcher.dispatch(options, {
      onRequestStart(started) {
        controller = started;
        // It was given up while it waited for a connection.
        if (over) return started.abort(new Error('it was given up'));
        try {
          beforeSend?.();
        } catch (error) {
          giveUp(error);
        }
      },
      onResponseStart(_, code, told) {
        status = code;
        headers = told;
      },
      onResponseData(_, chunk) {
        bytes += chunk.byteLength;
        if (bytes > bodyBytes) giveUp(failure(new Error(`an answer of more than ${bodyBytes} bytes`), false));
        else chunks.push(chunk);
      },
      onResponseEnd: () => end(() => resolve({ status, headers, chunks })),
      onResponseError: (_, error) => end(() => reject(failure(error, false))),
    });
  });
}
