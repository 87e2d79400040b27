import { canonicalJson, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type Path, problemAt, type SourceObject } from './source.ts';

/**
 * Lists whose items have a key. Server-side apply merges them by it and stops at a key that occurs twice, with a
 * message that names neither file nor line; so they are looked at here.
 */
interface ListKey {
  readonly keys: readonly string[];
  /** Values of key fields that may be left out; they are written, since the merge does not fill them in. */
  readonly defaults?: Readonly<Record<string, string>>;
}

const tcp = { protocol: 'TCP' };

const containerLists: Readonly<Record<string, ListKey>> = {
  env: { keys: ['name'] },
  ports: { keys: ['containerPort', 'protocol'], defaults: tcp },
  volumeDevices: { keys: ['devicePath'] },
  volumeMounts: { keys: ['mountPath'] },
};

const podLists: Readonly<Record<string, ListKey>> = {
  containers: { keys: ['name'] },
  ephemeralContainers: { keys: ['name'] },
  hostAliases: { keys: ['ip'] },
  imagePullSecrets: { keys: ['name'] },
  initContainers: { keys: ['name'] },
  resourceClaims: { keys: ['name'] },
  topologySpreadConstraints: { keys: ['topologyKey', 'whenUnsatisfiable'] },
  volumes: { keys: ['name'] },
};

const podPaths: Readonly<Record<string, Path>> = {
  '/Pod': ['spec'],
  '/PodTemplate': ['template', 'spec'],
  '/ReplicationController': ['spec', 'template', 'spec'],
  'apps/DaemonSet': ['spec', 'template', 'spec'],
  'apps/Deployment': ['spec', 'template', 'spec'],
  'apps/ReplicaSet': ['spec', 'template', 'spec'],
  'apps/StatefulSet': ['spec', 'template', 'spec'],
  'batch/CronJob': ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
  'batch/Job': ['spec', 'template', 'spec'],
};

const otherLists: Readonly<Record<string, readonly { readonly at: Path; readonly key: ListKey }[]>> = {
  '/Service': [{ at: ['spec', 'ports'], key: { keys: ['port', 'protocol'], defaults: tcp } }],
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': [{ at: ['webhooks'], key: { keys: ['name'] } }],
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': [{ at: ['webhooks'], key: { keys: ['name'] } }],
  'storage.k8s.io/CSINode': [{ at: ['spec', 'drivers'], key: { keys: ['name'] } }],
};

interface Look {
  readonly object: SourceObject;
  readonly problems: Problem[];
}

const valueAt = (value: JsonValue | undefined, path: Path): JsonValue | undefined =>
  path.reduce<JsonValue | undefined>((here, key) => (isObject(here) ? here[key] : undefined), value);

function checkList(look: Look, owner: JsonValue | undefined, at: Path, field: string, key: ListKey): void {
  const list = isObject(owner) ? owner[field] : undefined;
  if (!Array.isArray(list)) return;
  const seen = new Map<string, number>();
  for (const [index, item] of list.entries()) {
    if (!isObject(item)) continue;
    for (const [name, value] of Object.entries(key.defaults ?? {})) item[name] ??= value;
    const values = key.keys.map((name) => item[name] ?? null);
    if (values.every((value) => value === null)) continue;
    const text = canonicalJson(values);
    const first = seen.get(text);
    if (first === undefined) seen.set(text, index);
    else
      look.problems.push(
        problemAt(look.object, [...at, field, index], {
          reason: 'DuplicateListKey',
          message: `${field}[${index}] has the same ${key.keys.join(' and ')} as ${field}[${first}]`,
          value: key.keys.map((name) => `${name}: ${item[name] ?? ''}`).join(', '),
          remedy: 'keep one of the two, or make their keys differ',
        }),
      );
  }
}

function checkPod(look: Look, pod: JsonValue | undefined, at: Path): void {
  if (!isObject(pod)) return;
  for (const [field, key] of Object.entries(podLists)) checkList(look, pod, at, field, key);
  for (const field of ['initContainers', 'containers', 'ephemeralContainers']) {
    const containers = pod[field];
    if (!Array.isArray(containers)) continue;
    for (const [index, container] of containers.entries())
      for (const [list, key] of Object.entries(containerLists))
        checkList(look, container, [...at, field, index], list, key);
  }
}

/** Lists of a custom resource, from the schema of its definition. */
function checkSchema(look: Look, schema: JsonObject, value: JsonValue | undefined, at: Path): void {
  if (Array.isArray(value)) {
    const items = schema.items;
    if (isObject(items)) for (const [index, item] of value.entries()) checkSchema(look, items, item, [...at, index]);
    return;
  }
  if (!isObject(value)) return;
  const properties = isObject(schema.properties) ? schema.properties : {};
  for (const [name, member] of Object.entries(value)) {
    const found = properties[name] ?? schema.additionalProperties;
    if (!isObject(found)) continue;
    const keys = found['x-kubernetes-list-map-keys'];
    if (Array.isArray(keys)) checkList(look, value, at, name, { keys: keys.filter((key) => typeof key === 'string') });
    checkSchema(look, found, member, [...at, name]);
  }
}

/**
 * A copy of the object in which key fields with a default are written out, and the doubles in its keyed lists.
 * @param schema OpenAPI schema of the object's definition, for a custom resource whose definition is at hand.
 */
export function checkListKeys(object: SourceObject, schema?: JsonObject): { value: JsonObject; problems: Problem[] } {
  const value = structuredClone(object.value);
  const look: Look = { object, problems: [] };
  const kind = `${groupOf(object.identity.apiVersion)}/${object.identity.kind}`;
  const pod = podPaths[kind];
  if (pod !== undefined) checkPod(look, valueAt(value, pod), pod);
  for (const { at, key } of otherLists[kind] ?? []) {
    const field = at.at(-1);
    if (typeof field === 'string') checkList(look, valueAt(value, at.slice(0, -1)), at.slice(0, -1), field, key);
  }
  if (schema !== undefined) checkSchema(look, schema, value, []);
  return { value, problems: look.problems };
}
