import { deepEqual, isObject, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { StructuralSchema } from './crd.ts';

/** Defaults as the API server fills them in, and their removal, so that a file and a live object have one digest. */

const valueSchema = (schema: StructuralSchema, key: string): StructuralSchema | undefined => {
  const property = schema.properties?.[key];
  if (property !== undefined) return property;
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
};

/** A copy of `value` with defaults filled in, in the order of the API server: nulls go first, then outer before inner. */
export function applyDefaults(schema: StructuralSchema, value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => applyDefaults(items, item));
  }
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined || (member === null && valueSchema(schema, key) !== undefined)) continue;
    result[key] = member;
  }
  for (const [key, property] of Object.entries(schema.properties ?? {}))
    if (result[key] === undefined && property.default !== undefined) result[key] = structuredClone(property.default);
  for (const [key, member] of Object.entries(result)) {
    const inner = valueSchema(schema, key);
    if (inner !== undefined && member !== undefined) result[key] = applyDefaults(inner, member);
  }
  return result;
}

/**
 * A copy of `value` without the fields that equal their default. What {@link applyDefaults} adds, this takes away:
 * values that differ only in written-out defaults come out the same.
 */
export function dropDefaults(schema: StructuralSchema, value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => dropDefaults(items, item));
  }
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    if (member === null || member === undefined) continue;
    const inner = valueSchema(schema, key);
    if (inner === undefined) {
      result[key] = member;
      continue;
    }
    const short = dropDefaults(inner, member);
    if (inner.default !== undefined && deepEqual(short, dropDefaults(inner, inner.default))) continue;
    result[key] = short;
  }
  return result;
}
