/** Commands to a daemon over its control socket: each bounded in time and in what it may answer. */
import type { Clock } from '../../constructs/lib/clock.ts';
import { errorText, JsonRpcConnection, type Outcome } from '../jsonrpc/connection.ts';
import { dial } from '../jsonrpc/dial.ts';
import { type Fault, fault, ok, type Result } from '../jsonrpc/fault.ts';
import type { Reading } from './reading.ts';

export interface ControlOptions {
  /** What faults call it, such as `ovn-northd`. */
  readonly daemon: string;
  readonly path: string;
  readonly clock: Clock;
  /** Milliseconds for the connection, and for each command. */
  readonly limitMs: number;
  readonly signal?: AbortSignal;
  /** Bytes of one answer. */
  readonly maxBytes?: number;
}

const defaultMaxBytes = 256 * 1024;
const maxCommandBytes = 16 * 1024;

/** A connection to a control socket. The daemon answers one command after the other. */
export class ControlSocket {
  readonly #rpc: JsonRpcConnection;
  readonly #options: ControlOptions;

  private constructor(rpc: JsonRpcConnection, options: ControlOptions) {
    this.#rpc = rpc;
    this.#options = options;
  }

  /** Connects. A daemon that hangs is connected to all the same: only its answers do not come. */
  static async open(options: ControlOptions): Promise<Result<ControlSocket>> {
    const { daemon, path, clock, maxBytes = defaultMaxBytes } = options;
    const dialled = await dial({ type: 'unix', path }, options);
    if (dialled.type !== 'ok') return fault(dialled.code, `${daemon}: ${dialled.message}`);
    const limits = { maxBytes, maxTokenBytes: maxBytes, maxDepth: 4, maxPending: 8, maxOutgoing: maxCommandBytes };
    return ok(new ControlSocket(new JsonRpcConnection(dialled.value, { peer: daemon, clock, limits }), options));
  }

  /** The text that the daemon answers, without white space at its end; often the empty one. */
  async command(name: string, ...args: readonly string[]): Promise<Outcome<string>> {
    const { daemon, limitMs, signal } = this.#options;
    const outcome = await this.#rpc.call(name, args, { limitMs, ...(signal === undefined ? {} : { signal }) });
    if (outcome.type !== 'ok') return outcome;
    return typeof outcome.value === 'string'
      ? ok(outcome.value.trimEnd())
      : fault('protocol', `${daemon}: an answer to ${name} that is no text`);
  }

  /** The answer as `read` understands it; an error that the daemon answered is a fault here. */
  async ask<T>(name: string, args: readonly string[], read: (text: string) => Reading<T>): Promise<Result<T>> {
    const { daemon } = this.#options;
    const outcome = await this.command(name, ...args);
    if (outcome.type === 'fault') return outcome;
    // Whoever answers that it can not, runs.
    if (outcome.type === 'error') return fault('protocol', `${daemon}: ${name}: ${errorText(outcome.error)}`);
    const reading = read(outcome.value);
    return reading.type === 'read' ? ok(reading.value) : unreadableFault(daemon, name, reading);
  }

  close(): void {
    this.#rpc.close();
  }
}

const unreadableFault = (
  daemon: string,
  name: string,
  { line, message }: Reading<never> & { type: 'unreadable' },
): Fault => fault('protocol', `${daemon}: ${name}, line ${line}: ${message}`);
