/** Keeps the record of one Release: every change of what is told of it is made here. No I/O. */
import { isDeepStrictEqual } from 'node:util';
import { type Outcome, rememberFailure } from '../../constructs/api/conditions.ts';
import { configMapNames } from '../../constructs/api/constants.ts';
import type { Condition } from '../../constructs/api/fields.ts';
import { lastCompleted, recordCompleted, recordStart } from '../../constructs/api/history.ts';
import { ledgerDigest } from '../../constructs/api/ledger.ts';
import type { AcceptanceStep, ChangeClass } from '../../constructs/api/release.ts';
import type { SpanPosition } from '../../constructs/api/span.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DriftTold } from '../apply/drift/state.ts';
import type { PassOutcome } from '../apply/engine.ts';
import type { LedgerStore } from '../apply/ledger-store.ts';
import { PassProgress } from '../apply/progress.ts';
import type { SourceRevision } from '../source/source.ts';
import type { Loaded } from './load.ts';
import { positionOf, problemOutcome, settledOutcome, workOutcome } from './outcomes.ts';
import { initialRecord, type PlanRecord, type WorkerRecord } from './record.ts';
import type { PlanReport } from './reports.ts';
import type { Retry } from './retry.ts';
import { carried, queuedProblem, type Way, wayThrough } from './spans.ts';
import { planCountsOf, problemsText, waitingOn } from './status.ts';
import { desiredDigest, type ReleaseView } from './view.ts';

/** Whether a Ready condition tells of a payload that was carried out and at rest, as far as was looked. */
const stood = ({ type, status, reason }: Condition): boolean =>
  type === 'Ready' && (status === 'True' || reason === 'GatesBypassed');

/** Outcomes that tell what was seen of a payload in place. */
const standing: ReadonlySet<Outcome['kind']> = new Set(['steady', 'gatesBypassed', 'driftFight']);
/** Outcomes of a pass that went through everything, and found nothing to wait for. */
const atRest: ReadonlySet<Outcome['kind']> = new Set([...standing, 'unhealthy']);
/** Reasons that tell of the way to the API server, and nothing of what is behind it. */
const silence: ReadonlySet<string> = new Set(['ApiUnavailable', 'LeaseLost']);
const outdated = 'ObservationOutdated';

const isAccepted = { status: 'True', step: 'Accepted', message: 'the payload is accepted' } as const;

export class Journal {
  readonly record: WorkerRecord = initialRecord();
  readonly #clock: Clock;
  readonly #changed: (record: WorkerRecord) => void;
  /** A payload that was in place when an earlier process ended: its status stands until the first look is over. */
  #resuming = false;
  /** The wanted payload waits until the span is left that another one is in. */
  #queued = false;
  /** The pass that runs enforces what is to be replaced: its way is not the way of the wanted payload. */
  former = false;

