/** What is known of the drift of one release. No I/O of its own. */
import { annotations } from '../../../constructs/api/constants.ts';
import type { Clock } from '../../../constructs/lib/clock.ts';
import { isObject } from '../../../constructs/lib/json.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import type { KubeObject, ObjectMeta } from '../../kube/types.ts';
import type { BindValue } from '../bind.ts';
import type { Item } from '../items.ts';
import type { LedgerStore } from '../ledger-store.ts';
import { needOf } from '../need.ts';
import { Answers, type Bound, boundIntents } from './bound.ts';
import type { Fight, Fights } from './fights.ts';
import type { Pauses } from './pauses.ts';

/** The payload that is enforced now. */
export interface Followed {
  readonly release: string;
  readonly items: readonly Item[];
  readonly bind: BindValue;
  readonly ledger: LedgerStore;
  readonly overridden: ReadonlySet<string>;
  /** Phases in which nothing is repaired. */
  readonly frozen: ReadonlySet<string>;
  /** Kinds, as `apiVersion kind`, that may only be listed namespace by namespace. */
  readonly narrow: ReadonlySet<string>;
}

/** What is told of drift in status. */
export interface DriftTold {
  readonly fights: readonly Fight[];
  /** Objects that could not be set back. */
  readonly problems: readonly Problem[];
}

/** Whether a lifecycle has taken the object in hand. */
export const isQuiesced = (metadata: ObjectMeta): boolean => metadata.annotations?.[annotations.quiesce] !== undefined;

const passing: ReadonlySet<string> = new Set(['ApiUnavailable', 'ObjectChanged', 'LeaseHeld', 'LeaseUnavailable']);

export interface StateParts {
  readonly clock: Clock;
  readonly fights: Fights;
  readonly retries: Pauses;
  /** The object as its watch shows it. */
  readonly find: (item: Item) => KubeObject | undefined | 'unknown';
}

export class DriftState {
  readonly answers = new Answers();
  readonly fights: Fights;
  readonly retries: Pauses;
  readonly #clock: Clock;
  readonly #find: StateParts['find'];
  #followed: Followed | undefined;
  #intents: ReadonlyMap<string, Bound> = new Map();
  /** Objects that are not as they should be, and since when that is known. */
  readonly #suspects = new Map<string, number>();
  /** Versions that were looked at and need nothing. */
  readonly #looked = new Map<string, ReadonlySet<string>>();
  readonly #problems = new Map<string, Problem>();

  constructor({ clock, fights, retries, find }: StateParts) {
    this.#clock = clock;
    this.fights = fights;
    this.retries = retries;
    this.#find = find;
  }

  get followed(): Followed | undefined {
    return this.#followed;
  }

