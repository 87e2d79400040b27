import type { DeterminismProof, LockedChart } from '../../constructs/api/lock.ts';
import { parseImageRef } from '../../constructs/lib/imageref.ts';
import { getAt, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DomainRenderer } from '../domain.ts';
import { imageKey, imagesToLock } from '../images/pin.ts';
import { type LoadedCluster, loadCluster } from '../load/load.ts';
import type { ClusterFiles, SourceObject } from '../load/source.ts';
import { collectReleases, imageSearch } from '../releases.ts';

/** Told by the domains, while they render unpinned, what a lock has to hold for them. */
export interface LockRecorder {
  chart(entry: LockedChart): void;
  proof(entry: DeterminismProof): void;
}

/** Everything that a lock has to hold. */
export interface LockNeeds {
  readonly loaded: LoadedCluster;
  readonly charts: readonly LockedChart[];
  readonly determinism: readonly DeterminismProof[];
  /** Unpinned image references as they are rendered, sorted. */
  readonly images: readonly string[];
  /** Keys of the images that releases rendered from charts use. */
  readonly chartImages: ReadonlySet<string>;
  /** Keys of the images of probes. */
  readonly probeImages: ReadonlySet<string>;
}

/** The image that a specification names for the network probe. */
function networkProbeImage({ value }: SourceObject): string[] {
  const image = getAt(value, '/spec/networkProbe/image');
  return typeof image === 'string' ? [image] : [];
}

/** The identity of a reference, or the text itself when it is none. */
export const keyOf = (text: string): string => {
  const ref = parseImageRef(text);
  return ref === undefined ? text : imageKey(ref);
};

/**
 * Renders the cluster without pinning anything, and gathers what has to be locked. Charts are fetched and verified
 * against the digests of the specs on the way; specs are never changed.
 */
export async function collectNeeds(
  source: ClusterFiles,
  domainsOf: (recorder: LockRecorder, loaded: LoadedCluster) => readonly DomainRenderer[],
  kinds: readonly string[],
  signal?: AbortSignal,
): Promise<{ ok: true; needs: LockNeeds } | { ok: false; problems: Problem[] }> {
  const read = loadCluster(source, new Set(kinds));
  if (!read.ok) return read;
  const loaded: LoadedCluster = { ...read.loaded, lock: undefined };
  const charts = new Map<string, LockedChart>();
  const determinism: DeterminismProof[] = [];
  const recorder: LockRecorder = {
    chart: (entry) => void charts.set(`${entry.source} ${entry.digest}`, entry),
    proof: (entry) => void determinism.push(entry),
  };
  const collected = await collectReleases(loaded, domainsOf(recorder, loaded), signal);
  if (collected.problems.length > 0) return { ok: false, problems: collected.problems };
  const images = new Map<string, string>();
  const chartImages = new Set<string>();
  const { executor, probe } = loaded.cluster.spec.images;
  const probes = [...(probe === undefined ? [] : [probe]), ...loaded.specs.flatMap(networkProbeImage)];
  const own = [executor, ...(probe === undefined ? [] : [probe])];
  const ownKeys = new Set([executor, ...probes].map(keyOf));
  for (const text of own) if (parseImageRef(text)?.digest === undefined) images.set(keyOf(text), text);
  for (const release of collected.releases) {
    const objects: JsonObject[] = release.phases.flatMap((phase) => phase.objects.map((o) => o.object));
    for (const text of imagesToLock(objects, imageSearch(loaded, release))) {
      if (!images.has(keyOf(text))) images.set(keyOf(text), text);
      // Probes are in the release of a chart, and move on their own.
      if (release.charts.length > 0 && !ownKeys.has(keyOf(text))) chartImages.add(keyOf(text));
    }
  }
  const needs: LockNeeds = {
    loaded: read.loaded,
    charts: [...charts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, chart]) => chart),
    determinism,
    images: [...images.values()].sort(),
    chartImages,
    probeImages: new Set(probes.map(keyOf)),
  };
  return { ok: true, needs };
}
