/** TLS of OVN: the chart's own Secret is never rendered; every reference to it names the Secret of the specification. */
import { ovnTLSSecret } from '../../constructs/api/constants.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { type ChartObject, withBody } from './object.ts';

/** The Secret that the chart would make. */
export const chartTLSSecret = ovnTLSSecret;
/** The template that makes it, left out before Helm sees the chart: it looks the cluster up and makes keys at random. */
export const chartTLSTemplate = 'templates/ovn-tls-secret.yaml';
/** The keys that Kube-OVN's own programs read. */
export const nativeTLSKeys: readonly string[] = ['cacert', 'cert', 'key'];

/** Members whose string value names a Secret. */
const namingMembers = new Set(['secretName']);
/** Members that hold an object whose `name` names a Secret. */
const namingReferences = new Set(['secretKeyRef', 'secretRef', 'secret']);

function renameIn(value: JsonValue, name: string): JsonValue {
  if (Array.isArray(value)) return value.map((item) => renameIn(item, name));
  if (!isObject(value)) return value;
  const out: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    if (namingMembers.has(key) && inner === chartTLSSecret) out[key] = name;
    else if (key === 'resourceNames' && Array.isArray(inner))
      out[key] = inner.map((item) => (item === chartTLSSecret ? name : item));
    else if (namingReferences.has(key) && isObject(inner) && inner.name === chartTLSSecret)
      out[key] = { ...(renameIn(inner, name) as JsonObject), name };
    else out[key] = renameIn(inner, name);
  }
  return out;
}

/** Objects in which every reference to the chart's TLS Secret (volumes, environment, RBAC) names `secret`; file names stay. */
export function renameTLSSecret(objects: readonly ChartObject[], secret: string): ChartObject[] {
  if (secret === chartTLSSecret) return [...objects];
  return objects.map((object) => withBody(object, renameIn(object.body, secret) as JsonObject));
}

function mentions(value: JsonValue | undefined, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => mentions(item, `${path}/${index}`));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const here = `${path}/${key}`;
    if (inner === chartTLSSecret && (namingMembers.has(key) || /\/(secretKeyRef|secretRef|secret)\/name$/.test(here)))
      return [here];
    if (key === 'resourceNames' && Array.isArray(inner) && inner.includes(chartTLSSecret)) return [here];
    return mentions(inner, here);
  });
}

/** JSON pointers at which an object still refers to the chart's own TLS Secret. */
export const chartTLSReferences = (object: ChartObject): string[] => mentions(object.body, '');
