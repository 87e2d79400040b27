/** The methods of OVSDB that a probe calls, each with the shape of its answer. */
import { type CallOptions, type JsonRpcConnection, type Outcome, shaped } from '../jsonrpc/connection.ts';
import { isList, isMap, type Json, type JsonMap, member } from '../jsonrpc/json.ts';
import { type DatabaseError, databaseError } from './errors.ts';
import { readSchema, type Schema } from './schema.ts';

/** The names of the databases that the server has open; one that has not joined its cluster is listed as well. */
export async function listDatabases(rpc: JsonRpcConnection, options: CallOptions): Promise<Outcome<readonly string[]>> {
  return shaped(await rpc.call('list_dbs', [], options), 'list_dbs', (value) =>
    isList(value) && value.every((name) => typeof name === 'string') ? value : undefined,
  );
}

export async function getSchema(rpc: JsonRpcConnection, db: string, options: CallOptions): Promise<Outcome<Schema>> {
  return shaped(await rpc.call('get_schema', [db], options), 'get_schema', readSchema);
}

/** Identifies the running server process: another one after every restart. */
export async function getServerId(rpc: JsonRpcConnection, options: CallOptions): Promise<Outcome<string>> {
  return shaped(await rpc.call('get_server_id', [], options), 'get_server_id', (value) =>
    typeof value === 'string' ? value : undefined,
  );
}

/** Asks the server to keep the session when databases come, go or change. */
export async function setChangeAware(rpc: JsonRpcConnection, options: CallOptions): Promise<Outcome<true>> {
  return shaped(await rpc.call('set_db_change_aware', [true], options), 'set_db_change_aware', () => true as const);
}

/** Whether the peer answers, and with what was sent. */
export async function echo(
  rpc: JsonRpcConnection,
  words: readonly Json[],
  options: CallOptions,
): Promise<Outcome<readonly Json[]>> {
  return shaped(await rpc.call('echo', words, options), 'echo', (value) => (isList(value) ? value : undefined));
}

/** What became of one operation: its result, an error, or nothing because an earlier one failed. */
export type OperationResult =
  | { readonly type: 'done'; readonly result: JsonMap }
  | { readonly type: 'failed'; readonly error: DatabaseError }
  | { readonly type: 'skipped' };

export interface TransactResult {
  /** One for each operation sent, in their order. */
  readonly operations: readonly OperationResult[];
  /** The error of the commit itself, after every operation had gone well. */
  readonly commit?: DatabaseError;
}

function operationResult(value: Json): OperationResult | undefined {
  if (value === null) return { type: 'skipped' };
  if (!isMap(value)) return undefined;
  return member(value, 'error') === undefined
    ? { type: 'done', result: value }
    : { type: 'failed', error: databaseError(value) };
}

function readTransact(value: Json, sent: number): TransactResult | undefined {
  if (!isList(value) || value.length > sent + 1) return undefined;
  const read = value.map(operationResult).filter((result) => result !== undefined);
  if (read.length !== value.length) return undefined;
  const operations = read.slice(0, sent);
  // The server may leave out what it did not try.
  while (operations.length < sent) operations.push({ type: 'skipped' });
  const extra = read[sent];
  if (extra === undefined) return { operations };
  return extra.type === 'failed' ? { operations, commit: extra.error } : undefined;
}

/** Runs operations as one transaction. That the answer is `ok` does not mean that every operation is `done`. */
export async function transact(
  rpc: JsonRpcConnection,
  db: string,
  operations: readonly JsonMap[],
  options: CallOptions,
): Promise<Outcome<TransactResult>> {
  return shaped(await rpc.call('transact', [db, ...operations], options), 'transact', (value) =>
    readTransact(value, operations.length),
  );
}

export interface Selection {
  readonly table: string;
  readonly columns: readonly string[];
  /** Conditions as OVSDB writes them; every row without. */
  readonly where?: readonly Json[];
}

/**
 * The rows of several tables at one moment, in the order of the selections. Ends in an abort, so that it cannot write
 * whatever stands in it. A member of a cluster answers no transaction, not even this, while an entry of its log waits to be
 * committed: without a quorum that is for ever.
 */
export async function select(
  rpc: JsonRpcConnection,
  db: string,
  selections: readonly Selection[],
  options: CallOptions,
): Promise<Outcome<readonly (readonly JsonMap[])[]>> {
  const operations = selections.map(({ table, columns, where = [] }) => ({ op: 'select', table, where, columns }));
  const answer = await transact(rpc, db, [...operations, { op: 'abort' }], options);
  if (answer.type !== 'ok') return answer;
  const results = answer.value.operations.slice(0, selections.length);
  const failed = results.find((result) => result.type === 'failed');
  if (failed !== undefined) return { type: 'error', error: { error: failed.error.text } };
  const rows = results.map((result) => (result.type === 'done' ? member(result.result, 'rows') : undefined));
  return shaped({ type: 'ok', value: rows.map((list) => list ?? null) }, 'select', (value) => {
    const lists = isList(value) ? value.filter((list) => isList(list) && list.every(isMap)) : [];
    return lists.length === selections.length ? (lists as readonly (readonly JsonMap[])[]) : undefined;
  });
}

/** Tables, and in each of them rows by their uuid. */
export type Snapshot = ReadonlyMap<string, ReadonlyMap<string, JsonMap>>;

const initialOnly = { initial: true, insert: false, delete: false, modify: false };

function readTable(rows: Json | undefined): ReadonlyMap<string, JsonMap> | undefined {
  if (rows === undefined) return new Map();
  if (!isMap(rows)) return undefined;
  const read = Object.entries(rows).map(([id, change]) => [id, member(change, 'new')] as const);
  const known = read.filter((entry): entry is readonly [string, JsonMap] => isMap(entry[1]));
  return known.length === read.length ? new Map(known) : undefined;
}

function readSnapshot(value: Json, tables: readonly string[]): Snapshot | undefined {
  if (!isMap(value)) return undefined;
  const read = tables.map((table) => [table, readTable(member(value, table))] as const);
  const known = read.filter(
    (entry): entry is readonly [string, ReadonlyMap<string, JsonMap>] => entry[1] !== undefined,
  );
  return known.length === read.length ? new Map(known) : undefined;
}

/**
 * The rows that the server holds now, whatever its cluster does: read as the beginning of a monitor that tells nothing more.
 * Once for each database and connection.
 * @param wanted columns by table.
 */
export async function snapshot(
  rpc: JsonRpcConnection,
  db: string,
  wanted: Readonly<Record<string, readonly string[]>>,
  options: CallOptions,
): Promise<Outcome<Snapshot>> {
  const tables = Object.keys(wanted);
  const asked = Object.fromEntries(tables.map((table) => [table, [{ columns: wanted[table], select: initialOnly }]]));
  const answer = await rpc.call('monitor', [db, `snapshot of ${db}`, asked], options);
  return shaped(answer, 'monitor', (value) => readSnapshot(value, tables));
}
