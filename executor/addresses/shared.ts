/** One copy of each object, and of what planners see of it, for all workers of a process: each of them watches by itself. */
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';
import { type LedgerView, readLedgerObject } from './objects.ts';

/** Texts that many objects have: times, names of classes, finalizers, messages. */
const repeated: ReadonlySet<string> = new Set([
  ...['apiVersion', 'creationTimestamp', 'lastTransitionTime', 'finalizers', 'message', 'className', 'namespace'],
  ...['provisioner', 'metallb.io/address-pool', 'metallb.io/ip-allocated-from-pool', 'reason'],
]);
const isRepeated = (key: string): boolean => repeated.has(key) || key.endsWith('/provisioner');
/** So many texts are known; what comes later is kept as it is. */
const mostTexts = 4_096;

interface Known {
  readonly object: KubeObject;
  view: LedgerView | undefined;
}

export class SharedObjects {
  readonly #known = new Map<string, Known>();
  readonly #texts = new Map<string, string>();

  /** The object, or the one that says the same and is there already. */
  same(object: KubeObject): KubeObject {
    const { uid, resourceVersion } = object.metadata;
    if (uid === undefined) return object;
    const known = this.#known.get(uid);
    if (known?.object.metadata.resourceVersion === resourceVersion) return known?.object ?? object;
    this.#intern(object as unknown as JsonObject);
    this.#known.set(uid, { object, view: undefined });
    return object;
  }

  /** A parser makes every text anew: those that are the same become one. */
  #intern(object: JsonObject): void {
    for (const [key, value] of Object.entries(object)) {
      if (typeof value === 'string') {
        if (isRepeated(key)) object[key] = this.#one(value);
      } else if (Array.isArray(value))
        value.forEach((one, n) => {
          if (typeof one === 'string') value[n] = isRepeated(key) ? this.#one(one) : one;
          else if (isObject(one)) this.#intern(one);
        });
      else if (isObject(value)) this.#intern(value);
    }
  }

  #one(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size < mostTexts) this.#texts.set(text, text);
    return text;
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
