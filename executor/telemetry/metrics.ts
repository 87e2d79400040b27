/** Metrics of one executor process. The registry is the caller's: nothing is registered globally. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { releaseStates } from '../../constructs/api/release-states.ts';
import type { DriftEvent } from '../apply/drift/mend.ts';
import type { AttemptInfo } from '../kube/call.ts';
import type { WorkerRecord } from '../release/record.ts';

export interface ExecutorMetrics {
  /** One attempt of a request to the API server. */
  attempted(attempt: AttemptInfo): void;
  /** What a worker knows now; undefined when its Release is gone. */
  released(release: string, record: WorkerRecord | undefined): void;
  /** What was set back, or is fought over. */
  drifted(release: string, event: DriftEvent): void;
  /** Whether this process leads. */
  leading(leads: boolean): void;
}

const flagNames = ['stalled', 'pinned', 'held', 'unverified', 'bypassed', 'failing'] as const;

const flagsOf = (record: WorkerRecord): Record<(typeof flagNames)[number], boolean> => ({
  stalled: record.stalled,
  pinned: record.pin !== undefined,
  held: record.hold !== undefined || (record.progress?.held.length ?? 0) > 0,
  unverified: record.unverified !== undefined,
  bypassed: (record.progress?.phases ?? []).some(({ gates }) => gates.some(({ verdict }) => verdict.bypassed === true)),
  failing: record.problems.length > 0,
});

/** Registers the metrics of the executor. */
export function executorMetrics(registry: Registry): ExecutorMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: 'keelson_api_requests_total',
    help: 'Requests to the API server by method and status; status 0 had no answer',
    labelNames: ['method', 'status'],
    registers,
  });
  const seconds = new Histogram({
    name: 'keelson_api_request_duration_seconds',
    help: 'Duration of requests to the API server',
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10],
    labelNames: ['method'],
    registers,
  });
  const state = new Gauge({
    name: 'keelson_release_state',
    help: '1 for the state that the worker of a Release is in',
    labelNames: ['release', 'state'],
    registers,
  });
  const objects = new Gauge({
    name: 'keelson_release_objects',
    help: 'Objects of the payload that are in place, and all of them',
    labelNames: ['release', 'what'],
    registers,
  });
  const flags = new Gauge({
    name: 'keelson_release_flag',
    help: '1 while a Release is stalled, pinned, held, unverified, past a gate without looking, or has failures',
    labelNames: ['release', 'flag'],
    registers,
  });
  const repairs = new Counter({
    name: 'keelson_drift_repairs_total',
    help: 'Objects that were set back, or created again, after somebody had changed or deleted them',
    labelNames: ['release', 'what'],
    registers,
  });
  const repairSeconds = new Histogram({
    name: 'keelson_drift_repair_duration_seconds',
    help: 'From when drift of an object was noticed until it was set back',
    buckets: [0.05, 0.2, 0.5, 1, 2, 5, 30, 120],
    registers,
  });
  const fights = new Gauge({
    name: 'keelson_drift_fights',
    help: 'Objects that somebody keeps changing back',
    labelNames: ['release'],
    registers,
  });
  const leads = new Gauge({
    name: 'keelson_leader',
    help: '1 while this process holds the Lease of its role',
    registers,
  });
  leads.set(0);
  const forget = (release: string): void => {
    for (const name of releaseStates) state.remove({ release, state: name });
    for (const what of ['done', 'total']) objects.remove({ release, what });
    for (const flag of flagNames) flags.remove({ release, flag });
    for (const what of ['setBack', 'created']) repairs.remove({ release, what });
    fights.remove({ release });
  };
  return {
    attempted({ method, status, elapsedMs }) {
      requests.inc({ method, status: String(status ?? 0) });
      seconds.observe({ method }, elapsedMs / 1000);
    },
    released(release, record) {
      if (record === undefined) {
        forget(release);
        return;
      }
      for (const name of releaseStates) state.set({ release, state: name }, record.state === name ? 1 : 0);
      objects.set({ release, what: 'done' }, record.progress?.done ?? 0);
      objects.set({ release, what: 'total' }, record.progress?.total ?? 0);
      fights.set({ release }, record.drift.fights.length);
      for (const [flag, on] of Object.entries(flagsOf(record))) flags.set({ release, flag }, on ? 1 : 0);
    },
    drifted(release, event) {
      if (event.type !== 'repaired') return;
      repairs.inc({ release, what: event.created ? 'created' : 'setBack' });
      repairSeconds.observe(event.elapsedMs / 1000);
    },
    leading: (now) => leads.set(now ? 1 : 0),
  };
}
