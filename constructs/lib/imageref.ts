/** A container image reference in its parts; `registry` is absent when the text names none. */
export interface ImageRef {
  readonly text: string;
  readonly registry?: string;
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
}

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const hostForm = /^(localhost|[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$/;
const pathForm = new RegExp(
  `^(${component}(?:/${component})*)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`,
);

/** A first component is a registry only when it looks like a host: it has a dot or a port, or is localhost. */
function looksLikeHost(text: string): boolean {
  return hostForm.test(text) && (text === 'localhost' || /[.:]/.test(text));
}

/** The parts of an image reference, or undefined when the text is not one. */
export function parseImageRef(text: string): ImageRef | undefined {
  if (text.length > 512) return undefined;
  const slash = text.indexOf('/');
  const registry = slash > 0 && looksLikeHost(text.slice(0, slash)) ? text.slice(0, slash) : undefined;
  const match = pathForm.exec(registry === undefined ? text : text.slice(slash + 1));
  const [, repository, tag, digest] = match ?? [];
  if (repository === undefined) return undefined;
  return {
    text,
    ...(registry === undefined ? {} : { registry }),
    repository,
    ...(tag === undefined ? {} : { tag }),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** `[registry/]repository`, without tag and digest. */
export function imageName(ref: Pick<ImageRef, 'registry' | 'repository'>): string {
  return ref.registry === undefined ? ref.repository : `${ref.registry}/${ref.repository}`;
}

/** `name[:tag][@digest]` of the parts. */
export function formatImageRef(ref: Omit<ImageRef, 'text'>): string {
  return `${imageName(ref)}${ref.tag === undefined ? '' : `:${ref.tag}`}${ref.digest === undefined ? '' : `@${ref.digest}`}`;
}

/** True when the text is an image reference that carries a digest. */
export function isPinned(text: string): boolean {
  return parseImageRef(text)?.digest !== undefined;
}
