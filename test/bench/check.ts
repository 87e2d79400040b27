/** Whether what is live is what was wanted, whoever applied it. */
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { AdminClient } from '../apiserver/client.ts';
import { type CorpusObject, corpusPrefix, customGroup } from './corpus.ts';

const lists: Readonly<Record<string, string>> = {
  CustomResourceDefinition: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: '/apis/rbac.authorization.k8s.io/v1/roles',
  RoleBinding: '/apis/rbac.authorization.k8s.io/v1/rolebindings',
  ConfigMap: '/api/v1/configmaps',
  Secret: '/api/v1/secrets',
  Service: '/api/v1/services',
  Deployment: '/apis/apps/v1/deployments',
  DaemonSet: '/apis/apps/v1/daemonsets',
  Setting: `/apis/${customGroup}/v1/settings`,
};

/** True when `live` says everything that `wanted` says; lists must agree in length, maps may hold more. */
export function holds(live: JsonValue | undefined, wanted: JsonValue | undefined): boolean {
  if (isObject(wanted)) return isObject(live) && Object.keys(wanted).every((key) => holds(live[key], wanted[key]));
  if (Array.isArray(wanted))
    return Array.isArray(live) && live.length === wanted.length && wanted.every((item, n) => holds(live[n], item));
  return live === wanted;
}

const nameOf = (object: JsonObject): string => {
  const metadata = isObject(object.metadata) ? object.metadata : {};
  return `${String(object.kind)} ${String(metadata.namespace ?? '')}/${String(metadata.name)}`;
};

/** Objects that are missing or differ, and objects of the corpus that should be gone. */
export async function findDifferences(admin: AdminClient, wanted: readonly CorpusObject[]): Promise<readonly string[]> {
  const live = new Map<string, JsonObject>();
  for (const [kind, path] of Object.entries(lists)) {
    const { body } = await admin.expect('GET', path);
    for (const item of body.items as JsonObject[]) live.set(nameOf({ ...item, kind }), { ...item, kind });
  }
  const differences = wanted.flatMap(({ object }) => {
    const { apiVersion: _version, ...content } = object;
    return holds(live.get(nameOf(object)), content) ? [] : [`${nameOf(object)} is missing or differs`];
  });
  const names = new Set(wanted.map(({ object }) => nameOf(object)));
  const ours = new RegExp(`[ /](settings\\.)?${corpusPrefix}-[0-9]{4}`);
  const left = [...live.keys()].filter((name) => ours.test(name) && !names.has(name));
  return [...differences, ...left.map((name) => `${name} should be gone`)];
}
