/** From the worker's record to the status of its Release. Pure; the same record at the same time gives the same status. */

import { capMessage, conditionsFor, type DomainCondition, timeText } from '../../constructs/api/conditions.ts';
import { limits, managers } from '../../constructs/api/constants.ts';
import type { Condition } from '../../constructs/api/fields.ts';
import { pruneHistory } from '../../constructs/api/history.ts';
import { gateText } from '../../constructs/api/payload.ts';
import type { Plan } from '../../constructs/api/plan.ts';
import type { Blocker, Failure, GateStatus, PhaseStatus, ReleaseStatus } from '../../constructs/api/release.ts';
import { shortDigest } from '../../constructs/lib/digest.ts';
import { canonicalJson, type JsonObject } from '../../constructs/lib/json.ts';
import { describeObject, parseObjectId } from '../../constructs/lib/names.ts';
import { type Problem, sortProblems } from '../../constructs/lib/problems.ts';
import { redact } from '../../constructs/lib/redact.ts';
import { type Fight, wholeObject } from '../apply/drift/fights.ts';
import { isOpen } from '../apply/gate-wait.ts';
import type { GateRecord, PhaseRecord } from '../apply/progress.ts';
import { gateMessage } from './gates.ts';
import type { WorkerRecord } from './record.ts';
import { spanMessage } from './spans.ts';

export interface PlanCounts {
  readonly adopted?: number;
  readonly created: number;
  readonly configured: number;
  readonly unchanged: number;
  readonly replaced: number;
  readonly pruned: number;
  readonly absent: number;
}

/** Numbers of a plan. */
export const planCountsOf = ({ actions }: Plan): PlanCounts => ({
  ...(actions.adopted.length === 0 ? {} : { adopted: actions.adopted.length }),
  created: actions.created.length,
  configured: actions.configured.length,
  unchanged: actions.unchanged.length,
  replaced: actions.replaced.length,
  pruned: actions.pruned.length,
  absent: actions.absent.length,
});

/** Elapsed times in messages move in steps of this many milliseconds, so that a status is not written for each second. */
const elapsedStepMs = 30_000;

const elapsed = (since: number, now: number): number =>
  Math.max(0, Math.floor((now - since) / elapsedStepMs) * elapsedStepMs);

/** A word that a condition may carry as its reason. */
const word = (reason: string): string => (/^[A-Z][A-Za-z0-9]*$/.test(reason) ? reason : 'Unknown');

/** One line for a person: the object where there is one, what is wrong. */
export function problemText(problem: Problem): string {
  const where = [problem.object, problem.path].filter((part) => part !== undefined && part !== '').join(' ');
  return redact(where === '' ? problem.message : `${where}: ${problem.message}`);
}

/** How people read the id of an object. */
export const describeId = (id: string): string => {
  const { group, ...identity } = parseObjectId(id);
  return describeObject({ apiVersion: group === '' ? 'v1' : `${group}/v1`, ...identity });
};

/** Who fights with whom over what. */
function fightProblem({ id, why, managers: others, fields }: Fight): Problem {
  const who = others.join(' and ');
  const object = describeId(id);
  if (fields.includes(wholeObject))
    return { reason: 'DriftFight', message: `${who} deletes it again and again`, object };
  const said =
    why === 'apply'
      ? `${who} applies another value than ${managers.objects} does`
      : `${who} keeps changing what ${managers.objects} sets back`;
  return { reason: 'DriftFight', message: said, object, path: fields.join(', ') };
}

/** Fights in one line. */
export const fightsText = (fights: readonly Fight[]): string => problemsText(fights.map(fightProblem));

/** Many problems in one line: the first, and how many more. */
export function problemsText(problems: readonly Problem[]): string {
  const [first] = sortProblems(problems);
  if (first === undefined) return '';
  const remedy = first.remedy === undefined || problems.length > 1 ? '' : ` (${first.remedy})`;
  return `${problemText(first)}${remedy}${problems.length > 1 ? `; and ${problems.length - 1} more` : ''}`;
}

function gateStatus({ gate, verdict, since }: GateRecord, now: number): GateStatus {
  return {
    type: gate.type,
    scope: gate.scope,
    state: verdict.state,
    ...(verdict.bypassed === true ? { bypassed: true } : {}),
    reason: word(verdict.reason),
    message: capMessage(redact(isOpen(verdict) ? verdict.message : gateMessage(gate, verdict, elapsed(since, now)))),
    since: timeText(since),
    ...(verdict.evidenceTime === undefined ? {} : { evidenceTime: timeText(verdict.evidenceTime) }),
  };
}

