import { Duplex } from 'node:stream';
import { Agent, type Dispatcher, ProxyAgent, WebSocket } from 'undici';
import type { CredentialSource, Credentials } from '../kube/credentials.ts';
import { type Missed, type Opened, unreached, type Way } from './way.ts';

/**
 * The way through the API server and the pod's kubelet, for where the network between executor and node is what is broken.
 * It carries the same TLS end to end: neither of the two can read it, or answer in the probe's place.
 */

/** Subprotocol of port-forward over WebSocket: the first byte of a message names its stream, data or error. */
const protocol = 'v4.channel.k8s.io';
const channels = { data: 0, error: 1 } as const;

/** Of one message, also when it comes compressed; kubelets copy in pieces of 32 KiB. */
const webSocket = { maxPayloadSize: 256 * 1024, maxFragments: 64 } as const;

export interface ForwardTarget {
  readonly namespace: string;
  readonly pod: string;
}

export function kubeletWay(credentials: CredentialSource, target: ForwardTarget, limitMs: number): Way {
  return async (port, signal) => {
    const name = `port-forward to ${target.namespace}/${target.pod} port ${port}`;
    const refused = (why: string): Missed => ({ type: 'unreachable', message: `${name}: ${why}` });
    // Encoding leaves these two as they are, and in a URL they lead up.
    if (target.pod === '.' || target.pod === '..') return refused('that is no name of a pod');
    let current: Credentials;
    try {
      current = await credentials.current();
    } catch {
      return refused('the credentials can not be read');
    }
    const opened = await forward(current, urlOf(current, target, port), { limitMs, signal, refused, name });
    // What the kubelet says right after it has named the streams is said before anybody can listen for it.
    if (opened.type !== 'open' || !opened.stream.destroyed) return opened;
    return refused(opened.stream.errored?.message ?? 'it ended at once');
  };
}

/** A name may be whatever somebody wrote into a Lease: it stays one segment of the path. */
function urlOf(credentials: Credentials, { namespace, pod }: ForwardTarget, port: number): URL {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/portforward`;
  const url = new URL(`${credentials.server.replace(/\/+$/, '')}${path}`);
  url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:';
  url.searchParams.set('ports', String(port));
  return url;
}

/** A connection of its own: it ends with the stream, and takes none from ordinary requests. */
function dispatcherOf({ tls, proxy }: Credentials): Dispatcher {
  const { insecure, ...material } = tls;
  const connect = { ...material, ...(insecure ? { rejectUnauthorized: false } : {}) };
  return proxy === undefined
    ? new Agent({ connect, webSocket })
    : new ProxyAgent({ uri: proxy, requestTls: connect, webSocket });
}

interface Forwarding {
  readonly limitMs: number;
  readonly signal: AbortSignal;
  readonly name: string;
  readonly refused: (why: string) => Missed;
}

function forward(credentials: Credentials, url: URL, { limitMs, signal, name, refused }: Forwarding): Promise<Opened> {
  const dispatcher = dispatcherOf(credentials);
  const socket = new WebSocket(url, { protocols: protocol, dispatcher, headers: { ...credentials.headers } });
  socket.binaryType = 'arraybuffer';
  // What is still under way on it is this stream, which has ended.
  const release = (): void => void dispatcher.destroy().catch(() => undefined);
  const stream = new ForwardedStream(socket, release);
  return new Promise((resolve) => {
    const end = (answer: Opened): void => {
      clearTimeout(limit);
      signal.removeEventListener('abort', aborted);
      if (answer.type !== 'open') stream.destroy();
      resolve(answer);
    };
    const aborted = (): void => end(refused('no connection in time'));
    const limit = setTimeout(() => end({ ...refused(`no connection within ${limitMs} ms`), late: true }), limitMs);
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) return aborted();
    stream.on('error', (error) => end(refused(error.message)));
    // The kubelet names the port on a stream once it is ready to carry it, which is before it dials.
    stream.once('ready', () => end({ type: 'open', stream, unproven: name }));
    stream.once('close', () => end(refused('the API server or the kubelet refuses it')));
  });
}

/** Bytes of one forwarded port. Emits `ready` when the kubelet has opened it. */
class ForwardedStream extends Duplex {
  readonly #socket: WebSocket;
  readonly #release: () => void;
  readonly #named = new Set<number>();

  constructor(socket: WebSocket, release: () => void) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#release = release;
    socket.addEventListener('message', ({ data }) => this.#take(data));
    socket.addEventListener('close', () => this.destroy());
    socket.addEventListener('error', () => this.destroy());
  }

  #take(data: unknown): void {
    if (!(data instanceof ArrayBuffer)) return;
    const message = Buffer.from(data);
    const channel = message[0] ?? channels.error;
    const bytes = message.subarray(1);
    // The first message of each stream holds the number of the port.
    if (!this.#named.has(channel)) {
      this.#named.add(channel);
      if (channel === channels.data) this.emit('ready');
    } else if (channel === channels.data) this.push(bytes);
    // Streams are named before the kubelet has dialled: only now is it known that nobody is there.
    else this.destroy(unreached(`the kubelet can not reach the port (${bytes.byteLength} bytes of reason)`));
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const open = this.#socket.readyState === WebSocket.OPEN;
    if (open) this.#socket.send(Buffer.concat([Buffer.of(channels.data), chunk]));
    done(open ? null : new Error('the forwarded stream has ended'));
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.close();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.close();
    this.#release();
    done(error);
  }
}
