import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { readClusterFolder } from '../../renderer/load/folder.ts';
import { renderCluster } from '../../renderer/render.ts';
import { type AdminClient, adminClient, type Reply } from '../apiserver/client.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';

/** The rendered admission policies and RBAC, in a real API server of their own: they reach over the whole cluster. */

const namespace = 'keelson-system';
const server = await startApiServer();
const clients: AdminClient[] = [server.admin];

const as = (token: string): AdminClient => {
  const client = adminClient({ url: server.url, ca: server.ca, token });
  clients.push(client);
  return client;
};

/** Unit 10-system of a plain cluster, with principals named. */
async function systemObjects(): Promise<JsonObject[]> {
  const folder = join(import.meta.dirname, '../pure/plain-cluster');
  const { source } = await readClusterFolder(folder, 'clusters/plain');
  const cluster = readFileSync(join(folder, 'cluster.yaml'), 'utf8').replace(
    '  executor:\n    apiServer',
    '  allow:\n    principals: {courier: user-1, admins: [admin, keelson-admins]}\n  executor:\n    apiServer',
  );
  const files = new Map([...source.files, ['cluster.yaml', Buffer.from(cluster)] as const]);
  const outcome = await renderCluster({ source: { ...source, files }, domains: [], keelson: '0.0.0-test' });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return [...outcome.rendered.tree].flatMap(([path, bytes]) => {
    if (!path.startsWith('sync/10-system/')) return [];
    const value = parseYaml(Buffer.from(bytes).toString(), path).documents[0]?.value;
    return isObject(value) ? [value] : [];
  });
}

const plural: Record<string, string> = { ValidatingAdmissionPolicy: 'validatingadmissionpolicies' };

function pathOf(object: JsonObject): string {
  const { apiVersion, kind } = object;
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const base = String(apiVersion).includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const within = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  return `${base}${within}/${plural[String(kind)] ?? `${String(kind).toLowerCase()}s`}/${metadata.name}`;
}

const apply = (client: AdminClient, object: JsonObject): Promise<Reply> =>
  client.request('PATCH', pathOf(object), {
    query: { fieldManager: 'test' },
    type: 'application/apply-patch+yaml',
    body: object,
  });

const configMap = (name: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
});
const release = (name: string): JsonObject => ({
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: { name, namespace },
  spec: { payload: { digest: `sha256:${'0'.repeat(64)}` }, source: { configMaps: {} } },
});

const accepted = (reply: Reply, what: string): void => {
  assert.ok(reply.status >= 200 && reply.status < 300, `${what}: ${reply.status} ${reply.body?.message}`);
};
const refused = (reply: Reply, words: RegExp, what: string): void => {
  assert.is(reply.status, 403, `${what}: ${reply.status} ${reply.body?.message}`);
  assert.match(reply.body.message, words, what);
};

let executor: AdminClient;
const courier = as(server.tokens['user-1'] ?? '');
const stranger = as(server.tokens['user-2'] ?? '');

test('everything of 10-system is taken by the API server, in the order of kinds', async () => {
  const objects = await systemObjects();
  const rank = (object: JsonObject): number =>
    ['CustomResourceDefinition', 'Namespace', 'ServiceAccount'].indexOf(String(object.kind)) + 1 || 9;
  for (const object of objects.sort((a, b) => rank(a) - rank(b))) {
    const query = { fieldManager: 'keelson-deliver', fieldValidation: 'Strict' };
    const reply = await server.admin.request('PATCH', pathOf(object), {
      query,
      type: 'application/apply-patch+yaml',
      body: object,
    });
    accepted(reply, pathOf(object));
  }
  for (const user of ['user-1', 'user-2'])
    await server.admin.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      body: {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: `test-${user}` },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      },
    });
  executor = as(await serviceAccountToken(server.admin, namespace, 'keelson-executor'));
});

test('the policies come into force', async () => {
  await waitFor({
    what: 'the writer policy',
    limitMs: 30_000,
    intervalMs: 100,
    clock: systemClock,
    probe: async (saw) => {
      const reply = await apply(stranger, configMap('keelson-payload-probe-0'));
      saw(`${reply.status}`);
      return reply.status === 403 ? true : undefined;
    },
  });
  const { body } = await server.admin.expect(
    'GET',
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/keelson-writers',
  );
  assert.is(body.spec.failurePolicy, 'Fail');
});

