/** Who keeps changing what back, and when we try again. Pure but for what it remembers; times are monotonic milliseconds. */
import type { BackoffPolicy } from '../../../constructs/lib/backoff.ts';
import type { Random } from '../../../constructs/lib/clock.ts';
import { Pauses } from './pauses.ts';

export interface FightPolicy {
  /** A field that differs again after so many repairs within the window is fought over. */
  readonly repairs: number;
  readonly windowMs: number;
  /** Pause between two tries of one object. */
  readonly backoff: BackoffPolicy;
}

/** What is told of a fight. */
export interface Fight {
  readonly id: string;
  /** `apply`: another manager applies the value and so means it. `returns`: it came back after every repair. */
  readonly why: 'apply' | 'returns';
  /** The other managers. */
  readonly managers: readonly string[];
  readonly fields: readonly string[];
}

/** The field of a fight over whether the object is there at all. */
export const wholeObject = 'the object itself';

interface Repair {
  readonly field: string;
  readonly at: number;
}

export class Fights {
  readonly #policy: FightPolicy;
  readonly #pauses: Pauses;
  readonly #repairs = new Map<string, readonly Repair[]>();
  readonly #fights = new Map<string, Fight>();

  constructor(policy: FightPolicy, random: Random) {
    this.#policy = policy;
    this.#pauses = new Pauses(policy.backoff, random);
  }

  get all(): readonly Fight[] {
    return [...this.#fights.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  of(id: string): Fight | undefined {
    return this.#fights.get(id);
  }

  /** Notes that fields of an object were set back. */
  repaired(id: string, fields: readonly string[], now: number): void {
    this.#repairs.set(id, [...this.#recent(id, now), ...fields.map((field) => ({ field, at: now }))]);
    for (const other of this.#repairs.keys()) if (this.#recent(other, now).length === 0) this.#repairs.delete(other);
  }

  /** Those of the fields that came back after as many repairs as are made without a word. */
  returning(id: string, fields: readonly string[], now: number): string[] {
    const recent = this.#recent(id, now);
    return fields.filter((field) => recent.filter((repair) => repair.field === field).length >= this.#policy.repairs);
  }

  #recent(id: string, now: number): readonly Repair[] {
    return (this.#repairs.get(id) ?? []).filter(({ at }) => now - at < this.#policy.windowMs);
  }

  /** Takes up a fight, or goes on with it after a longer pause. Answers whether it says something new. */
  begin(fight: Fight, now: number): boolean {
    const known = this.#fights.get(fight.id);
    this.#fights.set(fight.id, fight);
    this.#pauses.begin(fight.id, now);
    return known === undefined || words(known) !== words(fight);
  }

  end(id: string): void {
    this.#pauses.end(id);
    this.#fights.delete(id);
  }

  /** Whether nothing is tried on the object now. */
  pausing(id: string, now: number): boolean {
    return this.#pauses.pausing(id, now);
  }

  /** Objects whose pause is over. */
  due(now: number): string[] {
    return this.#pauses.due(now);
  }

  /** When the next pause is over; infinite when none runs. */
  next(now: number): number {
    return this.#pauses.next(now);
  }
}

const words = ({ why, managers, fields }: Fight): string => JSON.stringify([why, managers, fields]);