function phaseStatus(phase: PhaseRecord, now: number): PhaseStatus {
  return {
    name: phase.name,
    state: phase.state,
    applied: phase.applied,
    total: phase.total,
    since: timeText(phase.since),
    ...(phase.gates.some(({ verdict }) => verdict.bypassed === true) ? { bypassed: true } : {}),
    gates: phase.gates.map((record) => gateStatus(record, now)),
  };
}

/** The first gate that is shut, in phase order. */
export function shutGate(phases: readonly PhaseRecord[]): GateRecord | undefined {
  return phases.flatMap(({ gates }) => gates).find(({ verdict }) => !isOpen(verdict));
}

/** What the pass that runs waits for. */
export function waitingOn({ progress }: WorkerRecord): string | undefined {
  const shut = shutGate(progress?.phases ?? []);
  return shut === undefined ? undefined : `${gateText(shut.gate)} ${shut.verdict.reason}: ${shut.verdict.message}`;
}

/** Since when the problems stand: as long as the condition that tells of them, also when a process before saw them first. */
function problemsSince(conditions: readonly Condition[], now: number): string {
  const telling = [
    ['Accepted', 'False'],
    ['Failing', 'True'],
  ] as const;
  const found = telling.flatMap(([type, status]) => conditions.filter((c) => c.type === type && c.status === status));
  return found[0]?.lastTransitionTime ?? timeText(now);
}

/** What is waited for: a shut gate, or the first problem. */
function blockerOf(record: WorkerRecord, conditions: readonly Condition[], now: number): Blocker | undefined {
  const shut = shutGate(record.progress?.phases ?? []);
  const [problem] = sortProblems(record.problems);
  if (problem !== undefined)
    return {
      ...(problem.object === undefined ? {} : { object: problem.object.slice(0, 700) }),
      reason: word(problem.reason),
      message: capMessage(problemText(problem)),
      since: problemsSince(conditions, now),
    };
  if (shut === undefined) return undefined;
  const { gate, verdict, since } = shut;
  return {
    ...(verdict.object === undefined ? {} : { object: verdict.object.slice(0, 700) }),
    gate: gateText(gate),
    reason: word(verdict.reason),
    message: capMessage(redact(gateMessage(gate, verdict, elapsed(since, now)))),
    since: timeText(since),
    softLimit: gate.softLimit,
    ...(gate.limit === undefined ? {} : { limit: gate.limit }),
  };
}

const failureOf = (problem: Problem): Failure => ({
  ...(problem.object === undefined ? {} : { object: problem.object.slice(0, 700) }),
  reason: word(problem.reason),
  message: capMessage(problemText(problem), 512),
});

/** Conditions besides the common ones: acceptance, and everything that a person has set aside by hand. */
function ownConditions(record: WorkerRecord): DomainCondition[] {
  const { accepted } = record;
  const conditions: DomainCondition[] = [
    { type: 'Accepted', status: accepted.status, reason: word(accepted.step), message: accepted.message },
  ];
  const loud = (type: string, reason: string, message: string): void => {
    conditions.push({ type, status: 'True', reason, message });
  };
  if (record.unverified !== undefined) loud('Unverified', 'SignatureMissing', record.unverified);
  if (record.pin !== undefined)
    loud('Pinned', 'PinAnnotation', `annotation keelson.dev/pin asks for ${record.pin.slice(0, 100)}`);
  if (record.hold !== undefined) loud('Held', 'HoldAnnotation', `annotation keelson.dev/hold: ${record.hold}`);
  if (record.span !== undefined) {
    const pause = record.pauseWaits ? '; the pause takes effect when it is left' : '';
    loud('InSpan', 'SpanOpen', `${spanMessage(record.span)}${pause}`);
  }
  if (record.drift.fights.length > 0) loud('DriftFight', 'DriftFight', fightsText(record.drift.fights));
  const held = record.progress?.held ?? [];
  if (record.hold === undefined && held.length > 0)
    loud('Held', 'ObjectsHeld', `not written: ${held.map(({ id, by }) => `${id} (${by})`).join(', ')}`);
  return conditions;
}

