/** All Releases of a namespace: a worker and a reporter for each, fed by watches. */
import { annotations, apiVersion, labels, timings } from '../../constructs/api/constants.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { DriftOptions } from '../apply/drift/keeper.ts';
import type { DriftEvent } from '../apply/drift/mend.ts';
import type { EngineOptions } from '../apply/engine.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Contact } from '../kube/contact.ts';
import type { EventInput } from '../kube/events.ts';
import { Reflector, type ReflectorEvent, type ReflectorProblem, type ReflectorTimings } from '../kube/reflector.ts';
import { type KubeObject, refOf } from '../kube/types.ts';
import { type FluxOptions, fluxSource } from '../source/flux.ts';
import { FluxWatch } from '../source/flux-watch.ts';
import { inboxSource } from '../source/inbox.ts';
import { retainedStore } from '../source/retained.ts';
import { payloadSources } from '../source/sources.ts';
import { dependentsToWake } from './dependents.ts';
import type { SealedDomain } from './domain.ts';
import { driftNews, movedNews } from './drift-news.ts';
import { edgeOf } from './edge.ts';
import type { WorkerRecord } from './record.ts';
import { StatusReporter } from './reporter.ts';
import { statusOf } from './status.ts';
import { watchTrust } from './trust.ts';
import { asksTheSame, readConditions, readRelease } from './view.ts';
import { ReleaseWorker, type WorkerOptions } from './worker.ts';

export interface ControllerTimings {
  /** How long mere numbers wait to be written to a status. */
  readonly statusQuietMs: number;
  readonly statusRetryMs: number;
  /** How long the last status of a process may take. */
  readonly lastWordsMs: number;
  /** How long every request must go unanswered before the API server counts as lost. */
  readonly silenceMs: number;
  /** How long after its return a status may still tell what was seen before. */
  readonly outageGraceMs: number;
}

export const defaultControllerTimings: ControllerTimings = {
  statusQuietMs: 5_000,
  statusRetryMs: 2_000,
  lastWordsMs: 3_000,
  silenceMs: 5_000,
  outageGraceMs: timings.outageGraceMs,
};

export interface ControllerOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly namespace: string;
  readonly domains: readonly SealedDomain[];
  readonly worker: WorkerOptions;
  readonly engine: EngineOptions;
  readonly drift: DriftOptions;
  readonly timings: ControllerTimings;
  readonly contact: Contact;
  readonly reflector?: Partial<ReflectorTimings>;
  readonly flux: FluxOptions;
  /** Called before every write. @throws when this process may not write any more. */
  readonly check: () => void;
  readonly onEvent?: (event: EventInput) => void;
  readonly onProblem?: (problem: ReflectorProblem) => void;
  /** Told of every change of a record, for metrics. */
  readonly onRecord?: (release: string, record: WorkerRecord | undefined) => void;
  /** Given the Releases as they are watched, for those who only read. */
  readonly onWatch?: (releases: ReadonlyMap<string, KubeObject>) => void;
  /** Told of what was set back, for metrics. */
  readonly onDrift?: (release: string, event: DriftEvent) => void;
}

interface Managed {
  readonly uid: string;
  readonly worker: ReleaseWorker;
  readonly stop: AbortController;
  readonly ended: Promise<unknown>;
}

/** Runs all Releases until the signal aborts; writers have stopped and the last status is written when it returns. */
export async function runReleases(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const controller = new Controller(options);
  await controller.run(signal);
}

class Controller {
  readonly #options: ControllerOptions;
  readonly #releases: Reflector;
  readonly #inbox: Reflector;
  readonly #flux: FluxWatch;
  readonly #managed = new Map<string, Managed>();
  readonly #ending = new Set<Promise<unknown>>();

