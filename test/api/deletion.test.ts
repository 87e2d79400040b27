import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, systemNamespace } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { type AdminClient, adminClient, type Reply } from '../apiserver/client.ts';
import { kubectl } from '../apiserver/kubectl.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { specOf } from '../pure/network-fixture.ts';
import { guardDeletions } from './deletion-guard.ts';
import { until } from './kubeBed.ts';

/**
 * The deletion guard over every kind that it protects, tried in every way in which people, couriers and controllers delete.
 * The garbage collector and the namespace controller are at work.
 */

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

const server = await startApiServer({ with: ['controllers'] });
const { admin } = server;
const clients: AdminClient[] = [admin];

interface Protected {
  readonly what: string;
  readonly path: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
  readonly body: JsonObject;
  /** Other paths that delete it together with others. */
  readonly collection?: string;
}

/** Group, version, kind, plural and scope. */
type Definition = readonly [string, string, string, string, string];

const loose = ([group, version, kind, plural, scope]: Definition): JsonObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope,
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

/** Kinds of parts that this version does not contain yet: the guard is there before they are. */
const later = [
  ['storage.simplyblock.io', 'v1alpha2', 'ControlPlane', 'controlplanes', 'Namespaced'],
  ['storage.simplyblock.io', 'v1alpha2', 'StorageCluster', 'storageclusters', 'Namespaced'],
  ['local.sdn.cozystack.io', 'v1alpha1', 'IPAddressClass', 'ipaddressclasses', 'Cluster'],
] as const;
/** A kind that nobody protects. */
const plain = ['example.com', 'v1', 'Thing', 'things', 'Namespaced'] as const;

function definitions(): JsonObject[] {
  const folder = join(import.meta.dirname, '../../constructs/api/generated/crds');
  const ours = readdirSync(folder).flatMap((file) =>
    parseYaml(readFileSync(join(folder, file), 'utf8'), file).documents.map(({ value }) => value as JsonObject),
  );
  return [...ours, ...later.map(loose)];
}

const custom = (
  [group, version, kind, plural]: readonly [string, string, string, string],
  namespace: string | undefined,
  name: string,
  more: JsonObject = {},
): Protected => {
  const collection = `/apis/${group}/${version}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${plural}`;
  return {
    what: kind,
    path: `${collection}/${name}`,
    collection,
    resource: `${plural}.${group}`,
    ...(namespace === undefined ? {} : { namespace }),
    name,
    body: { apiVersion: `${group}/${version}`, kind, metadata: { name }, ...more },
  };
};

const objects: readonly Protected[] = [
  custom(['keelson.dev', 'v1alpha1', 'Release', 'releases'], systemNamespace, 'manifests-a', {
    spec: { payload: { digest: `sha256:${'0'.repeat(64)}` }, source: { configMaps: {} } },
  }),
  custom(['network.keelson.dev', 'v1alpha1', 'KubeOVNInstallation', 'kubeovninstallations'], 'kube-system', 'main', {
    spec: specOf({}) as unknown as JsonObject,
  }),
  custom(['network.keelson.dev', 'v1alpha1', 'KubeOVNInstallation', 'kubeovninstallations'], 'ovn', 'other', {
    spec: specOf({}) as unknown as JsonObject,
  }),
  custom(['storage.simplyblock.io', 'v1alpha2', 'ControlPlane', 'controlplanes'], 'default', 'main'),
  custom(['storage.simplyblock.io', 'v1alpha2', 'StorageCluster', 'storageclusters'], 'default', 'main'),
  custom(['local.sdn.cozystack.io', 'v1alpha1', 'IPAddressClass', 'ipaddressclasses'], undefined, 'main'),
];

const standing: readonly Omit<Protected, 'body'>[] = [
  ...definitions().map((body): Omit<Protected, 'body'> => {
    const name = String((body.metadata as JsonObject).name);
    const collection = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    return { what: `definition ${name}`, path: `${collection}/${name}`, resource: 'crd', name };
  }),
  ...[systemNamespace, 'ovn'].map((name) => ({
    what: `namespace ${name}`,
    path: `/api/v1/namespaces/${name}`,
    resource: 'namespace',
    name,
  })),
];

