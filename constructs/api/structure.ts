import { canonicalJson, deepEqual, isObject, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { StructuralSchema } from './crd.ts';
import { nearest } from './nearest.ts';

/** Checks a value against a structural schema as the API server does with strict field validation. */

export type Path = readonly (string | number)[];

export interface Finding {
  readonly reason: string;
  readonly message: string;
  readonly path: Path;
  readonly value?: JsonValue;
  readonly remedy?: string;
}

/** All findings, outer before inner. Defaults must have been filled in before. */
export function checkStructure(schema: StructuralSchema, value: JsonValue, path: Path = []): Finding[] {
  const wrong = checkType(schema, value, path);
  if (wrong !== undefined) return [wrong];
  const own = checkValue(schema, value, path);
  if (Array.isArray(value)) return [...own, ...checkItems(schema, value, path)];
  if (isObject(value)) return [...own, ...checkMembers(schema, value, path)];
  return own;
}

const typeOf = (value: JsonValue): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
};

function checkType(schema: StructuralSchema, value: JsonValue, path: Path): Finding | undefined {
  const found = typeOf(value);
  if (schema['x-kubernetes-int-or-string'] === true)
    return found === 'integer' || found === 'string'
      ? undefined
      : { reason: 'WrongType', message: `must be an integer or a string, not ${article(found)}`, path, value };
  const { type } = schema;
  if (type === undefined || found === type || (type === 'number' && found === 'integer')) return undefined;
  return { reason: 'WrongType', message: `must be ${article(type)}, not ${article(found)}`, path, value };
}

const article = (word: string): string => (word === 'null' ? word : `${/^[aeio]/.test(word) ? 'an' : 'a'} ${word}`);

function checkValue(schema: StructuralSchema, value: JsonValue, path: Path): Finding[] {
  const findings: Finding[] = [];
  const refuse = (message: string, remedy?: string): void => {
    findings.push({ reason: 'InvalidValue', message, path, value, ...(remedy === undefined ? {} : { remedy }) });
  };
  if (schema.enum !== undefined && !schema.enum.some((one) => deepEqual(one, value))) {
    const words = schema.enum.map(String);
    const close = typeof value === 'string' ? nearest(value, words) : undefined;
    refuse(`must be one of ${words.join(', ')}`, close === undefined ? undefined : `did you mean ${close}?`);
  }
  if (typeof value === 'string') checkText(schema, value, refuse);
  if (typeof value === 'number') checkNumber(schema, value, refuse);
  if (typeof value === 'object' && value !== null) checkSize(schema, value, refuse);
  return findings;
}

type Refuse = (message: string) => void;

function checkNumber(schema: StructuralSchema, value: number, refuse: Refuse): void {
  if (schema.minimum !== undefined && value < schema.minimum) refuse(`must be at least ${schema.minimum}`);
  if (schema.maximum !== undefined && value > schema.maximum) refuse(`must be at most ${schema.maximum}`);
}

function checkSize(schema: StructuralSchema, value: readonly JsonValue[] | JsonObject, refuse: Refuse): void {
  const list = Array.isArray(value);
  const size = list ? value.length : Object.keys(value).length;
  const [least, most] = list ? [schema.minItems, schema.maxItems] : [schema.minProperties, schema.maxProperties];
  if (least !== undefined && size < least) refuse(`must have at least ${least} entries`);
  if (most !== undefined && size > most) refuse(`must have at most ${most} entries`);
}

const dateTime = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$/;

function checkText(schema: StructuralSchema, value: string, refuse: Refuse): void {
  const length = [...value].length;
  if (schema.minLength !== undefined && length < schema.minLength)
    refuse(schema.minLength === 1 ? 'must not be empty' : `must have at least ${schema.minLength} characters`);
  if (schema.maxLength !== undefined && length > schema.maxLength)
    refuse(`must have at most ${schema.maxLength} characters`);
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value)) refuse(`must match ${schema.pattern}`);
  if (schema.format === 'date-time' && (!dateTime.test(value) || Number.isNaN(Date.parse(value))))
    refuse('must be a time such as 2026-01-31T12:00:00Z');
}

function checkItems(schema: StructuralSchema, value: readonly JsonValue[], path: Path): Finding[] {
  const { items } = schema;
  const inner = items === undefined ? [] : value.flatMap((item, n) => checkStructure(items, item, [...path, n]));
  return [...checkDuplicates(schema, value, path), ...inner];
}

function checkDuplicates(schema: StructuralSchema, value: readonly JsonValue[], path: Path): Finding[] {
  const type = schema['x-kubernetes-list-type'];
  if (type !== 'map' && type !== 'set') return [];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const seen = new Map<string, number>();
  return value.flatMap((item, n) => {
    const key = canonicalJson(type === 'map' && isObject(item) ? keys.map((k) => item[k] ?? null) : item);
    const first = seen.get(key);
    if (first === undefined) {
      seen.set(key, n);
      return [];
    }
    const what = type === 'map' ? `entry with the same ${keys.join(' and ')}` : 'equal entry';
    return [
      { reason: 'DuplicateEntry', message: `an ${what} stands at index ${first}`, path: [...path, n], value: item },
    ];
  });
}

function checkMembers(schema: StructuralSchema, value: JsonObject, path: Path): Finding[] {
  const findings: Finding[] = [];
  const known = schema.properties ?? {};
  for (const name of schema.required ?? [])
    if (value[name] === undefined)
      findings.push({ reason: 'RequiredField', message: `field ${name} is required`, path: [...path, name] });
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const inner = known[name];
    // The metadata of a served object has a schema of the server's own.
    if (path.length === 0 && name === 'metadata' && inner?.properties === undefined) continue;
    if (inner !== undefined) findings.push(...checkStructure(inner, member, [...path, name]));
    else if (typeof schema.additionalProperties === 'object')
      findings.push(...checkStructure(schema.additionalProperties, member, [...path, name]));
    else if (schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties === true) continue;
    else findings.push(unknownField(name, Object.keys(known), [...path, name]));
  }
  return findings;
}

function unknownField(name: string, known: readonly string[], path: Path): Finding {
  const close = nearest(name, known);
  const remedy =
    close === undefined
      ? `remove it${known.length > 0 ? `; known fields here are ${[...known].sort().join(', ')}` : ''}`
      : `did you mean ${close}?`;
  return { reason: 'UnknownField', message: `unknown field ${name}`, path, remedy };
}
