/** What an OVSDB server tells a monitor when its rows change, as a model: for properties only; the real one is asked elsewhere. */
import fc from 'fast-check';
import { encode, isMap, type Json, type JsonMap } from '../../probes/jsonrpc/json.ts';
import type { Row } from '../../probes/ovsdb/cache.ts';
import { atomKey, pairsOf, setOf } from '../../probes/ovsdb/values.ts';

/** Rows by their id, with every column. */
export type ServerRows = ReadonlyMap<string, Row>;

const word = fc.constantFrom('', 'p', 'q', 'r', '7');
const long = fc.constantFrom<Json>(0, 1, 9007199254740993n, 9007199254740995n);
const unique = <T extends Json>(values: readonly T[]): T[] => [
  ...new Map(values.map((value) => [atomKey(value), value])).values(),
];

/** Sets of one come bare or not, as from a server. */
const setArbitrary = fc
  .tuple(fc.array(word, { maxLength: 4 }).map(unique), fc.boolean())
  .map(
    ([values, bare]): Json => (bare && values[0] !== undefined && values.length === 1 ? values[0] : ['set', values]),
  );
const mapArbitrary = fc
  .dictionary(word, long, { maxKeys: 3 })
  .map((pairs): Json => ['map', Object.entries(pairs) as [string, Json][]]);

export const rowModel: fc.Arbitrary<Row> = fc
  .record<Record<string, Json>>({
    name: word,
    count: long,
    ratio: fc.constantFrom<Json>(0, 0.5),
    up: fc.constantFrom<Json>(['set', []], true, false),
    tags: setArbitrary,
    ids: mapArbitrary,
    one: fc.constantFrom<Json>(['map', []], ['map', [['a', 'b']]], ['map', [['a', 'c']]]),
  })
  .map((row) => new Map(Object.entries(row)));

const initial: Readonly<Record<string, Json>> = {
  name: '',
  count: 0,
  ratio: 0,
  up: ['set', []],
  tags: ['set', []],
  ids: ['map', []],
  one: ['map', []],
};

/** One form for equal values. */
function canonical(value: Json): string {
  const pairs = pairsOf(value);
  if (pairs !== undefined)
    return `map ${pairs
      .map((pair) => encode(pair))
      .sort()
      .join()}`;
  const elements = setOf(value);
  return elements === undefined ? encode(value) : `set ${elements.map(atomKey).sort().join()}`;
}

export function canonicalRows(rows: ServerRows): Record<string, Record<string, string>> {
  const row = (columns: Row): Record<string, string> =>
    Object.fromEntries([...columns].map(([name, value]) => [name, canonical(value)] as const).sort(byName));
  return Object.fromEntries([...rows].map(([id, columns]) => [id, row(columns)] as const).sort(byName));
}

/** Updates of a monitor in one form, whatever the order and the notation of their values. */
export function canonicalChanges(updates: readonly Json[]): Json[] {
  const sorted = (value: Json, read: (item: Json) => Json): JsonMap =>
    isMap(value)
      ? Object.fromEntries(
          Object.entries(value)
            .map(([name, item]) => [name, read(item ?? null)] as const)
            .sort(byName),
        )
      : {};
  const columns = (told: Json): Json => (told === null ? null : sorted(told, canonical));
  return updates.map((one) => sorted(one, (table) => sorted(table, (change) => sorted(change, columns))));
}

const byName = (a: readonly [string, unknown], b: readonly [string, unknown]): number => (a[0] < b[0] ? -1 : 1);

function difference(name: string, before: Json, after: Json): Json {
  if (name === 'tags') {
    const [old, next] = [setOf(before) ?? [], setOf(after) ?? []];
    const without = (these: readonly Json[], those: readonly Json[]): Json[] =>
      these.filter((atom) => !those.some((other) => atomKey(other) === atomKey(atom)));
    return ['set', [...without(old, next), ...without(next, old)]];
  }
  if (name !== 'ids') return after;
  const [old, next] = [new Map(pairsOf(before)), new Map(pairsOf(after))];
  const gone = [...old].filter(([key]) => !next.has(key));
  const changed = [...next].filter(([key, value]) => !old.has(key) || atomKey(old.get(key) ?? null) !== atomKey(value));
  return ['map', [...gone, ...changed]];
}

const changedColumns = (before: Row, after: Row): [string, Json][] =>
  [...after].filter(([name, value]) => canonical(before.get(name) ?? null) !== canonical(value));
const untold = (row: Row): JsonMap =>
  Object.fromEntries([...row].filter(([name, value]) => canonical(initial[name] ?? null) !== canonical(value)));

function changeOf(form: 'update' | 'update2', before: Row | undefined, after: Row | undefined): JsonMap | undefined {
  if (after === undefined) {
    if (before === undefined) return undefined;
    return form === 'update' ? { old: Object.fromEntries(before) } : { delete: null };
  }
  if (before === undefined) return form === 'update' ? { new: Object.fromEntries(after) } : { insert: untold(after) };
  const changed = changedColumns(before, after);
  if (changed.length === 0) return undefined;
  if (form === 'update')
    return {
      old: Object.fromEntries(changed.map(([name]) => [name, before.get(name)])),
      new: Object.fromEntries(after),
    };
  return {
    modify: Object.fromEntries(
      changed.map(([name, value]) => [name, difference(name, before.get(name) ?? null, value)]),
    ),
  };
}

/** The changes of one table, by row. */
export function changesOf(form: 'update' | 'update2', before: ServerRows, after: ServerRows): JsonMap {
  const ids = new Set([...before.keys(), ...after.keys()]);
  const changes = [...ids].map((id) => [id, changeOf(form, before.get(id), after.get(id))] as const);
  return Object.fromEntries(changes.filter(([, change]) => change !== undefined));
}