  constructor(options: ControllerOptions) {
    this.#options = options;
    const { client, clock, random, namespace, reflector = {}, onProblem } = options;
    const common = { client, clock, random, timings: reflector, ...(onProblem === undefined ? {} : { onProblem }) };
    this.#releases = new Reflector({
      ...common,
      selection: { apiVersion, kind: 'Release', namespace },
      handler: (event) => this.#onRelease(event),
    });
    this.#inbox = new Reflector({
      ...common,
      selection: { apiVersion: 'v1', kind: 'ConfigMap', namespace, labelSelector: `${labels.holds}=payload` },
      // Only that a chunk came is of interest; its bytes are read when they are wanted.
      transform: ({ apiVersion: version, kind, metadata }) => ({ apiVersion: version, kind, metadata }),
      handler: (event) => this.#onInbox(event),
    });
    this.#flux = new FluxWatch({
      ...common,
      namespaces: options.flux.namespaces,
      onChange: (release) => this.#managed.get(release)?.worker.poke(),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const deaf = this.#options.contact.listen(() => this.#lookAnew());
    this.#options.onWatch?.(this.#releases.objects);
    await Promise.all([this.#releases.run(signal), this.#inbox.run(signal)]);
    deaf();
    await this.#flux.close();
    for (const { stop } of this.#managed.values()) stop.abort();
    await Promise.all([...this.#managed.values()].map(({ ended }) => ended));
    await Promise.all(this.#ending);
  }

  #lookAnew(): void {
    for (const { worker } of this.#managed.values()) worker.lookAnew();
  }

  #onInbox(event: ReflectorEvent): void {
    if (event.type === 'synced') return;
    const release = event.object.metadata.labels?.[labels.release];
    if (release !== undefined) this.#managed.get(release)?.worker.poke();
  }

  #onRelease(event: ReflectorEvent): void {
    if (event.type === 'synced') return;
    const name = event.object.metadata.name ?? '';
    if (event.type === 'deleted') this.#end(name);
    // Of what the status says, mostly by ourselves, only the first worker of a Release needs to know.
    else if (event.type === 'added' || !asksTheSame(event.previous, event.object)) this.#take(name, event.object);
    for (const other of dependentsToWake(event, this.#releases.objects.values()))
      this.#managed.get(other)?.worker.poke();
  }

  #end(name: string): void {
    const managed = this.#managed.get(name);
    if (managed === undefined) return;
    this.#managed.delete(name);
    this.#flux.want(name, undefined);
    managed.stop.abort();
    const ending = managed.ended.finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    this.#options.onRecord?.(name, undefined);
  }

  #take(name: string, object: KubeObject): void {
    const read = readRelease(object);
    // The API server refuses what can not be read; a Release from before is left as it is and told in the log.
    if (!read.ok) {
      this.#options.onProblem?.({
        reason: 'Undecodable',
        message: read.problems.map(({ message }) => message).join('; '),
      });
      return;
    }
    this.#flux.want(name, read.view.spec.source.flux);
    const known = this.#managed.get(name);
    if (known !== undefined && known.uid === read.view.uid) {
      known.worker.update(read.view);
      return;
    }
    if (known !== undefined) this.#end(name);
    this.#managed.set(name, this.#start(name, read.view.uid));
    this.#managed.get(name)?.worker.update(read.view);
  }

  #start(name: string, uid: string): Managed {
    const { client, clock, random, namespace, domains, engine, check, timings, contact } = this.#options;
    const { reconcileMs: everyMs } = this.#options.worker;
    const stop = new AbortController();
    const live = (): KubeObject | undefined => this.#releases.objects.get(`${namespace}/${name}`);
    const reporter: StatusReporter = new StatusReporter({
      client,
      clock,
      live,
      build: (release) => statusOf(worker.record, readConditions(release), clock.now()),
      quietMs: timings.statusQuietMs,
      retryMs: timings.statusRetryMs,
      onWritten: (outcome) => {
        if ('message' in outcome) this.#problem(`status of Release ${name}: ${outcome.message}`);
      },
      onError: (error) =>
        this.#problem(`status of Release ${name}: ${error instanceof Error ? error.message : String(error)}`),
    });
    let told = '';
    const worker = new ReleaseWorker({
      client,
      clock,
      random,
      release: name,
      namespace,
      domains,
      engine,
      check,
      drift: this.#options.drift,
      source: payloadSources(
        inboxSource(client, namespace),
        fluxSource({ client, clock, random, options: this.#options.flux }),
      ),
      retained: retainedStore(client, namespace),
      options: this.#options.worker,
      releaseOf: (other) => this.#releases.objects.get(`${namespace}/${other}`),
      changed: (record) => {
        reporter.changed(edgeOf(record));
        this.#options.onRecord?.(name, record);
        told = this.#tell(live(), record, told);
      },
      told: () => reporter.flush(writing.signal),
      onDrift: (event) => {
        this.#options.onEvent?.(driftNews(event));
        this.#options.onDrift?.(name, event);
      },
      onMoved: (moved) => {
        const release = live();
        if (release !== undefined) this.#options.onEvent?.(movedNews(release, moved));
      },
      onProblem: (problem) => this.#options.onProblem?.(problem),
    });
    const writing = new AbortController();
    const work = async (): Promise<void> => {
      const trust = { clock, contact, everyMs, graceMs: timings.outageGraceMs };
      const over = (): void => worker.outdated();
      const reporting = reporter.run(writing.signal);
      const watching = watchTrust({ ...trust, lookedAt: () => worker.record.lookedAt, over }, writing.signal);
      await worker.run(stop.signal);
      writing.abort();
      await Promise.all([reporting, watching]);
      // The last words have a limit of their own, since the process is on its way out.
      await reporter.lastWords(AbortSignal.timeout(timings.lastWordsMs));
    };
    return { uid, worker, stop, ended: work() };
  }

  #problem(message: string): void {
    this.#options.onProblem?.({ reason: 'Handler', message });
  }

  /** An Event when the outcome is another than before. */
  #tell(release: KubeObject | undefined, record: WorkerRecord, told: string): string {
    const { kind, reason, message } = record.outcome;
    const now = `${kind} ${reason}`;
    if (now === told || release === undefined || record.state === 'Initial') return told;
    const bad = kind === 'retrying' || kind === 'terminal' || kind === 'unhealthy' || kind === 'driftFight';
    this.#options.onEvent?.({
      regarding: { ...refOf(release), ...(release.metadata.uid === undefined ? {} : { uid: release.metadata.uid }) },
      type: bad ? 'Warning' : 'Normal',
      reason,
      action: 'Reconcile',
      note: message === '' ? reason : message,
      ...revisionNotes(record),
    });
    return now;
  }
}

/** What of an Event a program needs to tell the commit that it is about. */
function revisionNotes({ outcome, attempted, revision }: WorkerRecord): Pick<EventInput, 'annotations'> {
  const about = outcome.kind === 'steady' ? revision?.revision : (attempted ?? revision?.revision);
  if (about === undefined) return {};
  const origin = revision?.revision === about ? revision.originRevision : undefined;
  return {
    annotations: {
      [annotations.revision]: about,
      ...(origin === undefined ? {} : { [annotations.originRevision]: origin }),
    },
  };
}
