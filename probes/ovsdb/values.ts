/** OVSDB's notation of values: atoms, uuids, sets (one element may stand bare) and maps. Reading never throws. */
import { encode, isList, type Json } from '../jsonrpc/json.ts';

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const tagged = (value: Json | undefined, tag: string): Json | undefined =>
  isList(value) && value.length === 2 && value[0] === tag ? value[1] : undefined;

/** The 36 characters of `["uuid", ...]`, in lower case. */
export function uuid(value: Json | undefined): string | undefined {
  const text = tagged(value, 'uuid');
  return typeof text === 'string' && uuidPattern.test(text) ? text.toLowerCase() : undefined;
}

/** The elements of a set; a bare atom is a set of one. Undefined for a map or what is no value of OVSDB. */
export function setOf(value: Json | undefined): readonly Json[] | undefined {
  const elements = tagged(value, 'set');
  if (elements !== undefined) return isList(elements) && elements.every(isAtom) ? elements : undefined;
  return value !== undefined && isAtom(value) ? [value] : undefined;
}

/** The pairs of a map. */
export function pairsOf(value: Json | undefined): readonly (readonly [Json, Json])[] | undefined {
  const pairs = tagged(value, 'map');
  if (!isList(pairs)) return undefined;
  const read = pairs.map((pair) => (isList(pair) ? pairOf(pair) : undefined));
  return read.every((pair) => pair !== undefined) ? read : undefined;
}

function pairOf(pair: readonly Json[]): readonly [Json, Json] | undefined {
  const [key, value] = pair;
  if (pair.length !== 2 || key === undefined || value === undefined) return undefined;
  return isAtom(key) && isAtom(value) ? [key, value] : undefined;
}

function isAtom(value: Json): boolean {
  if (typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'bigint' || typeof value === 'number') return true;
  return typeof tagged(value, 'named-uuid') === 'string' || uuid(value) !== undefined;
}

/** An optional column: `present` says which of both; undefined when it holds more than one element or no set at all. */
export type Optional = { readonly present: false } | { readonly present: true; readonly value: Json };

export function optional(value: Json | undefined): Optional | undefined {
  const elements = setOf(value);
  if (elements === undefined || elements.length > 1) return undefined;
  const [only] = elements;
  return only === undefined ? { present: false } : { present: true, value: only };
}

/** A map of strings, such as `external_ids`; undefined when something else stands in it. */
export function stringMap(value: Json | undefined): ReadonlyMap<string, string> | undefined {
  const pairs = pairsOf(value);
  if (pairs === undefined) return undefined;
  const strings = pairs.filter((pair): pair is readonly [string, string] =>
    pair.every((atom) => typeof atom === 'string'),
  );
  return strings.length === pairs.length ? new Map(strings) : undefined;
}

/** What tells atoms apart: equal for equal atoms, whatever form an integer or a uuid came in. */
export function atomKey(atom: Json): string {
  const id = uuid(atom);
  return id === undefined ? encode(atom) : `uuid ${id}`;
}
