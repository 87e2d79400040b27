import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import type { LockedImage } from '../../constructs/api/lock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { mirrorReference } from '../oci/mirrors.ts';
import { platformsOf } from '../oci/platforms.ts';
import { parseReference, registryHosts } from '../oci/reference.ts';
import type { RegistryClient } from '../oci/registry.ts';
import type { RegistryFailure } from '../oci/types.ts';

/** How many images are asked for at a time. */
const concurrency = 4;

function problemOf(text: string, failure: RegistryFailure): Problem {
  const remedy = failure.remedy === undefined ? {} : { remedy: failure.remedy };
  return { reason: 'ImageUnresolved', message: failure.message, value: text, ...remedy };
}

async function resolveOne(text: string, client: RegistryClient, signal?: AbortSignal): Promise<LockedImage | Problem> {
  const parsed = parseReference(text);
  if (parsed === undefined) return { reason: 'ImageInvalid', message: 'not an image reference', value: text };
  const ref = parsed.tag === undefined && parsed.digest === undefined ? { ...parsed, tag: 'latest' } : parsed;
  const manifest = await client.manifest(ref, signal);
  if (!manifest.ok) return problemOf(text, manifest.failure);
  const platforms = await platformsOf(client, ref, manifest.value, signal);
  if (!platforms.ok) return problemOf(text, platforms.failure);
  return { ref: text, digest: manifest.value.digest, mediaType: manifest.value.mediaType, platforms: platforms.value };
}

/**
 * Lock entries for image references: digest and media type of the index (or of the only manifest) and what it runs on.
 * Registries are asked through the mirrors of the client. What cannot be resolved is a problem; the rest is resolved all the same.
 */
export async function resolveImages(
  texts: readonly string[],
  client: RegistryClient,
  signal?: AbortSignal,
): Promise<{ images: LockedImage[]; problems: Problem[] }> {
  const queue = [...new Set(texts)].sort();
  const results = new Map<string, LockedImage | Problem>();
  const worker = async (): Promise<void> => {
    for (let text = queue.shift(); text !== undefined; text = queue.shift())
      results.set(text, await resolveOne(text, client, signal));
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const ordered = [...results.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, result]) => result);
  return {
    images: ordered.filter((result): result is LockedImage => 'digest' in result),
    problems: ordered.filter((result): result is Problem => 'reason' in result),
  };
}

/** The hosts that resolving these references contacts, mirrors applied: what an HTTP client for them must allow. */
export function hostsForImages(texts: readonly string[], registries: readonly RegistryMirror[]): string[] {
  const hosts = texts.flatMap((text) => {
    const ref = parseReference(text);
    const real = ref === undefined ? undefined : mirrorReference(ref, registries);
    return real === undefined ? [] : registryHosts(real.registry);
  });
  return [...new Set(hosts)].sort();
}
