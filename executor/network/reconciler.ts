/** The only writer of the status of installations: looks, judges, writes, tells. */
import { managers } from '../../constructs/api/constants.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import { isObject } from '../../constructs/lib/json.ts';
import { formatProblems, type Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Contact } from '../kube/contact.ts';
import type { EventInput } from '../kube/events.ts';
import { Reflector } from '../kube/reflector.ts';
import { writeStatus } from '../kube/status.ts';
import { type KubeObject, refOf, uidOf } from '../kube/types.ts';
import { WorkQueue, type WorkResult } from '../kube/workqueue.ts';
import type { LeaseTimings } from '../lease/timings.ts';
import { pinOf } from '../observe/retained.ts';
import type { RecordPin } from '../observe/topology-record.ts';
import type { GuardOutcome } from '../release/domain.ts';
import { recordable } from './evidence.ts';
import { guardPhase } from './guard.ts';
import type { InstallationMetrics } from './metrics.ts';
import { observeInTime } from './observe.ts';
import type { Observer } from './observer.ts';
import { hasOrphanFinalizer, orphanObjects, setOrphanFinalizer } from './orphan.ts';
import { makeRecord, topologyFromNowOn } from './record.ts';
import { installationRef, readCheckpoint, readInstallation } from './snapshot.ts';
import { installationStatus } from './status.ts';
import { transitionEvents } from './transitions.ts';

export interface NetworkReconcilerOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Where Releases, ledgers and Leases are. */
  readonly namespace: string;
  readonly identity: string;
  readonly planOnly: boolean;
  readonly leases?: Partial<LeaseTimings>;
  /** How often an installation is looked at while something is open, and while nothing is. */
  readonly openEveryMs?: number;
  readonly settledEveryMs?: number;
  readonly contact: Contact;
  readonly metrics: InstallationMetrics;
  readonly tell: (event: EventInput) => void;
  readonly log: (level: 'info' | 'warn', message: string) => void;
  readonly operationId: () => string;
  /** Observes the installations; absent where nothing does. */
  readonly observer?: Observer;
  /** Given the installations as they are watched, for those who only read. */
  readonly onWatch?: (installations: ReadonlyMap<string, KubeObject>) => void;
}

/** Less than the time for which a status may tell what was seen before an outage. */
const lookLimitMs = 20_000;

/** A pass that holds the Leases may take its time; the record waits for the next round then. */
const recordLeaseMs = 2_000;

const releaseName = (installation: string): string => `network-${installation}`;

/** Watches installations and their Releases and keeps the statuses true. */
export class NetworkReconciler {
  readonly #options: NetworkReconcilerOptions;
  readonly #queue: WorkQueue;

