import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { annotations, labels, trustSecret } from '../../constructs/api/constants.ts';
import { chunkPayload } from '../../constructs/api/payload-chunks.ts';
import type { ReleaseSpecInput } from '../../constructs/api/release.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import type { Transport } from '../../executor/kube/transport.ts';
import { type ExecutorOptions, runExecutor } from '../../executor/run.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { type SharedServer, sharedApiServer } from '../apiserver/shared.ts';
import { FaultPlan, type RequestRecord } from '../faults/plan.ts';
import { faultTransport } from '../faults/transport.ts';
import { staticCredentials, until } from './kubeBed.ts';
import { type BuiltPayload, namespaceObject, type SliceNames, testKey } from './slice-payload.ts';

/** One Release in a namespace of its own on the shared API server, and executors that work on it. */
export interface SliceBed {
  readonly server: SharedServer;
  /** Where Releases and payloads are. */
  readonly system: string;
  readonly names: SliceNames;
  /** Puts a payload into the inbox, as a courier would. */
  deliver(built: BuiltPayload): Promise<void>;
  /** Applies the Release. */
  applyRelease(built: { readonly digest: string }, spec?: Partial<ReleaseSpecInput>): Promise<void>;
  annotate(key: string, value: string | null): Promise<void>;
  status(): Promise<StatusView>;
  /** Waits until the status says so; the time-out tells what it said. */
  untilStatus(what: string, probe: (status: StatusView) => boolean, limitMs?: number): Promise<StatusView>;
  /** Makes Deployment and DaemonSet ready, as controllers and kubelets would. */
  makeReady(): Promise<void>;
  executor(options?: Partial<ExecutorOptions> & { readonly wrap?: (inner: Transport) => Transport }): RunningExecutor;
  ledger(): Promise<Record<string, JsonObject>>;
  get(path: string): Promise<JsonObject | undefined>;
  close(): Promise<void>;
}

