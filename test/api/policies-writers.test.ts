import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type ClusterSpec, clusterSpec } from '../../constructs/api/cluster.ts';
import { evidenceTrust } from '../../constructs/api/constants.ts';
import { synthesize } from '../../constructs/k8s/manifest.ts';
import { admissionPolicies } from '../../constructs/k8s/policies.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
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

/** The policy that says who may write what decides over the cluster, tried as each account. */

/** What writes of an account come to: by kind of object, who may. */
const admins = ['byName', 'byGroup', 'masters'];
const mayWrite: Readonly<Record<string, readonly string[]>> = {
  release: ['courier', ...admins],
  status: ['executor', ...admins],
  payload: ['courier', ...admins],
  labelled: ['courier', ...admins],
  retained: ['executor', ...admins],
  ledger: ['executor', ...admins],
  plan: ['executor', ...admins],
  report: ['executor', ...admins],
  topology: ['executor', ...admins],
  marked: ['executor', ...admins],
  authority: ['executor', 'certManager', ...admins],
  trust: admins,
};

const certManager = 'system:serviceaccount:cert-manager:cert-manager';

/** The writer policy of another cluster beside the first one, for a namespace of its own. */
async function secondPolicy(courier: string, where: string): Promise<void> {
  const objects = await systemObjects(
    `{admins: [user-4, keelson-admins], authority: '${certManager}'}`,
    `    courier: ${courier}\n`,
  );
  await server.admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: where } },
  });
  const writers = objects.filter(({ metadata }) => isObject(metadata) && metadata.name === 'keelson-writers');
  assert.is(writers.length, 2);
  for (const found of writers) {
    // Names are the same in every cluster; here two of them share one.
    const text = JSON.stringify(found).replaceAll('keelson-writers', `${where}-writers`).replaceAll(namespace, where);
    const object = JSON.parse(text) as JsonObject;
    accepted(await apply(server.admin, object), pathOf(object));
  }
}

/** Accounts that may do everything by RBAC, so that only the policy refuses. */
async function accountsOf(
  where: string,
  couriers: Readonly<Record<string, string>>,
): Promise<Map<string, AdminClient>> {
  const accounts = new Map<string, AdminClient>([
    ['masters', server.admin],
    ['byName', as(server.tokens['user-4'] ?? '')],
    ['byGroup', as(server.tokens.grouped ?? '')],
    ['clusterAdmin', stranger],
    ['editor', as(server.tokens['user-3'] ?? '')],
  ]);
  const services = { executor: where, storage: where, addresses: where, ...couriers };
  for (const [role, home] of Object.entries(services)) {
    const name = {
      courier: 'kustomize-controller',
      otherCourier: 'argocd-application-controller',
      certManager: 'cert-manager',
    }[role];
    const account = name ?? `keelson-${role}`;
    await server.admin.request('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: home } },
    });
    accounts.set(role, as(await serviceAccountToken(server.admin, home, account)));
    await bindAll(`${where}-${role}`, { kind: 'ServiceAccount', name: account, namespace: home });
  }
  const all = { apiGroups: ['', 'keelson.dev'], resources: ['configmaps', 'secrets', 'releases', 'releases/status'] };
  const named = { metadata: { name: 'editor', namespace: where } };
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' };
  for (const object of [
    { ...rbac, kind: 'Role', ...named, rules: [{ ...all, verbs: ['*'] }] },
    {
      ...rbac,
      kind: 'RoleBinding',
      ...named,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'editor' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'user-3' }],
    },
  ])
    accepted(await apply(server.admin, object), object.kind);
  return accounts;
}

/** An object of a row of {@link mayWrite}. */
function objectOf(what: string, where: string, account: string): JsonObject {
  const metadata = (name: string, holds?: string): JsonObject => ({
    name,
    namespace: where,
    labels: { account, ...(holds === undefined ? {} : { 'keelson.dev/holds': holds }) },
  });
  const named = account.toLowerCase();
  const map = { apiVersion: 'v1', kind: 'ConfigMap' };
  switch (what) {
    case 'release':
    case 'status':
      return { ...release(''), metadata: metadata(`manifests-${what}-${named}`) };
    case 'trust':
      return { apiVersion: 'v1', kind: 'Secret', metadata: metadata('keelson-trust') };
    case 'authority':
      return { apiVersion: 'v1', kind: 'Secret', metadata: metadata('keelson-evidence-ca') };
    case 'labelled':
      return { ...map, metadata: metadata(`innocent-${named}`, 'payload') };
    case 'marked':
      return { ...map, metadata: metadata(`harmless-${named}`, 'ledger') };
    default:
      return { ...map, metadata: metadata(`keelson-${what}-${named}`) };
  }
}