  constructor(options: NetworkReconcilerOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      clock: options.clock,
      random: options.random,
      onError: (key, error) =>
        options.log('warn', `installation ${key}: ${error instanceof Error ? error.message : String(error)}`),
    });
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { client, clock, random, namespace, log, contact } = this.#options;
    const onProblem = ({ message }: { message: string }): void => log('warn', message);
    const installations = new Reflector({
      client,
      clock,
      random,
      onProblem,
      selection: { apiVersion: 'network.keelson.dev/v1alpha1', kind: 'KubeOVNInstallation' },
      handler: (event) => {
        if (event.type !== 'synced') this.#queue.add(keyOf(event.object));
      },
    });
    const releases = new Reflector({
      client,
      clock,
      random,
      onProblem,
      selection: { apiVersion: 'keelson.dev/v1alpha1', kind: 'Release', namespace },
      handler: (event) => {
        if (event.type === 'synced' || !event.object.metadata.name?.startsWith('network-')) return;
        const name = event.object.metadata.name.slice('network-'.length);
        for (const installation of installations.objects.values())
          if (installation.metadata.name === name) this.#queue.add(keyOf(installation));
      },
    });
    this.#options.onWatch?.(installations.objects);
    // What was seen before an outage is looked at again as soon as it is over, and not when its turn comes.
    const deaf = contact.listen((event) => {
      if (event === 'lost') return;
      for (const installation of installations.objects.values()) this.#queue.add(keyOf(installation));
    });
    await Promise.all([
      installations.run(signal),
      releases.run(signal),
      this.#options.observer?.run(
        () => [...installations.objects.values()],
        (installation) => this.#queue.add(keyOf(installation)),
        signal,
      ),
      this.#queue.run(1, (key, work) => this.#timed(key, work), signal),
    ]);
    deaf();
  }

  async #timed(key: string, signal: AbortSignal): Promise<WorkResult> {
    const { clock, metrics } = this.#options;
    const started = clock.monotonic();
    let result: 'ok' | 'error' = 'error';
    try {
      const worked = await this.reconcile(key, signal);
      result = worked.type === 'failed' ? 'error' : 'ok';
      return worked;
    } finally {
      metrics.reconciled(result, (clock.monotonic() - started) / 1000);
    }
  }

  /** One look at one installation (`namespace/name`). */
  async reconcile(key: string, signal: AbortSignal): Promise<WorkResult> {
    const { client, metrics } = this.#options;
    const [namespace = '', name = ''] = key.split('/');
    const found = await client.get(installationRef({ namespace, name }), { signal });
    if (found.type === 'absent') {
      metrics.forget(namespace, name);
      return { type: 'done' };
    }
    if (found.type !== 'found') return { type: 'failed' };
    const { object } = found;
    if (typeof object.metadata.deletionTimestamp === 'string') return this.#letGo(object, signal);
    if (!this.#options.planOnly && !hasOrphanFinalizer(object)) {
      const problems = await setOrphanFinalizer(client, object, true, signal);
      if (problems.length > 0) return this.#failed(key, problems);
    }
    return this.#report(object, signal);
  }

  #failed(key: string, problems: readonly Problem[]): WorkResult {
    this.#options.log('warn', `installation ${key}: ${formatProblems(problems)}`);
    return { type: 'failed' };
  }

  async #report(object: KubeObject, signal: AbortSignal): Promise<WorkResult> {
    const { client, clock, namespace, planOnly, metrics } = this.#options;
    const release = releaseName(object.metadata.name ?? '');
    const live = await client.get(
      { apiVersion: 'keelson.dev/v1alpha1', kind: 'Release', namespace, name: release },
      { signal },
    );
    const unread = live.type === 'found' || live.type === 'absent' ? undefined : live.message;
    const pin = await this.#record(object, signal);
    const workloads = await observeInTime(client, { release, namespace }, { clock, limitMs: lookLimitMs }, signal);
    const observed = this.#options.observer?.of(uidOf(object));
    let before: KubeObject = object;
    const outcome = await writeStatus(
      client,
      object,
      (installation) => {
        before = installation;
        const read = readInstallation(installation);
        const spec = read.installation?.spec;
        if (spec === undefined) return isObject(installation.status) ? installation.status : {};
        return installationStatus({
          installation,
          spec,
          release: live.type === 'found' ? live.object : undefined,
          workloads,
          planOnly,
          now: clock.now(),
          tick: clock.monotonic(),
          observing: this.#options.observer !== undefined,
          ...(observed === undefined ? {} : { observed }),
          ...(pin === undefined ? {} : { pin }),
          ...(unread === undefined ? {} : { unread }),
        });
      },
      { fieldManager: managers.status, signal },
    );
    if (outcome.type === 'gone') return { type: 'done' };
    if (outcome.type !== 'written' && outcome.type !== 'unchanged')
      return this.#failed(keyOf(object), [{ reason: 'StatusNotWritten', message: outcome.message }]);
    const conditions = Array.isArray(outcome.status.conditions) ? outcome.status.conditions.filter(isObject) : [];
    metrics.report(object.metadata.namespace ?? '', object.metadata.name ?? '', conditions as never);
    if (outcome.type === 'written')
      for (const event of transitionEvents(
        { ...refOf(object), uid: uidOf(object) },
        before.status ?? {},
        outcome.status,
      ))
        this.#options.tell(event);
    if (unread !== undefined) return { type: 'failed' };
    const { openEveryMs = 5_000, settledEveryMs = 60_000 } = this.#options;
    const open = workloads.status !== 'True';
    return { type: 'again', afterMs: open ? openEveryMs : settledEveryMs };
  }

  /** Records the topology once all members were seen to agree. What keeps it from that is told, and tried again. */
  async #record(object: KubeObject, signal: AbortSignal): Promise<RecordPin | undefined> {
    const { client, clock, namespace, planOnly, observer } = this.#options;
    const uid = uidOf(object);
    const observed = observer?.of(uid);
    const may = recordable(observed, clock.monotonic()) !== undefined;
    if (!may || observer === undefined || planOnly || pinOf(object.status) !== undefined) return undefined;
    const granted = await this.#central(object, recordLeaseMs, signal);
    if (!granted.granted) {
      this.#failed(keyOf(object), [granted.problem]);
      return undefined;
    }
    const { guard } = granted;
    try {
      const held = guard.signal === undefined ? signal : AbortSignal.any([signal, guard.signal]);
      // Half of how long a verdict holds: a whole turn over all installations, and some more.
      const pace = { clock, limitMs: (observed?.limitMs ?? 2 * lookLimitMs) / 2 };
      const record = await topologyFromNowOn(observer, uid, pace, held);
      if (record === undefined) return undefined;
      const made = await makeRecord(client, namespace, record, guard, signal);
      if ('pin' in made) return made.pin;
      this.#failed(keyOf(object), [made.problem]);
      return undefined;
    } catch (error) {
      // Whoever has the Leases now may change what was to be recorded.
      if (signal.aborted || guard.signal?.aborted !== true) throw error;
      return undefined;
    } finally {
      await guard.release();
    }
  }

  /** The Leases of OVN central, for what is not the work of a Release. */
  #central(object: KubeObject, limitMs: number, signal: AbortSignal): Promise<GuardOutcome> {
    const { client, clock, namespace, identity, leases, operationId } = this.#options;
    return guardPhase({
      client,
      clock,
      signal,
      namespace,
      installationUID: uidOf(object),
      phase: 'central',
      holder: `${identity}_${operationId()}`,
      timings: leases,
      limitMs,
    });
  }

  /** A deletion that the guard let through: owners are stripped, then the object may go. */
  async #letGo(object: KubeObject, signal: AbortSignal): Promise<WorkResult> {
    const { client, namespace, planOnly } = this.#options;
    const key = keyOf(object);
    if (planOnly || !hasOrphanFinalizer(object)) return { type: 'done' };
    const release = releaseName(object.metadata.name ?? '');
    const { checkpoint, problems: unreadable } = readCheckpoint(object);
    if (unreadable.length > 0) return this.#failed(key, unreadable);
    const granted = await this.#central(object, 60_000, signal);
    if (!granted.granted) return this.#failed(key, [granted.problem]);
    try {
      const authorised = checkpoint !== undefined;
      const problems = await orphanObjects(
        {
          client,
          release,
          namespace,
          installationUID: uidOf(object),
          installationNamespace: object.metadata.namespace ?? '',
          authorised,
          guard: granted.guard,
        },
        signal,
      );
      if (problems.length > 0) return this.#failed(key, problems);
    } finally {
      await granted.guard.release();
    }
    const problems = await setOrphanFinalizer(client, object, false, signal);
    return problems.length > 0 ? this.#failed(key, problems) : { type: 'done' };
  }
}

const keyOf = (object: KubeObject): string => `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`;
