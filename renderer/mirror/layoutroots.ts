import { isDigest } from '../../constructs/lib/digest.ts';
import { parseImageRef } from '../../constructs/lib/imageref.ts';
import { type Problem, ProblemError } from '../../constructs/lib/problems.ts';
import { lockedDigest } from '../images/pin.ts';
import type { LoadedCluster } from '../load/load.ts';
import { settingsFiles } from '../load/settings.ts';
import { type LayoutEntry, layoutAnnotations, readLayout } from '../oci/layout.ts';
import { parseReference, type Reference } from '../oci/reference.ts';
import type { MirrorRoot } from './content.ts';

/**
 * Everything that a layout names, and what the lock of a cluster needs and the layout does not have.
 * @throws ProblemError when the folder is no finished layout.
 */
export async function layoutRoots(
  folder: string,
  loaded: LoadedCluster,
): Promise<{ readonly roots: readonly MirrorRoot[]; readonly missing: readonly Problem[] }> {
  const read = await readLayout(folder);
  if (read.kind === 'invalid') throw new ProblemError(read.problems);
  if (read.kind === 'none')
    throw new ProblemError([
      {
        reason: 'LayoutInvalid',
        message: 'the folder is no OCI image layout, or one whose mirroring did not come to its end',
        file: folder,
        remedy: `run keelson mirror --oci ${folder} again where the registries can be reached`,
      },
    ]);
  const roots = read.entries.flatMap((entry) => rootOf(entry, loaded) ?? []);
  return { roots, missing: missingOf(folder, read.entries, loaded) };
}

function rootOf(entry: LayoutEntry, loaded: LoadedCluster): MirrorRoot | undefined {
  const ref = parseReference(entry.annotations?.[layoutAnnotations.name] ?? '');
  if (ref === undefined || !isDigest(entry.digest)) return undefined;
  const { registry, repository, tag } = ref;
  // Several locks may be in one layout; a tag belongs to the digest that this cluster locked.
  const locked = lockedDigest({ registry, repository, ...(tag === undefined ? {} : { tag }) }, imagesOf(loaded));
  const named = tag !== undefined && (locked === undefined || locked === entry.digest);
  const full: Reference = { registry, repository, digest: entry.digest, ...(named ? { tag } : {}) };
  const archive = entry.annotations?.[layoutAnnotations.chart];
  if (!isDigest(archive)) return { ref: full };
  const source = entry.annotations?.[layoutAnnotations.chartSource] ?? '';
  return { ref: full, chart: { source, digest: archive } };
}

const imagesOf = (loaded: LoadedCluster) => loaded.lock?.spec.images ?? [];

/** What the lock names and the layout does not hold. */
function missingOf(folder: string, entries: readonly LayoutEntry[], loaded: LoadedCluster): Problem[] {
  const file = `${loaded.folder}/${settingsFiles.lock}`;
  const digests = new Set(entries.map((entry) => entry.digest));
  const archives = new Set(entries.map((entry) => entry.annotations?.[layoutAnnotations.chart]));
  const say = (path: string, value: string): Problem => ({
    reason: 'MirrorContentMissing',
    message: `${folder} does not hold what the lock names`,
    file,
    path,
    value,
    remedy: `run keelson mirror --oci ${folder} with this lock where the registries can be reached`,
  });
  const { images, charts } = loaded.lock?.spec ?? { images: [], charts: [] };
  return [
    ...images.flatMap(({ ref, digest }, n) =>
      digests.has(digest) || parseImageRef(ref) === undefined ? [] : [say(`spec.images[${n}]`, `${ref} ${digest}`)],
    ),
    ...charts.flatMap(({ source, digest }, n) =>
      archives.has(digest) ? [] : [say(`spec.charts[${n}]`, `${source} ${digest}`)],
    ),
  ];
}