  get told(): DriftTold {
    return { fights: this.fights.all, problems: [...this.#problems.values()] };
  }

  bound(id: string): Bound | undefined {
    return this.#intents.get(id);
  }

  /** Takes up what is enforced. Answers whether any intent is another than before. */
  follow(followed: Followed): boolean {
    const intents = boundIntents(followed.items, followed.bind);
    const before = this.#intents;
    const same = intents.size === before.size && [...intents].every(([id, { key }]) => before.get(id)?.key === key);
    this.#followed = followed;
    this.#intents = intents;
    if (same) return false;
    this.answers.keep(intents);
    for (const [id, bound] of before) if (intents.get(id)?.key !== bound.key) this.settled(id);
    return true;
  }

  /** Looks at all objects as their watches show them. */
  examine(): void {
    for (const id of this.#intents.keys()) this.check(id);
  }

  /** Looks at one object as its watch shows it. Answers whether it has to be seen to, now or after a pause. */
  check(id: string): boolean {
    const found = this.#judge(id);
    if (found === 'suspicious') {
      if (!this.#suspects.has(id)) this.#suspects.set(id, this.#clock.monotonic());
      return true;
    }
    if (found === 'unknown') return false;
    this.#suspects.delete(id);
    this.retries.end(id);
    this.#problems.delete(id);
    // Whoever applied another value has given it up; one that only came back may do so again.
    if (this.fights.of(id)?.why === 'apply') this.fights.end(id);
    return false;
  }

  /** `suspicious`: it is missing, or differs in a way that no answer of the server explains. */
  #judge(id: string): 'suspicious' | 'fine' | 'unknown' {
    const bound = this.#intents.get(id);
    const followed = this.#followed;
    if (bound === undefined || followed === undefined) return 'unknown';
    const { item } = bound;
    const live = this.#find(item);
    if (live === 'unknown' || followed.frozen.has(item.phase)) return 'unknown';
    const need = needOf(item, {
      release: followed.release,
      ledger: followed.ledger.ledger,
      live: new Map(live === undefined ? [] : [[id, live.metadata]]),
      overridden: followed.overridden,
    });
    if (need.need === 'write') return need.why === 'vanished' || need.why === 'replaced' ? 'suspicious' : 'unknown';
    if (need.need !== 'none' || live === undefined || item.entry.createOnly || isQuiesced(live.metadata)) return 'fine';
    if (this.#looked.get(id)?.has(live.metadata.resourceVersion ?? '') === true) return 'fine';
    const seen = isObject(live.seen) ? live.seen : {};
    return seen.same === false && seen.hash !== this.answers.settled(bound) ? 'suspicious' : 'fine';
  }

  /** Objects to be seen to now. */
  ready(): string[] {
    return [...this.#suspects.keys()].filter((id) => this.isReady(id));
  }

  /** Whether an object is to be seen to now. */
  isReady(id: string): boolean {
    const now = this.#clock.monotonic();
    return this.check(id) && !this.fights.pausing(id, now) && !this.retries.pausing(id, now);
  }

  /** Since when an object is known not to be as it should. */
  since(id: string): number {
    return this.#suspects.get(id) ?? this.#clock.monotonic();
  }

  #shown(id: string): KubeObject | undefined {
    const bound = this.#intents.get(id);
    const live = bound === undefined ? undefined : this.#find(bound.item);
    return live === 'unknown' ? undefined : live;
  }

  /** The version of an object that its watch shows now; to be asked for before the object is read. */
  shown(id: string): string | undefined {
    return this.#shown(id)?.metadata.resourceVersion;
  }

  /**
   * The object needs nothing in these versions: the one that its watch showed before it was read, the one that was read,
   * and those that our writes made of it. Whatever else the watch shows by now came afterwards, and stays to be seen to.
   * What no watch shows is looked at again later.
   */
  looked(id: string, versions: readonly (string | undefined)[]): void {
    this.#problems.delete(id);
    this.#looked.set(id, new Set(versions.filter((version) => version !== undefined)));
    if (this.#shown(id) === undefined) {
      this.retries.begin(id, this.#clock.monotonic());
      return;
    }
    // What came afterwards is noticed now, and is not what was tried in vain before.
    this.#suspects.delete(id);
    this.retries.end(id);
    this.check(id);
  }

  /** It could not be seen to; it is tried again after a growing pause. What passes by itself is not told. */
  failed(id: string, problem: Problem | undefined): void {
    this.retries.begin(id, this.#clock.monotonic());
    if (problem !== undefined && !passing.has(problem.reason)) this.#problems.set(id, problem);
  }

  /** Forgets what was found out about an object. */
  settled(id: string): void {
    this.#suspects.delete(id);
    this.#looked.delete(id);
    this.#problems.delete(id);
    this.retries.end(id);
    this.fights.end(id);
  }

  /** Fights whose pause is over and whose object is as it should be have ended. */
  calm(): void {
    for (const id of this.fights.due(this.#clock.monotonic())) if (!this.check(id)) this.fights.end(id);
  }

  /** When something is to be done although no watch says anything; infinite when nothing is. */
  next(): number {
    const now = this.#clock.monotonic();
    return Math.min(this.fights.next(now), this.retries.next(now));
  }
}
