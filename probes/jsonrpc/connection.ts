/** One JSON-RPC 1.0 connection, as OVSDB servers and control sockets speak it, over any byte stream. */
import type { Duplex } from 'node:stream';
import { type Clock, rest } from '../../constructs/lib/clock.ts';
import { type Fault, fault, ok, socketFault } from './fault.ts';
import { type FrameLimits, FrameReader } from './framing.ts';
import { probing } from './inactivity.ts';
import { encode, isList, isMap, type Json, type JsonMap, member } from './json.ts';

/** An answer, an error that the peer answered with, or a fault on the way. */
export type Outcome<T> =
  | { readonly type: 'ok'; readonly value: T }
  | { readonly type: 'error'; readonly error: Json }
  | Fault;

export interface ConnectionLimits extends FrameLimits {
  /** Calls that wait for an answer at the same time. */
  readonly maxPending: number;
  /** Bytes that wait to be taken by the peer. */
  readonly maxOutgoing: number;
}

export interface ConnectionOptions {
  /** Whom faults name, such as `ovsdb-server (OVN_Northbound)`. */
  readonly peer: string;
  readonly clock: Clock;
  readonly limits: ConnectionLimits;
  /** After how long without a word an echo is sent, and after how long again the peer counts as gone. None for unix sockets. */
  readonly probeIntervalMs?: number;
  /** Notifications of the peer, in order. */
  readonly onNotification?: (method: string, params: readonly Json[]) => void;
}

export interface CallOptions {
  readonly limitMs: number;
  readonly signal?: AbortSignal;
}

export class JsonRpcConnection {
  readonly #stream: Duplex;
  readonly #options: ConnectionOptions;
  readonly #reader: FrameReader;
  readonly #calls = new Map<number, (outcome: Outcome<Json>) => void>();
  readonly #end = new AbortController();
  readonly #ended = Promise.withResolvers<Fault>();
  #nextId = 0;
  #heardAt: number;
  #probedAt: number | undefined;
  #fault: Fault | undefined;