/** Message of work under way: fraction and what is waited for. */
export function workMessage(record: WorkerRecord, waitingOn?: string): string {
  const { progress } = record;
  const what = record.desired === undefined ? 'the payload' : shortDigest(record.desired);
  if (progress === undefined || progress.digest !== record.desired)
    return `Working towards ${what}: ${record.step}${waitingOn === undefined ? '' : `, waiting on ${waitingOn}`}`;
  const { done, total } = progress;
  const percent = total === 0 ? 100 : Math.floor((done * 100) / total);
  const tail = waitingOn === undefined ? '' : `, waiting on ${waitingOn}`;
  return `Working towards ${what}: ${done} of ${total} done (${percent}% complete)${tail}`;
}

/** Where the work is. A pass that went through everything is not the end of it while a gate is shut. */
function stepOf({ step, progress }: WorkerRecord): string {
  if (step !== 'Completed') return step;
  const shut = progress?.phases.find(({ gates }) => gates.some(({ verdict }) => !isOpen(verdict)));
  return shut?.name ?? step;
}

function syncOf(
  record: WorkerRecord,
  conditions: readonly Condition[],
  now: number,
): NonNullable<ReleaseStatus['sync']> {
  const blocker = blockerOf(record, conditions, now);
  return {
    step: stepOf(record).slice(0, 64),
    done: record.progress?.done ?? 0,
    total: record.progress?.total ?? 0,
    attempt: record.attempt,
    completed: Math.min(record.completed, 1),
    versionHash: record.actual ?? '',
    verified: record.verified,
    ...(record.lastProgress === undefined ? {} : { lastProgressTime: timeText(record.lastProgress) }),
    ...(blocker === undefined ? {} : { blocker }),
    ...(record.retryAt === undefined ? {} : { retryAt: timeText(record.retryAt) }),
  };
}

/** The status of a Release. `previous` are its conditions as they are. */
export function statusOf(record: WorkerRecord, previous: readonly Condition[], now: number): JsonObject {
  const { plan, ledger, drift } = record;
  const problems = [...record.problems, ...drift.fights.map(fightProblem), ...drift.problems];
  const conditions = conditionsFor({
    outcome: { ...record.outcome, reason: word(record.outcome.reason), message: redact(record.outcome.message) },
    previous,
    generation: record.generation,
    now,
    domain: ownConditions(record),
  });
  const status: ReleaseStatus = {
    observedGeneration: record.generation,
    conditions,
    state: record.state,
    ...(record.desired === undefined ? {} : { desired: record.desired }),
    ...(record.actual === undefined ? {} : { actual: record.actual }),
    ...(plan === undefined ? {} : { plan }),
    sync: syncOf(record, conditions, now),
    phases: (record.progress?.phases ?? []).map((phase) => phaseStatus(phase, now)),
    history: record.history,
    ...(ledger === undefined ? {} : { ledger }),
    failures: sortProblems(problems).slice(0, limits.failures).map(failureOf),
    failureCount: problems.length,
    ...(record.handledAt === undefined ? {} : { lastHandledReconcileAt: record.handledAt }),
    ...(record.attempted === undefined ? {} : { lastAttemptedRevision: record.attempted }),
    ...(record.applied === undefined ? {} : { lastAppliedRevision: record.applied }),
  };
  return fitted(status);
}

/** Ways to make a status smaller, the least loss first. */
const reductions: readonly ((status: ReleaseStatus) => ReleaseStatus)[] = [
  (status) => withGates(status, (gates) => gates.map((gate) => ({ ...gate, message: capMessage(gate.message, 256) }))),
  (status) => ({ ...status, history: pruneHistory(status.history ?? [], 25) }),
  // A gate that stands open has nothing to tell.
  (status) => withGates(status, (gates) => gates.filter(({ state }) => state !== 'True')),
  (status) =>
    withGates(status, (gates) => gates.slice(0, 1).map((gate) => ({ ...gate, message: capMessage(gate.message, 64) }))),
  (status) => ({
    ...status,
    history: pruneHistory(status.history ?? [], 5),
    failures: (status.failures ?? []).slice(0, 3),
  }),
  (status) => withGates(status, () => []),
];

const withGates = (status: ReleaseStatus, change: (gates: GateStatus[]) => GateStatus[]): ReleaseStatus => ({
  ...status,
  phases: (status.phases ?? []).map((phase) => ({ ...phase, gates: change(phase.gates) })),
});

/** A status below the limit: what helps least to understand it is given up first. */
function fitted(status: ReleaseStatus): JsonObject {
  let candidate = status;
  for (const reduce of reductions) {
    if (Buffer.byteLength(canonicalJson(candidate as unknown as JsonObject)) <= limits.statusBytes) break;
    candidate = reduce(candidate);
  }
  return candidate as unknown as JsonObject;
}
