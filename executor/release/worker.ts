/**
 * The worker of one Release: Initial -> Syncing -> Reconciling, and Error with a time for the next try. Newer work cancels
 * a running pass wherever it waits; until a payload is accepted, the one before stays enforced.
 */

import type { Outcome } from '../../constructs/api/conditions.ts';
import { rememberFailure } from '../../constructs/api/conditions.ts';
import { recordCompleted, recordStart } from '../../constructs/api/history.ts';
import { ledgerDigest } from '../../constructs/api/ledger.ts';
import type { AcceptanceStep } from '../../constructs/api/release.ts';
import { type BackoffPolicy, backoff } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { EngineOptions, PassOutcome } from '../apply/engine.ts';
import { type LedgerStore, openLedger } from '../apply/ledger-store.ts';
import { PassProgress } from '../apply/progress.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import { LeaseLost } from '../lease/held.ts';
import type { RetainedStore } from '../source/retained.ts';
import type { PayloadSource } from '../source/source.ts';
import { type Acceptance, type AcceptDeps, type Accepted, accept, type Loaded, loadPayload } from './acceptance.ts';
import type { SealedDomain } from './domain.ts';
import { type EnforceInput, enforce, nothingPlanned, observe, type PrunedPlan } from './enforce.ts';
import { positionOf, problemOutcome, settledOutcome, workOutcome } from './outcomes.ts';
import { initialRecord, type PlanRecord, type WorkerRecord } from './record.ts';
import { type PlanReport, problemReport, prunedOf, readPlanReport, storeReport } from './reports.ts';
import { retryOfAll } from './retry.ts';
import { planCountsOf, problemsText } from './status.ts';
import { desiredDigest, overriddenIds, type ReleaseView, workIdentity } from './view.ts';
import { Wake } from './wake.ts';

/** The reason of a pass that newer work cancelled. */
export class Superseded extends Error {
  override readonly name = 'Superseded';
}

export interface WorkerOptions {
  /** How often a payload that is in place is looked at. */
  readonly reconcileMs: number;
  readonly backoff: BackoffPolicy;
  /** How long a write that was cut off may still take effect: longer than the API server works on any request. */
  readonly doubtMs: number;
  /** How many payloads are kept. */
  readonly retain: number;
  readonly allowUnsigned: boolean;
  /** Plans and writes nothing but the plan. */
  readonly planOnly: boolean;
}

export interface WorkerDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly namespace: string;
  readonly source: PayloadSource;
  readonly retained: RetainedStore;
  readonly domains: readonly SealedDomain[];
  readonly options: WorkerOptions;
  readonly engine: EngineOptions;
  /** Called before every write. @throws when this process may not write any more. */
  readonly check: () => void;
  readonly releaseOf: (name: string) => KubeObject | undefined;
  /** Told after every change of the record. */
  readonly changed: (record: WorkerRecord) => void;
}

const never = Number.POSITIVE_INFINITY;
/** How long the end of a worker may take to store what it knows. */
const lastWordsMs = 2_000;

export class ReleaseWorker {
  readonly record: WorkerRecord = initialRecord();
  readonly #deps: WorkerDeps;
  readonly #wake: Wake;
  #view: ReleaseView | undefined;
  #identity = '';
  #pass: AbortController | undefined;
  #ledger: LedgerStore | undefined;
  #current: Loaded | undefined;
  #prune: PrunedPlan = nothingPlanned;
  /** The pass that runs enforces what is to be replaced: its way is not the way of the wanted payload. */
  #former = false;
  #reported = '';
  /** Objects whose write was cut off before its answer, and when. */
  readonly #doubts = new Map<string, number>();
  /** A payload that was in place when an earlier process ended: its status stands until the first look is over. */
  #resuming = false;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#wake = new Wake(deps.clock);
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

