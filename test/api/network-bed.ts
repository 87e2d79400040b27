import { randomBytes } from 'node:crypto';
import { trustSecret } from '../../constructs/api/constants.ts';
import type { Inventory } from '../../constructs/api/inventory.ts';
import { generateKeyPair, type KeyPair } from '../../constructs/api/signature.ts';
import type { Unit } from '../../constructs/api/tree.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { gzipFixed, packTar } from '../../constructs/lib/tar.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import type { Transport } from '../../executor/kube/transport.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type ExecutorOptions, runExecutor } from '../../executor/run.ts';
import type { Rendered, RenderOutcome } from '../../renderer/render.ts';
import { createNodes, type Extra, type FakeNode } from '../apiserver/extras.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { type ChartFiles, chartFiles, packageChart } from '../charts/build.ts';
import type { ChartVariant } from '../charts/variants.ts';
import { type CrashPlan, crashTransport } from '../faults/crash.ts';
import { FaultPlan, type RequestRecord, violationsVariable } from '../faults/plan.ts';
import { faultTransport } from '../faults/transport.ts';
import { edgeOf, staticCredentials, until } from './kubeBed.ts';
import {
  type ChartPin,
  type ClusterText,
  evidenceGates,
  installationName,
  releaseName,
  render,
  tryRender,
} from './network-folder.ts';
import { countingShelf, type Shelf, type Workbench, workbench } from './network-shelf.ts';

export const system = 'keelson-system';
export const paths = {
  release: `/apis/keelson.dev/v1alpha1/namespaces/${system}/releases/${releaseName}`,
  installation: `/apis/network.keelson.dev/v1alpha1/namespaces/kube-system/kubeovninstallations/${installationName}`,
  central: '/apis/apps/v1/namespaces/kube-system/deployments/ovn-central',
  plan: `/api/v1/namespaces/${system}/configmaps/keelson-plan-${releaseName}`,
} as const;

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
export type Loose = any;

/** Registry, Helm and key of one test file: they outlive its clusters. */
export interface Workshop {
  readonly shelf: Shelf;
  readonly bench: Workbench;
  readonly key: KeyPair;
  /** Packs a chart of the tests and puts it on the shelf. */
  chart(variant?: ChartVariant): Promise<ChartPin>;
  /** The newer shape with its files edited, under a tag and an appVersion of its own. */
  edited(tag: string, edit: (files: ChartFiles) => void, appVersion?: string): Promise<ChartPin>;
  close(): Promise<void>;
}

export async function workshop(make: () => Promise<Shelf> = countingShelf): Promise<Workshop> {
  const shelf = await make();
  const bench = await workbench(shelf);
  return {
    shelf,
    bench,
    key: generateKeyPair(),
    async chart(variant = 'new') {
      const packed = await packageChart(variant);
      await shelf.putChart(packed.version, packed.bytes);
      return { tag: packed.version, digest: packed.digest, appVersion: packed.version.replace(/^v/, '') };
    },
    async edited(tag, edit, appVersion = '1.16.13') {
      const files = await chartFiles('new');
      for (const [path, text] of files) files.set(path, text.replaceAll('1.16.13', appVersion));
      edit(files);
      const entries = [...files].map(([path, text]) => ({ path: `kube-ovn/${path}`, bytes: Buffer.from(text) }));
      const bytes = gzipFixed(await packTar(entries));
      await shelf.putChart(tag, bytes);
      return { tag, digest: sha256Digest(bytes), appVersion };
    },
    async close() {
      await bench.close();
      await shelf.close();
    },
  };
}

export const controlPlane = { 'node-role.kubernetes.io/control-plane': '' };

/** `n` nodes of the control plane: n1 with 10.0.0.1, and so on. */
export const controlNodes = (n: number): FakeNode[] =>
  Array.from({ length: n }, (_, i) => ({ name: `n${i + 1}`, address: `10.0.0.${i + 1}`, labels: controlPlane }));

