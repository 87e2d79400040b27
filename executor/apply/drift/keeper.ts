/**
 * Keeps the objects of one release as their intents say, between and beside its passes: watches them, sweeps now and then,
 * and says when something is to be set back. It writes only when its release's worker lets it.
 */

import { isDeepStrictEqual } from 'node:util';
import { timings } from '../../../constructs/api/constants.ts';
import type { BackoffPolicy } from '../../../constructs/lib/backoff.ts';
import { type Clock, type Random, rest } from '../../../constructs/lib/clock.ts';
import { objectId } from '../../../constructs/lib/names.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReflectorProblem, ReflectorTimings } from '../../kube/reflector.ts';
import { type KubeObject, refOf } from '../../kube/types.ts';
import type { Judged } from '../dryrun.ts';
import type { PassDeps } from '../engine.ts';
import { type Item, itemRef } from '../items.ts';
import type { LedgerStore } from '../ledger-store.ts';
import { compare } from './compare.ts';
import { type FightPolicy, Fights, wholeObject } from './fights.ts';
import { LiveWatch, type Place, type Seen } from './live-watch.ts';
import { type MendInput, type MendReport, mend } from './mend.ts';
import { Pauses } from './pauses.ts';
import { DriftState, type DriftTold, type Followed } from './state.ts';
import { Stillness } from './stillness.ts';
import { type SweepPolicy, sweepOrder, sweepPause } from './sweep.ts';

export interface DriftOptions {
  readonly sweep: SweepPolicy;
  readonly fight: FightPolicy;
  /** Pause before an object is tried again that could not be set back. */
  readonly retry: BackoffPolicy;
  readonly reflector: Partial<ReflectorTimings>;
}

export const defaultDriftOptions: DriftOptions = {
  sweep: { everyMs: timings.sweepMs, jitter: 0.1 },
  fight: { ...timings.driftFight, backoff: { initialMs: 60_000, factor: 2, maxMs: 3_600_000, jitter: 0.1 } },
  retry: timings.backoff,
  reflector: {},
};

export interface KeeperDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly release: string;
  readonly options: DriftOptions;
  /** Told that `mend` has something to do. */
  readonly due: () => void;
  /** Told that what `told` says is another than before. */
  readonly changed: () => void;
  readonly onProblem: (problem: ReflectorProblem) => void;
}

export class DriftKeeper {
  readonly #deps: KeeperDeps;
  readonly #live: LiveWatch;
  readonly #state: DriftState;
  readonly #stillness: Stillness;
  #wake = new AbortController();
  #resting = false;
  #told: DriftTold = { fights: [], problems: [] };

