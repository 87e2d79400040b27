import { type Digest, digestOf } from '../lib/digest.ts';
import { isObject, type JsonObject } from '../lib/json.ts';
import { dropDefaults } from './defaults.ts';
import { findDocumentSchema } from './schemas.ts';

/** Digests of specs: the same for the file in Git and for the object that the API server filled with defaults. */

export interface KindRef {
  readonly apiVersion: string;
  readonly kind: string;
}

function shortSpec(kind: KindRef, spec: JsonObject): JsonObject {
  const schema = findDocumentSchema(kind.apiVersion, kind.kind)?.schema.properties?.spec;
  if (schema === undefined) throw new TypeError(`no schema for ${kind.apiVersion} ${kind.kind}`);
  return dropDefaults(schema, spec) as JsonObject;
}

/**
 * Digest over a spec without the fields that equal their schema default.
 * @throws TypeError when the kind is none of ours.
 */
export const specDigest = (kind: KindRef, spec: JsonObject): Digest => digestOf(shortSpec(kind, spec));

/**
 * The same without `central.memberRequests` and `central.replicas`: it stays when membership changes and nothing else.
 * For kinds without `central` it equals {@link specDigest}.
 */
export function baseDigest(kind: KindRef, spec: JsonObject): Digest {
  const { central, ...rest } = shortSpec(kind, spec);
  if (!isObject(central)) return digestOf(central === undefined ? rest : { ...rest, central });
  const { memberRequests: _requests, replicas: _replicas, ...fixed } = central;
  return digestOf(Object.keys(fixed).length > 0 ? { ...rest, central: fixed } : rest);
}
