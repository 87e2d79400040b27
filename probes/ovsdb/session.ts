/** Keeps the rows of some columns as a database has them, over connections that come and go. */
import type { Duplex } from 'node:stream';
import type { BackoffPolicy } from '../../constructs/lib/backoff.ts';
import { type Clock, type Random, rest } from '../../constructs/lib/clock.ts';
import { type ConnectionLimits, errorText, JsonRpcConnection, type Outcome } from '../jsonrpc/connection.ts';
import { type Fault, fault, type Result } from '../jsonrpc/fault.ts';
import type { Json } from '../jsonrpc/json.ts';
import { applyUpdates, noRows, type Rows, type UpdateForm } from './cache.ts';
import { getSchema, setChangeAware } from './methods.ts';
import { type MonitorMethod, readNotification, startMonitor } from './monitor.ts';
import { firstAttempt, nextAttempt } from './reconnect.ts';
import { narrow, type Tables } from './schema.ts';

export interface Server {
  readonly name: string;
  readonly dial: (signal: AbortSignal) => Promise<Result<Duplex>>;
}

export type SessionEvent =
  /** The rows are those of the server; `resumed` when only what was missed had to be told. */
  | {
      readonly type: 'synced';
      readonly server: string;
      readonly method: MonitorMethod;
      readonly resumed: boolean;
      readonly rows: Rows;
    }
  | { readonly type: 'changed'; readonly rows: Rows }
  /** The rows may be old from here on. */
  | { readonly type: 'lost'; readonly server: string; readonly fault: Fault; readonly retryInMs: number };

export interface SessionOptions {
  /** Tried in this order, again and again; at least one. */
  readonly servers: readonly Server[];
  readonly db: string;
  /** Columns by table. */
  readonly wanted: Readonly<Record<string, readonly string[]>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly policy: BackoffPolicy;
  readonly limits: ConnectionLimits;
  /** Limit of each call. */
  readonly callMs: number;
  readonly probeIntervalMs?: number;
  readonly onEvent: (event: SessionEvent) => void;
}

/** What outlives a connection. */
interface Kept {
  rows: Rows;
  tables: Tables | undefined;
  transaction: string | undefined;
}

const monitorId = 'rows';

/** Follows the database until the signal aborts. Every failure is told as an event, and none of them ends it. */
export async function follow(options: SessionOptions, signal: AbortSignal): Promise<void> {
  const { servers, clock, random, policy, onEvent } = options;
  const kept: Kept = { rows: noRows, tables: undefined, transaction: undefined };
  let attempts = firstAttempt;
  while (!signal.aborted) {
    const server = servers[attempts.server];
    if (server === undefined) return;
    const had = await once(options, server, kept, signal);
    if (signal.aborted) return;
    const next = nextAttempt(attempts, servers.length, had.heldMs, policy, random);
    onEvent({ type: 'lost', server: server.name, fault: had.fault, retryInMs: next.delayMs });
    attempts = next.attempts;
    await rest(clock, next.delayMs, signal);
  }
}