  constructor(deps: KeeperDeps) {
    const { client, clock, random, release, options, onProblem } = deps;
    this.#deps = deps;
    this.#stillness = new Stillness(clock);
    this.#live = new LiveWatch({
      client,
      clock,
      random,
      release,
      timings: options.reflector,
      judge: (object) => this.#judge(object),
      onChange: (ref) => {
        this.#stillness.stir();
        if (this.#state.isReady(objectId(ref))) deps.due();
        this.#tell();
      },
      onListed: () => {
        this.#state.examine();
        this.#notice();
      },
      onProblem,
    });
    this.#state = new DriftState({
      clock,
      fights: new Fights(options.fight, random),
      retries: new Pauses(options.retry, random),
      find: (item) => this.#live.find(itemRef(item)),
    });
  }

  /** What is to be told in status. */
  get told(): DriftTold {
    return this.#state.told;
  }

  /** Whether something is to be seen to now. */
  get waiting(): boolean {
    return this.#state.ready().length > 0;
  }

  /** Whether what is enforced goes by this ledger. One that was given up for another decides nothing any more. */
  goesBy(ledger: LedgerStore): boolean {
    return this.#state.followed?.ledger === ledger;
  }

  /** Objects that somebody deletes again and again: nothing creates them while the pause of that fight runs. */
  get contested(): ReadonlySet<string> {
    const { fights } = this.#state;
    const now = this.#deps.clock.monotonic();
    const over = fights.all.filter(({ id, fields }) => fields.includes(wholeObject) && fights.pausing(id, now));
    return new Set(over.map(({ id }) => id));
  }

  /** Nothing is swept until something is enforced again. */
  rest(): void {
    this.#resting = true;
  }

  /** Takes up what is enforced now. */
  follow(followed: Followed): void {
    this.#resting = false;
    if (this.#state.follow(followed)) this.#live.relist();
  }

  /** Watches what of it was applied. To be called when a pass has written what it can. */
  watch(): void {
    const { followed } = this.#state;
    if (followed === undefined) return;
    const places = new Map<string, Place>();
    for (const { id, entry } of followed.items) {
      if (entry.absent || followed.ledger.ledger.get(id)?.state !== 'applied') continue;
      const { apiVersion, kind, namespace } = entry;
      const kindOnly = `${apiVersion} ${kind}`;
      const narrow = namespace !== undefined && followed.narrow.has(kindOnly);
      const place = narrow ? { apiVersion, kind, namespace } : { apiVersion, kind };
      places.set(narrow ? `${kindOnly} ${namespace}` : kindOnly, place);
    }
    this.#live.set([...places.values()]);
    this.#state.examine();
    this.#notice();
  }

  /** Takes in the server's answer to a write of a pass. */
  written(judged: Judged, answer: KubeObject): void {
    const bound = this.#state.bound(judged.item.id);
    if (bound !== undefined) this.#state.answers.written(bound, judged, answer);
  }

  /**
   * Waits for `ms`, or until what changed since `since` has come to rest or the watch shows all that is awaited as ready. Rejects
   * with the signal's reason.
   */
  pause(ms: number, since: number, signal: AbortSignal, awaited: readonly Item[]): Promise<void> {
    let open = awaited;
    const over = (): boolean => {
      open = open.filter((item) => !this.#isReady(item));
      return awaited.length > 0 && open.length === 0;
    };
    return this.#stillness.wait(ms, since, signal, over);
  }

  #isReady(item: Item): boolean {
    const live = this.#live.find(itemRef(item));
    return typeof live === 'object' && live.ready === true;
  }

  /** Sees to what is due. Rejects with the signal's reason, or with what a guard throws. */
  async mend(deps: PassDeps, input: MendInput): Promise<MendReport> {
    try {
      return await mend(this.#state, deps, input);
    } finally {
      this.#wake.abort();
    }
  }

  /** What is due can not be seen to now: each object is tried again after a growing pause. */
  postpone(): void {
    for (const id of this.#state.ready()) this.#state.failed(id, undefined);
    this.#wake.abort();
  }

  /** Sweeps, and notices what becomes due by time alone, until the signal aborts; no watch is left then. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#sweeps(signal), this.#pauses(signal)]);
    await this.#live.close();
  }

  /** An object as it was shown, against its intent. */
  #judge(object: KubeObject): Seen {
    const bound = this.#state.bound(objectId(refOf(object)));
    if (bound === undefined) return { same: true };
    try {
      const compared = compare(this.#state.answers.compared(bound), object);
      return compared.same ? compared : { same: false, hash: compared.hash };
    } catch {
      // A value that has no canonical form is none that we sent.
      return { same: false, hash: '' };
    }
  }

  #notice(): void {
    if (this.waiting) this.#deps.due();
    this.#tell();
  }

  /** What is seen ends fights and failures too. */
  #tell(): void {
    const { told } = this;
    if (isDeepStrictEqual(told, this.#told)) return;
    this.#told = told;
    this.#deps.changed();
  }

  async #sweeps(signal: AbortSignal): Promise<void> {
    const { clock, random, options } = this.#deps;
    for (let round = 0; !signal.aborted; round += 1) {
      await rest(clock, sweepPause(options.sweep, random), signal);
      for (const place of sweepOrder(this.#live.places, round))
        if (!this.#resting) await this.#live.refresh(place, signal);
    }
  }

  async #pauses(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      this.#wake = new AbortController();
      // Asked for before what is due is noticed: a pause that ends in between is among the one or the other.
      const next = this.#state.next();
      this.#state.calm();
      this.#notice();
      await rest(clock, next - clock.monotonic(), AbortSignal.any([signal, this.#wake.signal]));
    }
  }
}
