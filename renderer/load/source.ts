import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { describeObject, type ObjectIdentity } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { Position, YamlDocument } from '../../constructs/lib/yaml.ts';

/** The files of one cluster folder, whatever they were read from. */
export interface ClusterFiles {
  /** The folder as problems name it: `clusters/prod`. */
  readonly folder: string;
  /** Contents by path below the folder, `/` between its parts. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** One document of one file, and where everything in it stands. */
export interface SourceDocument {
  /** Path as problems name it: `clusters/prod/network.yaml`. */
  readonly file: string;
  readonly value: JsonObject;
  readonly line: number;
  locate(path: readonly (string | number)[]): Position;
}

/** A document that is a Kubernetes object with an identity. */
export interface SourceObject extends SourceDocument {
  readonly identity: ObjectIdentity;
}

export type Path = readonly (string | number)[];

const textPath = (path: Path): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '');

/** A problem of a document, placed at the line of `path` in its file. */
export function problemAt(
  document: SourceDocument & { identity?: ObjectIdentity },
  path: Path,
  problem: Pick<Problem, 'reason' | 'message' | 'value' | 'remedy'>,
): Problem {
  const { line, column } = document.locate(path);
  const found = textPath(path);
  return {
    ...problem,
    file: document.file,
    line,
    column,
    ...(found === '' ? {} : { path: found }),
    ...(document.identity === undefined ? {} : { object: describeObject(document.identity) }),
  };
}

/** The document as a source, or the problem that it is no mapping. */
export function toSource(document: YamlDocument, file: string): SourceDocument | Problem {
  if (isObject(document.value))
    return { file, value: document.value, line: document.line, locate: document.locate.bind(document) };
  return {
    reason: 'InvalidDocument',
    message: 'the document is not a mapping',
    file,
    line: document.line,
    remedy: 'write one Kubernetes object per document',
  };
}

/** The member `key` as an object, or an empty one. */
export function member(value: JsonObject, key: string): JsonObject {
  const found = value[key];
  return isObject(found) ? found : {};
}