  /** Works until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const view = this.#view;
      const next = view === undefined ? never : await this.#turn(view, signal);
      await this.#wake.wait(next, signal);
    }
    await this.#putDown();
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
  async #turn(view: ReleaseView, signal: AbortSignal): Promise<number> {
    const pass = new AbortController();
    this.#pass = pass;
    try {
      return await this.#cycle(view, AbortSignal.any([signal, pass.signal]));
    } catch (error) {
      if (signal.aborted || pass.signal.aborted) return 0;
      const message = error instanceof Error ? error.message : String(error);
      const lost = error instanceof LeaseLost;
      return this.#failed([{ reason: lost ? 'LeaseLost' : 'ReadFailed', message }]);
    } finally {
      this.#pass = undefined;
    }
  }

  async #cycle(view: ReleaseView, signal: AbortSignal): Promise<number> {
    const { record } = this;
    this.#adopt(view);
    if (view.deleting) return never;
    const ledger = await this.#openLedger(view, signal);
    if (ledger.problems !== undefined) return this.#failed(ledger.problems);
    const unloaded = await this.#loadCurrent(view, signal);
    if (view.hold !== undefined || view.spec.paused) return this.#look(view, ledger.store, signal);
    if (record.desired !== record.actual || this.#current === undefined)
      return this.#advance(view, ledger.store, unloaded, signal);
    return this.#carryOut(view, ledger.store, signal);
  }

  /** Takes over what a status says that an earlier process wrote, and what the spec asks for now. */
  #adopt(view: ReleaseView): void {
    const { record } = this;
    const { status } = view;
    if (record.state === 'Initial' && status !== undefined) {
      record.actual ??= status.actual;
      if (record.history.length === 0) record.history = status.history ?? [];
      record.plan ??= status.plan as PlanRecord | undefined;
      this.#resuming =
        this.#wasCompleted() &&
        desiredDigest(view) === record.actual &&
        status.observedGeneration === view.generation &&
        status.conditions?.some(({ type, status: now }) => type === 'Ready' && now === 'True') === true;
      if (this.#resuming) record.state = 'Reconciling';
    }
    const desired = desiredDigest(view);
    if (record.desired !== desired) {
      if (record.state === 'Error') record.state = 'Syncing';
      record.memory = undefined;
      record.problems = [];
      record.completed = 0;
      record.accepted = { status: 'Unknown', step: 'Fetch', message: '' };
    }
    const still = view.spec.paused || view.hold !== undefined;
    const fresh = record.generation !== view.generation && !this.#resuming && !still;
    record.generation = view.generation;
    record.desired = desired;
    record.pin = view.pin;
    record.hold = view.hold;
    record.retryAt = undefined;
    if (record.state === 'Initial' || (record.state === 'Reconciling' && fresh)) record.state = 'Syncing';
    // What the spec asks for now was not looked at yet, whatever held for the one before.
    if (fresh)
      this.#outcome({ kind: 'applying', reason: 'Applying', message: `generation ${view.generation} is taken up` });
    else this.#tell();
  }

