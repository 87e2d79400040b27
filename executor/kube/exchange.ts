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
  /** Ends it, before it is sent or after; the reason is what {@link exchange} rejects with. */
  readonly signal: AbortSignal;
  readonly bodyBytes: number;
  /** Asked once there is a connection, right before the first byte leaves. @throws when nothing must be sent any more. */
  readonly beforeSend?: (() => void) | undefined;
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** Sends a request and takes in its answer. Rejects with undici's error, or with what ended it. */
export function exchange(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  { signal, bodyBytes, beforeSend }: ExchangeLimits,
): Promise<Exchanged> {
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
      signal.removeEventListener('abort', aborted);
      settle();
    };
    const giveUp = (error: unknown): void => {
      end(() => reject(error));
      controller?.abort(asError(error));
    };
    const aborted = (): void => giveUp(signal.reason);
    if (signal.aborted) return aborted();
    signal.addEventListener('abort', aborted, { once: true });
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
        if (bytes > bodyBytes) giveUp(new Error(`an answer of more than ${bodyBytes} bytes`));
        else chunks.push(chunk);
      },
      onResponseEnd: () => end(() => resolve({ status, headers, chunks })),
      onResponseError: (_, error) => end(() => reject(error)),
    });
  });
}
