/**
 * Validation of objects that the server can not dry-run yet: against the schema in the CRD that comes with the same
 * payload, or against the server's own OpenAPI document. It finds wrong types, unknown and missing fields; defaults,
 * admission and CEL rules are the server's, which is why a plan that rests on it is only partly certain.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { getAt, isObject, type JsonObject, type JsonValue, objectOf, toPointer } from '../../constructs/lib/json.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KindRef, type KubeObject, refOf } from '../kube/types.ts';

const openMetadata: JsonObject = { type: 'object' };

const mapValues = (value: JsonObject, change: (member: JsonValue) => JsonValue): JsonObject =>
  Object.fromEntries(Object.entries(value).map(([key, member]) => [key, change(member ?? null)]));

function typeOf(schema: JsonObject): JsonValue | undefined {
  if (schema['x-kubernetes-int-or-string'] === true || schema.format === 'int-or-string') return ['integer', 'string'];
  if (schema.type === 'object' && schema.nullable === true) return ['object', 'null'];
  if (typeof schema.type === 'string' && schema.nullable === true) return [schema.type, 'null'];
  return schema.type;
}

/** Members that plain JSON Schema knows and that keep their meaning; the rest is documentation or the server's business. */
const kept = [
  'enum',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'required',
  '$ref',
];

/** A Kubernetes schema as plain JSON Schema that refuses unknown fields, as an apply does. Pure. */
export function strictSchema(schema: JsonValue, root = false): JsonValue {
  if (!isObject(schema)) return schema === null ? {} : schema;
  const out: JsonObject = {};
  for (const key of kept) if (schema[key] !== undefined) out[key] = schema[key];
  const type = typeOf(schema);
  if (type !== undefined) out.type = type;
  const open = schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (isObject(schema.properties)) {
    out.properties = mapValues(schema.properties, (member) => strictSchema(member));
    if (root) out.properties = { ...out.properties, apiVersion: {}, kind: {}, metadata: openMetadata };
    if (!open && schema.additionalProperties === undefined) out.additionalProperties = false;
  }
  if (isObject(schema.additionalProperties)) out.additionalProperties = strictSchema(schema.additionalProperties);
  if (schema['x-kubernetes-embedded-resource'] === true) delete out.additionalProperties;
  if (isObject(schema.items)) out.items = strictSchema(schema.items);
  if (Array.isArray(schema.allOf)) out.allOf = schema.allOf.map((part) => strictSchema(part));
  // The alternatives of a structural schema only narrow values; its types stand outside of them.
  if (Array.isArray(schema.oneOf) && schema['x-kubernetes-int-or-string'] !== true && type === undefined)
    out.anyOf = schema.oneOf.map((part) => strictSchema(part));
  return out;
}

/** The schema of one version inside a CRD manifest. */
export function crdSchema(crd: JsonObject, apiVersion: string): JsonValue | undefined {
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1);
  const versions = objectOf(crd.spec).versions;
  const found = (Array.isArray(versions) ? versions : []).filter(isObject).find((entry) => entry.name === version);
  if (found === undefined || found.served === false) return undefined;
  return objectOf(found.schema).openAPIV3Schema ?? {};
}

/** The kind that a CRD manifest is about, as `group/Kind`. */
export const definedKind = (crd: JsonObject): string => {
  const spec = objectOf(crd.spec);
  return `${String(spec.group)}/${String(objectOf(spec.names).kind)}`;
};

/** Whether a CRD manifest serves a kind. */
export function definesKind(crd: JsonObject, { apiVersion, kind }: KindRef): boolean {
  const spec = objectOf(crd.spec);
  return (
    spec.group === groupOf(apiVersion) && objectOf(spec.names).kind === kind && crdSchema(crd, apiVersion) !== undefined
  );
}

