import { sha256Hex } from './digest.ts';
import { isObject, type JsonObject } from './json.ts';

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** True for an RFC 1123 label (at most 63 characters). */
export function isDns1123Label(text: string): boolean {
  return label.test(text);
}

/** True for an RFC 1123 subdomain (labels joined by dots, at most 253 characters). */
export function isDns1123Subdomain(text: string): boolean {
  return text.length <= 253 && text.split('.').every(isDns1123Label);
}

/** What identifies an object within a cluster, whatever version serves it. */
export interface ObjectIdentity {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** The identity that an object with apiVersion, kind and name carries. */
export function identityOf(object: JsonObject): ObjectIdentity & { readonly namespace?: string } {
  const metadata = isObject(object.metadata) ? object.metadata : {};
  return {
    apiVersion: String(object.apiVersion),
    kind: String(object.kind),
    name: String(metadata.name),
    ...(typeof metadata.namespace === 'string' ? { namespace: metadata.namespace } : {}),
  };
}

/** The API group of an apiVersion; the core group is the empty string. */
export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}

/**
 * `<group>/<Kind>/<namespace>/<name>`, the core group and cluster scope being empty: `apps/Deployment/kube-system/ovn-central`,
 * `/Namespace//demo`. Versions are left out: an object keeps its identity when its API version moves.
 */
export function objectId(object: ObjectIdentity): string {
  return `${groupOf(object.apiVersion)}/${object.kind}/${object.namespace ?? ''}/${object.name}`;
}

/** The parts of an {@link objectId}. @throws TypeError when the text is not one. */
export function parseObjectId(id: string): { group: string; kind: string; namespace?: string; name: string } {
  const [group, kind, namespace, ...rest] = id.split('/');
  const name = rest.join('/');
  if (group === undefined || !kind || namespace === undefined || name === '')
    throw new TypeError(`'${id}' is not an object id of the form group/Kind/namespace/name`);
  return { group, kind, ...(namespace === '' ? {} : { namespace }), name };
}

/** How people read an identity: `Deployment.apps kube-system/ovn-central`. */
export function describeObject(object: ObjectIdentity): string {
  const group = groupOf(object.apiVersion);
  const place = object.namespace === undefined || object.namespace === '' ? '' : `${object.namespace}/`;
  return `${object.kind}${group === '' ? '' : `.${group}`} ${place}${object.name}`;
}

/**
 * Parts joined by '-', at most `max` characters. A longer name is cut and ends in eight hexadecimal digits of the digest
 * over the whole, so that two long names with a common beginning stay apart.
 */
export function boundedName(parts: readonly string[], max = 63): string {
  const whole = parts.join('-');
  if (whole.length <= max) return whole;
  return `${whole.slice(0, max - 9).replace(/[-.]+$/, '')}-${sha256Hex(whole).slice(0, 8)}`;
}

/** The file name of an object in a rendered tree: `<kind>[.<group>]_<namespace|_>_<name>.yaml`, in lower case but for the name. */
export function manifestFileName(object: ObjectIdentity): string {
  const group = groupOf(object.apiVersion);
  const kind = `${object.kind.toLowerCase()}${group === '' ? '' : `.${group}`}`;
  return `${kind}_${object.namespace ?? '_'}_${object.name.replaceAll(':', '%3a')}.yaml`;
}
