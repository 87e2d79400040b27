import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { readClusterFolder } from '../../renderer/load/folder.ts';
import { renderCluster } from '../../renderer/render.ts';
import { type AdminClient, adminClient, type Reply } from '../apiserver/client.ts';
import { plainUsers } from '../apiserver/credentials.ts';
import { startApiServer } from '../apiserver/server.ts';

/** The rendered admission policies and RBAC, in a real API server of their own: they reach over the whole cluster. */

export const namespace = 'keelson-system';
export const server = await startApiServer({ users: [...plainUsers, { name: 'grouped', groups: ['keelson-admins'] }] });
const clients: AdminClient[] = [server.admin];

export const as = (token: string): AdminClient => {
  const client = adminClient({ url: server.url, ca: server.ca, token });
  clients.push(client);
  return client;
};

/** Unit 10-system of a plain cluster with these principals, and lines under `delivery`. */
export async function systemObjects(principals: string, delivery = ''): Promise<JsonObject[]> {
  const folder = join(import.meta.dirname, '../pure/plain-cluster');
  const { source } = await readClusterFolder(folder, 'clusters/plain');
  const cluster = readFileSync(join(folder, 'cluster.yaml'), 'utf8')
    .replace('  executor:\n    apiServer', `  allow:\n    principals: ${principals}\n  executor:\n    apiServer`)
    .replace('  delivery:\n', `  delivery:\n${delivery}`)
    .replace('repository: .', `repository: https://git.example.com/rendered.git`);
  const files = new Map([...source.files, ['cluster.yaml', Buffer.from(cluster)] as const]);
  const outcome = await renderCluster({ source: { ...source, files }, domains: [], keelson: '0.0.0-test' });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return [...outcome.rendered.tree].flatMap(([path, bytes]) => {
    if (!path.startsWith('sync/10-system/')) return [];
    const value = parseYaml(Buffer.from(bytes).toString(), path).documents[0]?.value;
    return isObject(value) ? [value] : [];
  });
}

const plural: Record<string, string> = {
  IPAddress: 'ipaddresses',
  IPAddressClass: 'ipaddressclasses',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
};

export function pathOf(object: JsonObject): string {
  const { apiVersion, kind } = object;
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const base = String(apiVersion).includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const within = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  return `${base}${within}/${plural[String(kind)] ?? `${String(kind).toLowerCase()}s`}/${metadata.name}`;
}

export const apply = (client: AdminClient, object: JsonObject): Promise<Reply> =>
  client.request('PATCH', pathOf(object), {
    query: { fieldManager: 'test' },
    type: 'application/apply-patch+yaml',
    body: object,
  });

export const configMap = (name: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
});
export const release = (name: string): JsonObject => ({
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: { name, namespace },
  spec: { payload: { digest: `sha256:${'0'.repeat(64)}` }, source: { configMaps: {} } },
});

export const accepted = (reply: Reply, what: string): void => {
  assert.ok(reply.status >= 200 && reply.status < 300, `${what}: ${reply.status} ${reply.body?.message}`);
};
export const refused = (reply: Reply, words: RegExp, what: string): void => {
  assert.is(reply.status, 403, `${what}: ${reply.status} ${reply.body?.message}`);
  assert.match(reply.body.message, words, what);
};

/** May do everything by RBAC, and is named nowhere. */
export const stranger = as(server.tokens['user-2'] ?? '');

/** Gives an account all rights of RBAC. */
export const bindAll = (name: string, subject: JsonObject): Promise<Reply> =>
  server.admin.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [subject],
    },
  });

/** Waits until a policy refuses what it should. */
export const inForce = (where: string): Promise<boolean> =>
  waitFor({
    what: `the writer policy of ${where}`,
    limitMs: 30_000,
    intervalMs: 100,
    clock: systemClock,
    probe: async (saw) => {
      const probe = { ...configMap(''), metadata: { name: 'keelson-payload-probe-0', namespace: where } };
      const reply = await apply(stranger, probe);
      saw(`${reply.status}`);
      return reply.status === 403 ? true : undefined;
    },
  });

/** Applies all of unit 10-system, in the order of kinds. */
export async function installSystem(objects: readonly JsonObject[]): Promise<void> {
  const rank = (object: JsonObject): number =>
    ['CustomResourceDefinition', 'Namespace', 'ServiceAccount'].indexOf(String(object.kind)) + 1 || 9;
  for (const object of [...objects].sort((a, b) => rank(a) - rank(b))) {
    const query = { fieldManager: 'keelson-deliver', fieldValidation: 'Strict' };
    const reply = await server.admin.request('PATCH', pathOf(object), {
      query,
      type: 'application/apply-patch+yaml',
      body: object,
    });
    accepted(reply, pathOf(object));
  }
}

export async function closeAll(): Promise<void> {
  for (const client of clients) await client.close();
  await server.stop();
}
