/** One copy of each object, and of what planners see of it, for all workers of a process: each of them watches by itself. */
import type { KubeObject } from '../kube/types.ts';
import { type LedgerView, readLedgerObject } from './objects.ts';

interface Known {
  readonly object: KubeObject;
  view: LedgerView | undefined;
}

export class SharedObjects {
  readonly #known = new Map<string, Known>();

  /** The object, or the one that says the same and is there already. */
  same(object: KubeObject): KubeObject {
    const { uid, resourceVersion } = object.metadata;
    if (uid === undefined) return object;
    const known = this.#known.get(uid);
    if (known?.object.metadata.resourceVersion === resourceVersion) return known?.object ?? object;
    this.#known.set(uid, { object, view: undefined });
    return object;
  }

  /** Forgets an object that is gone. */
  drop({ metadata: { uid = '' } }: KubeObject): void {
    this.#known.delete(uid);
  }

  /** The view of an object of the ledger, read once. */
  read = (object: KubeObject): LedgerView | undefined => {
    const known = this.#known.get(object.metadata.uid ?? '');
    if (known?.object !== object) return readLedgerObject(object);
    known.view ??= readLedgerObject(object);
    return known.view;
  };
}
