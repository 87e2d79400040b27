/** Questions to an OVSDB server over its local socket, on a connection that lives for one look. */
import { errorText, JsonRpcConnection, type Outcome } from '../jsonrpc/connection.ts';
import { dial } from '../jsonrpc/dial.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';
import { type JsonMap, member } from '../jsonrpc/json.ts';
import { listDatabases, type Snapshot, snapshot } from '../ovsdb/methods.ts';
import type { Look } from './look.ts';

/** What one answer of a server may take: rows of a few small tables. */
const limits = {
  maxBytes: 4 * 1024 * 1024,
  maxTokenBytes: 1024 * 1024,
  maxDepth: 64,
  maxPending: 8,
  maxOutgoing: 64 * 1024,
};

export class DatabaseServer {
  readonly #rpc: JsonRpcConnection;
  readonly #name: string;
  readonly #look: Look;

  private constructor(rpc: JsonRpcConnection, name: string, look: Look) {
    this.#rpc = rpc;
    this.#name = name;
    this.#look = look;
  }

  /** @param maxBytes of one answer: for rows of which there may be more than can be held. */
  static async open(
    name: string,
    path: string,
    look: Look,
    maxBytes: number = limits.maxBytes,
  ): Promise<Result<DatabaseServer>> {
    const dialled = await dial({ type: 'unix', path }, look);
    if (dialled.type !== 'ok') return fault(dialled.code, `${name}: ${dialled.message}`);
    const options = { peer: name, clock: look.clock, limits: { ...limits, maxBytes } };
    return ok(new DatabaseServer(new JsonRpcConnection(dialled.value, options), name, look));
  }

  async databases(): Promise<Result<readonly string[]>> {
    return this.#known('list_dbs', await listDatabases(this.#rpc, this.#look));
  }

  /** The rows of one table, by their uuid; once for each database. */
  async rows(db: string, table: string, columns: readonly string[]): Promise<Result<ReadonlyMap<string, JsonMap>>> {
    const read = await this.tables(db, { [table]: columns });
    return read.type === 'ok' ? ok(read.value.get(table) ?? new Map()) : read;
  }

  /** The rows of several tables at one moment; once for each database. @param wanted columns by table. */
  async tables(db: string, wanted: Readonly<Record<string, readonly string[]>>): Promise<Result<Snapshot>> {
    return this.#known(db, await snapshot(this.#rpc, db, wanted, this.#look));
  }

  close(): void {
    this.#rpc.close();
  }

  #known<T>(what: string, outcome: Outcome<T>): Result<T> {
    if (outcome.type !== 'error') return outcome;
    // Whoever answers that it can not, runs.
    return fault('protocol', `${this.#name}: ${what}: ${errorText(outcome.error)}`);
  }
}

/** The only row of a table that has one in every database in use, and its uuid. */
export function onlyRow(what: string, rows: ReadonlyMap<string, JsonMap>): Result<readonly [string, JsonMap]> {
  const [row, second] = rows;
  if (row !== undefined && second === undefined) return ok(row);
  return fault('protocol', `${what}: ${rows.size} rows where one was expected`);
}

/** A column that every row has. */
export function column<T>(
  what: string,
  row: JsonMap,
  name: string,
  read: (value: JsonMap[string]) => T | undefined,
): Result<T> {
  const value = read(member(row, name));
  return value === undefined ? fault('protocol', `${what}: the column ${name} cannot be read`) : ok(value);
}