function problemOf(object: KubeObject, error: ErrorObject): Problem {
  const more = error.keyword === 'additionalProperties' ? ` '${String(error.params.additionalProperty)}'` : '';
  const value = getAt(object, error.instancePath);
  const shown =
    object.kind !== 'Secret' && (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean');
  return {
    reason: 'ObjectInvalid',
    message: `${error.message ?? 'does not fit its schema'}${more}`,
    object: describeRef(refOf(object)),
    ...(error.instancePath === '' ? {} : { path: error.instancePath }),
    ...(shown ? { value: String(value) } : {}),
  };
}

const ajv = (): Ajv => new Ajv({ strict: false, allErrors: true, validateFormats: false, logger: false });

function findings(validate: ValidateFunction, object: KubeObject): Problem[] {
  if (validate(object)) return [];
  return (validate.errors ?? []).slice(0, 50).map((error) => problemOf(object, error));
}

/** Key of a kind's schema in an OpenAPI document. */
function schemaKey(document: JsonObject, { apiVersion, kind }: KindRef): string | undefined {
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1);
  const group = groupOf(apiVersion);
  const schemas = objectOf(objectOf(document.components).schemas);
  return Object.keys(schemas).find((key) => {
    const kinds = objectOf(schemas[key])['x-kubernetes-group-version-kind'];
    return (Array.isArray(kinds) ? kinds : [])
      .filter(isObject)
      .some((entry) => (entry.group ?? '') === group && entry.version === version && entry.kind === kind);
  });
}

export type OfflineVerdict =
  | { readonly type: 'checked'; readonly problems: readonly Problem[] }
  | { readonly type: 'noSchema' }
  | { readonly type: 'unavailable'; readonly problem: Problem };

/** Schemas of one acceptance; documents of the server are read once. */
export class SchemaBook {
  readonly #client: KubeClient;
  readonly #crds: readonly JsonObject[];
  readonly #documents = new Map<string, Promise<JsonObject | Problem | undefined>>();
  readonly #validators = new Map<string, Promise<ValidateFunction | undefined | Problem>>();

  constructor(client: KubeClient, crds: readonly JsonObject[]) {
    this.#client = client;
    this.#crds = crds;
  }

  async check(object: KubeObject, signal: AbortSignal): Promise<OfflineVerdict> {
    const key = `${object.apiVersion} ${object.kind}`;
    let validator = this.#validators.get(key);
    if (validator === undefined) {
      validator = this.#validator(object, signal);
      this.#validators.set(key, validator);
    }
    const found = await validator;
    if (found === undefined) return { type: 'noSchema' };
    if (typeof found !== 'function') return { type: 'unavailable', problem: found };
    return { type: 'checked', problems: findings(found, object) };
  }

  async #validator(kind: KindRef, signal: AbortSignal): Promise<ValidateFunction | undefined | Problem> {
    const crd = this.#crds.find((candidate) => definesKind(candidate, kind));
    if (crd !== undefined) return ajv().compile(strictSchema(crdSchema(crd, kind.apiVersion) ?? {}, true) as object);
    const document = await this.#document(kind.apiVersion, signal);
    if (document === undefined || 'reason' in document) return document as Problem | undefined;
    const schemaName = schemaKey(document, kind);
    if (schemaName === undefined) return undefined;
    const schemas = objectOf(objectOf(document.components).schemas);
    const book = ajv();
    book.addSchema({
      $id: 'keelson:openapi',
      components: { schemas: mapValues(schemas, (schema) => strictSchema(schema)) },
    });
    return book.compile({ $ref: `keelson:openapi#${toPointer(['components', 'schemas', schemaName])}` });
  }

  /** The server's OpenAPI document of an API version, read once. */
  #document(apiVersion: string, signal: AbortSignal): Promise<JsonObject | Problem | undefined> {
    const known = this.#documents.get(apiVersion);
    if (known !== undefined) return known;
    const reading = this.#readDocument(apiVersion, signal);
    this.#documents.set(apiVersion, reading);
    return reading;
  }

  async #readDocument(apiVersion: string, signal: AbortSignal): Promise<JsonObject | Problem | undefined> {
    const path = apiVersion.includes('/') ? `/openapi/v3/apis/${apiVersion}` : `/openapi/v3/api/${apiVersion}`;
    const answer = await this.#client.getPath(path, { signal, timeoutMs: 30_000 });
    if (answer.type === 'absent') return undefined;
    if (answer.type !== 'text') return { reason: 'ApiUnavailable', message: answer.message };
    const document: unknown = JSON.parse(answer.text);
    return isObject(document) ? document : undefined;
  }
}
