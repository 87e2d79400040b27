/** Rows that a monitor tells about, and what each of its three kinds of notification does to them. Pure. */
import { isMap, type Json, type JsonMap, member } from '../jsonrpc/json.ts';
import type { Column, Tables } from './schema.ts';
import { atomKey, pairsOf, setOf } from './values.ts';

export type Row = ReadonlyMap<string, Json>;
export type TableRows = ReadonlyMap<string, Row>;
/** Table, then row by its uuid. Never changed in place: who holds one holds a moment. */
export type Rows = ReadonlyMap<string, TableRows>;

/** The rows, or what does not fit: then the cache and the server disagree, and only reading everything anew helps. */
export type Applied =
  | { readonly type: 'ok'; readonly rows: Rows }
  | { readonly type: 'disagreement'; readonly message: string };

/** How updates are written: `update` tells old and new, `update2` differences. */
export type UpdateForm = 'update' | 'update2';

export const noRows: Rows = new Map();

class Disagreement extends Error {}

function objectMember(value: Json | undefined, name: string): JsonMap | undefined {
  const found = member(value, name);
  return isMap(found) ? found : undefined;
}

type Columns = ReadonlyMap<string, Column>;

function entriesOf(told: JsonMap, columns: Columns): [string, Json, Column][] {
  return Object.entries(told).map(([name, value]) => {
    const column = columns.get(name);
    if (column === undefined || value === undefined) throw new Disagreement(`a column ${name} that was not asked for`);
    return [name, value, column];
  });
}

/** A new row. The server leaves out what holds its initial value. */
function rowOf(told: JsonMap, columns: Columns): Row {
  const row = new Map([...columns].map(([name, { initial }]) => [name, initial]));
  for (const [name, value] of entriesOf(told, columns)) row.set(name, value);
  return row;
}

/** Elements that stand in exactly one of both. */
function setAfter(before: Json | undefined, difference: Json): Json {
  const [old, changed] = [setOf(before), setOf(difference)];
  if (old === undefined || changed === undefined) throw new Disagreement('a set that is none');
  const elements = new Map(old.map((atom) => [atomKey(atom), atom]));
  for (const atom of changed) if (!elements.delete(atomKey(atom))) elements.set(atomKey(atom), atom);
  return ['set', [...elements.values()]];
}

/** A pair that stands there goes, another value of its key replaces it, a new key comes. */
function mapAfter(before: Json | undefined, difference: Json): Json {
  const [old, changed] = [pairsOf(before), pairsOf(difference)];
  if (old === undefined || changed === undefined) throw new Disagreement('a map that is none');
  const pairs = new Map(old.map((pair) => [atomKey(pair[0]), pair]));
  for (const pair of changed) {
    const key = atomKey(pair[0]);
    const known = pairs.get(key);
    if (known !== undefined && atomKey(known[1]) === atomKey(pair[1])) pairs.delete(key);
    else pairs.set(key, pair);
  }
  return ['map', [...pairs.values()]];
}

function modified(row: Row, changes: JsonMap, columns: Columns): Row {
  const next = new Map(row);
  for (const [name, change, { kind }] of entriesOf(changes, columns)) {
    if (kind === 'single') next.set(name, change);
    else next.set(name, kind === 'set' ? setAfter(row.get(name), change) : mapAfter(row.get(name), change));
  }
  return next;
}

/** What a row is after its change; undefined when it is gone. */
function rowAfter(form: UpdateForm, row: Row | undefined, change: JsonMap, columns: Columns): Row | undefined {
  if (form === 'update') {
    const [old, next] = [objectMember(change, 'old'), objectMember(change, 'new')];
    if ((old === undefined) !== (row === undefined))
      throw new Disagreement('a row that is known, or not known, to one side');
    if (old === undefined && next === undefined) throw new Disagreement('a change of nothing');
    return next === undefined ? undefined : rowOf(next, columns);
  }
  const fresh = objectMember(change, 'initial') ?? objectMember(change, 'insert');
  if (fresh !== undefined) {
    if (row !== undefined) throw new Disagreement('a new row that was there before');
    return rowOf(fresh, columns);
  }
  if (row === undefined) throw new Disagreement('a change of a row that is not known');
  const changes = objectMember(change, 'modify');
  if (changes !== undefined) return modified(row, changes, columns);
  if (Object.hasOwn(change, 'delete')) return undefined;
  throw new Disagreement('a change of no known kind');
}

function applyTable(form: UpdateForm, rows: TableRows, changes: JsonMap, columns: Columns): TableRows {
  const next = new Map(rows);
  for (const [id, change] of Object.entries(changes)) {
    if (!isMap(change)) throw new Disagreement(`row ${id}: a change that is no object`);
    const row = rowAfter(form, rows.get(id), change, columns);
    if (row === undefined) next.delete(id);
    else next.set(id, row);
  }
  return next;
}

/**
 * The rows after an update. Total: what does not fit is a value, and `rows` stays as it was.
 * @param tables what was asked for.
 */
export function applyUpdates(rows: Rows, form: UpdateForm, updates: Json | undefined, tables: Tables): Applied {
  try {
    if (!isMap(updates)) throw new Disagreement('updates that are no object');
    const next = new Map(rows);
    for (const [table, changes] of Object.entries(updates)) {
      const columns = tables.get(table);
      if (columns === undefined || !isMap(changes)) throw new Disagreement(`a table ${table} that was not asked for`);
      next.set(table, applyTable(form, rows.get(table) ?? new Map(), changes, columns));
    }
    return { type: 'ok', rows: next };
  } catch (error) {
    if (error instanceof Disagreement) return { type: 'disagreement', message: error.message };
    throw error;
  }
}