type Send = (client: AdminClient) => Promise<Reply>;

/** All ways to write an object, in an order in which each finds what it needs. */
function writesOf(what: string, object: JsonObject, account: string): readonly (readonly [string, Send])[] {
  const path = pathOf(object);
  const collection = path.slice(0, path.lastIndexOf('/'));
  const live = async (): Promise<JsonObject> => (await server.admin.expect('GET', path)).body;
  const merge = (body: JsonObject) => ({ type: 'application/merge-patch+json', body });
  if (what === 'status')
    return [['status', (client) => client.request('PATCH', `${path}/status`, merge({ status: { state: 'Syncing' } }))]];
  const confirm = async (): Promise<void> => {
    const { metadata } = await live();
    const uid = (metadata as JsonObject).uid ?? '';
    await server.admin.expect(
      'PATCH',
      path,
      merge({ metadata: { annotations: { 'keelson.dev/confirm-delete': uid } } }),
    );
  };
  const selected = { query: { labelSelector: `account=${account}` } };
  return [
    ['create', (client) => client.request('POST', collection, { body: object })],
    [
      'update',
      async (client) =>
        client.request('PUT', path, {
          body: {
            ...(await live()),
            ...(what === 'release' ? { spec: { ...(object.spec as JsonObject), paused: true } } : { data: {} }),
          },
        }),
    ],
    [
      'patch',
      (client) =>
        client.request(
          'PATCH',
          path,
          merge(what === 'release' ? { spec: { suspendPhases: ['y'] } } : { metadata: { labels: { x: 'y' } } }),
        ),
    ],
    [
      'apply',
      (client) =>
        apply(
          client,
          what === 'release' ? { ...object, spec: { ...(object.spec as JsonObject), suspendPhases: ['x'] } } : object,
        ),
    ],
    [
      'delete',
      async (client) => {
        await confirm();
        return client.request('DELETE', path);
      },
    ],
    [
      'deletecollection',
      async (client) => {
        if ((await server.admin.request('GET', path)).status === 404)
          await server.admin.expect('POST', collection, { body: object });
        await confirm();
        return client.request('DELETE', collection, selected);
      },
    ],
  ];
}

test('each account may write what is its own, in every way, and nothing else', async () => {
  const where = 'keelson-flux';
  await secondPolicy('flux', where);
  const accounts = await accountsOf(where, {
    courier: 'flux-system',
    otherCourier: 'argocd',
    certManager: 'cert-manager',
  });
  await inForce(where);
  let tried = 0;
  for (const [what, members] of Object.entries(mayWrite)) {
    for (const [account, client] of accounts) {
      const object = objectOf(what, where, account);
      const may = members.includes(account);
      const path = pathOf(object);
      // What an account may not create, an administrator did.
      if (!may || what === 'status')
        await server.admin.expect('POST', path.slice(0, path.lastIndexOf('/')), { body: object });
      for (const [way, send] of writesOf(what, object, account)) {
        const told = `${account} ${way} ${what}`;
        const reply = await send(client);
        tried += 1;
        if (may) accepted(reply, told);
        else if (way === 'create' && what !== 'status')
          assert.ok([403].includes(reply.status), `${told}: ${reply.status}`);
        else refused(reply, /may not write .*(cluster\.yaml|through Git)/, told);
      }
      await server.admin.request('PATCH', path, {
        type: 'application/merge-patch+json',
        body: {
          metadata: {
            annotations: {
              'keelson.dev/confirm-delete': (await server.admin.request('GET', path)).body?.metadata?.uid ?? '',
            },
          },
        },
      });
      await server.admin.request('DELETE', path);
    }
  }
  console.log(`${tried} writes by ${accounts.size} accounts`);
  const editor = accounts.get('editor');
  const generated = await editor?.request('POST', `/api/v1/namespaces/${where}/configmaps`, {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'keelson-payload-', namespace: where } },
  });
  assert.is(generated?.status, 403, 'a name that the server makes up is one of ours too');
  const plain = { ...configMap('notes'), metadata: { name: 'notes', namespace: where } };
  if (editor !== undefined) {
    accepted(await apply(editor, plain), 'other names');
    const label = {
      type: 'application/merge-patch+json',
      body: { metadata: { labels: { 'keelson.dev/holds': 'ledger' } } },
    };
    refused(await editor.request('PATCH', pathOf(plain), label), /ledger/, 'what is not ours does not become it');
  }
});

