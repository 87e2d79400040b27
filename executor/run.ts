/** The executor as a process: who leads works on the Releases, everyone serves metrics. Composition only. */
import { Registry } from 'prom-client';
import {
  labels,
  leaseNames,
  managers,
  networkNamespace,
  systemNamespace,
  timings,
} from '../constructs/api/constants.ts';
import type { Clock, Random } from '../constructs/lib/clock.ts';
import { ProblemError } from '../constructs/lib/problems.ts';
import { addressesDomain } from './addresses/release/domain.ts';
import { type DriftOptions, defaultDriftOptions } from './apply/drift/keeper.ts';
import { defaultEngineOptions, type EngineOptions } from './apply/engine.ts';
import type { AttemptInfo } from './kube/call.ts';
import { createClient, type KubeClient } from './kube/client.ts';
import { Contact } from './kube/contact.ts';
import type { CredentialSource } from './kube/credentials.ts';
import { EventRecorder } from './kube/events.ts';
import type { ReflectorTimings } from './kube/reflector.ts';
import { createTransport, type OwnedTransport, type Transport } from './kube/transport.ts';
import { guardedTransport } from './lease/guarded.ts';
import type { HeldLease } from './lease/held.ts';
import { lead } from './lease/leadership.ts';
import { Seat } from './lease/seat.ts';
import { defaultLeaseTimings, type LeaseTimings, leaseTimings } from './lease/timings.ts';
import { ClusterWatch } from './network/cluster-watch.ts';
import { networkDomain, type PreflightPace } from './network/domain.ts';
import { installationMetrics } from './network/metrics.ts';
import { type EvidenceSource, Observer, type ObserverOptions } from './network/observer.ts';
import { NetworkReconciler } from './network/reconciler.ts';
import { Board } from './page/board.ts';
import { showLedger } from './page/ledger.ts';
import { tryServePage } from './page/server.ts';
import { type ControllerTimings, defaultControllerTimings, runReleases } from './release/controller.ts';
import { sealDomain } from './release/domain.ts';
import { manifestsDomain } from './release/manifests-domain.ts';
import type { WorkerOptions } from './release/worker.ts';
import { defaultFluxOptions, type FluxOptions } from './source/flux.ts';
import { executorMetrics } from './telemetry/metrics.ts';
import { observationMetrics } from './telemetry/observation.ts';
import { serveMetrics } from './telemetry/server.ts';

export type LogLevel = 'info' | 'warn' | 'error';

/** Makes what asks the sidecars, and runs whatever that needs (an authority, for one) until the signal aborts. */
export type EvidenceMaker = (parts: {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly namespace: string;
  readonly signal: AbortSignal;
}) => { readonly source: EvidenceSource; readonly running: Promise<void> };

export type EvidencePace = Pick<ObserverOptions, 'openEveryMs' | 'settledEveryMs' | 'drainPace'>;