/** One connection, from the dial to its end. */
async function once(
  options: SessionOptions,
  server: Server,
  kept: Kept,
  signal: AbortSignal,
): Promise<{ readonly heldMs: number | undefined; readonly fault: Fault }> {
  const dialled = await server.dial(signal);
  if (dialled.type !== 'ok') return { heldMs: undefined, fault: dialled };
  const feed = new Feed(options, kept);
  const rpc = new JsonRpcConnection(dialled.value, {
    peer: server.name,
    clock: options.clock,
    limits: options.limits,
    ...(options.probeIntervalMs === undefined ? {} : { probeIntervalMs: options.probeIntervalMs }),
    onNotification: (method, params) => {
      const told = readNotification(monitorId, method, params);
      if (told === undefined) return;
      const problem =
        told.type === 'canceled' ? fault('closed', `${server.name}: the database went away`) : feed.take(told);
      if (problem !== undefined) rpc.close(problem);
    },
  });
  const leave = (): void => rpc.close();
  signal.addEventListener('abort', leave, { once: true });
  try {
    const started = await start(options, rpc, server, kept, feed, signal);
    const syncedAt = options.clock.monotonic();
    if (started !== undefined) rpc.close(started);
    const why = await rpc.ended;
    return { heldMs: started === undefined ? options.clock.monotonic() - syncedAt : undefined, fault: why };
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

/** How many updates may wait for the answer that they follow: no more than come along with it in one piece. */
const maxWaiting = 10_000;

interface Update {
  readonly form: UpdateForm;
  readonly updates: Json;
  readonly transaction: string | undefined;
}

/** Applies updates to what is kept, once the monitor's answer was. */
class Feed {
  readonly #options: SessionOptions;
  readonly #kept: Kept;
  /** Updates may come in one piece with the answer, and are read before it could be applied. */
  #waiting: Update[] | undefined = [];

  constructor(options: SessionOptions, kept: Kept) {
    this.#options = options;
    this.#kept = kept;
  }

  take(update: Update): Fault | undefined {
    if (this.#waiting !== undefined) {
      this.#waiting.push(update);
      const many = this.#waiting.length > maxWaiting;
      return many ? fault('tooLarge', `${this.#options.db}: updates without an answer before them`) : undefined;
    }
    const problem = this.#apply(this.#kept.rows, update);
    if (problem === undefined) this.#options.onEvent({ type: 'changed', rows: this.#kept.rows });
    return problem;
  }

  /** The answer of the monitor, and what came right behind it. */
  begin(from: Rows, first: Update): Fault | undefined {
    const all = [first, ...(this.#waiting ?? [])];
    this.#waiting = undefined;
    let rows = from;
    for (const update of all) {
      const problem = this.#apply(rows, update);
      if (problem !== undefined) return problem;
      rows = this.#kept.rows;
    }
    return undefined;
  }

  /** Rows that disagree with the server are let go, so that the next connection reads everything anew. */
  #apply(from: Rows, { form, updates, transaction }: Update): Fault | undefined {
    const applied = applyUpdates(from, form, updates, this.#kept.tables ?? new Map());
    this.#kept.rows = applied.type === 'ok' ? applied.rows : noRows;
    this.#kept.transaction = applied.type === 'ok' ? transaction : undefined;
    return applied.type === 'ok' ? undefined : fault('protocol', `${this.#options.db}: ${applied.message}`);
  }
}

function refusal<T>(server: Server, what: string, outcome: Exclude<Outcome<T>, { readonly type: 'ok' }>): Fault {
  if (outcome.type === 'fault') return outcome;
  return fault('protocol', `${server.name}: ${what}: ${errorText(outcome.error)}`);
}

/** Schema, then monitor. Answers the fault, or nothing when the rows are those of the server. */
async function start(
  options: SessionOptions,
  rpc: JsonRpcConnection,
  server: Server,
  kept: Kept,
  feed: Feed,
  signal: AbortSignal,
): Promise<Fault | undefined> {
  const call = { limitMs: options.callMs, signal };
  const aware = await setChangeAware(rpc, call);
  // A server from before that method drops the session instead; anything else is a failure.
  if (aware.type === 'fault') return aware;
  const schema = await getSchema(rpc, options.db, call);
  if (schema.type !== 'ok') return refusal(server, 'get_schema', schema);
  const tables = narrow(schema.value, options.wanted);
  if (tables.type !== 'ok') return fault('protocol', `${server.name}: the schema has no ${tables.names.join(', ')}`);
  kept.tables = tables.value;
  const request = { db: options.db, id: monitorId, tables: tables.value, since: kept.transaction };
  const started = await startMonitor(rpc, request, call);
  if (started.type !== 'ok') return refusal(server, 'monitor', started);
  const { form, resumed, updates, transaction, method } = started.value;
  const problem = feed.begin(resumed ? kept.rows : noRows, { form, updates, transaction });
  if (problem !== undefined) return problem;
  options.onEvent({ type: 'synced', server: server.name, method, resumed, rows: kept.rows });
  return undefined;
}
