/**
 * What the other Releases of the namespace want: an object that one gives up and another takes is handed over, never
 * removed. Everything is read uncached; what a payload names is remembered by its digest.
 */
import { apiVersion } from '../../constructs/api/constants.ts';
import { payloadObjectId } from '../../constructs/api/payload.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { Claims } from '../apply/prune.ts';
import type { AcceptDeps } from './acceptance.ts';
import { loadPayload } from './load.ts';
import { desiredDigest, type ReleaseView, readRelease } from './view.ts';

type LoadDeps = Pick<AcceptDeps, 'client' | 'namespace' | 'source' | 'retained' | 'allowUnsigned'>;

/** How long a payload that has not come yet keeps others from removing anything. */
const incompleteMs = 60_000;

/** Ids that a payload wants; why they are not known yet; or undefined when it will never be enforced as it is. */
type Wish = ReadonlySet<string> | Problem | undefined;

export class ReleaseClaims implements Claims {
  readonly #deps: LoadDeps;
  readonly #clock: Clock;
  /** Ids by payload digest; only payloads that are wanted now are kept. */
  #known = new Map<string, ReadonlySet<string>>();
  /** Since when a wanted payload is missing, by its digest. */
  #missing = new Map<string, number>();

  constructor(deps: LoadDeps, clock: Clock) {
    this.#deps = deps;
    this.#clock = clock;
  }

  async heirs(release: string, signal: AbortSignal): ReturnType<Claims['heirs']> {
    const { client, namespace } = this.#deps;
    const heirs = new Map<string, string>();
    const listed = await client.list({ apiVersion, kind: 'Release', namespace }, { signal });
    if (listed.type !== 'listed')
      return { company: true, heirs, problems: [{ reason: 'ApiUnavailable', message: listed.message }] };
    const views = listed.items.flatMap((object) => {
      const read = readRelease(object);
      return read.ok && read.view.name !== release && !read.view.deleting ? [read.view] : [];
    });
    const problems: Problem[] = [];
    const known = new Map<string, ReadonlySet<string>>();
    for (const view of views) {
      const wish = await this.#wishOf(view, signal);
      if (wish === undefined) continue;
      if ('reason' in wish) {
        problems.push(wish);
        continue;
      }
      known.set(desiredDigest(view), wish);
      for (const id of wish) heirs.set(id, view.name);
    }
    this.#known = known;
    const wanted = new Set(views.map(desiredDigest));
    this.#missing = new Map([...this.#missing].filter(([digest]) => wanted.has(digest)));
    return { company: views.length > 0, heirs, problems };
  }

  async #wishOf(view: ReleaseView, signal: AbortSignal): Promise<Wish> {
    const digest = desiredDigest(view);
    const known = this.#known.get(digest);
    if (known !== undefined) return known;
    const got = await loadPayload(
      { ...this.#deps, onStep: () => undefined, onRevision: () => undefined },
      { release: view.name, digest, pinned: view.pin !== undefined, spec: view.spec, signal },
    );
    if (got.ok) {
      const { phases } = got.loaded.payload.index.content;
      const wanted = phases.flatMap(({ objects }) => objects).filter(({ absent }) => !absent);
      return new Set(wanted.map(payloadObjectId));
    }
    if (got.refused.type !== 'refused') return undefined;
    const [problem] = got.refused.problems;
    const object = `Release ${view.name}`;
    if (problem?.reason === 'ApiUnavailable') return { ...problem, object };
    // What does not verify is not enforced either, and takes nothing.
    if (got.refused.step !== 'Fetch') return undefined;
    const since = this.#missing.get(digest) ?? this.#clock.monotonic();
    this.#missing.set(digest, since);
    if (this.#clock.monotonic() - since > incompleteMs) return undefined;
    return {
      reason: 'PruneWaits',
      message: `nothing is removed before the payload ${digest} that it wants is known, or ${incompleteMs / 1000}s have passed: it may take objects over`,
      object,
    };
  }
}
