/** Views by a key, those of one key in an order. Most keys have one view, which costs no list. */

interface Ranked<One> {
  readonly rank: string;
  readonly view: One;
}

export class ViewIndex<One> {
  readonly #members = new Map<string, Ranked<One> | Ranked<One>[]>();

  /** @param rank what the views of a key are ordered by; one of the same rank is replaced. */
  add(key: string, rank: string, view: One): void {
    const found = this.#members.get(key);
    const added = { rank, view };
    if (found === undefined || (!Array.isArray(found) && found.rank === rank)) {
      this.#members.set(key, added);
      return;
    }
    const list = Array.isArray(found) ? found : [found];
    const at = placeOf(list, rank);
    list.splice(at, list[at]?.rank === rank ? 1 : 0, added);
    this.#members.set(key, list);
  }

  remove(key: string, rank: string): void {
    const found = this.#members.get(key);
    if (found === undefined) return;
    if (!Array.isArray(found)) {
      if (found.rank === rank) this.#members.delete(key);
      return;
    }
    const at = placeOf(found, rank);
    if (found[at]?.rank !== rank) return;
    found.splice(at, 1);
    const [last] = found;
    if (found.length === 1 && last !== undefined) this.#members.set(key, last);
  }

  size(key: string): number {
    const found = this.#members.get(key);
    if (found === undefined) return 0;
    return Array.isArray(found) ? found.length : 1;
  }

  *get(key: string): Iterable<One> {
    const found = this.#members.get(key);
    if (found === undefined) return;
    if (!Array.isArray(found)) yield found.view;
    else for (const { view } of found) yield view;
  }
}

/** Where a rank stands, or would stand. */
function placeOf(list: readonly Ranked<unknown>[], rank: string): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle]?.rank ?? '') < rank) low = middle + 1;
    else high = middle;
  }
  return low;
}
