import { isObject, type JsonObject, type JsonValue } from '../lib/json.ts';
import { describeObject, isDns1123Subdomain } from '../lib/names.ts';
import type { Problem } from '../lib/problems.ts';
import { type CelChecker, compileRules } from './cel-eval.ts';
import { applyDefaults } from './defaults.ts';
import { nearest } from './nearest.ts';
import { type DocumentSchema, documentSchemas, findDocumentSchema } from './schemas.ts';
import type { Shaped } from './shape.ts';
import { checkStructure, type Finding, type Path } from './structure.ts';

/**
 * Offline validation of our documents against the very schema that the CRD carries, CEL included: what passes here
 * passes on the API server, and the other way round.
 */

export interface ValidateOptions {
  readonly file?: string;
  /** Place of a value in the file, counted from 1. */
  readonly locate?: (path: Path) => { line: number; column: number };
  /** The object as it was; with it the rules about changes are checked too. */
  readonly old?: JsonObject;
}

/** `spec.central.memberRequests[0].node` */
const formatPath = (path: Path): string =>
  path
    .map((part) => {
      if (typeof part === 'number') return `[${part}]`;
      return /^[A-Za-z0-9_-]+$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`;
    })
    .join('')
    .replace(/^\./, '');

const checkers = new Map<DocumentSchema, CelChecker>(
  documentSchemas.map((document) => [document, compileRules(document.schema)]),
);

/**
 * Reads one document of a kind that we know.
 * @returns the document with defaults as the API server fills them in, or everything that is wrong with it.
 */
export function validateDocument(value: JsonValue, options: ValidateOptions = {}): Shaped<JsonObject> {
  const fail = (findings: readonly Finding[], object?: string): Shaped<JsonObject> => ({
    ok: false,
    problems: findings.map((finding) => toProblem(finding, options, object)),
  });
  if (!isObject(value)) return fail([{ reason: 'WrongType', message: 'the document must be an object', path: [] }]);
  const { apiVersion, kind } = value;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string')
    return fail([{ reason: 'RequiredField', message: 'apiVersion and kind are required', path: [] }]);
  const document = findDocumentSchema(apiVersion, kind);
  if (document === undefined) return fail([unknownKind(apiVersion, kind)]);
  const filled = fillDefaults(document, value);
  const findings = [...checkMetadata(document, filled), ...checkStructure(document.schema, filled)];
  const old = options.old === undefined ? undefined : fillDefaults(document, options.old);
  // A rule over a part that is already wrong would only say so in other words.
  const broken = (path: Path): boolean => findings.some((finding) => path.every((part, n) => finding.path[n] === part));
  const rules = checkers.get(document)?.check(filled, old, broken) ?? [];
  const all = [...findings, ...rules];
  return all.length > 0 ? fail(all, describe(value)) : { ok: true, value: filled };
}

/** Defaults of a document; metadata has none. */
const fillDefaults = (document: Pick<DocumentSchema, 'schema'>, value: JsonObject): JsonObject =>
  applyDefaults(document.schema, value) as JsonObject;

function checkMetadata(document: DocumentSchema, value: JsonObject): Finding[] {
  const { metadata } = value;
  if (!document.served) return [];
  if (!isObject(metadata)) return [{ reason: 'RequiredField', message: 'metadata is required', path: ['metadata'] }];
  const { name } = metadata;
  if (typeof name !== 'string' || !isDns1123Subdomain(name))
    return [
      {
        reason: 'InvalidValue',
        message: 'metadata.name must be a DNS name in lower case',
        path: ['metadata', 'name'],
        ...(name === undefined ? {} : { value: name }),
      },
    ];
  return [];
}

function unknownKind(apiVersion: string, kind: string): Finding {
  const close = nearest(
    kind,
    documentSchemas.map((document) => document.kind),
  );
  const versions = documentSchemas.filter((d) => d.kind === (close ?? kind)).map((d) => `${d.apiVersion} ${d.kind}`);
  return {
    reason: 'UnknownKind',
    message: `${apiVersion} ${kind} is not a kind of Keelson`,
    path: ['kind'],
    value: kind,
    remedy: versions.length > 0 ? `did you mean ${versions.join(' or ')}?` : 'put plain manifests under manifests/',
  };
}

function describe(value: JsonObject): string | undefined {
  const metadata = isObject(value.metadata) ? value.metadata : {};
  if (typeof metadata.name !== 'string') return undefined;
  return describeObject({
    apiVersion: String(value.apiVersion),
    kind: String(value.kind),
    name: metadata.name,
    namespace: typeof metadata.namespace === 'string' ? metadata.namespace : undefined,
  });
}

function toProblem(finding: Finding, options: ValidateOptions, object: string | undefined): Problem {
  const at = options.locate?.(finding.path);
  const shown =
    finding.value === undefined
      ? undefined
      : typeof finding.value === 'string'
        ? finding.value
        : JSON.stringify(finding.value);
  return {
    reason: finding.reason,
    message: finding.message,
    ...(options.file === undefined ? {} : { file: options.file }),
    ...(at === undefined ? {} : { line: at.line, column: at.column }),
    ...(object === undefined ? {} : { object }),
    ...(finding.path.length === 0 ? {} : { path: formatPath(finding.path) }),
    ...(shown === undefined ? {} : { value: shown.slice(0, 200) }),
    ...(finding.remedy === undefined ? {} : { remedy: finding.remedy }),
  };
}
