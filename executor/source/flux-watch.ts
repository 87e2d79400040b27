/** Watches the source objects that Releases name, each by its name alone, for as long as a Release names it. */
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { Reflector, type ReflectorProblem, type ReflectorTimings } from '../kube/reflector.ts';
import { describeSource, type FluxSourceRef, sourceObject, sourceState } from './flux-artifact.ts';

export interface FluxWatchOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly timings: Partial<ReflectorTimings>;
  /** Namespaces whose sources may be read; what others hold is not even looked at. */
  readonly namespaces: readonly string[];
  /** A source that the release names offers something else than before. */
  readonly onChange: (release: string) => void;
  readonly onProblem?: (problem: ReflectorProblem) => void;
}

interface Watched {
  readonly releases: Set<string>;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

export class FluxWatch {
  readonly #options: FluxWatchOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #ending = new Set<Promise<void>>();
  #over = false;

  constructor(options: FluxWatchOptions) {
    this.#options = options;
  }

  /** The source that a Release names now; undefined when it names none, or is gone. */
  want(release: string, ref: FluxSourceRef | undefined): void {
    const key = ref === undefined || !this.#options.namespaces.includes(ref.namespace) ? '' : describeSource(ref);
    for (const [other, watched] of this.#watched)
      if (other !== key && watched.releases.delete(release) && watched.releases.size === 0) this.#end(other, watched);
    if (key === '' || ref === undefined || this.#over) return;
    const watched = this.#watched.get(key);
    if (watched === undefined) this.#watched.set(key, this.#start(ref, release));
    else watched.releases.add(release);
  }

  /** Ends all watches. */
  async close(): Promise<void> {
    this.#over = true;
    for (const [key, watched] of [...this.#watched]) this.#end(key, watched);
    await Promise.all(this.#ending);
  }

  #start(ref: FluxSourceRef, release: string): Watched {
    const { client, clock, random, timings, onChange, onProblem } = this.#options;
    const releases = new Set([release]);
    const stop = new AbortController();
    let known = '';
    const reflector = new Reflector({
      client,
      clock,
      random,
      timings,
      selection: sourceObject(ref),
      handler: (event) => {
        if (event.type === 'synced') return;
        const state = event.type === 'deleted' ? '' : sourceState(event.object);
        if (state === known) return;
        known = state;
        for (const each of releases) onChange(each);
      },
      ...(onProblem === undefined ? {} : { onProblem }),
    });
    return { releases, stop, ended: reflector.run(stop.signal) };
  }

  #end(key: string, { stop, ended }: Watched): void {
    this.#watched.delete(key);
    stop.abort();
    const ending = ended.finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}
