import { type ImageRef, parseImageRef } from '../../constructs/lib/imageref.ts';
import { isObject, type JsonObject, type JsonValue, toPointer } from '../../constructs/lib/json.ts';
import { normalizeImageRef, referenceName } from '../oci/reference.ts';

/** What decides, beside the containers, which strings are image references. */
export interface ImageSearch {
  /** Repositories that the chart is known to name in text (`registry/repository`). */
  readonly repositories: readonly string[];
  /** `spec.allow.imageHosts`: registries of which every mention counts. */
  readonly imageHosts: readonly string[];
}

/** One image reference in an object. */
export interface ImageUse {
  /** Index of the object in the list that was searched. */
  readonly index: number;
  /** JSON pointer of the string that holds it. */
  readonly pointer: string;
  /** `field`: a container's image; `repository`: text equal to a reference into a known repository; `host`: one of imageHosts. */
  readonly rule: 'field' | 'repository' | 'host';
  /** The reference as written, and where it begins in the string. */
  readonly text: string;
  readonly start: number;
  /** Absent when a container's image is not a reference at all. */
  readonly ref?: ImageRef;
}

type Path = readonly (string | number)[];
interface Found {
  readonly index: number;
  readonly path: Path;
  readonly value: string;
}

const containerLists = new Set<string | number | undefined>(['containers', 'initContainers', 'ephemeralContainers']);

/** Every string of an object with its path; the prose of CRD schemas is left out. */
function stringsOf(object: JsonObject, index: number): Found[] {
  const found: Found[] = [];
  const prose = object.kind === 'CustomResourceDefinition';
  const walk = (value: JsonValue | undefined, path: Path): void => {
    if (typeof value === 'string') found.push({ index, path, value });
    else if (Array.isArray(value)) for (const [at, item] of value.entries()) walk(item, [...path, at]);
    else if (isObject(value))
      for (const [key, item] of Object.entries(value))
        if (!(prose && key === 'description' && typeof item === 'string')) walk(item, [...path, key]);
  };
  walk(object, []);
  return found;
}

/** True for `containers/<n>/image` and its siblings, and for `volumes/<n>/image/reference`. */
function isImageField(path: Path): boolean {
  const [list, index, image, reference] = path.slice(-4);
  if (reference === 'reference' && image === 'image' && typeof index === 'number' && list === 'volumes') return true;
  return reference === 'image' && typeof image === 'number' && containerLists.has(index);
}

/** A short name with a numeric tag is more likely a host and its port than an image. */
function looksLikeAddress(ref: ImageRef): boolean {
  return (
    ref.registry === undefined &&
    !ref.repository.includes('/') &&
    ref.digest === undefined &&
    /^[0-9]{1,5}$/.test(ref.tag ?? '')
  );
}

/** The whole string, or the value of a flag or assignment that is the whole string, as a reference with tag or digest. */
function wholeReference(value: string): { ref: ImageRef; start: number } | undefined {
  const match = /^(\s*(?:-{0,2}[A-Za-z][A-Za-z0-9_.-]*=)?)(\S+)\s*$/.exec(value);
  const [, before, text] = match ?? [];
  const ref = text === undefined ? undefined : parseImageRef(text);
  if (ref === undefined || before === undefined || (ref.tag === undefined && ref.digest === undefined))
    return undefined;
  return { ref, start: before.length };
}

/** References with a tag or digest that begin with one of the hosts, anywhere in a text. */
function mentions(value: string, hosts: readonly string[]): { ref: ImageRef; start: number }[] {
  const found: { ref: ImageRef; start: number }[] = [];
  for (const host of hosts) {
    const escaped = host.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const pattern = new RegExp(
      `(?<![A-Za-z0-9_.:/@-])${escaped}/[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?`,
      'gi',
    );
    for (const match of value.matchAll(pattern)) {
      // A full stop or dash at the end belongs to the sentence around it.
      const ref = parseImageRef(match[0].replace(/[.-]+$/, ''));
      if (ref !== undefined && (ref.tag !== undefined || ref.digest !== undefined))
        found.push({ ref, start: match.index });
    }
  }
  return found;
}

const nameOf = (ref: ImageRef): string => referenceName(normalizeImageRef(ref));

/**
 * Every image reference in the objects, by four rules: the image of a container (or image volume); any string, flag value,
 * environment or ConfigMap value that is exactly a reference into a repository of the first rule or of the search; any
 * mention of a registry in `imageHosts`; everything else is none.
 */
export function findImages(objects: readonly JsonObject[], search: ImageSearch): ImageUse[] {
  const all = objects.flatMap((object, index) => stringsOf(object, index));
  const uses: ImageUse[] = [];
  const rest: Found[] = [];
  const known = new Set<string>();
  for (const repository of search.repositories) {
    const ref = parseImageRef(repository);
    if (ref !== undefined) known.add(nameOf(ref));
  }
  for (const found of all) {
    if (!isImageField(found.path)) {
      rest.push(found);
      continue;
    }
    const ref = parseImageRef(found.value);
    if (ref !== undefined) known.add(nameOf(ref));
    const base = {
      index: found.index,
      pointer: toPointer(found.path),
      rule: 'field' as const,
      text: found.value,
      start: 0,
    };
    uses.push({ ...base, ...(ref === undefined ? {} : { ref }) });
  }
  const hosts = new Set(search.imageHosts.map((host) => host.toLowerCase()));
  for (const found of rest) {
    const at = { index: found.index, pointer: toPointer(found.path) };
    const whole = wholeReference(found.value);
    if (whole !== undefined && known.has(nameOf(whole.ref)) && !looksLikeAddress(whole.ref))
      uses.push({ ...at, rule: 'repository', text: whole.ref.text, ...whole });
    else
      for (const mention of mentions(found.value, [...hosts]))
        uses.push({ ...at, rule: 'host', text: mention.ref.text, ...mention });
  }
  return uses.sort((a, b) => a.index - b.index);
}
