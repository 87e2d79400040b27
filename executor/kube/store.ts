/** The objects of a selection as last seen, and what changed when something new is seen. Pure but for its map. */
import type { KubeObject } from './types.ts';

export type StoreChange =
  | { readonly type: 'added'; readonly object: KubeObject }
  | { readonly type: 'modified'; readonly object: KubeObject; readonly previous: KubeObject }
  | { readonly type: 'deleted'; readonly object: KubeObject };

/** `<namespace>/<name>`, the namespace being empty for cluster-scoped objects. */
function storeKey(object: KubeObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`;
}

/** An object that was deleted and made again under its name is told as `deleted` and `added`: it is another one. */
export class ObjectStore {
  readonly #objects = new Map<string, KubeObject>();

  get objects(): ReadonlyMap<string, KubeObject> {
    return this.#objects;
  }

  /** Takes in an object that exists. */
  put(object: KubeObject): StoreChange[] {
    const key = storeKey(object);
    const previous = this.#objects.get(key);
    this.#objects.set(key, object);
    if (previous === undefined) return [{ type: 'added', object }];
    if (previous.metadata.uid !== object.metadata.uid)
      return [
        { type: 'deleted', object: previous },
        { type: 'added', object },
      ];
    if (previous.metadata.resourceVersion === object.metadata.resourceVersion) return [];
    return [{ type: 'modified', object, previous }];
  }

  /** Takes in that an object is gone. A late word about an earlier object of the same name changes nothing. */
  drop(object: KubeObject): StoreChange[] {
    const key = storeKey(object);
    const previous = this.#objects.get(key);
    if (previous === undefined || previous.metadata.uid !== object.metadata.uid) return [];
    this.#objects.delete(key);
    return [{ type: 'deleted', object }];
  }

  /** Takes in all objects that exist; the others are gone. */
  replace(objects: readonly KubeObject[]): StoreChange[] {
    const alive = new Set(objects.map(storeKey));
    const vanished = [...this.#objects].filter(([key]) => !alive.has(key));
    for (const [key] of vanished) this.#objects.delete(key);
    return [
      ...vanished.map(([, object]): StoreChange => ({ type: 'deleted', object })),
      ...objects.flatMap((object) => this.put(object)),
    ];
  }
}