async function account(namespace: string, name: string): Promise<AdminClient> {
  await admin.request('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  });
  const client = adminClient({
    url: server.url,
    ca: server.ca,
    token: await serviceAccountToken(admin, namespace, name),
  });
  clients.push(client);
  await admin.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `all-${name}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    },
  });
  return client;
}

const planes = '/apis/storage.simplyblock.io/v1alpha2/namespaces/default/controlplanes';
const things = '/apis/example.com/v1/namespaces/default/things';

/** An owner that is gone, and two objects of it: one that is guarded, one that is not. */
async function orphans(): Promise<void> {
  const maps = '/api/v1/namespaces/default/configmaps';
  const { body } = await admin.expect('POST', maps, {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owner' } },
  });
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: body.metadata.uid }];
  const owned = (apiVersion: string, kind: string, name: string) => ({
    body: { apiVersion, kind, metadata: { name, ownerReferences } },
  });
  await admin.expect('POST', planes, owned('storage.simplyblock.io/v1alpha2', 'ControlPlane', 'owned'));
  await admin.expect('POST', things, owned('example.com/v1', 'Thing', 'canary'));
  await admin.expect('DELETE', `${maps}/owner`, options('Background'));
}

let flux: AdminClient;
let argo: AdminClient;

test.before(async () => {
  const apply = { type: 'application/apply-patch+yaml', query: { fieldManager: 'test' } };
  for (const body of [...definitions(), loose(plain)]) {
    const name = String((body.metadata as JsonObject).name);
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`;
    await admin.expect('PATCH', path, { ...apply, body });
    await until(`${name} to be served`, async () =>
      ((await admin.expect('GET', path)).body.status?.conditions ?? []).some(
        (one: Loose) => one.type === 'Established' && one.status === 'True',
      ),
    );
  }
  for (const name of [systemNamespace, 'ovn'])
    await admin.expect('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    });
  for (const { collection = '', body } of objects) await admin.expect('POST', collection, { body });
  flux = await account('flux-system', 'kustomize-controller');
  argo = await account('argocd', 'argocd-application-controller');
  // Argo CD may write as well: who may not is refused by the policy of writers too, and the server answers with one of both.
  const principals = {
    courier: 'system:serviceaccount:flux-system:kustomize-controller',
    admins: ['system:serviceaccount:argocd:argocd-application-controller'],
  };
  await guardDeletions(admin, principals, ['ovn']);
  const [release] = objects;
  // A refusal for want of rights would look like one by the guard.
  for (const client of [flux, argo])
    await until(
      'the accounts to have their rights',
      async () => (await client.request('GET', release?.path ?? '')).status === 200,
      30_000,
    );
  // A dry run is admitted like the real thing, and deletes nothing while the policy is not in force yet.
  await until(
    'the guard to be in force',
    async () => (await admin.request('DELETE', release?.path ?? '', { query: { dryRun: 'All' } })).status === 403,
    30_000,
  );
  await orphans();
});

test.after(async () => {
  for (const client of clients) await client.close();
  await server.stop();
});

const uidOf = async ({ path }: Pick<Protected, 'path'>): Promise<string> =>
  (await admin.expect('GET', path)).body.metadata.uid;

/** The answer names the object, and what to do when it is meant. */
function guarded(reply: Reply, uid: string, what: string): void {
  assert.is(reply.status, 403, `${what}: ${reply.status} ${JSON.stringify(reply.body)}`);
  assert.match(String(reply.body.message), `${annotations.confirmDelete}=${uid}`, what);
}

const options = (propagationPolicy: string, uid?: string): { readonly body: JsonObject } => ({
  body: {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    propagationPolicy,
    ...(uid === undefined ? {} : { preconditions: { uid } }),
  },
});

