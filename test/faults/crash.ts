import { discard, readText, type Transport, type TransportResponse } from '../../executor/kube/transport.ts';
import { matches, type RequestMatch } from './plan.ts';
import { requestOf } from './transport.ts';

/** Where a process dies around one request: design 11 tests all three at every write. */
export type CrashPoint = 'beforeSend' | 'afterEffect' | 'afterReply';

export const crashPoints: readonly CrashPoint[] = ['beforeSend', 'afterEffect', 'afterReply'];

/** What everything that still asks gets after the crash: the process is gone, no code of it may go on. */
export class ProcessDied extends Error {
  override readonly name = 'ProcessDied';
}

export interface CrashPlan {
  /** Which requests count; by default those that change the cluster. */
  readonly match?: RequestMatch;
  /** The request at which the process dies, counted from 1. */
  readonly nth: number;
  readonly at: CrashPoint;
}

export interface CrashTransport {
  readonly transport: Transport;
  /** Aborts with {@link ProcessDied} at the crash; give it to the code under test as its own end. */
  readonly crashed: AbortSignal;
  /** Matching requests seen so far, the one that died included. */
  count(): number;
}

/**
 * A transport that plays the death of its process at one request. From then on every request, running or new, and every
 * open stream rejects with {@link ProcessDied}. Without a crash (`nth` beyond the last) it only counts.
 */
export function crashTransport(inner: Transport, plan: CrashPlan): CrashTransport {
  const death = new AbortController();
  let seen = 0;
  const die = (): never => {
    if (!death.signal.aborted) death.abort(new ProcessDied(`died ${plan.at} of request ${plan.nth}`));
    throw death.signal.reason;
  };
  const transport: Transport = async (request) => {
    death.signal.throwIfAborted();
    const hit = matches(plan.match ?? { mutating: true }, requestOf(request)) && ++seen === plan.nth;
    if (!hit) return watched(await orDeath(inner(request), death.signal), death.signal);
    if (plan.at === 'beforeSend') return die();
    const response = await inner(request);
    if (plan.at === 'afterEffect') {
      await discard(response);
      return die();
    }
    const text = await readText(response);
    death.abort(new ProcessDied(`died ${plan.at} of request ${plan.nth}`));
    return { ...response, body: whole(text) };
  };
  return { transport, crashed: death.signal, count: () => seen };
}

async function* whole(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/** Rejects as soon as the process is dead, whatever the request does. */
function orDeath<T>(work: Promise<T>, death: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const dead = (): void => reject(death.reason);
    death.addEventListener('abort', dead, { once: true });
    work.then(resolve, reject).finally(() => death.removeEventListener('abort', dead));
  });
}

function watched(response: TransportResponse, death: AbortSignal): TransportResponse {
  async function* body(): AsyncGenerator<Uint8Array> {
    const iterator = response.body[Symbol.asyncIterator]();
    try {
      for (;;) {
        death.throwIfAborted();
        const step = await orDeath(iterator.next(), death);
        if (step.done === true) return;
        yield step.value;
      }
    } finally {
      // A read that never ends must not hold up the one who gives up on it.
      iterator.return?.().then(undefined, () => undefined);
    }
  }
  return { ...response, body: body() };
}
