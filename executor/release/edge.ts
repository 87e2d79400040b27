/** What of a record is an edge: a change that people and programs wait for. Numbers and times are not. Pure. */
import type { WorkerRecord } from './record.ts';

export function edgeOf(record: WorkerRecord): string {
  const { outcome, accepted, progress } = record;
  return JSON.stringify([
    record.generation,
    record.state,
    record.desired,
    record.actual,
    record.stalled,
    outcome.kind,
    outcome.reason,
    accepted.status,
    accepted.status === 'False' ? accepted.message : '',
    record.plan?.digest,
    record.problems.map(({ reason, object }) => [reason, object]),
    record.drift.fights,
    record.drift.problems.map(({ reason, object }) => [reason, object]),
    record.pin,
    record.hold,
    record.span,
    record.unverified,
    record.handledAt,
    record.attempted,
    record.applied,
    progress?.phases.map(({ name, state, gates }) => [
      name,
      state,
      gates.map(({ verdict }) => [verdict.state, verdict.reason, verdict.bypassed]),
    ]),
    progress?.held.map(({ id }) => id),
    record.history.map(({ digest, state }) => [digest, state]),
  ]);
}
