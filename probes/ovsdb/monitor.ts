/** Asks a server to tell changes of some columns: by the newest of three methods that it knows. */
import { type CallOptions, type JsonRpcConnection, type Outcome, shaped } from '../jsonrpc/connection.ts';
import { isList, type Json } from '../jsonrpc/json.ts';
import type { UpdateForm } from './cache.ts';
import { databaseError } from './errors.ts';
import type { Tables } from './schema.ts';

/** Newest first. Only the first can resume; the last tells whole rows. */
const methods = ['monitor_cond_since', 'monitor_cond', 'monitor'] as const;
export type MonitorMethod = (typeof methods)[number];

const noTransaction = '00000000-0000-0000-0000-000000000000';

export interface Started {
  readonly method: MonitorMethod;
  readonly form: UpdateForm;
  /** True when `updates` are what happened after the transaction asked for; otherwise they are everything. */
  readonly resumed: boolean;
  /** The last transaction that they hold, where the method tells it. */
  readonly transaction: string | undefined;
  readonly updates: Json;
}

export interface MonitorRequest {
  readonly db: string;
  /** Chosen by the caller; notifications carry it. */
  readonly id: string;
  readonly tables: Tables;
  /** The last transaction that the caller's rows hold. */
  readonly since?: string | undefined;
}

function requestParams(method: MonitorMethod, { db, id, tables, since }: MonitorRequest): Json[] {
  const asked = Object.fromEntries([...tables].map(([table, columns]) => [table, [{ columns: [...columns.keys()] }]]));
  return [db, id, asked, ...(method === 'monitor_cond_since' ? [since ?? noTransaction] : [])];
}

function readStarted(method: MonitorMethod, value: Json): Started | undefined {
  if (method !== 'monitor_cond_since')
    return {
      method,
      form: method === 'monitor' ? 'update' : 'update2',
      resumed: false,
      transaction: undefined,
      updates: value,
    };
  if (!isList(value) || value.length !== 3) return undefined;
  const [resumed, transaction, updates] = value;
  if (typeof resumed !== 'boolean' || typeof transaction !== 'string' || updates === undefined) return undefined;
  return { method, form: 'update2', resumed, transaction, updates };
}

/** Starts the monitor; a server that does not know a method is asked for the next older one. */
export async function startMonitor(
  rpc: JsonRpcConnection,
  request: MonitorRequest,
  options: CallOptions,
): Promise<Outcome<Started>> {
  let outcome: Outcome<Started> = { type: 'error', error: 'unknown method' };
  for (const method of methods) {
    const answer = await rpc.call(method, requestParams(method, request), options);
    outcome = shaped(answer, method, (value) => readStarted(method, value));
    if (outcome.type !== 'error' || databaseError(outcome.error).kind !== 'unknownMethod') return outcome;
  }
  return outcome;
}

/** What a notification means for the monitor with this id; undefined when it is about something else. */
export type Told =
  | {
      readonly type: 'updates';
      readonly form: UpdateForm;
      readonly updates: Json;
      readonly transaction: string | undefined;
    }
  | { readonly type: 'canceled' };

export function readNotification(id: string, method: string, params: readonly Json[]): Told | undefined {
  const [about, second, third] = params;
  if (about !== id) return undefined;
  if (method === 'monitor_canceled') return { type: 'canceled' };
  if (method === 'update3' && typeof second === 'string' && third !== undefined)
    return { type: 'updates', form: 'update2', updates: third, transaction: second };
  if ((method === 'update2' || method === 'update') && second !== undefined)
    return { type: 'updates', form: method, updates: second, transaction: undefined };
  return undefined;
}
