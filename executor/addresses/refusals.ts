/** Objects that the API server called invalid: the same is not sent again for a while, whatever asks for it. */
import type { KubeObject } from '../kube/types.ts';

/** What a server takes changes with its flags: it is asked again now and then. */
const refusalMs = 600_000;
/** So many are remembered, the latest. */
const remembered = 10_000;

export interface Refusal {
  readonly message: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

export class Refusals {
  readonly #known = new Map<string, Refusal>();

  note(object: KubeObject, message: string, now: number): Refusal {
    const refusal = { message, until: now + refusalMs };
    this.#known.set(JSON.stringify(object), refusal);
    if (this.#known.size > remembered) this.#known.delete(this.#known.keys().next().value ?? '');
    return refusal;
  }

  /** Why the very same object was refused, if that was not long ago. */
  find(object: KubeObject, now: number): Refusal | undefined {
    if (this.#known.size === 0) return undefined;
    const key = JSON.stringify(object);
    const found = this.#known.get(key);
    if (found === undefined || found.until > now) return found;
    this.#known.delete(key);
    return undefined;
  }
}
