/**
 * JSON as OVSDB means it: an integer is 64 bits wide, which a number does not hold. Whatever is beyond 2^53-1 is read as a
 * bigint and written as one, so that no counter or term is ever a neighbour of what was said.
 */

export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonMap;
export interface JsonMap {
  readonly [name: string]: Json | undefined;
}

/** True for an object of JSON (not an array, not null). */
export const isMap = (value: Json | undefined): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);

/** Own member of an object whose names a peer chose; undefined for everything else. */
export const member = (value: Json | undefined, name: string): Json | undefined =>
  isMap(value) && Object.hasOwn(value, name) ? value[name] : undefined;

// Reading with the source of every number takes a multiple of the time, and most messages hold no long one.
const maybeLong = /[[:,\s]-?[0-9]{16}/;
const integral = /^-?[0-9]+$/;

/** What the engine tells a reviver beside name and value: the text that a primitive was written as. */
interface Source {
  readonly source?: string;
}

function exact(_name: string, value: unknown, context: Source): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  return context.source !== undefined && integral.test(context.source) ? BigInt(context.source) : value;
}

/** The value of a text; of members with the same name the last one counts. @throws SyntaxError when it is not JSON. */
export function decode(text: string): Json {
  if (!maybeLong.test(text)) return JSON.parse(text) as Json;
  return JSON.parse(text, exact as (name: string, value: unknown) => unknown) as Json;
}

/** The text of a value. Integers of either form are written in full; members that are undefined are left out. */
export function encode(value: Json): string {
  if (typeof value === 'bigint') return String(value);
  if (isList(value)) return `[${value.map(encode).join(',')}]`;
  if (!isMap(value)) return JSON.stringify(value);
  const members = Object.entries(value).filter((entry): entry is [string, Json] => entry[1] !== undefined);
  return `{${members.map(([name, item]) => `${JSON.stringify(name)}:${encode(item)}`).join(',')}}`;
}

/** The integer of a value in either form, or undefined. */
export function integer(value: Json | undefined): bigint | undefined {
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}
