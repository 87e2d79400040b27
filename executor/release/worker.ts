/**
 * The worker of one Release: Initial -> Syncing -> Reconciling, and Error with a time for the next try. Newer work cancels
 * a running pass wherever it waits; until a payload is accepted, the one before stays enforced.
 */
import { backoff } from '../../constructs/lib/backoff.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { PassOutcome } from '../apply/engine.ts';
import type { GateMode } from '../apply/gate-wait.ts';
import type { LedgerStore } from '../apply/ledger-store.ts';
import { LeaseLost } from '../lease/held.ts';
import { type Acceptance, type AcceptDeps, type Accepted, accept } from './acceptance.ts';
import { ReleaseClaims } from './claims.ts';
import { Doubts } from './doubts.ts';
import { type EnforceInput, enforce, nothingPlanned, observe, type PrunedPlan } from './enforce.ts';
import { Journal } from './journal.ts';
import { isAtRest, Keeping, specFor } from './keeping.ts';
import { type Loaded, loadPayload } from './load.ts';
import type { WorkerRecord } from './record.ts';
import { acceptedRemovals, prunedOf } from './reports.ts';
import { type Retry, retryOfAll } from './retry.ts';
import { transitionOf } from './spans.ts';
import { tellFirst } from './tell-first.ts';
import { uninstallTurn } from './uninstall-turn.ts';
import { leaves, type ReleaseView, workIdentity } from './view.ts';
import { Wake } from './wake.ts';
import type { WorkerDeps } from './worker-options.ts';
import { acceptInput, dropOld, keepPayload, openReleaseLedger, ProblemReports, passDeps } from './worker-steps.ts';

/** The reason of a pass that newer work cancelled. */
class Superseded extends Error {
  override readonly name = 'Superseded';
}

export type { WorkerOptions } from './worker-options.ts';

/** What one turn works with. */
interface Turn {
  readonly view: ReleaseView;
  readonly ledger: LedgerStore;
  readonly signal: AbortSignal;
}

const never = Number.POSITIVE_INFINITY;
/** How long the end of a worker may take to store what it knows. */
const lastWordsMs = 2_000;
/** How soon a payload is looked at again whose gates were shut. */
const openLookMs = 5_000;