test('beside the probes only the executor tells them whom to believe, and everything else is nobody’s business here', async () => {
  const where = 'keelson-probes';
  await server.admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: where } },
  });
  const spec: ClusterSpec = clusterSpec.parse({
    kubernetesVersion: '1.34.0',
    delivery: { repository: '.', author: { name: 'a', email: 'a@example.com' } },
    images: { executor: 'registry.example.com/keelson:1' },
    allow: { principals: { admins: ['user-4'], authority: certManager } },
  });
  const found = synthesize((scope) => admissionPolicies(scope, spec, [where])).filter(
    ({ metadata }) => (metadata as JsonObject).name === 'keelson-evidence-trust',
  );
  assert.is(found.length, 2);
  for (const object of found) accepted(await apply(server.admin, object), pathOf(object));
  const named = (name: string): JsonObject => ({ ...configMap(name), metadata: { name, namespace: where } });
  const trust: JsonObject = {
    ...named(evidenceTrust.name),
    metadata: { name: evidenceTrust.name, namespace: where, labels: { account: 'probes' } },
  };
  const account = async (home: string, name: string): Promise<AdminClient> => {
    await bindAll(`probes-${home}-${name}`, { kind: 'ServiceAccount', name, namespace: home });
    return as(await serviceAccountToken(server.admin, home, name));
  };
  await waitFor({
    what: 'the policy to be in force',
    limitMs: 30_000,
    intervalMs: 100,
    clock: systemClock,
    probe: async () => ((await apply(stranger, trust)).status === 403 ? true : undefined),
  });
  // Before it was in force anybody could.
  await server.admin.request('DELETE', pathOf(trust));
  const may = [await account(namespace, 'keelson-executor'), server.admin, as(server.tokens['user-4'] ?? '')];
  const mayNot = [stranger, await account('cert-manager', 'cert-manager'), await account(where, 'keelson-executor')];
  for (const client of may) {
    for (const [way, send] of writesOf('trust', trust, 'probes')) accepted(await send(client), way);
  }
  await server.admin.expect('POST', pathOf(trust).replace(/\/[^/]*$/, ''), { body: trust });
  for (const client of mayNot) {
    for (const [way, send] of writesOf('trust', trust, 'probes')) {
      const reply = await send(client);
      if (way === 'create') assert.is(reply.status, 403);
      else refused(reply, /may not write configmaps keelson-evidence-trust/, way);
    }
    accepted(await apply(client, named('notes')), 'another name');
  }
});

test('with Argo CD its controller is the courier; without a courier only administrators deliver', async () => {
  for (const [courier, where] of [
    ['argo', 'keelson-argo'],
    ['none', 'keelson-none'],
  ] as const) {
    await secondPolicy(courier, where);
    await inForce(where);
    const controller = as(await serviceAccountToken(server.admin, 'argocd', 'argocd-application-controller'));
    const object = objectOf('payload', where, 'x');
    if (courier === 'argo') accepted(await apply(controller, object), 'argo');
    else refused(await apply(controller, object), /deliver as an administrator, or let an administrator add/, 'none');
    accepted(await apply(server.admin, object), 'masters');
  }
});

test.before(async () => {
  await installSystem(await systemObjects('{admins: []}'));
  await bindAll('stranger', { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'user-2' });
  for (const name of ['user-4', 'grouped'])
    await bindAll(name, { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name });
});

test.after(closeAll);

test.run();