test('payloads and Releases are written by the courier and administrators', async () => {
  for (const object of [configMap('keelson-payload-a-0'), release('manifests-a')]) {
    accepted(await apply(courier, object), 'courier');
    accepted(await apply(server.admin, object), 'admin');
  }
  refused(await apply(stranger, release('manifests-b')), /spec\.allow\.principals write a Release/, 'stranger');
  refused(await apply(stranger, configMap('keelson-payload-b-0')), /deliver payloads/, 'stranger');
  refused(await apply(executor, configMap('keelson-payload-b-0')), /deliver payloads/, 'executor');
  refused(
    await stranger.request('DELETE', `/api/v1/namespaces/${namespace}/configmaps/keelson-payload-a-0`),
    /deliver payloads/,
    'deleting',
  );
  accepted(await apply(stranger, configMap('something-else')), 'other names');
});

test('the records of the executor are its own', async () => {
  for (const name of ['keelson-retained-a-0', 'keelson-ledger-a-0', 'keelson-plan-a', 'keelson-report-a']) {
    refused(await apply(courier, configMap(name)), /only the executor/, name);
    accepted(await apply(executor, configMap(name)), name);
  }
});

test('trusted keys are written by administrators alone', async () => {
  const trust = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keelson-trust', namespace } };
  refused(await apply(courier, trust), /keys that are trusted/, 'courier');
  accepted(await apply(server.admin, trust), 'admin');
  assert.is((await executor.request('GET', pathOf(trust))).status, 200);
  assert.is((await executor.request('GET', `/api/v1/namespaces/${namespace}/secrets`)).status, 403);
});

test('the status of a Release is written by the executor, its spec is not', async () => {
  const path = pathOf(release('manifests-a'));
  const merge = { type: 'application/merge-patch+json' };
  const status = { ...merge, body: { status: { state: 'Syncing' } } };
  refused(await courier.request('PATCH', `${path}/status`, status), /only the executor writes the status/, 'courier');
  accepted(await executor.request('PATCH', `${path}/status`, status), 'executor');
  const finalizer = { ...merge, body: { metadata: { finalizers: ['keelson.dev/orphan'] } } };
  accepted(await executor.request('PATCH', path, finalizer), 'finalizer');
  refused(
    await executor.request('PATCH', path, { ...merge, body: { spec: { paused: true } } }),
    /write a Release/,
    'spec',
  );
  accepted(await executor.request('PATCH', path, { ...merge, body: { metadata: { finalizers: null } } }), 'finalizer');
});

test('what systems hang on is not deleted without its own UID', async () => {
  const guarded = [
    pathOf(release('manifests-a')),
    `/api/v1/namespaces/${namespace}`,
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/releases.keelson.dev',
  ];
  for (const path of guarded) {
    const live = await server.admin.expect('GET', path);
    refused(
      await server.admin.request('DELETE', path),
      new RegExp(`keelson\\.dev/confirm-delete=${live.body.metadata.uid}`),
      path,
    );
  }
  const path = pathOf(release('manifests-a'));
  const annotate = (value: string): Promise<Reply> =>
    server.admin.request('PATCH', path, {
      type: 'application/merge-patch+json',
      body: { metadata: { annotations: { 'keelson.dev/confirm-delete': value } } },
    });
  accepted(await annotate('another-uid'), 'annotate');
  refused(await server.admin.request('DELETE', path), /guarded/, 'a UID of something else');
  accepted(await annotate((await server.admin.expect('GET', path)).body.metadata.uid), 'annotate');
  accepted(await server.admin.request('DELETE', path), 'confirmed');
});

test('a collection of Releases is guarded too, other namespaces and definitions are not', async () => {
  accepted(await apply(server.admin, release('manifests-c')), 'create');
  const collection = `/apis/keelson.dev/v1alpha1/namespaces/${namespace}/releases`;
  refused(await server.admin.request('DELETE', collection), /guarded/, 'collection');
  await server.admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } },
  });
  accepted(await server.admin.request('DELETE', '/api/v1/namespaces/other'), 'other namespace');
});

test('the account may do what the payloads need, and no more', async () => {
  const can = async (verb: string, group: string, resource: string, more: JsonObject = {}): Promise<boolean> => {
    const reply = await executor.expect('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb, group, resource, ...more } },
      },
    });
    return reply.body.status.allowed;
  };
  for (const verb of ['create', 'patch', 'delete', 'watch']) assert.ok(await can(verb, 'apps', 'deployments'), verb);
  assert.not(await can('create', 'apps', 'statefulsets'));
  assert.not(await can('get', '', 'secrets'));
  assert.not(await can('escalate', 'rbac.authorization.k8s.io', 'clusterroles'));
  assert.not(await can('create', 'rbac.authorization.k8s.io', 'clusterroles'));
  assert.not(await can('patch', '', 'nodes'));
});

test.after(async () => {
  for (const client of clients) await client.close();
  await server.stop();
});

test.run();
