/** Networks of classes in an order in which the one that holds an address is found without looking at the others. */
import type { IPAddress } from '../../../constructs/lib/ip.ts';
import type { ClassView } from '../objects.ts';
import { isServed, networksOf } from './parameters.ts';

interface Span {
  readonly first: bigint;
  readonly last: bigint;
  readonly className: string;
  /** The last address of this one and all before it: networks may overlap. */
  reach: bigint;
}

export class Networks {
  readonly #byFamily = new Map<string, Span[]>();

  constructor(classes: Iterable<ClassView>) {
    for (const found of classes) {
      const read = isServed(found) ? networksOf(found) : undefined;
      if (read?.ok !== true) continue;
      for (const { family, first, last } of read.networks) {
        const spans = this.#byFamily.get(family) ?? [];
        spans.push({ first, last, className: found.name, reach: last });
        this.#byFamily.set(family, spans);
      }
    }
    for (const spans of this.#byFamily.values()) {
      spans.sort((a, b) => (a.first < b.first ? -1 : 1));
      let reach = -1n;
      for (const span of spans) {
        if (span.last > reach) reach = span.last;
        span.reach = reach;
      }
    }
  }

  /** The class with a network that holds the address. */
  classAt({ family, value }: IPAddress): string | undefined {
    const spans = this.#byFamily.get(family) ?? [];
    let [low, high] = [0, spans.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((spans[middle]?.first ?? 0n) <= value) low = middle + 1;
      else high = middle;
    }
    for (let at = low - 1; at >= 0; at -= 1) {
      const span = spans[at];
      if (span === undefined || span.reach < value) return undefined;
      if (span.last >= value) return span.className;
    }
    return undefined;
  }
}
