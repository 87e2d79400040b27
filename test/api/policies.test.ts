import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { AdminClient, Reply } from '../apiserver/client.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import {
  accepted,
  apply,
  as,
  bindAll,
  closeAll,
  configMap,
  inForce,
  installSystem,
  namespace,
  pathOf,
  refused,
  release,
  server,
  stranger,
  systemObjects,
} from './policies-bed.ts';

let executor: AdminClient;
const courier = as(server.tokens['user-1'] ?? '');

test('everything of 10-system is taken by the API server, in the order of kinds', async () => {
  await installSystem(await systemObjects('{courier: user-1, admins: [keelson-admins]}'));
  for (const name of ['user-1', 'user-2'])
    await bindAll(`test-${name}`, { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name });
  executor = as(await serviceAccountToken(server.admin, namespace, 'keelson-executor'));
});

test('the policies come into force', async () => {
  await inForce(namespace);
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
  refused(
    await apply(stranger, release('manifests-b')),
    /user-2 may not write releases manifests-b.*spec\.allow\.principals\.admins of cluster\.yaml/,
    'stranger',
  );
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
  for (const body of [{ spec: { paused: true } }, { metadata: { finalizers: ['keelson.dev/orphan'] } }])
    refused(await executor.request('PATCH', path, { ...merge, body }), /cannot patch resource "releases"/, 'no right');
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
  for (const verb of ['list', 'watch']) assert.ok(await can(verb, 'apps', 'deployments'), verb);
  for (const verb of ['get', 'create', 'patch', 'delete']) {
    assert.ok(await can(verb, 'apps', 'deployments', { name: 'web', namespace: 'demo' }), verb);
    assert.not(await can(verb, 'apps', 'deployments', { name: 'other', namespace: 'demo' }), verb);
  }
  assert.not(await can('create', 'apps', 'statefulsets'));
  assert.not(await can('get', '', 'secrets'));
  assert.not(await can('escalate', 'rbac.authorization.k8s.io', 'clusterroles'));
  assert.not(await can('create', 'rbac.authorization.k8s.io', 'clusterroles'));
  assert.not(await can('patch', '', 'nodes'));
});

test.after(closeAll);

test.run();
