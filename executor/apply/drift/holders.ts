/** Who holds the fields that differ, and how managedFields look when an Update gives them up. Pure. */
import { isObject, type JsonObject } from '../../../constructs/lib/json.ts';
import { isOurApply, withoutField } from '../../kube/managedfields.ts';
import type { ManagedFieldsEntry } from '../../kube/types.ts';
import type { Difference } from './compare.ts';

/** An entry of managedFields, and the words for it. */
export interface Holder {
  /** Place of the entry in managedFields. */
  readonly entry: number;
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
}

export interface Taken {
  readonly difference: Difference;
  /** Empty when nobody but us holds it. */
  readonly holders: readonly Holder[];
}

function nodeAt(fields: JsonObject | undefined, path: readonly string[]): JsonObject | undefined {
  let here = fields;
  for (const step of path) {
    const next = here !== undefined && Object.hasOwn(here, step) ? here[step] : undefined;
    here = isObject(next) ? next : undefined;
  }
  return here;
}

/**
 * Who took each of the fields. A field that our own apply still holds was taken by nobody: whoever changes a value is its
 * holder afterwards, and alone.
 */
export function whoTook(entries: readonly ManagedFieldsEntry[], differences: readonly Difference[]): Taken[] {
  return differences.map((difference) => {
    const holding = entries.flatMap((entry, place) =>
      nodeAt(entry.fieldsV1, difference.path) === undefined ? [] : [{ entry, place }],
    );
    if (holding.some(({ entry }) => isOurApply(entry))) return { difference, holders: [] };
    const holders = holding.map(
      ({ entry, place }): Holder => ({
        entry: place,
        manager: entry.manager ?? 'unknown',
        operation: entry.operation === 'Apply' ? 'Apply' : 'Update',
      }),
    );
    return { difference, holders };
  });
}

/** The name of whoever left no trace. */
export const somebody = 'somebody';

/** Who wrote last besides us; for values that vanished, which leave no holder behind. */
export function lastWriter(entries: readonly ManagedFieldsEntry[]): string {
  const others = entries.filter((entry) => !isOurApply(entry) && (entry.subresource ?? '') !== 'status');
  return others.sort((a, b) => (b.time ?? '').localeCompare(a.time ?? ''))[0]?.manager ?? somebody;
}

/** managedFields in which the Update entries give up exactly the fields they took; an entry that held nothing else goes. */
export function withoutTaken(
  entries: readonly ManagedFieldsEntry[],
  taken: readonly Taken[],
): readonly ManagedFieldsEntry[] {
  return entries.flatMap((entry, place): ManagedFieldsEntry[] => {
    const paths = taken.flatMap(({ difference, holders }) =>
      holders.some((holder) => holder.entry === place && holder.operation === 'Update') ? [difference.path] : [],
    );
    if (paths.length === 0) return [entry];
    const fieldsV1 = paths.reduce(withoutField, entry.fieldsV1 ?? {});
    return Object.keys(fieldsV1).length === 0 ? [] : [{ ...entry, fieldsV1 }];
  });
}
