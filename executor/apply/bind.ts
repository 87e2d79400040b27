/** Puts in what only the cluster knows: the domain says what stands at each pointer that the index names. */
import type { Binding, PayloadObject } from '../../constructs/api/payload.ts';
import { isObject, type JsonValue, setAt } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, type KubeObject } from '../kube/types.ts';
import { type Item, itemRef } from './items.ts';

/** The value of one binding for one object, or why there is none yet. */
export type BoundValue = { readonly value: JsonValue | undefined } | { readonly problem: string };
export type BindValue = (what: Binding, at: string, entry: PayloadObject) => BoundValue;

export type BoundObject =
  | { readonly ok: true; readonly object: KubeObject }
  | { readonly ok: false; readonly problems: Problem[] };

/** The object as it is to be applied. The rendered object is not touched. */
export function bindItem(item: Item, bindValue: BindValue): BoundObject {
  let object: JsonValue = item.object;
  const problems: Problem[] = [];
  for (const { at, what } of item.entry.bind ?? []) {
    const bound = bindValue(what, at, item.entry);
    if ('problem' in bound)
      problems.push({ reason: 'BindingMissing', message: bound.problem, object: describeRef(itemRef(item)), path: at });
    else object = setAt(object, at, bound.value);
  }
  if (problems.length > 0 || !isObject(object)) return { ok: false, problems };
  return { ok: true, object: object as KubeObject };
}

/** For domains whose objects bind nothing: a rule in the index is a problem. */
export const bindsNothing: BindValue = (what) => ({
  problem: `this domain binds nothing, and the index asks for '${what}'`,
});
