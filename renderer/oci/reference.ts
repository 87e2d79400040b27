import { type ImageRef, parseImageRef } from '../../constructs/lib/imageref.ts';

/** A repository in a registry, with what selects one artifact of it. The registry is never implied here. */
export interface Reference {
  readonly registry: string;
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
}

/** The registry that container runtimes take when a reference names none, and the host that serves it. */
const defaultRegistry = 'docker.io';
const defaultRegistryHosts = ['registry-1.docker.io', 'auth.docker.io'] as const;

function selectors(ref: Pick<ImageRef, 'tag' | 'digest'>): Pick<Reference, 'tag' | 'digest'> {
  return {
    ...(ref.tag === undefined ? {} : { tag: ref.tag }),
    ...(ref.digest === undefined ? {} : { digest: ref.digest }),
  };
}

/** What a container runtime makes of a reference: registry filled in, `library/` added, aliases of the default resolved. */
export function normalizeImageRef(ref: Omit<ImageRef, 'text'>): Reference {
  const written = ref.registry?.toLowerCase() ?? defaultRegistry;
  const registry = written === `index.${defaultRegistry}` ? defaultRegistry : written;
  const bare = registry === defaultRegistry && !ref.repository.includes('/');
  return { registry, repository: bare ? `library/${ref.repository}` : ref.repository, ...selectors(ref) };
}

/** The normal form of an image reference, or undefined when the text is not one. */
export function parseReference(text: string): Reference | undefined {
  const ref = parseImageRef(text);
  return ref === undefined ? undefined : normalizeImageRef(ref);
}

/** The parts of `oci://host[:port]/path[:tag][@digest]`, or undefined. The host must be written out. */
export function parseOciUrl(text: string): Reference | undefined {
  if (!text.startsWith('oci://')) return undefined;
  const ref = parseImageRef(text.slice('oci://'.length));
  return ref?.registry === undefined
    ? undefined
    : { registry: ref.registry, repository: ref.repository, ...selectors(ref) };
}

/** `registry/repository`. */
export function referenceName(ref: Reference): string {
  return `${ref.registry}/${ref.repository}`;
}

/** `registry/repository[:tag][@digest]`. */
export function formatReference(ref: Reference): string {
  const tag = ref.tag === undefined ? '' : `:${ref.tag}`;
  return `${referenceName(ref)}${tag}${ref.digest === undefined ? '' : `@${ref.digest}`}`;
}

/** The host that serves a registry's API. */
export function registryHost(registry: string): string {
  return registry === defaultRegistry ? defaultRegistryHosts[0] : registry;
}

/** Every host that a pull from this registry is known to need: its API and its token service. */
export function registryHosts(registry: string): readonly string[] {
  return registry === defaultRegistry ? defaultRegistryHosts : [registry];
}

/** The names under which Docker's credential store may know a registry, the usual one first. */
export function credentialNames(registry: string): readonly string[] {
  if (registry !== defaultRegistry) return [registry, `https://${registry}`];
  return [`https://index.${defaultRegistry}/v1/`, defaultRegistry, `index.${defaultRegistry}`, defaultRegistryHosts[0]];
}

/** A host list in which each registry also names the hosts that really serve it. */
export function reachableHosts(hosts: readonly string[]): string[] {
  return [...new Set(hosts.flatMap((host) => [host, ...registryHosts(host)]))];
}

/** Where registries keep the archive of a chart that is at a URL: under its host and path. Undefined when these make no name. */
export function archiveReference(source: string): Reference | undefined {
  if (!URL.canParse(source)) return undefined;
  const { host, pathname } = new URL(source);
  const ref = parseImageRef(`${host}${pathname.replace(/\.tgz$/, '')}`);
  return ref?.registry === undefined ? undefined : { registry: ref.registry, repository: ref.repository };
}