  constructor(stream: Duplex, options: ConnectionOptions) {
    this.#stream = stream;
    this.#options = options;
    this.#reader = new FrameReader(options.limits);
    this.#heardAt = options.clock.monotonic();
    stream.on('data', (chunk: Uint8Array) => this.#take(chunk));
    stream.on('error', (error) => this.#fail(socketFault(error, options.peer)));
    stream.on('close', () => this.#fail(this.#goneFault()));
    stream.on('end', () => this.#fail(this.#goneFault()));
    // What happened before somebody listened is not told again.
    if (stream.errored !== null) this.#fail(socketFault(stream.errored, options.peer));
    else if (stream.destroyed) this.#fail(this.#goneFault());
    if (options.probeIntervalMs !== undefined) void this.#probe(options.probeIntervalMs);
  }

  /** Why the connection ended; pending until it did. */
  get ended(): Promise<Fault> {
    return this.#ended.promise;
  }

  /** Calls `method`. Never rejects: a limit that passed, a cancelled signal and an ended connection are faults. */
  async call(method: string, params: readonly Json[], { limitMs, signal }: CallOptions): Promise<Outcome<Json>> {
    const { clock, limits, peer } = this.#options;
    if (signal?.aborted) return fault('aborted', `${peer}: ${method} was given up`);
    if (this.#calls.size >= limits.maxPending)
      return fault('tooLarge', `${peer}: ${limits.maxPending} calls wait for an answer already`);
    const id = this.#nextId++;
    const answer = Promise.withResolvers<Outcome<Json>>();
    this.#calls.set(id, answer.resolve);
    const unsent = this.#send({ method, params, id });
    if (unsent !== undefined) {
      this.#calls.delete(id);
      return unsent;
    }
    const settled = new AbortController();
    const giveUp = (): void => answer.resolve(fault('aborted', `${peer}: ${method} was given up`));
    signal?.addEventListener('abort', giveUp, { once: true });
    void rest(clock, limitMs, settled.signal).then(() =>
      answer.resolve(fault('timeout', `${peer}: no answer to ${method} within ${limitMs} ms`)),
    );
    try {
      return await answer.promise;
    } finally {
      settled.abort();
      signal?.removeEventListener('abort', giveUp);
      this.#calls.delete(id);
    }
  }

  /** Sends a notification, to which there is no answer. */
  notify(method: string, params: readonly Json[]): Fault | undefined {
    return this.#send({ method, params, id: null });
  }

  /** Ends the connection; calls that wait get the fault. */
  close(why: Fault = fault('aborted', `${this.#options.peer}: closed by this side`)): void {
    this.#fail(why);
  }

  #send(message: JsonMap): Fault | undefined {
    if (this.#fault !== undefined) return this.#fault;
    const bytes = Buffer.from(encode(message));
    const { maxOutgoing } = this.#options.limits;
    if (this.#stream.writableLength + bytes.length > maxOutgoing)
      return fault('tooLarge', `${this.#options.peer}: more than ${maxOutgoing} bytes wait to be taken`);
    this.#stream.write(bytes);
    return undefined;
  }

  #take(chunk: Uint8Array): void {
    if (this.#fault !== undefined) return;
    this.#heardAt = this.#options.clock.monotonic();
    const { messages, fault: unreadable } = this.#reader.push(chunk);
    for (const message of messages) {
      if (this.#fault !== undefined) return;
      this.#handle(message);
    }
    if (unreadable !== undefined)
      this.#fail({ ...unreadable, message: `${this.#options.peer}: ${unreadable.message}` });
  }

  #handle(message: JsonMap): void {
    const method = member(message, 'method');
    const id = member(message, 'id');
    if (typeof method !== 'string') this.#answered(message, id);
    else if (id !== null && id !== undefined) this.#asked(method, member(message, 'params') ?? [], id);
    else {
      const params = member(message, 'params');
      if (isList(params)) this.#options.onNotification?.(method, params);
    }
  }

  /** A request of the peer: it may ask whether this side is alive, and nothing else. A peer that takes no answers is left. */
  #asked(method: string, params: Json, id: Json): void {
    const unsent = this.#send(
      method === 'echo' ? { result: params, error: null, id } : { result: null, error: 'unknown method', id },
    );
    if (unsent !== undefined) this.#fail(unsent);
  }

  #answered(message: JsonMap, id: Json | undefined): void {
    if (typeof id !== 'number' || id < 0 || id >= this.#nextId) {
      this.#fail(fault('protocol', `${this.#options.peer}: an answer to what was not asked`));
      return;
    }
    const error = member(message, 'error');
    // An answer that came too late has nobody waiting.
    this.#calls.get(id)?.(
      error === undefined || error === null ? ok(member(message, 'result') ?? null) : { type: 'error', error },
    );
  }

  async #probe(intervalMs: number): Promise<void> {
    const { clock, peer } = this.#options;
    while (!this.#end.signal.aborted) {
      const next = probing({
        nowMs: clock.monotonic(),
        heardAtMs: this.#heardAt,
        probedAtMs: this.#probedAt,
        intervalMs,
      });
      if (next.type === 'wait') await rest(clock, next.ms, this.#end.signal);
      else if (next.type === 'gone')
        this.#fail(
          fault('timeout', `${peer}: not a word for ${Math.round(next.silentMs)} ms, nor an answer to an echo`),
        );
      else {
        this.#probedAt = clock.monotonic();
        void this.call('echo', [], { limitMs: 2 * intervalMs, signal: this.#end.signal });
      }
    }
  }

  #goneFault(): Fault {
    const { peer } = this.#options;
    return fault('closed', this.#reader.idle ? `${peer}: closed by the peer` : `${peer}: closed within a message`);
  }

  #fail(why: Fault): void {
    if (this.#fault !== undefined) return;
    this.#fault = why;
    this.#end.abort();
    for (const settle of this.#calls.values()) settle(why);
    this.#stream.destroy();
    this.#ended.resolve(why);
  }
}

/** A call whose answer has a known shape; what does not fit is a fault of the protocol. */
export function shaped<T>(outcome: Outcome<Json>, what: string, read: (value: Json) => T | undefined): Outcome<T> {
  if (outcome.type !== 'ok') return outcome;
  const value = read(outcome.value);
  return value === undefined ? fault('protocol', `${what}: an answer of another shape`) : ok(value);
}

/** The text of an error that a peer answered with. */
export function errorText(error: Json): string {
  if (typeof error === 'string') return error.trimEnd();
  if (!isMap(error)) return encode(error);
  const parts = [member(error, 'error'), member(error, 'details')].filter((part) => typeof part === 'string');
  return parts.length === 0 ? encode(error) : parts.join(': ');
}
