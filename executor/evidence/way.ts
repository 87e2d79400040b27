import { connect } from 'node:net';
import type { Duplex } from 'node:stream';

/** Ways to a port of a pod. */

/** Nobody is there, as far as can be told from here. */
export interface Missed {
  readonly type: 'unreachable';
  readonly message: string;
  /** Nothing at all came within the limit, not even a refusal: another port of the same pod answers no sooner. */
  readonly late?: true;
}

export interface Open {
  readonly type: 'open';
  readonly stream: Duplex;
  /** Name of a way that opens before anybody has accepted: until somebody shakes hands, nobody is known to be there. */
  readonly unproven?: string;
}

export type Opened = Open | Missed;

/** Opens a stream to a port. It answers before the signal's limit is over, and leaves nothing open when it fails. */
export type Way = (port: number, signal: AbortSignal) => Promise<Opened>;

/** Code of the error with which a stream ends whose far end was never reached. */
const unreachedCode = 'UNREACHED';

/** The end of a stream that was opened before anybody knew whether somebody is at its far end. */
export const unreached = (why: string): Error => Object.assign(new Error(why), { code: unreachedCode });

export const isUnreached = ({ code }: NodeJS.ErrnoException): boolean => code === unreachedCode;

/** Straight over the network. */
export const directWay =
  (host: string, limitMs: number): Way =>
  (port, signal) =>
    new Promise((resolve) => {
      const socket = connect({ host, port, noDelay: true, timeout: limitMs });
      const fail = (message: string, late?: true): void => {
        socket.destroy();
        signal.removeEventListener('abort', aborted);
        const why = `${host} port ${port}: ${message}`;
        resolve({ type: 'unreachable', message: why, ...(late === undefined ? {} : { late }) });
      };
      const aborted = (): void => fail('no connection in time');
      socket.once('timeout', () => fail(`no connection within ${limitMs} ms`, true));
      socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
      signal.addEventListener('abort', aborted, { once: true });
      if (signal.aborted) aborted();
      socket.once('connect', () => {
        socket.setTimeout(0);
        signal.removeEventListener('abort', aborted);
        resolve({ type: 'open', stream: socket });
      });
    });
