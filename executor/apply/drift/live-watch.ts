/**
 * The objects of a release as its watches show them: one list-watch per kind, and of each object no more than what says
 * whether it is as it should be.
 */
import { annotations, labels } from '../../../constructs/api/constants.ts';
import type { Clock, Random } from '../../../constructs/lib/clock.ts';
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Reflector, type ReflectorProblem, type ReflectorTimings } from '../../kube/reflector.ts';
import { type KindRef, type KubeObject, type ObjectMeta, type ObjectRef, refOf } from '../../kube/types.ts';
import { hasReadiness, readinessOf } from '../../release/readiness.ts';

/** A kind, in one namespace where it may not be listed in all. */
export interface Place extends KindRef {
  readonly namespace?: string;
}

/** What is kept of an object besides its marks: `same`, or the hash of what differs. */
export type Seen = { readonly same: true } | { readonly same: false; readonly hash: string };

export interface LiveWatchOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly release: string;
  readonly timings: Partial<ReflectorTimings>;
  /** How an object compares with its intent. */
  readonly judge: (object: KubeObject) => Seen;
  /** Told of an object that was added, changed, or shown no longer. */
  readonly onChange: (ref: ObjectRef) => void;
  /** Told after each whole list of a place. */
  readonly onListed: () => void;
  readonly onProblem: (problem: ReflectorProblem) => void;
}

interface Watched {
  readonly reflector: Reflector;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  /** A whole list was taken in since the last doubt. */
  trusted: boolean;
  listed: () => void;
}

/** How long a sweep waits for the list of one place. */
const listLimitMs = 60_000;
/** Lists without a doubt are the sweep's to ask for. */
const never = 1e12;

const keyOf = ({ apiVersion, kind, namespace }: Place): string => `${apiVersion} ${kind} ${namespace ?? ''}`;

const kept = [annotations.id, annotations.hold, annotations.quiesce];

/** Metadata that decide what an object needs. */
function marksOf(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, deletionTimestamp, finalizers } = metadata;
  const release = metadata.labels?.[labels.release];
  const notes = kept.flatMap((key) => {
    const value = metadata.annotations?.[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  return {
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(release === undefined ? {} : { labels: { [labels.release]: release } }),
    ...(notes.length === 0 ? {} : { annotations: Object.fromEntries(notes) }),
    ...(typeof deletionTimestamp === 'string' ? { deletionTimestamp, finalizers: finalizers ?? [] } : {}),
  };
}

export class LiveWatch {
  readonly #options: LiveWatchOptions;
  readonly #places = new Map<string, Watched>();
  readonly #ending = new Set<Promise<void>>();
  #closed = false;

  constructor(options: LiveWatchOptions) {
    this.#options = options;
  }

  /** Watches these places and no others. */
  set(places: readonly Place[]): void {
    if (this.#closed) return;
    const wanted = new Map(places.map((place) => [keyOf(place), place]));
    for (const [key, watched] of this.#places) if (!wanted.has(key)) this.#end(key, watched);
    for (const [key, place] of wanted) if (!this.#places.has(key)) this.#places.set(key, this.#start(place));
  }

  #of({ apiVersion, kind, namespace }: ObjectRef): Watched | undefined {
    const everywhere = this.#places.get(keyOf({ apiVersion, kind }));
    if (everywhere !== undefined || namespace === undefined) return everywhere;
    return this.#places.get(keyOf({ apiVersion, kind, namespace }));
  }

  /** The object as last seen; undefined when it is not shown, `unknown` while nothing sure is known of its place. */
  find(ref: ObjectRef): KubeObject | undefined | 'unknown' {
    const watched = this.#of(ref);
    if (watched === undefined || !watched.trusted) return 'unknown';
    return watched.reflector.objects.get(`${ref.namespace ?? ''}/${ref.name}`);
  }

  /** Takes everything in anew. */
  relist(): void {
    for (const watched of this.#places.values()) doubt(watched);
  }

  get places(): string[] {
    return [...this.#places.keys()];
  }

  /** Lists one place and waits until that is done. */
  async refresh(key: string, signal: AbortSignal): Promise<void> {
    const watched = this.#places.get(key);
    if (watched === undefined || signal.aborted) return;
    const done = new AbortController();
    watched.listed = () => done.abort();
    watched.reflector.relist();
    const ended = AbortSignal.any([signal, done.signal, watched.stop.signal]);
    // It ends by the list, by the end of the place, or in time: the next place has its turn in any case.
    await this.#options.clock.sleep(listLimitMs, ended).catch(() => undefined);
    watched.listed = () => undefined;
  }

  /** Ends all watches; nothing of them is left when it returns. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const [key, watched] of this.#places) this.#end(key, watched);
    await Promise.all(this.#ending);
  }

  #end(key: string, { stop, ended }: Watched): void {
    this.#places.delete(key);
    stop.abort();
    const ending = ended.finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #start(place: Place): Watched {
    const { client, clock, random, release, timings, judge, onChange, onListed, onProblem } = this.#options;
    const stop = new AbortController();
    const reflector: Reflector = new Reflector({
      client,
      clock,
      random,
      timings: { ...timings, relistMs: never },
      // Ledgers, copies and plans carry the release's name as well, and are large.
      selection: { ...place, labelSelector: `${labels.release}=${release},!${labels.holds}` },
      transform: (object) => ({
        apiVersion: object.apiVersion,
        kind: object.kind,
        metadata: marksOf(object.metadata),
        seen: judge(object) satisfies Seen as JsonObject,
        ...(hasReadiness(object) ? { ready: readinessOf(object).state === 'True' } : {}),
      }),
      handler: (event) => {
        if (event.type !== 'synced') onChange(refOf(event.object));
      },
      onListed: () => {
        watched.trusted = true;
        watched.listed();
        onListed();
      },
      onProblem: (problem) => {
        // After an outage nothing is believed before it was listed anew, uncached.
        if (problem.reason !== 'Handler') doubt(watched);
        onProblem(problem);
      },
    });
    const watched: Watched = {
      reflector,
      stop,
      ended: reflector.run(stop.signal),
      trusted: false,
      listed: () => undefined,
    };
    return watched;
  }
}

function doubt(watched: Watched): void {
  watched.trusted = false;
  watched.reflector.relist();
}