test('kubectl: in the background, in the foreground, orphaning, by force; of one, and of all', async () => {
  for (const one of [...objects, ...standing]) {
    const uid = await uidOf(one);
    const where = one.namespace === undefined ? [] : ['-n', one.namespace];
    const ways = [
      [one.name],
      [one.name, '--cascade=foreground'],
      [one.name, '--cascade=orphan'],
      [one.name, '--force', '--grace-period=0'],
      ...('body' in one ? [['--all']] : []),
    ];
    // A definition takes its objects along, which are guarded by themselves; one way shows it for each.
    const tried = one.resource === 'crd' ? ways.slice(-1) : ways;
    const results = await Promise.all(
      tried.map((way) => kubectl(server, ['delete', one.resource, ...way, ...where, '--wait=false'])),
    );
    for (const [index, { code, stderr }] of results.entries()) {
      const what = `kubectl delete ${one.resource} ${tried[index]?.join(' ')}`;
      assert.is.not(code, 0, what);
      assert.match(stderr, uid, `${what}: ${stderr}`);
    }
    assert.is(await uidOf(one), uid);
  }
});

test('couriers: a prune of Flux, and a deletion of Argo CD in the foreground', async () => {
  for (const one of [...objects, ...standing]) {
    const uid = await uidOf(one);
    guarded(await flux.request('DELETE', one.path, options('Background', uid)), uid, `${one.what}, Flux`);
    guarded(await argo.request('DELETE', one.path, options('Foreground')), uid, `${one.what}, Argo CD`);
  }
});

test('collections: everything of a kind at once', async () => {
  for (const one of objects) {
    const reply = await admin.request('DELETE', one.collection ?? '', options('Background'));
    guarded(reply, await uidOf(one), one.what);
  }
});

test('only its own UID confirms; in the foreground not even that, for it would take along what the object owns', async () => {
  const annotate = (one: Pick<Protected, 'path'>, value: string) =>
    admin.expect('PATCH', one.path, {
      type: 'application/merge-patch+json',
      body: { metadata: { annotations: { [annotations.confirmDelete]: value } } },
    });
  const another = await uidOf({ path: '/api/v1/namespaces/default' });
  for (const one of objects) {
    const uid = await uidOf(one);
    await annotate(one, another);
    guarded(await admin.request('DELETE', one.path, options('Background')), uid, `${one.what}, another UID`);
    await annotate(one, uid);
    const foreground = await argo.request('DELETE', one.path, options('Foreground'));
    assert.is(foreground.status, 403, one.what);
    assert.match(foreground.body.message, /takes along what the object owns/, one.what);
    assert.is(await uidOf(one), uid);
    await admin.expect('DELETE', one.path, options('Background', uid));
    await until(`${one.what} to go`, async () => (await admin.request('GET', one.path)).status === 404);
  }
});

test('the garbage collector is refused like anybody else', async () => {
  await until(
    'what else the owner owned to be collected',
    async () => (await admin.request('GET', `${things}/canary`)).status === 404,
    90_000,
  );
  // Both kinds became known to the collector at the same time, and the guarded object was there first.
  const owned = await admin.expect('GET', `${planes}/owned`);
  assert.is(owned.body.metadata.deletionTimestamp, undefined);
});

test('a confirmed namespace goes, and what is in it goes with it', async () => {
  const inside = objects.filter(({ namespace }) => namespace === systemNamespace || namespace === 'ovn');
  assert.is(inside.length, 2);
  for (const { namespace, collection = '', body } of inside) {
    const path = `/api/v1/namespaces/${namespace}`;
    await admin.expect('POST', collection, { body });
    const uid = await uidOf({ path });
    guarded(await admin.request('DELETE', path, options('Background')), uid, `namespace ${namespace}`);
    await admin.expect('PATCH', path, {
      type: 'application/merge-patch+json',
      body: { metadata: { annotations: { [annotations.confirmDelete]: uid } } },
    });
    await admin.expect('DELETE', path, options('Background'));
    await until('the namespace to go', async () => (await admin.request('GET', path)).status === 404, 60_000);
  }
});

test.run();