export interface ExecutorOptions {
  readonly credentials: CredentialSource;
  readonly clock: Clock;
  readonly random: Random;
  /** A word that nobody had before, in lower case. */
  readonly uniqueId: () => string;
  /** Name of this process for people: the pod's. */
  readonly identity: string;
  readonly namespace?: string;
  /** Plans, and writes nothing but the plan and statuses. */
  readonly planOnly?: boolean;
  readonly allowUnsigned?: boolean;
  /** Gates that are treated as open; refused unless the namespace is labelled as that of a test cluster. */
  readonly bypassGates?: readonly string[];
  /** Milliseconds of every Lease in place of the usual ones; refused like bypassed gates where it is no test cluster. */
  readonly testLeaseMs?: number;
  /** Milliseconds between rounds of observation in place of the usual ones; refused alike. */
  readonly testObserveMs?: number;
  readonly retain?: number;
  /** Port of metrics on the loopback address; 0 takes a free one, absent or taken by another process serves none. */
  readonly metricsPort?: number;
  /** Port of the status page on the loopback address; 0 takes a free one, absent serves none. */
  readonly pagePort?: number;
  readonly lease?: Partial<LeaseTimings>;
  readonly engine?: Partial<EngineOptions>;
  readonly worker?: Partial<WorkerOptions>;
  readonly timings?: Partial<ControllerTimings>;
  readonly drift?: Partial<DriftOptions>;
  readonly reflector?: Partial<ReflectorTimings>;
  /** How evidence is gathered; absent: nothing observes, and no gate for evidence opens. One is made for each term. */
  readonly evidence?: EvidenceMaker;
  /** Where the workloads of networks are that are observed; kube-system by default. */
  readonly evidenceNamespaces?: readonly string[];
  /** How many nodes are asked for evidence at a time. */
  readonly evidenceAtOnce?: number;
  /** How nodes are looked at before a first install; absent: they are not looked at. */
  readonly preflight?: PreflightPace;
  /** Pauses between rounds of evidence; tests shorten them. */
  readonly evidencePace?: EvidencePace;
  /** Sources of Flux that may be read, and with how much patience. */
  readonly flux?: Partial<FluxOptions>;
  /** Wraps the transport; for tests that count, delay or lose requests. */
  readonly wrapTransport?: (transport: Transport) => Transport;
  /** Wraps the client that a term works with; for measurements that leave something out. */
  readonly wrapClient?: (client: KubeClient) => KubeClient;
  readonly log?: (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;
  /** Told once metrics are served. */
  readonly onListening?: (port: number) => void;
  /** Told once the status page is served. */
  readonly onPage?: (port: number) => void;
}

type TestOptions = Pick<ExecutorOptions, 'bypassGates' | 'testLeaseMs' | 'testObserveMs'>;

/**
 * Gates that may be bypassed here.
 * @throws ProblemError when options for test clusters are given and the namespace does not say that this is one.
 */
async function permittedBypass(
  client: KubeClient,
  namespace: string,
  { bypassGates: gates = [], testLeaseMs, testObserveMs }: TestOptions,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  if (gates.length === 0 && testLeaseMs === undefined && testObserveMs === undefined) return new Set();
  const found = await client.get({ apiVersion: 'v1', kind: 'Namespace', name: namespace }, { signal });
  const marked = found.type === 'found' && found.object.metadata.labels?.[labels.testCluster] === 'true';
  if (marked) return new Set(gates);
  if (found.type !== 'found' && found.type !== 'absent')
    throw new ProblemError([
      {
        reason: 'ApiUnavailable',
        message: `whether namespace ${namespace} is that of a test cluster could not be read: ${found.message}`,
      },
    ]);
  const unlabelled = `namespace ${namespace} is not labelled ${labels.testCluster}=true`;
  const refused = (what: string, remedy: string): never => {
    throw new ProblemError([{ reason: 'BypassRefused', message: `${what}: ${unlabelled}`, remedy }]);
  };
  if (gates.length > 0)
    return refused(
      `gates ${gates.join(', ')} can not be bypassed`,
      'start the executor without --test-bypass-gates; only a test cluster may go past gates without looking',
    );
  if (testLeaseMs !== undefined)
    return refused(
      'Leases can not be shortened',
      'start the executor without --test-lease-duration; shorter Leases forgive less delay',
    );
  return refused(
    'rounds of observation can not be hastened',
    'start the executor without --test-observe-interval; sidecars and API server get their rest',
  );
}

/**
 * Runs the executor until the signal aborts. It returns after writers have stopped, the last status is written and the
 * Lease is given up.
 * @throws ProblemError for options that this cluster refuses.
 */
export async function runExecutor(given: ExecutorOptions, signal: AbortSignal): Promise<void> {
  const { testLeaseMs, testObserveMs } = given;
  const options: ExecutorOptions = {
    ...given,
    ...(testLeaseMs === undefined ? {} : { lease: { ...leaseTimings(testLeaseMs), ...given.lease } }),
    ...(testObserveMs === undefined
      ? {}
      : { evidencePace: { openEveryMs: testObserveMs, settledEveryMs: testObserveMs, ...given.evidencePace } }),
  };
  const { clock, random, namespace = systemNamespace, log = () => undefined } = options;
  const registry = new Registry();
  const metrics = executorMetrics(registry);
  const networkMetrics = installationMetrics(registry);
  const silence = tellSilence(clock, log);
  const { silenceMs } = { ...defaultControllerTimings, ...options.timings };
  const contact = new Contact({ clock, silenceMs });
  const transport: OwnedTransport = createTransport({ credentials: options.credentials });
  const send = options.wrapTransport?.(transport.send) ?? transport.send;
  const clientOver = (through: Transport): KubeClient =>
    createClient({
      transport: through,
      clock,
      random,
      onAttempt: (attempt) => {
        metrics.attempted(attempt);
        silence(attempt);
        contact.attempted(attempt);
      },
    });
  const { wrapClient = (plain: KubeClient): KubeClient => plain } = options;
  const client = clientOver(send);
  const unserved = (error: unknown): undefined => {
    log('warn', `metrics are not served: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  };
  const { metricsPort } = options;
  // Nothing that an executor is for hangs on them: a port that another process has is told, and that is all.
  const server = metricsPort === undefined ? undefined : await serveMetrics(registry, metricsPort).catch(unserved);
  if (server !== undefined) options.onListening?.(server.port);
  const { identity, planOnly = false } = options;
  const board = new Board({ identity, namespace, planOnly }, clock);
  observationMetrics(registry, () => board.known(), clock);
  const page = await tryServePage({ source: board, clock }, options.pagePort, (why) =>
    log('warn', `the status page is not served: ${why}`),
  );
  if (page !== undefined) options.onPage?.(page.port);
  try {
    const bypassGates = await permittedBypass(client, namespace, options, signal);
    if (testLeaseMs !== undefined) log('warn', 'Leases are shortened', { testLeaseMs });
    if (testObserveMs !== undefined) log('warn', 'rounds of observation are hastened', { testObserveMs });
    if (bypassGates.size > 0) log('warn', 'gates are bypassed', { gates: [...bypassGates] });
    const seat = new Seat(signal);
    await lead(
      {
        client,
        clock,
        namespace,
        name: leaseNames.role('executor'),
        fieldManager: managers.objects,
        timings: { ...defaultLeaseTimings, ...options.lease },
        identity: options.identity,
        uniqueId: options.uniqueId,
        onEvent: (event) => {
          metrics.leading(event.type === 'leading');
          log(event.type === 'refused' ? 'warn' : 'info', `lease ${event.type}`, { ...event });
        },
        work: (lease) =>
          seat.during(() =>
            term(
              { ...options, namespace, log },
              // A client of its own: nothing that an earlier term has discovered is taken for true.
              {
                client: wrapClient(clientOver(guardedTransport(send, () => void lease.check()))),
                contact,
                metrics,
                networkMetrics,
                bypassGates,
                board,
              },
              lease,
              signal,
            ).finally(() => board.end()),
          ),
      },
      seat.signal,
    );
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    contact.close();
    await page?.close();
    await server?.close();
    await transport.close();
  }
}

const silenceEveryMs = 10_000;

/** Tells of requests without an answer, now and then: a process that waits for its API server must say so. */
function tellSilence(clock: Clock, log: NonNullable<ExecutorOptions['log']>): (attempt: AttemptInfo) => void {
  let told = Number.NEGATIVE_INFINITY;
  return ({ method, path, status }) => {
    if (status !== undefined || clock.monotonic() - told < silenceEveryMs) return;
    told = clock.monotonic();
    log('warn', 'the API server does not answer', { method, path });
  };
}

interface Parts {
  readonly client: KubeClient;
  readonly contact: Contact;
  readonly metrics: ReturnType<typeof executorMetrics>;
  readonly networkMetrics: ReturnType<typeof installationMetrics>;
  readonly bypassGates: ReadonlySet<string>;
  readonly board: Board;
}

type Settled = ExecutorOptions & { readonly namespace: string; readonly log: NonNullable<ExecutorOptions['log']> };

/** One term as leader. */
async function term(options: Settled, parts: Parts, lease: HeldLease, signal: AbortSignal): Promise<void> {
  const { clock, random, namespace, log, uniqueId, identity } = options;
  const { client, contact, board } = parts;
  const over = AbortSignal.any([signal, lease.signal]);
  const events = new EventRecorder({
    client,
    clock,
    uniqueId,
    reportingController: 'keelson.dev/executor',
    reportingInstance: identity,
    fieldManager: managers.objects,
  });
  const planOnly = options.planOnly ?? false;
  const telling = events.run(over);
  const evidence = observation(options, client, over);
  const observer = evidence === undefined ? {} : { observer: evidence.observer };
  board.begin((uid) => evidence?.observer.of(uid));
  const network = new NetworkReconciler({
    client,
    ...observer,
    clock,
    random,
    namespace,
    identity,
    planOnly,
    metrics: parts.networkMetrics,
    contact,
    tell: (event) => events.record(event),
    log: (level, message) => log(level, message),
    operationId: uniqueId,
    onWatch: (installations) => board.watch({ installations }),
    ...(options.lease === undefined ? {} : { leases: options.lease }),
  });
  const worker: WorkerOptions = {
    reconcileMs: 30_000,
    doubtMs: 65_000,
    backoff: timings.backoff,
    retain: options.retain ?? 3,
    allowUnsigned: options.allowUnsigned ?? false,
    planOnly,
    ...options.worker,
  };
  await Promise.all([
    network.run(over),
    showLedger(board, { client, clock, random, log, timings: options.reflector ?? {} }, over),
    evidence?.running,
    runReleases(
      {
        client,
        clock,
        random,
        namespace,
        domains: [
          sealDomain(manifestsDomain),
          sealDomain(addressesDomain),
          sealDomain(
            networkDomain({
              identity,
              operationId: uniqueId,
              ...(evidence === undefined ? {} : { observations: evidence.observer, ...evidence.peers }),
              ...(options.lease === undefined ? {} : { leases: options.lease }),
              ...(options.preflight === undefined ? {} : { preflight: options.preflight }),
            }),
          ),
        ],
        worker,
        engine: { ...defaultEngineOptions, ...options.engine, bypassGates: parts.bypassGates },
        drift: { ...defaultDriftOptions, reflector: options.reflector ?? {}, ...options.drift },
        timings: { ...defaultControllerTimings, ...options.timings },
        contact,
        ...(options.reflector === undefined ? {} : { reflector: options.reflector }),
        flux: { ...defaultFluxOptions, ...options.flux },
        check: () => lease.check(),
        onEvent: (event) => events.record(event),
        onProblem: ({ reason, message }) => log('warn', message, { reason }),
        onWatch: (releases) => board.watch({ releases }),
        onRecord: (release, record) => parts.metrics.released(release, record),
        onDrift: (release, event) => parts.metrics.drifted(release, event),
      },
      over,
    ),
  ]);
  await telling;
  if (!lease.signal.aborted) await events.flush(1_000);
}

interface Observation {
  readonly observer: Observer;
  readonly peers: Pick<EvidenceSource, 'peer'>;
  readonly running: Promise<unknown>;
}

/** What observes installations during a term; undefined where nothing gathers evidence. */
function observation(options: Settled, client: KubeClient, signal: AbortSignal): Observation | undefined {
  const { clock, random, namespace, log, evidence, reflector } = options;
  if (evidence === undefined) return undefined;
  const { source, running } = evidence({ client, clock, namespace, signal });
  const watch = new ClusterWatch({
    client,
    clock,
    random,
    namespaces: options.evidenceNamespaces ?? [networkNamespace],
    onNode: () => observer.hurryNodes(),
    onService: () => observer.hurry(),
    onProblem: (message) => log('warn', message),
    ...(reflector === undefined ? {} : { timings: reflector }),
  });
  const observer = new Observer({
    client,
    clock,
    namespace,
    source,
    look: () => watch.look(),
    atOnce: options.evidenceAtOnce ?? timings.evidence.nodeConcurrency,
    log: (level, message) => log(level, message),
    ...options.evidencePace,
  });
  const peers = source.peer === undefined ? {} : { peer: source.peer };
  return { observer, peers, running: Promise.all([running, watch.run(signal)]) };
}
