/** Reading and reshaping `metadata.managedFields`: whose an entry is, and its tree of fields. Pure. */
import { managers } from '../../constructs/api/constants.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { ManagedFieldsEntry } from './types.ts';

/** Whether an entry is what `manager` applied of the object itself, and of no subresource. */
export const appliesAs = (entry: ManagedFieldsEntry, manager: string): boolean =>
  entry.manager === manager && entry.operation === 'Apply' && (entry.subresource ?? '') === '';

/** Whether an entry is what we applied of an object of a payload. */
export const isOurApply = (entry: ManagedFieldsEntry): boolean => appliesAs(entry, managers.objects);

/** The JSON in a step `k:<keys>` or `v:<value>`; undefined when it is none. */
export function stepValue(step: string): JsonValue | undefined {
  try {
    return JSON.parse(step.slice(2)) as JsonValue;
  } catch {
    return undefined;
  }
}

/** All fields of both trees. */
export function unionOfFields(a: JsonObject, b: JsonObject): JsonObject {
  const all: JsonObject = { ...a };
  for (const [step, child] of Object.entries(b)) {
    const known = all[step];
    all[step] = isObject(known) && isObject(child) ? unionOfFields(known, child) : (child ?? {});
  }
  return all;
}

/** A tree without one path; parents that hold nothing any more go with it. */
export function withoutField(fields: JsonObject, path: readonly string[]): JsonObject {
  const [head, ...rest] = path;
  if (head === undefined || !Object.hasOwn(fields, head)) return fields;
  const { [head]: child, ...others } = fields;
  if (rest.length === 0 || !isObject(child)) return others;
  const left = withoutField(child, rest);
  return Object.keys(left).length === 0 ? others : { ...others, [head]: left };
}
