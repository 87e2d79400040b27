import { annotations } from '../../constructs/api/constants.ts';
import type { DriftOptions } from '../../executor/apply/drift/keeper.ts';
import { kubectl } from '../apiserver/kubectl.ts';
import { until } from './kubeBed.ts';
import { is, type RunningExecutor, type SliceBed, sliceBed } from './slice-bed.ts';
import { buildPayload, type PhaseInput, testKey } from './slice-payload.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

/** A release in place, and the executor that keeps it, whose passes come too rarely to help. */
export interface DriftBed extends SliceBed {
  readonly plan: RunningExecutor['plan'];
  /** kubectl in the namespace of the payload; fails when it does. */
  readonly kubectl: (...args: string[]) => Promise<string>;
  readonly object: (plural: string, name: string) => Promise<Loose>;
  /** Waits until an object is so. */
  readonly untilObject: (plural: string, name: string, what: string, probe: (o: Loose) => boolean) => Promise<Loose>;
  /** Reasons and notes of the Events on objects of the payload. */
  readonly events: () => Promise<string[]>;
  /** The line of one metric, by its name and labels. */
  readonly metric: (name: string) => Promise<string>;
  readonly restart: (drift?: Partial<DriftOptions>) => Promise<void>;
}

/** No sweeps: what is set back was seen by a watch. */
const watchOnly: Partial<DriftOptions> = { sweep: { everyMs: Number.POSITIVE_INFINITY, jitter: 0 } };

const groups: Readonly<Record<string, string>> = { deployments: '/apis/apps/v1', daemonsets: '/apis/apps/v1' };

export interface DriftInput {
  readonly phases: (bed: SliceBed) => PhaseInput[];
  readonly drift?: Partial<DriftOptions>;
  /** Whether workloads are to be made ready. */
  readonly workloads?: boolean;
  readonly own?: Parameters<typeof sliceBed>[0];
  readonly spec?: Parameters<SliceBed['applyRelease']>[1];
}

export async function driftBed(input: DriftInput): Promise<DriftBed> {
  const bed = await sliceBed(input.own);
  const built = await buildPayload({ release: bed.names.release, phases: input.phases(bed), key: testKey });
  await bed.deliver(built);
  await bed.applyRelease(built, input.spec);
  let port = 0;
  const start = (drift: Partial<DriftOptions> = {}): RunningExecutor =>
    bed.executor({
      metricsPort: 0,
      onListening: (listening) => {
        port = listening;
      },
      worker: { reconcileMs: 600_000, backoff: { initialMs: 100, factor: 2, maxMs: 1_000, jitter: 0.1 } },
      reflector: { backoff: { initialMs: 20, factor: 2, maxMs: 500, jitter: 0.1 } },
      drift: { ...watchOnly, retry: { initialMs: 50, factor: 2, maxMs: 1_000, jitter: 0.1 }, ...input.drift, ...drift },
    });
  let executor = start();
  const { namespace } = bed.names;
  const object = async (plural: string, name: string): Promise<Loose> =>
    bed.get(`${groups[plural] ?? '/api/v1'}/namespaces/${namespace}/${plural}/${name}`);
  const ready = async (): Promise<void> => {
    if (input.workloads === true) await bed.makeReady();
    await bed.untilStatus('Ready', (s) => is(s, 'Ready', 'True') && s.raw.state === 'Reconciling', 30_000);
    await watched();
  };
  /** The first pass may be over before the watches are open. */
  const watched = (): Promise<void> =>
    until('payload objects are watched', () => {
      const mine = executor.plan.requests({ verb: 'watch' }).filter(({ path }) => !path.includes('keelson'));
      const kinds = new Set(mine.map(({ resource }) => resource));
      return kinds.has('namespaces') && kinds.has('configmaps');
    });
  const drifting: DriftBed = {
    ...bed,
    get plan() {
      return executor.plan;
    },
    async kubectl(...args) {
      const result = await kubectl(bed.server, ['-n', namespace, ...args]);
      if (result.code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${result.stderr}`);
      return result.stdout;
    },
    object,
    async untilObject(plural, name, what, probe) {
      let last: Loose;
      await until(what, async () => {
        last = await object(plural, name);
        return last !== undefined && probe(last);
      }).catch((error: Error) => {
        throw new Error(`${error.message}; last seen: ${JSON.stringify(last)}`);
      });
      return last;
    },
    async events() {
      const { body } = await bed.server.admin.expect('GET', `/apis/events.k8s.io/v1/namespaces/${namespace}/events`);
      return body.items.map((event: Loose) => `${event.reason} ${event.regarding.name}: ${event.note}`);
    },
    async metric(name) {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return text.split('\n').find((line) => line.startsWith(`${name} `)) ?? '';
    },
    async restart(drift) {
      await executor.stop();
      executor = start(drift);
      await watched();
    },
  };
  await ready().catch(async (error: unknown) => {
    await bed.close();
    throw error;
  });
  return drifting;
}

/** Managers of an object that hold something besides its status. */
export const managersOf = (object: Loose): string[] =>
  object.metadata.managedFields
    .filter(({ subresource }: Loose) => subresource !== 'status')
    .map(({ manager, operation }: Loose) => `${manager} ${operation}`)
    .sort();

export const { hold: holdAnnotation, quiesce: quiesceAnnotation } = annotations;
