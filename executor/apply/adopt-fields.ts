/**
 * Taking fields over from other managers without changing a value: in `metadata.managedFields`, what an object's intent names
 * moves from the entries of listed managers into our own Apply entry. Pure.
 */
import { managers } from '../../constructs/api/constants.ts';
import { deepEqual, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { isOurApply, stepValue, unionOfFields } from '../kube/managedfields.ts';
import type { KubeObject, ManagedFieldsEntry } from '../kube/types.ts';

export interface Folded {
  readonly entries: readonly ManagedFieldsEntry[];
  /** Managers that gave something up. */
  readonly from: readonly string[];
}

/** True for entries whose fields may be taken: of a listed manager, by Update or Apply, and of anything but the status. */
const isTakable = (entry: ManagedFieldsEntry, intent: KubeObject, listed: readonly string[]): boolean =>
  listed.includes(entry.manager ?? '') &&
  !isOurApply(entry) &&
  entry.subresource !== 'status' &&
  // Fields are named in the words of one version; those of another are left, and show as a conflict if they differ.
  entry.apiVersion === intent.apiVersion;

/** The part of the intent that a step of managedFields leads to; undefined when it names nothing there. */
function follow(intent: JsonValue, step: string): JsonValue | undefined {
  const rest = step.slice(2);
  if (step.startsWith('f:')) return isObject(intent) && Object.hasOwn(intent, rest) ? intent[rest] : undefined;
  if (!Array.isArray(intent)) return undefined;
  const key = stepValue(step);
  if (step.startsWith('v:')) return intent.find((value) => deepEqual(value, key));
  if (!step.startsWith('k:') || !isObject(key)) return undefined;
  return intent.find(
    (value) => isObject(value) && Object.entries(key).every(([name, wanted]) => deepEqual(value[name], wanted)),
  );
}

interface Split {
  readonly taken: JsonObject;
  readonly kept: JsonObject;
}

/** Divides a tree of fields into what the intent names and what it does not. */
function split(fields: JsonObject, intent: JsonValue): Split {
  const taken: JsonObject = {};
  const kept: JsonObject = {};
  for (const [step, child] of Object.entries(fields)) {
    // The place itself goes along with what is named in it.
    const below = step === '.' ? intent : follow(intent, step);
    if (below === undefined || below === null || !isObject(child)) {
      kept[step] = child ?? {};
      continue;
    }
    if (Object.keys(child).length === 0) {
      taken[step] = {};
      continue;
    }
    const parts = split(child, below);
    if (Object.keys(parts.taken).length > 0) taken[step] = parts.taken;
    if (Object.keys(parts.kept).length > 0) kept[step] = parts.kept;
  }
  return { taken, kept };
}

/** `managedFields` after the listed managers have given up what the intent names; undefined when they hold none of it. */
export function foldManagers(
  entries: readonly ManagedFieldsEntry[],
  intent: KubeObject,
  listed: readonly string[],
): Folded | undefined {
  let taken: JsonObject = {};
  const from = new Set<string>();
  const others = entries.flatMap((entry): ManagedFieldsEntry[] => {
    if (isOurApply(entry)) return [];
    if (!isTakable(entry, intent, listed)) return [entry];
    const parts = split(entry.fieldsV1 ?? {}, intent);
    if (Object.keys(parts.taken).length === 0) return [entry];
    taken = unionOfFields(taken, parts.taken);
    from.add(entry.manager ?? '');
    return Object.keys(parts.kept).length === 0 ? [] : [{ ...entry, fieldsV1: parts.kept }];
  });
  if (from.size === 0) return undefined;
  const own = entries.find(isOurApply);
  const ours: ManagedFieldsEntry = {
    ...own,
    manager: managers.objects,
    operation: 'Apply',
    apiVersion: intent.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: unionOfFields(own?.fieldsV1 ?? {}, taken),
  };
  return { entries: [...others, ours], from: [...from].sort() };
}
