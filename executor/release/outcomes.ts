/** From what a step came to, to the outcome that conditions are made of. Pure. */

import type { Outcome } from '../../constructs/api/conditions.ts';
import { gateText } from '../../constructs/api/payload.ts';
import { acceptanceSteps } from '../../constructs/api/release.ts';
import { shortDigest } from '../../constructs/lib/digest.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DriftTold } from '../apply/drift/state.ts';
import type { GateRecord, PassProgress } from '../apply/progress.ts';
import { gateMessage, patience } from './gates.ts';
import type { WorkerRecord } from './record.ts';
import { type Retry, retryOf } from './retry.ts';
import { fightsText, problemsText, shutGate, workMessage } from './status.ts';

/** The problem that names the outcome: a terminal one before one that is retried before a wait. */
function foremost(problems: readonly Problem[]): Problem | undefined {
  const rank = (problem: Problem): number => ['terminal', 'retry', 'wait'].indexOf(retryOf(problem.reason));
  return [...problems].sort((a, b) => rank(a) - rank(b))[0];
}

/** Outcome of problems. */
export function problemOutcome(problems: readonly Problem[], retry: Retry): Outcome {
  const reasons = new Set(problems.map(({ reason }) => reason));
  const first = foremost(problems);
  const reason = reasons.size > 1 ? 'MultipleErrors' : (first?.reason ?? 'Unknown');
  const others = problems.filter((problem) => problem !== first);
  const message =
    first === undefined ? '' : problemsText([first]) + (others.length > 0 ? `; and ${others.length} more` : '');
  const kind = retry === 'terminal' ? 'terminal' : retry === 'wait' ? 'waiting' : 'retrying';
  return { kind, reason, message };
}

const slowest = (record: GateRecord, now: number): boolean =>
  patience(record.gate, now - record.since).kind !== 'waiting';

/** Elapsed times in steps, so that a message does not change with every look. */
const steps = (ms: number): number => Math.floor(ms / 30_000) * 30_000;

/** Outcome while a pass of the wanted payload runs. */
export function workOutcome(record: WorkerRecord, now: number): Outcome {
  const shut = shutGate(record.progress?.phases ?? []);
  if (shut === undefined) return { kind: 'applying', reason: 'Applying', message: workMessage(record) };
  const gate = gateMessage(shut.gate, shut.verdict, steps(now - shut.since));
  const message = workMessage(record, gate);
  return slowest(shut, now)
    ? { kind: 'slow', reason: 'GateSlow', message }
    : { kind: 'waiting', reason: 'Waiting', message };
}

/** Outcome of a pass that went through all phases, and of what has drifted since. */
export function settledOutcome(digest: string, progress: PassProgress, drift: DriftTold, now: number): Outcome {
  const outcome = standingOutcome(digest, progress, now);
  if (outcome.kind !== 'steady' && outcome.kind !== 'gatesBypassed') return outcome;
  const [fight] = drift.fights;
  if (fight !== undefined) return { kind: 'driftFight', reason: 'DriftFight', message: fightsText(drift.fights) };
  const [problem] = drift.problems;
  if (problem === undefined) return outcome;
  return { kind: 'unhealthy', reason: problem.reason, message: `not set back: ${problemsText(drift.problems)}` };
}

function standingOutcome(digest: string, progress: PassProgress, now: number): Outcome {
  const bypassed = progress.phases.flatMap(({ gates }) => gates).filter(({ verdict }) => verdict.bypassed === true);
  const shut = shutGate(progress.phases);
  if (shut !== undefined) {
    const message = gateMessage(shut.gate, shut.verdict, steps(now - shut.since));
    if (shut.verdict.state === 'False') return { kind: 'unhealthy', reason: 'GateFailed', message };
    return slowest(shut, now)
      ? { kind: 'slow', reason: 'GateSlow', message }
      : { kind: 'waiting', reason: 'Waiting', message };
  }
  if (bypassed.length > 0)
    return {
      kind: 'gatesBypassed',
      reason: 'GatesBypassed',
      message: `gates were passed without looking: ${bypassed.map(({ gate }) => gateText(gate)).join(', ')}`,
    };
  const held =
    progress.held.length > 0 ? `; not written, because held: ${progress.held.map(({ id }) => id).join(', ')}` : '';
  return {
    kind: 'steady',
    reason: 'Completed',
    message: `payload ${shortDigest(digest)} is in place: ${progress.total} objects${held}`,
  };
}

/** How far the work has got, for the memory of failures: acceptance steps, then phases, each before and at its gates. */
export function positionOf(record: WorkerRecord): number {
  const { progress, desired } = record;
  if (progress === undefined || progress.digest !== desired || record.accepted.status !== 'True')
    return Math.max(0, acceptanceSteps.map(String).indexOf(record.step));
  const done = progress.phases.filter(({ state }) => state === 'Done').length;
  const waiting = progress.phases.some(({ state }) => state === 'Waiting') ? 1 : 0;
  return acceptanceSteps.length + 2 * done + waiting;
}