  constructor(clock: Clock, changed: (record: WorkerRecord) => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Whether a full pass of the accepted payload ever completed. */
  get completed(): boolean {
    const [newest] = this.record.history;
    return newest?.digest === this.record.actual && newest?.state === 'Completed';
  }

  /** Class of the change that brought the accepted payload, where the plan of it is known. */
  get changeClass(): ChangeClass | undefined {
    const { desired, actual, plan } = this.record;
    return desired === actual ? plan?.changeClass : undefined;
  }

  tell(): void {
    if (!this.#resuming) this.#changed(this.record);
  }

  /** Takes over what a status says that an earlier process wrote, and what the spec asks for now. */
  adopt(view: ReleaseView): void {
    const { record } = this;
    this.#queued = false;
    if (record.state === 'Initial') this.#inherit(view);
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
      this.outcome({ kind: 'applying', reason: 'Applying', message: `generation ${view.generation} is taken up` });
    else this.tell();
  }

  #inherit({ status, generation, ...view }: ReleaseView): void {
    const { record } = this;
    if (status === undefined) return;
    record.actual ??= status.actual;
    if (record.history.length === 0) record.history = status.history ?? [];
    record.plan ??= status.plan as PlanRecord | undefined;
    record.attempted ??= status.lastAttemptedRevision;
    record.applied ??= status.lastAppliedRevision;
    this.#resuming =
      this.completed &&
      desiredDigest({ status, generation, ...view }) === record.actual &&
      status.observedGeneration === generation &&
      status.conditions?.some(stood) === true;
    if (this.#resuming) record.state = 'Reconciling';
  }

  /** Whether the wanted payload may be worked on, by what the ledger says of a one-way span. */
  way(position: SpanPosition | undefined, view: ReleaseView): Way {
    this.record.pauseWaits = view.spec.paused && position !== undefined;
    this.inSpan(position);
    return wayThrough(position, { digest: desiredDigest(view), pinned: view.pin !== undefined });
  }

  /** Takes in a position: it is newer than any status, and decides what is enforced. */
  inSpan(position: SpanPosition | undefined): void {
    const { record } = this;
    record.span = position;
    if (position === undefined || record.actual === carried(position)) return;
    record.actual = carried(position);
    const { back: digest, since: startedAt } = position;
    const known =
      lastCompleted(record.history) === undefined ? [{ digest, state: 'Completed', startedAt } as const] : [];
    record.history = recordStart([...record.history, ...known], record.actual, this.#clock.now());
    this.#resuming = false;
    if (record.state === 'Reconciling') record.state = 'Syncing';
  }

  /** The wanted payload waits outside the span that the accepted one is in, which goes on. */
  queued(): void {
    this.former = true;
    this.#queued = true;
    this.#tellQueue();
  }

  #tellQueue(): void {
    const { record } = this;
    if (record.span === undefined) return;
    const problem = queuedProblem(record.span, record.desired ?? '', waitingOn(record));
    const [first] = record.problems;
    if (first?.message === problem.message) return;
    if (record.state === 'Error') record.state = 'Syncing';
    record.problems = [problem];
    record.accepted = { status: 'False', step: problem.reason, message: problemsText([problem]) };
    this.outcome({ kind: 'waiting', reason: problem.reason, message: problemsText([problem]) });
  }

  /** A payload is at hand and accepted. */
  loaded(loaded: Loaded): void {
    const { record } = this;
    const { index } = loaded.payload;
    record.actual = index.digest;
    record.verified = loaded.unverified === undefined;
    record.unverified = loaded.unverified;
    record.revision = loaded.revision;
    record.progress = new PassProgress(
      index.digest,
      index.content,
      () => this.#clock.now(),
      (moved) => this.#moved(moved),
    );
    if (record.desired === record.actual) record.accepted = isAccepted;
  }

  /** A payload that stayed at hand is enforced again, or looked at: an uninstall of it was taken back or stopped. */
  atHand(loaded: Loaded): void {
    const { progress, actual } = this.record;
    if (progress === undefined && actual === loaded.payload.index.digest) this.loaded(loaded);
  }

  /** Acceptance has come to a step. */
  step(step: AcceptanceStep): void {
    const { record } = this;
    record.step = step;
    const underWay = { status: 'Unknown', step, message: '' } as const;
    if (record.accepted.status !== 'False') record.accepted = underWay;
    this.outcome({ kind: 'applying', reason: step, message: `${step} of payload ${record.desired ?? ''}` });
    // A refusal stands, with its reasons, until another attempt gets beyond it.
    if (record.accepted.status !== 'False' || record.problems.length > 0) return;
    record.accepted = underWay;
    this.tell();
  }

  /** A revision of the source is about to be fetched. */
  attempted({ revision }: SourceRevision): void {
    this.record.attempted = revision;
    this.tell();
  }

  /** Why a payload is refused; what follows from it is told by `failed`, in the same turn. */
  refused(step: AcceptanceStep, problems: readonly Problem[]): void {
    const { record } = this;
    record.step = step;
    record.problems = problems;
    record.accepted = { status: 'False', step: problems[0]?.reason ?? step, message: problemsText(problems) };
  }

  planned(report: Pick<PlanReport, 'plan' | 'confidence'>, release: string): void {
    const { plan, confidence } = report;
    this.record.plan = {
      digest: plan.digest,
      changeClass: plan.changeClass,
      counts: planCountsOf(plan),
      confidence,
      report: configMapNames.plan(release),
    };
  }

  /** The first pass of an accepted payload begins. */
  begun(digest: string): void {
    const { record } = this;
    this.former = false;
    record.problems = [];
    record.attempt = 0;
    record.history = recordStart(record.history, digest, this.#clock.now());
    this.tell();
  }

  /** The wanted payload is worked on. */
  working(): void {
    if (this.#queued) return;
    this.former = false;
    // It was accepted before something else was asked for, and is asked for again.
    if (this.record.desired === this.record.actual) this.record.accepted = isAccepted;
    if (!this.completed) this.outcome(workOutcome(this.record, this.#clock.now()));
  }

  suspended(phase: string): void {
    this.record.step = phase;
    this.record.problems = [];
    this.outcome({ kind: 'waiting', reason: 'PhaseSuspended', message: `phase ${phase} is suspended by the spec` });
  }

  paused(hold: string | undefined): void {
    this.former = true;
    const said =
      hold === undefined
        ? { reason: 'Paused', message: 'paused by the spec; nothing is written' }
        : { reason: 'ReleaseHeld', message: `held by annotation keelson.dev/hold: ${hold}; nothing is written` };
    this.outcome({ kind: 'paused', ...said });
  }

  /** A person has approved that the release goes: `done` of its objects are gone or no longer ours. */
  uninstalling(step: string, done: number, total: number): void {
    const { record } = this;
    record.progress = undefined;
    record.step = 'Uninstalling';
    const message = `uninstalling: ${done} of ${total} objects are done; now: ${step}`;
    this.outcome({ kind: 'applying', reason: 'Uninstalling', message });
  }

  uninstalled(total: number): void {
    const { record } = this;
    record.problems = [];
    record.attempt = 0;
    record.step = 'Uninstalled';
    const message = `none of ${total} objects is ours any more; \`keelson uninstall\` removes the Release itself`;
    this.outcome({ kind: 'waiting', reason: 'Uninstalled', message });
  }

  planOnly(): void {
    this.outcome({ kind: 'planOnly', reason: 'PlanOnly', message: 'this executor plans and does not write' });
  }

  /** A pass went through everything. */
  finished(outcome: Extract<PassOutcome, { type: 'completed' }>, requestedAt: string | undefined): void {
    const { record } = this;
    const digest = record.actual ?? '';
    record.history = recordCompleted(record.history, digest, this.#clock.now(), record.unverified);
    record.state = 'Reconciling';
    record.completed += 1;
    record.attempt = 0;
    record.problems = [];
    record.left = outcome.left;
    record.step = 'Completed';
    record.handledAt = requestedAt ?? record.handledAt;
    record.lookedAt = this.#clock.monotonic();
    record.applied = record.revision?.revision;
    if (record.progress !== undefined) this.outcome(this.#settled(digest, record.progress));
  }

  #settled(digest: string, progress: PassProgress): Outcome {
    return settledOutcome(digest, progress, this.record.drift, this.#clock.now());
  }

  /** Takes in who fights over what is in place, and what could not be set back. */
  drifted(drift: DriftTold): void {
    const { record } = this;
    if (isDeepStrictEqual(record.drift, drift)) return;
    record.drift = drift;
    const { progress, actual } = record;
    // Where something else is told, or nothing was looked at yet, the next pass tells this too.
    if (progress !== undefined && actual !== undefined && atRest.has(record.outcome.kind) && !this.#resuming)
      this.outcome(this.#settled(actual, progress));
    else this.tell();
  }

  /** Whether what is told is what was seen of a payload in place, or that it was not seen for too long. */
  #stands(): boolean {
    const { kind, reason } = this.record.outcome;
    return this.#resuming || standing.has(kind) || reason === outdated;
  }

  /** What is told was seen too long ago to be told any longer. */
  outdated(): void {
    if (!this.#stands()) return;
    const seen = this.record.problems[0]?.message ?? 'no round of looks was complete in time';
    this.outcome({
      kind: 'waiting',
      reason: outdated,
      message: `whether it still is in place is not known: ${seen}`,
    });
  }

  /** Takes in problems, and in how many milliseconds they are met again. */
  failed(problems: readonly Problem[], retry: Retry, pauseMs: number): void {
    const { record } = this;
    record.problems = problems;
    // An API server that does not answer says nothing about what is in place: that stands until it is outdated.
    if (problems.every(({ reason }) => silence.has(reason)) && this.#stands()) {
      record.attempt += 1;
      record.retryAt = this.#clock.now() + pauseMs;
      return;
    }
    record.state = retry === 'wait' ? 'Syncing' : 'Error';
    record.stalled = retry === 'terminal';
    record.attempt += 1;
    record.retryAt = record.stalled ? undefined : this.#clock.now() + pauseMs;
    this.outcome(problemOutcome(problems, retry));
  }

  counted({ ledger, configMaps }: LedgerStore): void {
    this.record.ledger = { count: ledger.size, digest: ledgerDigest(ledger), configMaps };
  }

  /** The pass moved on, or looked and found everything as before. */
  #moved(moved: boolean): void {
    const { record } = this;
    if (moved) record.lastProgress = this.#clock.now();
    if (this.#queued) this.#tellQueue();
    if (this.former || this.completed) this.tell();
    else {
      record.step = record.progress?.phases.find(({ state }) => state !== 'Done')?.name ?? record.step;
      this.outcome(workOutcome(record, this.#clock.now()));
    }
  }

  /** Sets the outcome; a failure stays told until the work gets beyond its place. */
  outcome(outcome: Outcome): void {
    const { record } = this;
    const at = { work: record.desired ?? '', position: positionOf(record) };
    const { outcome: told, memory } = rememberFailure(record.memory, outcome, at);
    record.outcome = told;
    record.memory = memory;
    this.#resuming = false;
    const underWay = told.kind === 'applying' || told.kind === 'slow' || told.kind === 'waiting';
    if (underWay && record.state === 'Error') {
      record.state = 'Syncing';
      record.problems = [];
    }
    this.tell();
  }
}