export interface RunningExecutor {
  readonly plan: FaultPlan;
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read a status loosely
type Loose = any;

export interface StatusView {
  readonly raw: Loose;
  readonly generation: number;
  condition(type: string): { status: string; reason: string; message: string } | undefined;
}

/** Long enough to be kept on a busy machine; executors of these tests give it up when they stop. */
const steadyLease = { durationMs: 30_000, renewEveryMs: 3_000, marginMs: 1_000, retryMs: 50, requestMs: 10_000 };

let shared: Promise<SharedServer> | undefined;

/** The server of this test file, with our CRDs. */
async function openServer(): Promise<SharedServer> {
  const server = await sharedApiServer();
  await installDefinitions(server);
  return server;
}

/** The CRDs as they are generated. */
async function installDefinitions(server: SharedServer): Promise<void> {
  const folder = new URL('../../constructs/api/generated/crds', import.meta.url).pathname;
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.yaml'))) {
    for (const { value } of parseYaml(readFileSync(join(folder, file), 'utf8'), file).documents) {
      const name = String(((value as JsonObject).metadata as JsonObject).name);
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`;
      await server.admin.expect('PATCH', path, {
        body: value,
        type: 'application/apply-patch+yaml',
        query: { fieldManager: 'test' },
      });
      await until(`${name} to be established`, async () => {
        const { body } = await server.admin.expect('GET', path);
        return body.status?.conditions?.some((c: Loose) => c.type === 'Established' && c.status === 'True') === true;
      });
    }
  }
}

const statusPollMs = 30;

const view = (release: Loose): StatusView => ({
  raw: release.status ?? {},
  generation: release.metadata.generation,
  condition: (type) => release.status?.conditions?.find((c: Loose) => c.type === type),
});

/** True when the status is about the present spec and a condition has this value. */
export const is = (status: StatusView, type: string, value: string): boolean =>
  status.raw.observedGeneration === status.generation && status.condition(type)?.status === value;

/**
 * @param own a server of the test's own, when it is to be killed.
 * @param beside a bed whose Release is to have another one beside it, for the same objects and under the same executor.
 */
export async function sliceBed(own?: SharedServer, beside?: SliceBed): Promise<SliceBed> {
  if (own !== undefined) await installDefinitions(own);
  else shared ??= openServer();
  const server = own ?? (await shared);
  if (server === undefined) throw new Error('no API server');
  const { admin } = server;
  const system = beside?.system ?? (await freshNamespace(admin, 'system'));
  const id = randomBytes(3).toString('hex');
  const names: SliceNames = {
    namespace: `demo-${id}`,
    group: `${id}.example.com`,
    ...beside?.names,
    release: `manifests-${id}`,
  };
  const releasePath = `/apis/keelson.dev/v1alpha1/namespaces/${system}/releases/${names.release}`;
  const running = new Set<RunningExecutor>();
  const trust = { name: trustSecret };
  if (beside === undefined)
    await admin.expect('POST', `/api/v1/namespaces/${system}/secrets`, {
      body: { apiVersion: 'v1', kind: 'Secret', metadata: trust, stringData: { key: testKey.publicKey } },
    });

  const apply = (path: string, body: unknown): Promise<unknown> =>
    admin.expect('PATCH', path, {
      body,
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'keelson-deliver' },
    });

  const readStatus = async (): Promise<StatusView> => view((await admin.expect('GET', releasePath)).body);

  const bed: SliceBed = {
    server,
    system,
    names,
    async deliver(built) {
      for (const chunk of chunkPayload(
        'payload',
        { release: names.release, digest: built.digest, namespace: system },
        built.archive,
      ))
        await apply(`/api/v1/namespaces/${system}/configmaps/${chunk.metadata.name}`, chunk);
    },
    async applyRelease(built, spec = {}) {
      await apply(releasePath, {
        apiVersion: 'keelson.dev/v1alpha1',
        kind: 'Release',
        metadata: { name: names.release, namespace: system },
        spec: { payload: { digest: built.digest }, source: { configMaps: {} }, ...spec },
      });
    },
    async annotate(key, value) {
      await admin.expect('PATCH', releasePath, {
        body: { metadata: { annotations: { [key]: value } } },
        type: 'application/merge-patch+json',
      });
    },
    status: readStatus,
    async untilStatus(what, probe, limitMs = 20_000) {
      const deadline = performance.now() + limitMs;
      for (;;) {
        const status = await readStatus();
        if (probe(status)) return status;
        if (performance.now() > deadline)
          throw new Error(`not within ${limitMs} ms: ${what}; status was ${JSON.stringify(status.raw, undefined, 1)}`);
        // Many of these tests run side by side on one server: a tight loop would be most of its load.
        await systemClock.sleep(statusPollMs);
      }
    },
    makeReady: () => makeReady(server, names.namespace),
    executor(options = {}) {
      const { wrap, ...rest } = options;
      const stop = new AbortController();
      const plan = new FaultPlan();
      const ended = runExecutor(
        {
          credentials: staticCredentials(server),
          clock: systemClock,
          random: Math.random,
          uniqueId: () => randomBytes(6).toString('hex'),
          identity: 'test',
          namespace: system,
          lease: steadyLease,
          engine: { gatePollMs: 100, goneMs: 3_000 },
          worker: { reconcileMs: 60_000, backoff: { initialMs: 100, factor: 2, maxMs: 1_000, jitter: 0.1 } },
          timings: { statusQuietMs: 500, statusRetryMs: 100, lastWordsMs: 1_000 },
          wrapTransport: (inner) => faultTransport(wrap?.(inner) ?? inner, plan),
          ...rest,
        },
        stop.signal,
      );
      const executor: RunningExecutor = {
        plan,
        ended,
        async stop() {
          running.delete(executor);
          stop.abort();
          await ended;
        },
      };
      running.add(executor);
      return executor;
    },
    async ledger() {
      const { body } = await admin.expect('GET', `/api/v1/namespaces/${system}/configmaps`, {
        query: { labelSelector: `${labels.holds}=ledger,${labels.release}=${names.release}` },
      });
      const entries = body.items.flatMap((item: Loose) => JSON.parse(item.data['entries.json']));
      return Object.fromEntries(entries.map((entry: Loose) => [entry.id, entry]));
    },
    async get(path) {
      const reply = await admin.request('GET', path);
      return reply.status === 200 ? reply.body : undefined;
    },
    async close() {
      for (const executor of running) await executor.stop();
    },
  };
  return bed;
}

async function makeReady(server: SharedServer, namespace: string): Promise<void> {
  const { admin } = server;
  const patch = async (plural: string, name: string, status: (object: Loose) => JsonObject): Promise<void> => {
    const path = `/apis/apps/v1/namespaces/${namespace}/${plural}/${name}`;
    await until(`${plural}/${name} to exist`, async () => (await admin.request('GET', path)).status === 200);
    const { body } = await admin.expect('GET', path);
    await admin.expect('PATCH', `${path}/status`, {
      body: { status: { observedGeneration: body.metadata.generation, ...status(body) } },
      type: 'application/merge-patch+json',
      query: { fieldManager: 'kube-controller-manager' },
    });
  };
  await patch('deployments', 'server', ({ spec }) => ({
    replicas: spec.replicas,
    updatedReplicas: spec.replicas,
    readyReplicas: spec.replicas,
    availableReplicas: spec.replicas,
  }));
  await patch('daemonsets', 'agent', () => ({
    currentNumberScheduled: 1,
    desiredNumberScheduled: 1,
    updatedNumberScheduled: 1,
    numberReady: 1,
    numberAvailable: 1,
    numberMisscheduled: 0,
  }));
}

const own = new Set(['leases', 'events']);

/** Requests that change objects of the payload: everything of ours (ledger, copies, plans, statuses, Leases, Events) apart. */
export function payloadMutations(plan: FaultPlan, system: string): RequestRecord[] {
  return plan
    .mutations()
    .filter(
      ({ resource, namespace, subresource }) => !own.has(resource) && namespace !== system && subresource !== 'status',
    );
}

export const holdAnnotation = annotations.hold;
export const pinAnnotation = annotations.pin;

/** A bed whose namespace exists; closed at the end, however it comes. */
export async function withBed(work: (bed: SliceBed) => Promise<void>): Promise<void> {
  const bed = await sliceBed();
  try {
    await bed.server.admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(bed.names.namespace) });
    await work(bed);
  } finally {
    await bed.close();
  }
}
