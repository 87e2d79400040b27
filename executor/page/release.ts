/** A Release as the page shows it. Pure. */
import { annotations } from '../../constructs/api/constants.ts';
import { type JsonObject, type JsonValue, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';
import {
  type BlockerView,
  type GateView,
  type HistoryView,
  type Mark,
  type PhaseView,
  pageLimits,
  type ReleaseView,
} from './model.ts';
import { conditionsView, countOf, short, textOf } from './words.ts';

const phaseMarks: Readonly<Record<string, Mark>> = {
  Pending: 'idle',
  Applying: 'working',
  Waiting: 'working',
  Done: 'well',
  Blocked: 'broken',
  Failed: 'broken',
  Suspended: 'unknown',
};

function gateView(gate: JsonObject, phase: string): GateView {
  const state = textOf(gate.state);
  const bypassed = gate.bypassed === true;
  const mark = bypassed ? 'unknown' : state === 'True' ? 'well' : state === 'False' ? 'broken' : 'unknown';
  const evidenceTime = textOf(gate.evidenceTime);
  return {
    name: gate.scope === phase ? textOf(gate.type) : `${textOf(gate.type)}(${textOf(gate.scope)})`,
    mark,
    word: bypassed ? 'bypassed' : state === 'True' ? 'open' : state === 'False' ? 'shut' : 'not known',
    reason: textOf(gate.reason),
    message: short(textOf(gate.message)),
    since: textOf(gate.since),
    bypassed,
    ...(evidenceTime === '' ? {} : { evidenceTime }),
  };
}

function phaseView(phase: JsonObject): PhaseView {
  const state = textOf(phase.state);
  return {
    name: textOf(phase.name),
    mark: phaseMarks[state] ?? 'unknown',
    word: state === '' ? 'Unknown' : state,
    applied: countOf(phase.applied),
    total: countOf(phase.total),
    since: textOf(phase.since),
    gates: objectsOf(phase.gates)
      .map((gate) => gateView(gate, textOf(phase.name)))
      // Gates of a phase that has not begun are not shut: nobody has come to them.
      .map((gate) => (state === 'Pending' && !gate.bypassed ? { ...gate, mark: 'idle', word: 'not yet' } : gate)),
  };
}

function historyView(entry: JsonObject): HistoryView {
  const [completedAt, acceptedRisks] = [textOf(entry.completedAt), textOf(entry.acceptedRisks)];
  const completed = entry.state === 'Completed';
  return {
    mark: completed ? 'well' : 'working',
    word: completed ? 'Completed' : 'Partial',
    digest: textOf(entry.digest),
    startedAt: textOf(entry.startedAt),
    ...(completedAt === '' ? {} : { completedAt }),
    ...(acceptedRisks === '' ? {} : { acceptedRisks: short(acceptedRisks) }),
  };
}

function blockerView(blocker: JsonObject): BlockerView {
  const [softLimit, limit] = [textOf(blocker.softLimit), textOf(blocker.limit)];
  return {
    what: textOf(blocker.gate) || textOf(blocker.object),
    reason: textOf(blocker.reason),
    message: short(textOf(blocker.message)),
    since: textOf(blocker.since),
    ...(softLimit === '' ? {} : { softLimit }),
    ...(limit === '' ? {} : { limit }),
  };
}

function planView(plan: JsonObject): NonNullable<ReleaseView['plan']> {
  const counts = Object.entries(objectOf(plan.counts)).filter(([, count]) => countOf(count) > 0);
  return {
    digest: textOf(plan.digest),
    changeClass: textOf(plan.changeClass),
    counts: counts.map(([what, count]) => `${String(count)} ${what}`).join(', ') || 'nothing',
  };
}

const optional = <K extends string>(key: K, value: JsonValue | undefined): { [P in K]?: string } =>
  typeof value === 'string' && value !== '' ? ({ [key]: value } as { [P in K]?: string }) : {};

/** Notes by which people break the rules, and flags that must not be overlooked. */
function loudOf(release: KubeObject): string[] {
  const notes = release.metadata.annotations ?? {};
  const named = (['hold', 'pin', 'quiesce', 'uninstall'] as const).flatMap((key) => {
    const value = notes[annotations[key]];
    return value === undefined
      ? []
      : [`${key}: ${short(value.replace(/\bsha256:([0-9a-f]{12})[0-9a-f]{52}\b/g, '$1'))}`];
  });
  const spec = objectOf(release.spec);
  const suspended = Array.isArray(spec.suspendPhases) ? spec.suspendPhases.map(String) : [];
  return [
    ...named,
    ...(spec.paused === true ? ['paused'] : []),
    ...(suspended.length === 0 ? [] : [`suspended: ${suspended.join(', ')}`]),
  ];
}

export function releaseView(release: KubeObject): ReleaseView {
  const status = objectOf(release.status);
  const sync = objectOf(status.sync);
  const history = objectsOf(status.history);
  const ledger = objectOf(status.ledger);
  return {
    name: release.metadata.name ?? '',
    ready: conditionsView(status).ready,
    state: textOf(status.state) || 'Initial',
    step: textOf(sync.step),
    done: countOf(sync.done),
    total: countOf(sync.total),
    ...optional('desired', status.desired),
    ...optional('actual', status.actual),
    ...(status.plan === undefined ? {} : { plan: planView(objectOf(status.plan)) }),
    ...(sync.blocker === undefined ? {} : { blocker: blockerView(objectOf(sync.blocker)) }),
    loud: loudOf(release),
    phases: objectsOf(status.phases).map(phaseView),
    history: history.slice(0, pageLimits.history).map(historyView),
    historyMore: Math.max(0, history.length - pageLimits.history),
    ...(status.ledger === undefined
      ? {}
      : {
          ledger: {
            count: countOf(ledger.count),
            digest: textOf(ledger.digest),
            configMaps: countOf(ledger.configMaps),
          },
        }),
    failures: objectsOf(status.failures).map(({ object, reason, message }) => ({
      object: textOf(object),
      reason: textOf(reason),
      message: short(textOf(message)),
    })),
  };
}