export class ReleaseWorker {
  readonly #deps: WorkerDeps;
  readonly #wake: Wake;
  readonly #journal: Journal;
  readonly #doubts: Doubts;
  readonly #claims: ReleaseClaims;
  readonly #keeping: Keeping;
  readonly #reports: ProblemReports;
  #view: ReleaseView | undefined;
  #identity = '';
  #pass: AbortController | undefined;
  #ledger: LedgerStore | undefined;
  #current: Loaded | undefined;
  #prune: PrunedPlan = nothingPlanned;
  /** What keeps the wanted payload from being accepted. */
  #refusal: readonly Problem[] = [];

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#wake = new Wake(deps.clock);
    this.#journal = new Journal(deps.clock, deps.changed);
    this.#doubts = new Doubts(deps.clock, deps.options.doubtMs);
    this.#claims = new ReleaseClaims({ ...deps, allowUnsigned: deps.options.allowUnsigned }, deps.clock);
    this.#reports = new ProblemReports(deps);
    this.#keeping = new Keeping(deps, {
      due: () => this.#wake.set('drift'),
      again: (ledgerLost) => this.#again(ledgerLost),
      told: (drift) => this.#journal.drifted(drift),
    });
  }

  get record(): WorkerRecord {
    return this.#journal.record;
  }

  /** Takes in the Release as it is now. Changed work cancels the running pass. */
  update(view: ReleaseView): void {
    const identity = workIdentity(view);
    const asked = view.requestedAt !== undefined && view.requestedAt !== this.#view?.requestedAt;
    this.#view = view;
    if (identity !== this.#identity) {
      this.#identity = identity;
      this.record.stalled = false;
      this.record.attempt = 0;
      this.#pass?.abort(new Superseded('newer work'));
      this.#wake.set();
    } else if (asked) this.#wake.set();
  }

  /** Something that the work may have waited for has happened. */
  poke(): void {
    const { stalled, desired, actual, problems } = this.record;
    if (!stalled && (desired !== actual || problems.length > 0)) this.#wake.set();
  }

  /** The API server was lost, or is back: what runs is given up, and what is there is read anew before any write. */
  lookAnew(): void {
    this.#pass?.abort(new Superseded('the API server does not answer'));
    if (!this.record.stalled) this.#wake.set();
  }

  /** No round of looks was complete in time. */
  outdated(): void {
    this.#journal.outdated();
  }

  /** Works until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const keeping = this.#keeping.run(signal);
    while (!signal.aborted) await this.#rest(await this.#turn(signal, (view, turn) => this.#cycle(view, turn)), signal);
    await keeping;
    await this.#putDown();
  }

  /** Waits for the next turn. What drifts meanwhile is set back without one. */
  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let due = clock.monotonic() + ms;
    while ((await this.#wake.wait(due - clock.monotonic(), signal)) === 'drift')
      due = Math.min(due, clock.monotonic() + (await this.#turn(signal, (view, turn) => this.#mend(view, turn))));
  }

  async #mend(view: ReleaseView, signal: AbortSignal): Promise<number> {
    const ledger = this.#ledger;
    if (isAtRest(view) || ledger === undefined || this.#current === undefined) return never;
    await this.#keeping.mend(this.#enforceInput({ view, ledger, signal }, 'observe'));
    this.#journal.counted(ledger);
    return never;
  }

  /** Gives up what runs for a whole pass. */
  #again(ledgerLost: boolean): void {
    if (ledgerLost) this.#ledger = undefined;
    this.#pass?.abort(new Superseded('a whole pass is needed'));
    this.#wake.set();
  }

  /** UIDs that were seen and not stored yet: the next process would have to prove each of them by a read. */
  async #putDown(): Promise<void> {
    try {
      this.#deps.check();
      await this.#ledger?.flush(AbortSignal.timeout(lastWordsMs));
    } catch {
      // The right to write, or the server, is gone; what is stored is true, if not complete.
    }
  }

  /** One turn; answers after how many milliseconds the next is due. */
  async #turn(signal: AbortSignal, work: (view: ReleaseView, signal: AbortSignal) => Promise<number>): Promise<number> {
    const view = this.#view;
    if (view === undefined) return never;
    const pass = new AbortController();
    this.#pass = pass;
    try {
      return await work(view, AbortSignal.any([signal, pass.signal]));
    } catch (error) {
      if (signal.aborted || pass.signal.aborted) return 0;
      const message = error instanceof Error ? error.message : String(error);
      return this.#failed([{ reason: error instanceof LeaseLost ? 'LeaseLost' : 'ReadFailed', message }]);
    } finally {
      this.#pass = undefined;
    }
  }

  async #cycle(view: ReleaseView, signal: AbortSignal): Promise<number> {
    const { record } = this;
    this.#journal.adopt(view);
    if (view.deleting) return never;
    if (leaves(view)) return this.#uninstall(view, signal);
    if (this.#current !== undefined) this.#journal.atHand(this.#current);
    const opened = await this.#openLedger(signal);
    if (!('ledger' in opened)) return this.#failed(opened);
    const turn: Turn = { view, signal, ...opened };
    const way = this.#journal.way(turn.ledger.span, view);
    const unloaded = await this.#loadCurrent(turn);
    if (unloaded.some(({ reason }) => reason === 'ApiUnavailable')) return this.#failed(unloaded);
    // A pause acts before a one-way span, or after it; only a hold stops inside.
    if (view.hold !== undefined || (view.spec.paused && way === 'open')) return this.#look(turn);
    if (way === 'queued') return this.#queue(turn, unloaded);
    if (record.desired !== record.actual || this.#current === undefined) return this.#advance(turn, unloaded);
    return this.#carryOut(turn);
  }

  /** A person has approved that the release goes; nothing else is done for it from then on. */
  async #uninstall(view: ReleaseView, signal: AbortSignal): Promise<number> {
    this.#ledger = undefined;
    const problems = await uninstallTurn({ ...this.#deps, claims: this.#claims }, this.#journal, view, signal);
    return problems.length > 0 ? this.#failed(problems) : this.#deps.options.reconcileMs;
  }

  async #openLedger(signal: AbortSignal): Promise<{ ledger: LedgerStore } | readonly Problem[]> {
    if (this.#ledger !== undefined) return { ledger: this.#ledger };
    const opened = await openReleaseLedger(this.#deps, this.record.history, signal);
    if ('ledger' in opened) this.#ledger = opened.ledger;
    return opened;
  }

  /** Loads the accepted payload after a restart. Answers why there is none at hand although one was accepted. */
  async #loadCurrent({ view, signal }: Turn): Promise<readonly Problem[]> {
    const { actual } = this.record;
    if (actual === undefined || this.#current?.payload.index.digest === actual) return [];
    const pinned = actual !== view.spec.payload.digest;
    const got = await loadPayload(this.#acceptDeps(false), {
      release: view.name,
      digest: actual,
      pinned,
      spec: view.spec,
      signal,
      accepted: this.#deps.check,
    });
    if (!got.ok) return got.refused.type === 'refused' ? got.refused.problems : [];
    this.#current = got.loaded;
    this.#journal.loaded(got.loaded);
    const stored = { payload: actual, mode: view.spec.approval.mode };
    if (!this.#journal.completed) this.#prune = await acceptedRemovals(this.#deps, view.name, stored, signal);
    return [];
  }

  #acceptDeps(tellSteps: boolean): AcceptDeps {
    const { options, engine, ...shared } = this.#deps;
    return {
      ...shared,
      allowUnsigned: options.allowUnsigned,
      planOnly: options.planOnly,
      concurrency: engine.concurrency,
      onStep: (step) => {
        if (tellSteps) this.#journal.step(step);
      },
      onRevision: (revision) => {
        if (tellSteps) this.#journal.attempted(revision);
      },
    };
  }

  /** Tries to accept the wanted payload; the one before stays enforced when it is refused. */
  async #advance(turn: Turn, unloaded: readonly Problem[]): Promise<number> {
    const { record } = this;
    this.#journal.former = true;
    const acceptance = record.stalled ? undefined : await this.#accept(turn);
    if (acceptance?.type === 'accepted') return this.#begin(turn, acceptance.accepted);
    const again = acceptance === undefined ? never : await this.#refused(turn, acceptance, unloaded);
    if (this.#current === undefined || this.#deps.options.planOnly) return again;
    const outcome = await this.#runPass(turn, this.#journal.completed ? 'observe' : 'stop');
    record.problems = outcome.type === 'failed' ? [...this.#refusal, ...outcome.problems] : this.#refusal;
    this.#journal.tell();
    return Math.min(again, this.#deps.options.reconcileMs);
  }

  #accept({ view, ledger, signal }: Turn): Promise<Acceptance> {
    const current = { loaded: this.#current, completed: this.#journal.completed };
    return accept(this.#acceptDeps(true), acceptInput(view, ledger, current, signal));
  }

  async #refused(
    { view, signal }: Turn,
    refused: Extract<Acceptance, { type: 'refused' }>,
    unloaded: readonly Problem[],
  ): Promise<number> {
    const problems = [...refused.problems, ...unloaded];
    this.#refusal = problems;
    await this.#reports.tell(view, problems, signal);
    // Status is written beside the work: nothing is waited for from here on, or it would tell half of a refusal.
    if (refused.plan !== undefined) this.#journal.planned(refused.plan, view.name);
    this.#journal.refused(refused.step, problems);
    return this.#failed(problems, refused.retry);
  }

  /** The payload is accepted: it is kept, the history says so, and its first pass begins. */
  async #begin(turn: Turn, accepted: Accepted): Promise<number> {
    const { view, signal } = turn;
    const { plan, judgement, payload } = accepted;
    this.#journal.planned({ plan, confidence: judgement.confidence }, view.name);
    if (this.#deps.options.planOnly) {
      this.#journal.planOnly();
      return never;
    }
    const unkept = await keepPayload(this.#deps, accepted, signal);
    if (unkept.length > 0) return this.#failed(unkept);
    const formerPhases = this.#current?.payload.index.content.phases.map(({ name }) => name) ?? [];
    this.#prune = { planned: new Set(prunedOf(plan)), approved: accepted.approved, formerPhases };
    this.#refusal = [];
    this.#current = accepted;
    this.#journal.loaded(accepted);
    this.#journal.begun(payload.index.digest);
    return this.#carryOut(turn, accepted);
  }

  /** The wanted payload waits until the accepted one has left its one-way span. */
  async #queue(turn: Turn, unloaded: readonly Problem[]): Promise<number> {
    this.#journal.queued();
    if (this.#current === undefined) return this.#failed([...this.record.problems, ...unloaded]);
    return this.#carryOut(turn);
  }

  /** A pass of the wanted payload, which is accepted, or of one that has to be finished first. */
  async #carryOut(turn: Turn, fresh?: Accepted): Promise<number> {
    const { options } = this.#deps;
    if (options.planOnly) {
      this.#journal.planOnly();
      return never;
    }
    // What failed for good is not tried again before the spec changes.
    if (this.record.stalled) return never;
    this.#journal.working();
    const outcome = await this.#runPass(turn, this.#journal.completed ? 'observe' : 'block', fresh);
    switch (outcome.type) {
      case 'completed':
        return this.#completed(turn, outcome);
      case 'suspended':
        this.#journal.suspended(outcome.phase);
        return options.reconcileMs;
      case 'waiting':
        return options.reconcileMs;
      case 'left':
        return 0;
      case 'failed':
        this.record.step = outcome.phase ?? this.record.step;
        return this.#failed(outcome.problems, outcome.retry ? undefined : 'terminal');
    }
  }

  async #runPass(turn: Turn, gates: GateMode, fresh?: Accepted): Promise<PassOutcome> {
    this.#doubts.settle(turn.ledger);
    const input = { ...this.#enforceInput(turn, gates), ...(fresh === undefined ? {} : { fresh }) };
    const outcome = await enforce(passDeps(this.#deps), this.#deps.domains, input);
    // Another writer may have been at work, or a write had its effect without an answer: what is stored decides.
    const uncertain = ['LedgerNotWritten', 'ApiUnavailable'];
    if (outcome.type === 'failed' && outcome.problems.some(({ reason }) => uncertain.includes(reason)))
      this.#ledger = undefined;
    this.#journal.counted(turn.ledger);
    return outcome;
  }

  #enforceInput({ view, ledger, signal }: Turn, gates: GateMode): EnforceInput {
    const { progress, history, desired, actual } = this.record;
    if (this.#current === undefined || progress === undefined) throw new TypeError('no payload is loaded');
    return {
      release: view.name,
      releaseUID: view.uid,
      namespace: this.#deps.namespace,
      spec: specFor(view),
      loaded: this.#current,
      ledger,
      progress,
      prune: this.#prune,
      claims: this.#claims,
      gates,
      completed: this.#journal.completed,
      changeClass: this.#journal.changeClass,
      transition: transitionOf(history, this.#current.payload.index.digest, this.#journal.changeClass),
      wanted: desired === actual && !view.spec.paused,
      onSpan: (position) => this.#journal.inSpan(position),
      keeping: this.#keeping,
      quiesced: view.quiesce !== undefined,
      doubt: (id) => this.#doubts.add(id),
      signal,
    };
  }

  async #completed({ view, signal }: Turn, outcome: Extract<PassOutcome, { type: 'completed' }>): Promise<number> {
    const first = !this.#journal.completed;
    this.#journal.finished(outcome, view.requestedAt);
    if (first) {
      await tellFirst(this.#deps, this.#keeping, signal);
      this.#prune = nothingPlanned;
      await dropOld(this.#deps, view, this.record.actual, signal);
      await this.#reports.drop(signal);
    }
    return Math.min(this.#deps.options.reconcileMs, outcome.open ? never : openLookMs, this.#doubts.next());
  }

  /** Paused or held: looks, reports and writes nothing. */
  async #look(turn: Turn): Promise<number> {
    const { domains, options } = this.#deps;
    this.#journal.paused(turn.view.hold);
    if (this.#current !== undefined) {
      this.record.problems = await observe(passDeps(this.#deps), domains, this.#enforceInput(turn, 'observe'));
      this.#journal.tell();
    }
    return options.reconcileMs;
  }

  /** Takes in problems; answers when to come again. */
  #failed(problems: readonly Problem[], retry: Retry = retryOfAll(problems)): number {
    const { random, options } = this.#deps;
    const terminal = retry === 'terminal';
    const pause = terminal ? never : backoff(options.backoff, this.record.attempt, random);
    this.#journal.failed(problems, retry, pause);
    // What is accepted stays enforced, also when nothing more can be done for what is wanted.
    return terminal && this.#current !== undefined ? options.reconcileMs : pause;
  }
}