export interface RunningExecutor {
  readonly plan: FaultPlan;
  readonly ended: Promise<void>;
  /** Whether it died as planned. */
  dead(): boolean;
  readonly said: string[];
  /** What `/metrics` answers. */
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

export interface ExecutorInput extends Partial<ExecutorOptions> {
  readonly wrap?: (inner: Transport) => Transport;
  /** Where the process dies; nothing of it goes on afterwards. */
  readonly crash?: CrashPlan;
}

/** One cluster: an API server of its own, with nodes, and what was delivered to it. */
export interface NetworkBed {
  readonly server: ApiServer;
  readonly chart: ChartPin;
  inventory(): Promise<Inventory>;
  render(text?: Partial<ClusterText>): Promise<Rendered>;
  tryRender(text?: Partial<ClusterText>): Promise<RenderOutcome>;
  /** Applies units of a rendered tree as a courier does; all three by default. */
  deliver(rendered: Rendered, units?: readonly Unit[]): Promise<void>;
  /** Server-side apply by an administrator, under any manager. */
  apply(object: object, manager: string): Promise<void>;
  get(path: string): Promise<Loose>;
  patch(path: string, body: unknown): Promise<Loose>;
  release(): Promise<Loose>;
  installation(): Promise<Loose>;
  /** Waits until the Release (or the installation) is so; a time-out tells what it was. */
  until(path: string, what: string, probe: (object: Loose) => boolean, limitMs?: number): Promise<Loose>;
  /** Makes every workload of Kube-OVN ready from here on, as controllers and kubelets would. */
  playKubelets(): void;
  /** Runs the executor under the account that was rendered for it. */
  executor(input?: ExecutorInput): Promise<RunningExecutor>;
  ledger(): Promise<Loose[]>;
  close(): Promise<void>;
}

/** Long enough for a busy machine; a process that stops gives its Leases up at once. */
const testLease = { durationMs: 8_000, renewEveryMs: 1_500, marginMs: 1_000, retryMs: 100, requestMs: 3_000 };

/** A condition of a status; absent when the status is about an older generation. */
export function condition(object: Loose, type: string): Loose {
  if (object.status?.observedGeneration !== object.metadata.generation) return undefined;
  return object.status.conditions?.find((c: Loose) => c.type === type);
}

export const gatesBypassed = (object: Loose): boolean => condition(object, 'Ready')?.reason === 'GatesBypassed';

const own = new Set(['leases', 'events', 'kubeovninstallations', 'releases']);

/** Requests that change objects of the payload: everything of ours (ledger, copies, plans, statuses, Leases, Events) apart. */
export function payloadMutations(log: readonly RequestRecord[]): RequestRecord[] {
  return log.filter(({ mutating, resource, namespace }) => mutating && !own.has(resource) && namespace !== system);
}

/** Every request that changed anything, Leases apart. */
export const changes = (log: readonly RequestRecord[]): RequestRecord[] =>
  log.filter(({ mutating, resource }) => mutating && resource !== 'leases');

export async function networkBed(
  shop: Workshop,
  options: {
    readonly chart?: ChartPin;
    readonly nodes?: readonly FakeNode[];
    readonly with?: readonly Extra[];
    readonly extraArgs?: readonly string[];
  } = {},
): Promise<NetworkBed> {
  const server = await startApiServer({
    with: options.with ?? [],
    extraArgs: options.extraArgs ?? [],
    tools: { onProgress: (l) => console.error(l) },
  });
  const { admin } = server;
  const chart = options.chart ?? (await shop.chart());
  await createNodes(admin, options.nodes ?? controlNodes(3));
  const edge = edgeOf(server);
  const running = new Set<RunningExecutor>();
  const closing = new AbortController();
  const playing: Promise<void>[] = [];

  const get = async (path: string): Promise<Loose> => {
    const reply = await admin.request('GET', path);
    return reply.status === 200 ? reply.body : undefined;
  };
  const apply = async (object: KubeObject, manager = 'keelson-deliver'): Promise<void> => {
    const outcome = await edge.client.apply(object, { fieldManager: manager, signal: closing.signal });
    if (!('object' in outcome))
      throw new Error(`${object.kind} ${object.metadata.name}: ${outcome.type} ${JSON.stringify(outcome)}`);
  };
  const complete = async (text: Partial<ClusterText>): Promise<ClusterText> => ({
    chart,
    inventory: text.inventory ?? (await inventoryOf(server)),
    ...text,
  });

  const bed: NetworkBed = {
    server,
    chart,
    inventory: () => inventoryOf(server),
    render: async (text = {}) => render(shop, await complete(text)),
    tryRender: async (text = {}) => tryRender(shop, await complete(text)),
    async deliver(rendered, units = ['10-system', '20-releases', '30-specs']) {
      for (const unit of units) {
        const objects = objectsOf(rendered, unit);
        for (const first of [isNamespace, isDefinition])
          for (const object of objects.filter(first)) await apply(object);
        for (const { metadata } of objects.filter(isDefinition)) await established(bed, metadata.name ?? '');
        const rest = objects.filter((object) => !isNamespace(object) && !isDefinition(object));
        await Promise.all(rest.map((object) => apply(object)));
        if (unit === '10-system') await prepareSystem(server, shop.key);
      }
    },
    apply: (object, manager) => apply(object as KubeObject, manager),
    get,
    async patch(path, body) {
      return (await admin.expect('PATCH', path, { body, type: 'application/merge-patch+json' })).body;
    },
    release: async () => (await admin.expect('GET', paths.release)).body,
    installation: async () => (await admin.expect('GET', paths.installation)).body,
    async until(path, what, probe, limitMs = 20_000) {
      let last: Loose;
      const look = async (): Promise<boolean> => {
        last = await get(path);
        return last !== undefined && probe(last);
      };
      await until(what, look, limitMs).catch((error: Error) => {
        throw new Error(`${error.message}; last seen: ${JSON.stringify(last?.status ?? last, undefined, 1)}`);
      });
      return last;
    },
    playKubelets: () => void playing.push(keepReady(server, closing.signal)),
    async executor(input = {}) {
      const { wrap, crash, ...rest } = input;
      const token = await serviceAccountToken(admin, system, 'keelson-executor');
      const stop = new AbortController();
      const plan = new FaultPlan({ violationsFile: process.env[violationsVariable] });
      const said: string[] = [];
      let port = 0;
      let dead = false;
      const mortal = (inner: Transport): Transport => {
        if (crash === undefined) return inner;
        const { transport, crashed } = crashTransport(inner, crash);
        crashed.addEventListener('abort', () => {
          dead = true;
          stop.abort(crashed.reason);
        });
        return transport;
      };
      const ended = runExecutor(
        {
          credentials: staticCredentials(server, token),
          clock: systemClock,
          random: Math.random,
          uniqueId: () => randomBytes(6).toString('hex'),
          identity: 'test',
          lease: testLease,
          engine: { gatePollMs: 100, goneMs: 3_000 },
          worker: { reconcileMs: 500, backoff: { initialMs: 100, factor: 2, maxMs: 1_000, jitter: 0.1 } },
          timings: { statusQuietMs: 500, statusRetryMs: 100, lastWordsMs: 1_000 },
          metricsPort: 0,
          onListening: (at) => {
            port = at;
          },
          log: (level, message, fields) => said.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`),
          wrapTransport: (inner) => faultTransport(mortal(wrap?.(inner) ?? inner), plan),
          ...rest,
        },
        stop.signal,
      );
      const executor: RunningExecutor = {
        plan,
        ended,
        said,
        dead: () => dead,
        metrics: async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
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
      const selector = `keelson.dev/holds=ledger,keelson.dev/release=${releaseName}`;
      const { body } = await admin.expect('GET', `/api/v1/namespaces/${system}/configmaps`, {
        query: { labelSelector: selector },
      });
      return body.items.flatMap((item: Loose) => JSON.parse(item.data['entries.json']));
    },
    async close() {
      for (const executor of running) await executor.stop().catch(() => undefined);
      closing.abort();
      await Promise.all(playing);
      await edge.transport.close();
      await server.stop();
    },
  };
  return bed;
}

/** An executor that goes past the gates for which there is no evidence. */
export const bypass = { bypassGates: evidenceGates } as const;

const isNamespace = (object: KubeObject): boolean => object.kind === 'Namespace';
const isDefinition = (object: KubeObject): boolean => object.kind === 'CustomResourceDefinition';

function objectsOf(rendered: Rendered, unit: Unit): KubeObject[] {
  return [...rendered.tree]
    .filter(([path]) => path.startsWith(`sync/${unit}/`))
    .flatMap(([path, bytes]) => parseYaml(Buffer.from(bytes).toString('utf8'), path).documents)
    .map(({ value }) => value as unknown as KubeObject);
}

const established = (bed: NetworkBed, name: string): Promise<Loose> =>
  bed.until(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`, `${name} to be established`, (crd) =>
    crd.status?.conditions?.some((c: Loose) => c.type === 'Established' && c.status === 'True'),
  );

/** What an administrator does once: the trusted key, and the mark of a test cluster. */
async function prepareSystem({ admin }: ApiServer, key: KeyPair): Promise<void> {
  await admin.expect('PATCH', `/api/v1/namespaces/${system}`, {
    body: { metadata: { labels: { 'keelson.dev/test-cluster': 'true' } } },
    type: 'application/merge-patch+json',
  });
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: trustSecret }, data: {} as JsonObject };
  secret.data = { key: Buffer.from(key.publicKey).toString('base64') };
  await admin.expect('PATCH', `/api/v1/namespaces/${system}/secrets/${trustSecret}`, {
    body: secret,
    type: 'application/apply-patch+yaml',
    query: { fieldManager: 'admin' },
  });
}

/** The facts as `keelson inventory` reads them. */
async function inventoryOf({ admin }: ApiServer): Promise<Inventory> {
  const [space, nodes] = await Promise.all([
    admin.expect('GET', '/api/v1/namespaces/kube-system'),
    admin.expect('GET', '/api/v1/nodes'),
  ]);
  return {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Inventory',
    metadata: { name: 'test' },
    spec: {
      clusterUID: space.body.metadata.uid,
      kubernetesVersion: '1.34.2',
      serviceCIDRs: ['10.96.0.0/16'],
      nodes: nodes.body.items.map((node: Loose) => ({
        name: node.metadata.name,
        uid: node.metadata.uid,
        internalIPs: node.status.addresses.filter((a: Loose) => a.type === 'InternalIP').map((a: Loose) => a.address),
        labels: { ...node.metadata.labels },
        unschedulable: false,
      })),
    },
  };
}

const deploymentStatus = ({ spec }: Loose): JsonObject => ({
  replicas: spec.replicas,
  updatedReplicas: spec.replicas,
  readyReplicas: spec.replicas,
  availableReplicas: spec.replicas,
});
const daemonSetStatus = (): JsonObject => ({
  currentNumberScheduled: 3,
  desiredNumberScheduled: 3,
  updatedNumberScheduled: 3,
  numberReady: 3,
  numberAvailable: 3,
  numberMisscheduled: 0,
});

async function keepReady({ admin }: ApiServer, signal: AbortSignal): Promise<void> {
  const kinds = [
    ['deployments', deploymentStatus],
    ['daemonsets', daemonSetStatus],
  ] as const;
  while (!signal.aborted) {
    for (const [plural, statusOf] of kinds) {
      const { body } = await admin.expect('GET', `/apis/apps/v1/namespaces/kube-system/${plural}`);
      const behind = body.items.filter((o: Loose) => o.status?.observedGeneration !== o.metadata.generation);
      for (const object of behind)
        await admin.request('PATCH', `/apis/apps/v1/namespaces/kube-system/${plural}/${object.metadata.name}/status`, {
          body: { status: { observedGeneration: object.metadata.generation, ...statusOf(object) } },
          type: 'application/merge-patch+json',
          query: { fieldManager: 'kube-controller-manager' },
        });
    }
    await systemClock.sleep(50, signal).catch(() => undefined);
  }
}
