/** Drift, as the worker of a Release sees to it: between two passes, and while a pass waits for its gates. */
import { annotations } from '../../constructs/api/constants.ts';
import type { ReleaseSpec } from '../../constructs/api/release.ts';
import { DriftKeeper } from '../apply/drift/keeper.ts';
import { Pauses } from '../apply/drift/pauses.ts';
import type { DriftTold } from '../apply/drift/state.ts';
import type { PassWatch } from '../apply/engine.ts';
import type { Need } from '../apply/need.ts';
import type { Survey } from '../apply/survey.ts';
import type { DomainSession } from './domain.ts';
import { type EnforceInput, openSession } from './enforce.ts';
import { overriddenIds, type ReleaseView } from './view.ts';
import type { WorkerDeps } from './worker-options.ts';

export interface KeepingHooks {
  /** Something drifted: `mend` is to be called. */
  readonly due: () => void;
  /** A whole pass is to be run, on a ledger that is read anew when ours could not be stored. */
  readonly again: (ledgerLost: boolean) => void;
  readonly told: (told: DriftTold) => void;
}

/** Whether nothing is set back for now, whatever drifts. */
export const isAtRest = (view: ReleaseView): boolean =>
  view.deleting ||
  view.uninstall !== undefined ||
  view.hold !== undefined ||
  view.quiesce !== undefined ||
  view.spec.paused;

/** The spec that passes go by: while a lifecycle has the release in hand nothing is pruned. */
export const specFor = (view: ReleaseView): ReleaseSpec =>
  view.quiesce === undefined ? view.spec : { ...view.spec, prune: { ...view.spec.prune, enabled: false } };

/** Phases that nothing is written in: the first that is suspended, and all after it. */
function frozenPhases({ spec, loaded }: EnforceInput): Set<string> {
  const names = loaded.payload.index.content.phases.map(({ name }) => name);
  const first = names.findIndex((name) => spec.suspendPhases.includes(name));
  return new Set(first < 0 ? [] : names.slice(first));
}

export class Keeping {
  readonly #deps: WorkerDeps;
  readonly #hooks: KeepingHooks;
  readonly #keeper: DriftKeeper;
  /** How long a domain that would not open is not asked again for what drifts. */
  readonly #shut: Pauses;

  constructor(deps: WorkerDeps, hooks: KeepingHooks) {
    const { client, clock, random, release, drift, onProblem } = deps;
    this.#deps = deps;
    this.#hooks = hooks;
    this.#shut = new Pauses(drift.retry, random);
    this.#keeper = new DriftKeeper({
      client,
      clock,
      random,
      release,
      options: drift,
      due: hooks.due,
      changed: () => hooks.told(this.#keeper.told),
      onProblem,
    });
  }

  /** Watches until the signal aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void> {
    return this.#keeper.run(signal);
  }

  /** The release is paused, held or quiesced: sweeps pause with it. */
  rest(): void {
    this.#keeper.rest();
  }

  /** Takes up what a pass is about to enforce. */
  follow(input: EnforceInput, session: DomainSession, { narrow }: Survey): void {
    const { release, loaded, ledger, spec } = input;
    const { items } = loaded;
    const overridden = overriddenIds(spec);
    this.#keeper.follow({
      release,
      items,
      bind: session.bind,
      ledger,
      overridden,
      frozen: frozenPhases(input),
      narrow,
    });
    if (input.quiesced) this.#keeper.rest();
  }

  /** A pass has written what it could. */
  watch(): void {
    this.#keeper.watch();
  }

  /**
   * Needs of a pass, without what is not to be created now although it is missing, and what a payload that is in place left
   * because it was quiesced meanwhile.
   */
  withhold(
    { needs, live }: Pick<Survey, 'needs' | 'live'>,
    { quiesced, completed }: Pick<EnforceInput, 'quiesced' | 'completed'>,
  ): ReadonlyMap<string, Need> {
    const { contested } = this.#keeper;
    const why = (id: string, need: Need): string | undefined => {
      if (need.need !== 'write') return undefined;
      if (need.why === 'unfinished') return completed ? live.get(id)?.annotations?.[annotations.quiesce] : undefined;
      if (need.why !== 'vanished') return undefined;
      if (quiesced) return 'the release is quiesced';
      return contested.has(id) ? 'it is deleted again and again' : undefined;
    };
    return new Map(
      [...needs].map(([id, need]) => {
        const by = why(id, need);
        if (need.need !== 'write' || by === undefined) return [id, need];
        return [id, { need: 'held', uid: need.uid ?? need.formerUID ?? '', by }];
      }),
    );
  }

  /** What goes on beside one pass. */
  beside(input: EnforceInput, session: DomainSession): PassWatch {
    let watching = false;
    return {
      written: (judged, answer) => this.#keeper.written(judged, answer),
      moved: this.#deps.onMoved,
      meanwhile: async () => {
        if (!watching) this.#keeper.watch();
        watching = true;
        if (!input.quiesced && this.#keeper.waiting) await this.#mend(input, session);
      },
      pause: (ms, since, signal, awaited) => this.#keeper.pause(ms, since, signal, awaited),
    };
  }

  /** Sets back what drifted. Rejects with the signal's reason, or with what a guard throws. */
  async mend(input: EnforceInput): Promise<void> {
    if (!this.#keeper.waiting || !this.#keeper.goesBy(input.ledger)) return;
    const { client, clock, engine: options, check, domains } = this.#deps;
    const session = await openSession({ client, clock, options, check }, domains, input);
    if ('bind' in session) {
      this.#shut.end(input.release);
      return this.#mend(input, session);
    }
    // A pass tells what is wrong. What drifts until it is mended starts no pass of its own.
    this.#keeper.postpone();
    const now = clock.monotonic();
    if (this.#shut.pausing(input.release, now)) return;
    this.#shut.begin(input.release, now);
    this.#hooks.again(false);
  }

  async #mend(input: EnforceInput, session: DomainSession): Promise<void> {
    const { client, clock, engine: options, check, onDrift } = this.#deps;
    const { namespace, loaded, doubt, signal } = input;
    const { digest } = loaded.payload.index;
    const report = await this.#keeper.mend(
      { client, clock, options, check },
      { session, namespace, digest, doubt, tell: onDrift, signal },
    );
    this.#hooks.told(this.#keeper.told);
    if (report.passNeeded || report.ledgerLost) this.#hooks.again(report.ledgerLost);
  }
}
