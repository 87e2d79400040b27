/** What a cluster needs of the world: every image that it pulls, and every chart that it is rendered from. */
import type { LockedChart } from '../../constructs/api/lock.ts';
import { isDigest } from '../../constructs/lib/digest.ts';
import { parseImageRef } from '../../constructs/lib/imageref.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DomainRenderer } from '../domain.ts';
import { findImages } from '../images/find.ts';
import { lockedDigest } from '../images/pin.ts';
import type { LoadedCluster } from '../load/load.ts';
import { settingsFiles } from '../load/settings.ts';
import { archiveReference, normalizeImageRef, parseOciUrl, type Reference, referenceName } from '../oci/reference.ts';
import { collectReleases, imageSearch } from '../releases.ts';
import { chartArtifact, versionTag } from './archive.ts';
import type { ChartArchive, MirrorRoot } from './content.ts';

export interface Closure {
  readonly roots: readonly MirrorRoot[];
  /** Content of artifacts that were made for charts, by digest. */
  readonly made: ReadonlyMap<string, Uint8Array>;
  /** URLs of archives, by digest. */
  readonly urls: ReadonlyMap<string, string>;
}

/**
 * The closure of a cluster and its lock. The lock alone does not do: what specs pin by digest themselves is not in it.
 * Nothing is fetched but charts, which are rendered from.
 */
export async function closureOf(
  loaded: LoadedCluster,
  domains: readonly DomainRenderer[],
  signal?: AbortSignal,
): Promise<{ readonly ok: true; readonly closure: Closure } | { readonly ok: false; readonly problems: Problem[] }> {
  const { lock } = loaded;
  const file = `${loaded.folder}/${settingsFiles.lock}`;
  if (lock === undefined)
    return {
      ok: false,
      problems: [{ reason: 'LockMissing', message: 'there is no lock', file, remedy: 'run keelson lock' }],
    };
  const collected = await collectReleases(loaded, domains, signal);
  const problems = [...collected.problems];
  const roots = new Map<string, MirrorRoot>();
  const add = (root: MirrorRoot): void => {
    const { tag, digest } = root.ref;
    roots.set(`${referenceName(root.ref)} ${tag} ${digest}`, root);
  };
  for (const text of imageTexts(loaded, collected.releases)) {
    const ref = imageReference(text, loaded);
    if (ref !== undefined) add({ ref });
    else
      problems.push({
        reason: 'ImageNotLocked',
        message: 'the image has no digest and no entry in keelson.lock.yaml',
        file,
        value: text,
        remedy: 'run keelson lock and commit the lock file',
      });
  }
  const made = new Map<string, Uint8Array>();
  const urls = new Map<string, string>();
  for (const [n, chart] of lock.spec.charts.entries()) {
    const root = chartRoot(chart, made);
    if (root === undefined)
      problems.push({
        reason: 'ChartSourceInvalid',
        message: 'host and path of the source make no name that a registry takes',
        file,
        path: `spec.charts[${n}].source`,
        value: chart.source,
        remedy: 'use a source with a path of lower-case words',
      });
    else add(root);
    if (!chart.source.startsWith('oci://')) urls.set(chart.digest, chart.source);
  }
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, closure: { roots: [...roots.values()], made, urls } };
}

type Releases = Awaited<ReturnType<typeof collectReleases>>['releases'];

/** References as they are written, before mirrors: those of objects, of our own parts, and what the lock still names. */
function imageTexts(loaded: LoadedCluster, releases: Releases): string[] {
  const { images } = loaded.cluster.spec;
  const texts = new Set([images.executor, ...(images.probe === undefined ? [] : [images.probe])]);
  for (const { ref } of loaded.lock?.spec.images ?? []) texts.add(ref);
  for (const release of releases) {
    const objects: JsonObject[] = release.phases.flatMap((phase) => phase.objects.map((source) => source.object));
    for (const { ref } of findImages(objects, imageSearch(loaded, release))) if (ref !== undefined) texts.add(ref.text);
  }
  return [...texts].sort();
}

function imageReference(text: string, loaded: LoadedCluster): Reference | undefined {
  const ref = parseImageRef(text);
  if (ref === undefined) return undefined;
  const digest = ref.digest ?? lockedDigest(ref, loaded.lock?.spec.images ?? []);
  if (digest === undefined) return undefined;
  const { registry, repository, tag } = normalizeImageRef(ref);
  // A pinned reference is pulled by its digest alone; what its tag leads to now is nobody's business.
  const named = ref.digest !== undefined ? undefined : (tag ?? 'latest');
  return { registry, repository, digest, ...(named === undefined ? {} : { tag: named }) };
}

/** A chart as a registry keeps it. Without a tag at its source, or without a registry, its artifact is made here. */
function chartRoot(chart: LockedChart, made: Map<string, Uint8Array>): MirrorRoot | undefined {
  if (!isDigest(chart.digest)) return undefined;
  const { source, digest } = chart;
  const archive: ChartArchive = { source, digest };
  const oci = parseOciUrl(source);
  if (oci?.tag !== undefined) return { ref: { ...oci, tag: oci.tag }, chart: archive };
  const place = oci ?? archiveReference(source);
  if (place === undefined) return undefined;
  const artifact = chartArtifact(chart);
  for (const [part, bytes] of artifact.parts) made.set(part, bytes);
  const { registry, repository } = place;
  return {
    ref: { registry, repository, tag: versionTag(chart.version), digest: artifact.manifest },
    chart: archive,
  };
}
