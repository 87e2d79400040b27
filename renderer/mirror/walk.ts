import type { Problem } from '../../constructs/lib/problems.ts';
import { type Descriptor, isManifestType, linksOf } from '../oci/links.ts';
import type { RawManifest } from '../oci/pullmanifest.ts';
import { formatReference, type Reference } from '../oci/reference.ts';
import type { RegistryFailure } from '../oci/types.ts';
import type { ContentSource, MirrorRoot } from './content.ts';

/** Everything that one root is made of. */
export interface Walked {
  /** Children before their parents; the last one is the root's own. */
  readonly manifests: readonly RawManifest[];
  readonly top: RawManifest;
  readonly blobs: readonly Descriptor[];
}

/** Bounds of one root: an index of indexes, and more manifests than any image has. */
const bounds = { depth: 4, manifests: 512 };

/** What is missing or wrong, as a problem of the reference that it was looked for. */
export function missing(ref: Reference, failure: RegistryFailure): Problem {
  return {
    reason: failure.kind === 'unavailable' ? 'MirrorInterrupted' : 'MirrorContentMissing',
    message: failure.message,
    object: formatReference(ref),
    ...(failure.remedy === undefined ? {} : { remedy: failure.remedy }),
  };
}

interface Walk {
  readonly root: MirrorRoot;
  readonly source: ContentSource;
  readonly manifests: Map<string, RawManifest>;
  readonly blobs: Map<string, Descriptor>;
  readonly problems: Problem[];
  readonly signal: AbortSignal | undefined;
}

/** Reads the manifests of a root, of all platforms. Everything that can not be had is told. */
export async function walkRoot(
  root: MirrorRoot,
  source: ContentSource,
  signal?: AbortSignal,
): Promise<{ readonly ok: true; readonly walked: Walked } | { readonly ok: false; readonly problems: Problem[] }> {
  const walk: Walk = { root, source, manifests: new Map(), blobs: new Map(), problems: [], signal };
  const top = await source.manifest(root.ref, undefined, signal);
  if (!top.ok) return { ok: false, problems: [missing(root.ref, top.failure)] };
  await descend(walk, top.value, 0);
  const { chart } = root;
  if (chart !== undefined && !walk.blobs.has(chart.digest))
    walk.problems.push({
      reason: 'ChartDigestMismatch',
      message: `the artifact does not hold the locked archive ${chart.digest}`,
      object: formatReference(root.ref),
      remedy: 'find out who changed the chart; then correct the digest or the source',
    });
  if (walk.problems.length > 0) return { ok: false, problems: walk.problems };
  return {
    ok: true,
    walked: { manifests: [...walk.manifests.values()], top: top.value, blobs: [...walk.blobs.values()] },
  };
}

async function descend(walk: Walk, manifest: RawManifest, depth: number): Promise<void> {
  const { root, problems } = walk;
  const links = linksOf(manifest);
  if (!links.ok) {
    problems.push(missing(root.ref, links.failure));
    return;
  }
  if (depth > bounds.depth || walk.manifests.size + links.value.manifests.length > bounds.manifests) {
    problems.push({
      reason: 'MirrorContentMissing',
      message: `it leads to more than ${bounds.manifests} manifests, or more than ${bounds.depth} deep`,
      object: formatReference(root.ref),
    });
    return;
  }
  for (const blob of links.value.blobs) walk.blobs.set(blob.digest, blob);
  for (const child of links.value.manifests) {
    if (walk.manifests.has(child.digest)) continue;
    const { registry, repository } = root.ref;
    const found = await walk.source.manifest(
      { registry, repository, digest: child.digest },
      child.mediaType,
      walk.signal,
    );
    if (found.ok) await descend(walk, found.value, depth + 1);
    // Content of an unknown type may be kept as a blob.
    else if (!isManifestType(child.mediaType) && found.failure.kind === 'notFound') walk.blobs.set(child.digest, child);
    else problems.push(missing(root.ref, found.failure));
  }
  walk.manifests.set(manifest.digest, manifest);
}