  async #openLedger(
    view: ReleaseView,
    signal: AbortSignal,
  ): Promise<{ store: LedgerStore; problems?: undefined } | { problems: readonly Problem[] }> {
    if (this.#ledger !== undefined) return { store: this.#ledger };
    const target = { release: view.name, namespace: this.#deps.namespace };
    const opened = await openLedger(this.#deps.client, target, signal);
    if (!opened.ok) return { problems: opened.problems };
    this.#ledger = opened.store;
    return { store: opened.store };
  }

  /** Loads the accepted payload after a restart. Answers why there is none at hand although one was accepted. */
  async #loadCurrent(view: ReleaseView, signal: AbortSignal): Promise<readonly Problem[]> {
    const { record } = this;
    if (record.actual === undefined || this.#current?.payload.index.digest === record.actual) return [];
    const got = await loadPayload(
      this.#acceptDeps(() => undefined),
      { release: view.name, digest: record.actual, pinned: record.actual !== view.spec.payload.digest, signal },
    );
    if (!got.ok) return got.refused.type === 'refused' ? got.refused.problems : [];
    this.#take(got.loaded, true);
    if (!this.#wasCompleted()) this.#prune = await this.#storedPlan(view, signal);
    return [];
  }

  #take(loaded: Loaded, verified: boolean): void {
    const { record } = this;
    const { index } = loaded.payload;
    this.#current = loaded;
    record.actual = index.digest;
    record.verified = verified && loaded.unverified === undefined;
    record.unverified = loaded.unverified;
    record.progress = new PassProgress(
      index.digest,
      index.content,
      () => this.#deps.clock.now(),
      (moved) => this.#moved(moved),
    );
    if (record.desired === record.actual)
      record.accepted = { status: 'True', step: 'Accepted', message: 'the payload is accepted' };
  }

  #wasCompleted(): boolean {
    const [newest] = this.record.history;
    return newest?.digest === this.record.actual && newest?.state === 'Completed';
  }

  /** What the accepted plan said of removals, for a process that did not make the plan itself. */
  async #storedPlan(view: ReleaseView, signal: AbortSignal): Promise<PrunedPlan> {
    const stored = await readPlanReport(
      this.#deps.client,
      { release: view.name, namespace: this.#deps.namespace },
      signal,
    );
    if (stored === undefined || stored.payload !== this.record.actual) return nothingPlanned;
    return {
      planned: new Set(stored.pruned),
      approved: stored.approved || view.spec.approval.mode === 'never',
      formerPhases: [],
    };
  }

  #acceptDeps(onStep: (step: AcceptanceStep) => void): AcceptDeps {
    const { client, clock, namespace, source, retained, domains, options, engine, releaseOf } = this.#deps;
    const { allowUnsigned } = options;
    return {
      client,
      clock,
      namespace,
      source,
      retained,
      domains,
      allowUnsigned,
      concurrency: engine.concurrency,
      releaseOf,
      onStep,
    };
  }

  /** Tries to accept the wanted payload; the one before stays enforced when it is refused. */
  async #advance(
    view: ReleaseView,
    ledger: LedgerStore,
    unloaded: readonly Problem[],
    signal: AbortSignal,
  ): Promise<number> {
    const { record } = this;
    const digest = desiredDigest(view);
    this.#former = true;
    const acceptance = record.stalled ? undefined : await this.#accept(view, ledger, digest, signal);
    if (acceptance?.type === 'accepted') return this.#begin(view, ledger, acceptance.accepted, signal);
    const refusal = acceptance === undefined ? never : await this.#refused(view, acceptance, unloaded, signal);
    if (this.#current === undefined || this.#deps.options.planOnly) return refusal;
    const outcome = await this.#runPass(view, ledger, this.#wasCompleted() ? 'observe' : 'stop', undefined, signal);
    if (outcome.type === 'failed' && record.problems.length < 100)
      record.problems = [...record.problems, ...outcome.problems];
    return Math.min(refusal, this.#deps.options.reconcileMs);
  }

  #accept(view: ReleaseView, ledger: LedgerStore, digest: string, signal: AbortSignal): Promise<Acceptance> {
    const { record } = this;
    const { payload } = this.#current ?? {};
    const previous =
      payload === undefined
        ? {}
        : {
            previous: { digest: payload.index.digest, content: payload.index.content, completed: this.#wasCompleted() },
          };
    const onStep = (step: AcceptanceStep): void => {
      record.step = step;
      if (record.accepted.status !== 'False') record.accepted = { status: 'Unknown', step, message: '' };
      this.#outcome({ kind: 'applying', reason: step, message: `${step} of payload ${digest}` });
    };
    return accept(this.#acceptDeps(onStep), {
      release: view.name,
      releaseUID: view.uid,
      spec: view.spec,
      digest,
      pinned: view.pin !== undefined,
      ledger,
      overridden: overriddenIds(view.spec),
      signal,
      ...previous,
    });
  }

  async #refused(
    view: ReleaseView,
    refused: Extract<Acceptance, { type: 'refused' }>,
    unloaded: readonly Problem[],
    signal: AbortSignal,
  ): Promise<number> {
    const { record } = this;
    const problems = [...refused.problems, ...unloaded];
    this.#planned(refused.plan);
    record.step = refused.step;
    record.accepted = {
      status: 'False',
      step: refused.problems[0]?.reason ?? refused.step,
      message: problemsText(problems),
    };
    await this.#report(view, problems, signal);
    return this.#failed(problems, refused.retry);
  }

  #planned(report: PlanReport | undefined): void {
    if (report === undefined) return;
    const { plan, confidence } = report;
    this.record.plan = {
      digest: plan.digest,
      changeClass: plan.changeClass,
      counts: planCountsOf(plan),
      confidence,
      report: `keelson-plan-${report.content.release.name}`,
    };
  }

  /** All problems, where a status has room for ten. */
  async #report(view: ReleaseView, problems: readonly Problem[], signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#deps;
    const report = problemReport({ release: view.name, namespace }, desiredDigest(view), problems);
    const text = JSON.stringify(report.data);
    if (text === this.#reported) return;
    if ((await storeReport(client, report, signal)).length === 0) this.#reported = text;
  }

  /** The payload is accepted: it is kept, the history says so, and its first pass begins. */
  async #begin(view: ReleaseView, ledger: LedgerStore, accepted: Accepted, signal: AbortSignal): Promise<number> {
    const { record } = this;
    const { clock, options, retained, engine: _engine } = this.#deps;
    const { plan, judgement, payload, archive } = accepted;
    this.#planned({
      digest: payload.index.digest,
      content: payload.index.content,
      plan,
      confidence: judgement.confidence,
      approval: 'notNeeded',
    });
    if (options.planOnly) {
      this.#outcome({ kind: 'planOnly', reason: 'PlanOnly', message: 'this executor plans and does not write' });
      return never;
    }
    const wanted = { release: view.name, digest: payload.index.digest };
    if (!accepted.fromRetained) {
      this.#deps.check();
      const unkept = await retained.save(wanted, archive, signal);
      if (unkept.length > 0) return this.#failed(unkept);
    }
    const formerPhases = this.#current?.payload.index.content.phases.map(({ name }) => name) ?? [];
    this.#prune = { planned: new Set(prunedOf(plan)), approved: accepted.approved, formerPhases };
    this.#take(accepted, true);
    this.#former = false;
    record.problems = [];
    record.attempt = 0;
    record.history = recordStart(record.history, wanted.digest, clock.now());
    this.#tell();
    return this.#carryOut(view, ledger, signal, accepted);
  }

  /** A pass of the wanted payload, which is accepted. */
  async #carryOut(view: ReleaseView, ledger: LedgerStore, signal: AbortSignal, fresh?: Accepted): Promise<number> {
    const { record } = this;
    // What failed for good is not tried again before the spec changes.
    if (this.#deps.options.planOnly || record.stalled) return never;
    this.#former = false;
    const completed = this.#wasCompleted();
    if (!completed) this.#outcome(workOutcome(record, this.#deps.clock.now()));
    const outcome = await this.#runPass(view, ledger, completed ? 'observe' : 'block', fresh, signal);
    switch (outcome.type) {
      case 'completed':
        return this.#completed(view, outcome, signal);
      case 'suspended':
        record.step = outcome.phase;
        record.problems = [];
        this.#outcome({
          kind: 'waiting',
          reason: 'PhaseSuspended',
          message: `phase ${outcome.phase} is suspended by the spec`,
        });
        return this.#deps.options.reconcileMs;
      case 'waiting':
        return this.#deps.options.reconcileMs;
      case 'failed':
        record.step = outcome.phase ?? record.step;
        return this.#failed(outcome.problems, outcome.retry ? undefined : 'terminal');
    }
  }

  async #runPass(
    view: ReleaseView,
    ledger: LedgerStore,
    gates: EnforceInput['gates'],
    fresh: Accepted | undefined,
    signal: AbortSignal,
  ): Promise<PassOutcome> {
    const { client, clock, engine, check, domains } = this.#deps;
    this.#settleDoubts(ledger);
    const input = this.#enforceInput(view, ledger, gates, signal);
    const deps = { client, clock, options: engine, check };
    const outcome = await enforce(deps, domains, fresh === undefined ? input : { ...input, fresh });
    if (
      outcome.type === 'failed' &&
      outcome.problems.some(({ reason }) => reason === 'LedgerNotWritten' || reason === 'ApiUnavailable')
    )
      this.#ledger = undefined;
    this.#counted(ledger);
    return outcome;
  }

  #enforceInput(
    view: ReleaseView,
    ledger: LedgerStore,
    gates: EnforceInput['gates'],
    signal: AbortSignal,
  ): EnforceInput {
    const { progress } = this.record;
    if (this.#current === undefined || progress === undefined) throw new TypeError('no payload is loaded');
    return {
      release: view.name,
      releaseUID: view.uid,
      namespace: this.#deps.namespace,
      spec: view.spec,
      loaded: this.#current,
      ledger,
      progress,
      prune: this.#prune,
      gates,
      completed: this.#wasCompleted(),
      doubt: (id) => this.#doubts.set(id, this.#deps.clock.monotonic()),
      signal,
    };
  }

  /** Objects whose cut-off write can no longer arrive are written once more: the last word must be that of the last pass. */
  #settleDoubts(ledger: LedgerStore): void {
    const { clock, options } = this.#deps;
    for (const [id, since] of this.#doubts) {
      if (clock.monotonic() - since < options.doubtMs) continue;
      this.#doubts.delete(id);
      const entry = ledger.ledger.get(id);
      if (entry?.state === 'applied') ledger.put({ ...entry, state: 'intended' });
    }
  }

  /** Milliseconds until the next doubt can be settled. */
  #nextDoubt(): number {
    const { clock, options } = this.#deps;
    const oldest = Math.min(never, ...this.#doubts.values());
    return Math.max(0, oldest + options.doubtMs - clock.monotonic());
  }

  #counted(ledger: LedgerStore): void {
    const { record } = this;
    const { ledger: entries, configMaps } = ledger;
    record.ledger = { count: entries.size, digest: ledgerDigest(entries), configMaps };
  }

  async #completed(
    view: ReleaseView,
    outcome: Extract<PassOutcome, { type: 'completed' }>,
    signal: AbortSignal,
  ): Promise<number> {
    const { record } = this;
    const { clock, options, retained } = this.#deps;
    const first = !this.#wasCompleted();
    const digest = record.actual ?? '';
    record.history = recordCompleted(record.history, digest, clock.now(), record.unverified);
    record.state = 'Reconciling';
    record.completed += 1;
    record.attempt = 0;
    record.problems = [];
    record.left = outcome.left;
    record.step = 'Completed';
    record.handledAt = view.requestedAt ?? record.handledAt;
    if (record.progress !== undefined) this.#outcome(settledOutcome(digest, record.progress, clock.now()));
    if (first) {
      this.#prune = nothingPlanned;
      const keep = new Set([digest, view.spec.payload.digest, ...(view.pin === undefined ? [] : [view.pin])]);
      this.#deps.check();
      await retained.drop(view.name, keep, options.retain, signal);
    }
    return Math.min(options.reconcileMs, outcome.open ? never : 5_000, this.#nextDoubt());
  }

  /** Paused or held: looks, reports and writes nothing. */
  async #look(view: ReleaseView, ledger: LedgerStore, signal: AbortSignal): Promise<number> {
    const { record } = this;
    const { client, clock, engine, check, domains, options } = this.#deps;
    const said =
      view.hold === undefined
        ? { reason: 'Paused', message: 'paused by the spec; nothing is written' }
        : { reason: 'Held', message: `held by annotation keelson.dev/hold: ${view.hold}; nothing is written` };
    this.#former = true;
    this.#outcome({ kind: 'paused', ...said });
    if (this.#current !== undefined) {
      const deps = { client, clock, options: engine, check };
      record.problems = await observe(deps, domains, this.#enforceInput(view, ledger, 'observe', signal));
      this.#tell();
    }
    return options.reconcileMs;
  }

  /** Takes in problems; answers when to come again. */
  #failed(problems: readonly Problem[], retry = retryOfAll(problems)): number {
    const { record } = this;
    const { clock, random, options } = this.#deps;
    record.problems = problems;
    record.state = retry === 'wait' ? 'Syncing' : 'Error';
    record.stalled = retry === 'terminal';
    const pause = record.stalled ? never : backoff(options.backoff, record.attempt, random);
    record.attempt += 1;
    record.retryAt = record.stalled ? undefined : clock.now() + pause;
    this.#outcome(problemOutcome(problems, retry));
    // What is accepted stays enforced, also when nothing more can be done for what is wanted.
    return record.stalled && this.#current !== undefined ? options.reconcileMs : pause;
  }

  /** The pass moved on, or looked and found everything as before. */
  #moved(moved: boolean): void {
    const { record } = this;
    if (moved) record.lastProgress = this.#deps.clock.now();
    if (this.#former || this.#wasCompleted()) this.#tell();
    else {
      record.step = record.progress?.phases.find(({ state }) => state !== 'Done')?.name ?? record.step;
      this.#outcome(workOutcome(record, this.#deps.clock.now()));
    }
  }

  #tell(): void {
    if (!this.#resuming) this.#deps.changed(this.record);
  }

  /** Sets the outcome; a failure stays told until the work gets beyond its place. */
  #outcome(outcome: Outcome): void {
    const { record } = this;
    const work = record.desired ?? '';
    const { outcome: told, memory } = rememberFailure(record.memory, outcome, { work, position: positionOf(record) });
    record.outcome = told;
    record.memory = memory;
    this.#resuming = false;
    const underWay = told.kind === 'applying' || told.kind === 'slow' || told.kind === 'waiting';
    if (underWay && record.state === 'Error') {
      record.state = 'Syncing';
      record.problems = [];
    }
    this.#tell();
  }
}
