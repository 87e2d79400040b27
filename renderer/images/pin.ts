import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import type { LockedImage } from '../../constructs/api/lock.ts';
import { type ImageRef, parseImageRef } from '../../constructs/lib/imageref.ts';
import { getAt, type JsonObject, setAt } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { objectLabel } from '../helm/output.ts';
import { mirrorName } from '../oci/mirrors.ts';
import { formatReference, normalizeImageRef, referenceName } from '../oci/reference.ts';
import { findImages, type ImageSearch, type ImageUse } from './find.ts';

/** What pinning works with: the lock's images and the cluster's mirror rules. */
export interface PinOptions extends ImageSearch {
  readonly images: readonly LockedImage[];
  readonly registries: readonly RegistryMirror[];
}

/** The identity of an unpinned reference: two spellings of one image are one. */
export function imageKey(ref: Omit<ImageRef, 'text'>): string {
  const { registry, repository, tag = 'latest' } = normalizeImageRef(ref);
  return formatReference({ registry, repository, tag });
}

function lockedDigests(images: readonly LockedImage[]): Map<string, string> {
  const digests = new Map<string, string>();
  for (const image of images) {
    const ref = parseImageRef(image.ref);
    if (ref !== undefined) digests.set(imageKey(ref), image.digest);
  }
  return digests;
}

/** The digest that a lock has for an unpinned reference. */
export const lockedDigest = (ref: Omit<ImageRef, 'text'>, images: readonly LockedImage[]): string | undefined =>
  lockedDigests(images).get(imageKey(ref));

/** `name@sha256:…` of a reference, the name through the mirrors; undefined when it has no digest and the lock has none. */
function pinned(
  ref: ImageRef,
  digests: ReadonlyMap<string, string>,
  registries: readonly RegistryMirror[],
): string | undefined {
  const digest = ref.digest ?? digests.get(imageKey(ref));
  return digest === undefined
    ? undefined
    : `${mirrorName(referenceName(normalizeImageRef(ref)), registries)}@${digest}`;
}

/** One reference (a field of cluster.yaml, say) as it is rendered, or the problem that keeps it from being pinned. */
export function pinImage(
  text: string,
  options: Pick<PinOptions, 'images' | 'registries'>,
  place: Partial<Problem>,
): { readonly ok: true; readonly value: string } | { readonly ok: false; readonly problems: readonly Problem[] } {
  const ref = parseImageRef(text);
  if (ref === undefined)
    return {
      ok: false,
      problems: [{ reason: 'ImageInvalid', message: 'not an image reference', value: text, ...place }],
    };
  const value = pinned(ref, lockedDigests(options.images), options.registries);
  return value === undefined ? { ok: false, problems: [notLocked(text, place)] } : { ok: true, value };
}

function notLocked(text: string, place: Partial<Problem>): Problem {
  return {
    reason: 'ImageNotLocked',
    message: 'the image has no digest and no entry in keelson.lock.yaml',
    value: text,
    remedy: 'run keelson lock and commit the lock file',
    ...place,
  };
}

/** The string at a use's pointer with every use in it replaced; from the end, so that positions stay true. */
function replaceAll(text: string, uses: readonly (ImageUse & { readonly by: string })[]): string {
  return [...uses]
    .sort((a, b) => b.start - a.start)
    .reduce((done, use) => done.slice(0, use.start) + use.by + done.slice(use.start + use.text.length), text);
}

/**
 * The objects with every image reference replaced by `name@sha256:…`. An unpinned reference without a lock entry is a
 * problem wherever it stands; all of them are told, and then the objects must not be used.
 */
export function pinImages(
  objects: readonly JsonObject[],
  options: PinOptions,
): { objects: JsonObject[]; problems: Problem[] } {
  const digests = lockedDigests(options.images);
  const problems: Problem[] = [];
  const edits = new Map<string, (ImageUse & { readonly by: string })[]>();
  for (const use of findImages(objects, options)) {
    const object = objects[use.index];
    const place = { path: use.pointer, ...(object === undefined ? {} : { object: objectLabel(object) }) };
    const by = use.ref === undefined ? undefined : pinned(use.ref, digests, options.registries);
    if (use.ref === undefined)
      problems.push({ reason: 'ImageInvalid', message: 'not an image reference', value: use.text, ...place });
    else if (by === undefined) problems.push(notLocked(use.text, place));
    else {
      const key = JSON.stringify([use.index, use.pointer]);
      edits.set(key, [...(edits.get(key) ?? []), { ...use, by }]);
    }
  }
  const out = [...objects];
  for (const uses of edits.values()) {
    const [first] = uses;
    const object = first === undefined ? undefined : out[first.index];
    if (first === undefined || object === undefined) continue;
    const text = getAt(object, first.pointer);
    if (typeof text === 'string') out[first.index] = setAt(object, first.pointer, replaceAll(text, uses)) as JsonObject;
  }
  return { objects: out, problems };
}

/** The unpinned references in the objects, one spelling of each image, sorted: what a lock has to resolve. */
export function imagesToLock(objects: readonly JsonObject[], search: ImageSearch): string[] {
  const byKey = new Map<string, string>();
  for (const { ref } of findImages(objects, search)) {
    if (ref === undefined || ref.digest !== undefined) continue;
    const key = imageKey(ref);
    const known = byKey.get(key);
    if (known === undefined || ref.text < known) byKey.set(key, ref.text);
  }
  return [...byKey.values()].sort();
}
