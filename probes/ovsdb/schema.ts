/** What a client must know of a database's schema: how a change of each column is told, and what is left out. */
import { integer, isMap, type Json, member } from '../jsonrpc/json.ts';

export interface Column {
  /** `single`: a change is told as the new value. `set`, `map`: as the difference. */
  readonly kind: 'single' | 'set' | 'map';
  /** What a new row holds whose column is not told. */
  readonly initial: Json;
}

/** Tables, and the columns of each. */
export type Tables = ReadonlyMap<string, ReadonlyMap<string, Column>>;

export interface Schema {
  readonly name: string;
  readonly version: string;
  readonly tables: Tables;
}

const zeroes: Readonly<Record<string, Json>> = {
  integer: 0,
  real: 0,
  boolean: false,
  string: '',
  uuid: ['uuid', '00000000-0000-0000-0000-000000000000'],
};

/** Columns that every row has and no schema lists. */
const implicit: readonly [string, Column][] = ['_uuid', '_version'].map((name) => [
  name,
  { kind: 'single', initial: zeroes.uuid ?? null },
]);

/** The zero of a base type, which is written as its name or as an object that holds it. */
function zeroOf(base: Json | undefined): Json | undefined {
  const name = typeof base === 'string' ? base : member(base, 'type');
  return typeof name === 'string' && Object.hasOwn(zeroes, name) ? zeroes[name] : undefined;
}

function readColumn(column: Json | undefined): Column | undefined {
  const type = member(column, 'type');
  const plain = zeroOf(type);
  if (typeof type === 'string') return plain === undefined ? undefined : { kind: 'single', initial: plain };
  const zero = zeroOf(member(type, 'key'));
  if (zero === undefined) return undefined;
  const tag = member(type, 'value') === undefined ? 'set' : 'map';
  const max = member(type, 'max') ?? 1;
  const many = max === 'unlimited' || (integer(max) ?? 1n) > 1n;
  const initial: Json = member(type, 'min') === 0 ? [tag, []] : zero;
  return { kind: many ? tag : 'single', initial };
}

/** The entries with every value read, or undefined when one of them cannot be. */
function readAll<T>(
  value: Json | undefined,
  read: (item: Json | undefined) => T | undefined,
): [string, T][] | undefined {
  if (!isMap(value)) return undefined;
  const entries = Object.entries(value).map(([name, item]) => [name, read(item)] as const);
  const known = entries.filter((entry): entry is [string, T] => entry[1] !== undefined);
  return known.length === entries.length ? known : undefined;
}

function readTable(table: Json | undefined): ReadonlyMap<string, Column> | undefined {
  const columns = readAll(member(table, 'columns'), readColumn);
  return columns === undefined ? undefined : new Map([...implicit, ...columns]);
}

/** The schema that `get_schema` answers, or undefined when it is none. */
export function readSchema(value: Json): Schema | undefined {
  const [name, version] = [member(value, 'name'), member(value, 'version')];
  const tables = readAll(member(value, 'tables'), readTable);
  if (typeof name !== 'string' || typeof version !== 'string' || tables === undefined) return undefined;
  return { name, version, tables: new Map(tables) };
}

/**
 * The part of a schema that a client asks for, or what of it does not exist.
 * @param wanted columns by table.
 */
export function narrow(
  schema: Schema,
  wanted: Readonly<Record<string, readonly string[]>>,
): { readonly type: 'ok'; readonly value: Tables } | { readonly type: 'absent'; readonly names: readonly string[] } {
  const picked = Object.entries(wanted).map(([table, columns]) => {
    const known = schema.tables.get(table);
    return { table, columns: columns.map((name) => ({ name, column: known?.get(name) })) };
  });
  const names = picked.flatMap(({ table, columns }) =>
    columns.filter(({ column }) => column === undefined).map(({ name }) => `${table}.${name}`),
  );
  if (names.length > 0) return { type: 'absent', names };
  const found = (columns: (typeof picked)[number]['columns']): [string, Column][] =>
    columns.flatMap(({ name, column }) => (column === undefined ? [] : [[name, column] as [string, Column]]));
  return { type: 'ok', value: new Map(picked.map(({ table, columns }) => [table, new Map(found(columns))])) };
}
