import { type Digest, isDigest } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { RawManifest } from './pullmanifest.ts';
import { failed, imageTypes, indexTypes, type RegistryOutcome } from './types.ts';

/** What a manifest says of content that it names. */
export interface Descriptor {
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  readonly mediaType: string;
  /** The content may lie elsewhere, and registries need not have it. */
  readonly elsewhere: boolean;
}

/** What a manifest leads to: further manifests, and blobs. */
export interface Links {
  readonly manifests: readonly Descriptor[];
  readonly blobs: readonly Descriptor[];
}

/** Whether content of this media type is a manifest, and is asked for as one. */
export const isManifestType = (mediaType: string): boolean =>
  indexTypes.includes(mediaType) || imageTypes.includes(mediaType);

/** The content of an empty descriptor is given by its digest; every field of ours is needed all the same. */
function descriptorOf(entry: unknown): Descriptor | undefined {
  if (!isObject(entry) || !isDigest(entry.digest)) return undefined;
  if (typeof entry.size !== 'number' || !Number.isSafeInteger(entry.size) || entry.size < 0) return undefined;
  const mediaType = typeof entry.mediaType === 'string' ? entry.mediaType : '';
  const elsewhere = Array.isArray(entry.urls) && entry.urls.length > 0;
  return { digest: entry.digest, size: entry.size, mediaType, elsewhere };
}

function listOf(content: JsonObject, field: string): unknown[] {
  const value = content[field];
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}

/**
 * Everything that a manifest names: every platform of an index, attestations among them; configuration and layers of an
 * image; the blobs of an artifact. A manifest of an unknown type that names nothing is content of its own.
 */
export function linksOf(manifest: RawManifest): RegistryOutcome<Links> {
  const { content, digest } = manifest;
  if (content === undefined) {
    return isManifestType(manifest.mediaType)
      ? failed('invalid', `manifest ${digest} is not a JSON object`)
      : { ok: true, value: { manifests: [], blobs: [] } };
  }
  const wrong: string[] = [];
  const read = (field: string): Descriptor[] =>
    listOf(content, field).flatMap((entry) => {
      const found = descriptorOf(entry);
      if (found === undefined) wrong.push(field);
      return found === undefined ? [] : [found];
    });
  const manifests = read('manifests');
  const blobs = ['config', 'layers', 'blobs'].flatMap(read);
  if (wrong.length > 0)
    return failed('invalid', `manifest ${digest}: ${wrong.join(', ')} hold entries without a sha256 digest or size`);
  return { ok: true, value: { manifests, blobs } };
}
