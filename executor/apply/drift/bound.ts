/** The intents that live objects are compared with, and what the server's answers to them were. */
import { digestOf } from '../../../constructs/lib/digest.ts';
import type { KubeObject } from '../../kube/types.ts';
import { type BindValue, bindItem } from '../bind.ts';
import type { Judged } from '../dryrun.ts';
import { without } from '../fieldpath.ts';
import type { Item } from '../items.ts';
import { compare } from './compare.ts';

/** An object as it is to be, and a word that changes with it. */
export interface Bound {
  readonly item: Item;
  readonly intent: KubeObject;
  readonly key: string;
}

/** Bound intents by id. Tombstones have none, and what can not be bound now is not compared now. */
export function boundIntents(items: readonly Item[], bind: BindValue): Map<string, Bound> {
  return new Map(
    items.flatMap((item): [string, Bound][] => {
      if (item.entry.absent) return [];
      const bound = bindItem(item, bind);
      if (!bound.ok) return [];
      const { object } = bound;
      const key = object === item.object ? item.entry.sha256 : digestOf(object);
      return [[item.id, { item, intent: object, key }]];
    }),
  );
}

/**
 * What of an intent is compared. Values of a claim for storage can not go back, since it only ever grows and its class is
 * fixed: of it only the marks are looked at.
 */
function comparable(intent: KubeObject): KubeObject {
  const { apiVersion, kind, metadata } = intent;
  return apiVersion === 'v1' && kind === 'PersistentVolumeClaim' ? { apiVersion, kind, metadata } : intent;
}

interface Answered {
  readonly key: string;
  /** Hash of the named fields in the server's answer, where they are not those of the intent to the letter. */
  readonly settled?: string;
  /** Pointers of fields that were given up to another manager. */
  readonly given: readonly string[];
  readonly intent: KubeObject;
}

/** What the server made of each intent. An intent that changes is a stranger to it. */
export class Answers {
  readonly #known = new Map<string, Answered>();

  #of({ item, key }: Bound): Answered | undefined {
    const known = this.#known.get(item.id);
    return known?.key === key ? known : undefined;
  }

  /** The intent as it is sent: without what was given up. */
  intent(bound: Bound): KubeObject {
    return this.#of(bound)?.intent ?? bound.intent;
  }

  /** What of it the live object is compared with. */
  compared(bound: Bound): KubeObject {
    return comparable(this.intent(bound));
  }

  settled(bound: Bound): string | undefined {
    return this.#of(bound)?.settled;
  }

  /** Takes in how the named fields stand in an answer. */
  take(bound: Bound, answer: KubeObject): void {
    const { intent = bound.intent, given = [] } = this.#of(bound) ?? {};
    const compared = compare(comparable(intent), answer);
    const settled = compared.same ? {} : { settled: compared.hash };
    if (compared.same && given.length === 0) this.#known.delete(bound.item.id);
    else this.#known.set(bound.item.id, { key: bound.key, given, intent, ...settled });
  }

  /** Takes in a write of a pass, and what it gave up. */
  written(bound: Bound, { yielded }: Judged, answer: KubeObject): void {
    this.#known.delete(bound.item.id);
    if (yielded !== undefined) this.give(bound, yielded.pointers);
    this.take(bound, answer);
  }

  /** Fields that are not ours to set back as long as the intent stays. */
  give(bound: Bound, pointers: readonly string[]): void {
    const given = [...new Set([...(this.#of(bound)?.given ?? []), ...pointers])];
    const intent = without(bound.intent, given) as KubeObject;
    this.#known.set(bound.item.id, { key: bound.key, given, intent });
  }

  /** Forgets all that is not of these intents. */
  keep(intents: ReadonlyMap<string, Bound>): void {
    for (const [id, { key }] of this.#known) if (intents.get(id)?.key !== key) this.#known.delete(id);
  }
}
