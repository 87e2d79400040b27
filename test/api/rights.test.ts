// time limit: 150s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import type { Rendered } from '../../renderer/render.ts';
import { type AdminClient, adminClient, type Reply } from '../apiserver/client.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import type { RequestRecord } from '../faults/plan.ts';
import { until } from './kubeBed.ts';
import { controlNodes, gatesBypassed, type Loose, networkBed, paths, system, workshop } from './network-bed.ts';
import { evidenceGates } from './network-folder.ts';
import { grantedAtoms, unneeded } from './rights-bed.ts';
import { definition, everything, later, little } from './rights-payload.ts';

/**
 * The rights that are rendered for the executor, and what it does with them in one cluster with a network and with manifests of
 * the same kinds: it uses every right, and is denied nothing.
 */

const shop = await workshop();
const bed = await networkBed(shop, { nodes: controlNodes(3) });
const { admin } = bed.server;
const requests: RequestRecord[] = [];
let rendered: Rendered;
let account: AdminClient;

const releaseSettings = { approval: { mode: 'never' as const } };
const settings = { releases: { 'manifests-demo': { ...releaseSettings, suspendPhases: ['web'] } } };
const demo = `/apis/keelson.dev/v1alpha1/namespaces/${system}/releases/manifests-demo`;
const options = { bypassGates: [...evidenceGates, 'WorkloadsReady'], retain: 1 };

const completed =
  (digest: string | undefined) =>
  (release: Loose): boolean =>
    release.status?.history?.[0]?.digest === digest && release.status.history[0].state === 'Completed';

/** Runs the executor until something holds, and something after it; keeps what it asked. */
async function during(
  what: string,
  path: string,
  probe: (object: Loose) => boolean,
  after = async (): Promise<void> => undefined,
): Promise<void> {
  const executor = await bed.executor(options);
  try {
    await bed.until(path, what, probe, 60_000);
    await after();
  } finally {
    await executor.stop();
    requests.push(...executor.plan.log);
  }
}

/** Delivers a change of the manifests, with the rights as they were before, and waits until it is in place. */
async function change(what: string, files: Readonly<Record<string, string>>): Promise<void> {
  const next = await bed.render({ settings: { releases: { 'manifests-demo': releaseSettings } }, files });
  await bed.deliver(next, ['20-releases', '30-specs']);
  const digest = next.releases.find(({ name }) => name === 'manifests-demo')?.index.digest;
  await during(what, demo, completed(digest), oldCopiesGone);
}

/** Old copies of a payload go after its end is told. */
const oldCopiesGone = (): Promise<void> =>
  until(
    'the copies of the payload before to go',
    async () => {
      const labelSelector = 'keelson.dev/release=manifests-demo,keelson.dev/holds=retained';
      const { body } = await admin.expect('GET', `/api/v1/namespaces/${system}/configmaps`, {
        query: { labelSelector },
      });
      const copies = (body as Loose).items.map(({ metadata }: Loose) => metadata.name.replace(/-[0-9]+$/, ''));
      return new Set(copies).size === 1;
    },
    30_000,
  );

/** What others do before and beside the executor. */
async function prepare(): Promise<void> {
  const post = (path: string, body: JsonObject): Promise<Reply> => admin.expect('POST', path, { body });
  await post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: later } });
  for (const namespace of ['kube-system', later]) {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'web' }, stringData: { key: 'value' } };
    await post(`/api/v1/namespaces/${namespace}/secrets`, secret);
  }
  const foreign = parseYaml(definition('Stranger'), 'stranger').documents[0]?.value as JsonObject;
  await post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', foreign);
  await post(`/apis/discovery.k8s.io/v1/namespaces/${later}/endpointslices`, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true } }],
    ports: [],
  });
}

test('what the executor uses is what it was granted, right for right', async () => {
  await prepare();
  rendered = await bed.render({ settings, files: everything(true) });
  await bed.deliver(rendered);
  bed.playKubelets();
  await during(
    'the manifests stop half way',
    demo,
    ({ status }) => status?.conditions?.[0]?.reason === 'PhaseSuspended',
  );
  // A process that takes over half way reads what the one before had planned.
  await bed.patch(demo, { spec: { suspendPhases: [] } });
  await during('the manifests are in place', demo, gatesBypassed);
  await during('the network is in place', paths.release, gatesBypassed);

  await change('one object goes', everything(false));
  // A kind goes with its definition; whether it is gone for good, the definitions of its group tell.
  await admin.expect('DELETE', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com');
  await change('all but one is gone', little);

  const denied = requests.filter(({ status }) => status === 403);
  assert.equal(
    denied.map(({ verb, resource, namespace, name }) => `${verb} ${resource} ${namespace ?? ''}/${name ?? ''}`),
    [],
    'a right is missing',
  );
  // These are no requests: the API server asks for them when roles are written.
  const implied = /^\S+ (escalate|bind) /;
  const unused = unneeded(grantedAtoms(rendered), requests).filter((text) => !implied.test(text));
  assert.equal(unused, [], 'a right is granted that nothing needs');
});

const merge = { type: 'application/merge-patch+json' };
const dry = { fieldManager: 'keelson', dryRun: 'All' };
const server = bed.server;

/** Applies an object as the executor would, without storing it. */
const dryApply = (path: string, body: JsonObject): Promise<Reply> =>
  account.request('PATCH', path, { query: dry, type: 'application/apply-patch+yaml', body });

test('the account can write nothing that no payload names', async () => {
  account = adminClient({
    url: server.url,
    ca: server.ca,
    token: await serviceAccountToken(admin, system, 'keelson-executor'),
  });
  const named = (apiVersion: string, kind: string, name: string, namespace?: string): JsonObject => ({
    apiVersion,
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  });
  const core = (namespace: string, resource: string, name: string): string =>
    `/api/v1/namespaces/${namespace}/${resource}/${name}`;
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const rbacVersion = 'rbac.authorization.k8s.io/v1';
  const strangers: readonly (readonly [string, JsonObject])[] = [
    [core('kube-system', 'secrets', 'web'), named('v1', 'Secret', 'web', 'kube-system')],
    [core(system, 'secrets', 'keelson-trust'), named('v1', 'Secret', 'keelson-trust', system)],
    [core('kube-system', 'configmaps', 'other'), named('v1', 'ConfigMap', 'other', 'kube-system')],
    [core('default', 'configmaps', 'ovn-config'), named('v1', 'ConfigMap', 'ovn-config', 'default')],
    [core('default', 'configmaps', 'other'), named('v1', 'ConfigMap', 'other', 'default')],
    [core('kube-system', 'serviceaccounts', 'other'), named('v1', 'ServiceAccount', 'other', 'kube-system')],
    ['/api/v1/nodes/n1', named('v1', 'Node', 'n1')],
    ['/api/v1/namespaces/default', named('v1', 'Namespace', 'default')],
    [`${rbac}/clusterroles/other`, { ...named(rbacVersion, 'ClusterRole', 'other'), rules: [] }],
    [`${rbac}/clusterroles/cluster-admin`, { ...named(rbacVersion, 'ClusterRole', 'cluster-admin'), rules: [] }],
    [`${rbac}/clusterroles/keelson-executor`, { ...named(rbacVersion, 'ClusterRole', 'keelson-executor'), rules: [] }],
    [
      `/apis/keelson.dev/v1alpha1/namespaces/${system}/releases/manifests-demo`,
      { ...named('keelson.dev/v1alpha1', 'Release', 'manifests-demo', system), spec: { paused: true } },
    ],
    ['/apis/apps/v1/namespaces/kube-system/deployments/other', named('apps/v1', 'Deployment', 'other', 'kube-system')],
  ];
  for (const [path, body] of strangers) {
    for (const reply of [
      await dryApply(path, body),
      await account.request('PATCH', path, {
        ...merge,
        query: { dryRun: 'All' },
        body: { metadata: { labels: { x: 'y' } } },
      }),
      await account.request('DELETE', path, { query: { dryRun: 'All' } }),
    ])
      assert.is(reply.status, 403, `${path}: ${reply.status} ${reply.body?.message}`);
    const collection = path.slice(0, path.lastIndexOf('/'));
    const posted = await account.request('POST', collection, { query: { dryRun: 'All' }, body });
    // The executor's own ConfigMaps are the only objects whose names it makes up.
    assert.is(posted.status, 403, `POST ${collection}: ${posted.status} ${posted.body?.message}`);
    const all = await account.request('DELETE', collection, { query: { dryRun: 'All' } });
    assert.is(all.status, 403, `DELETE ${collection}: ${all.status}`);
  }
});

test('each right to escalate and to bind names the roles of the payloads, which can not be written without it', async () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const implied = grantedAtoms(rendered).filter(({ verb }) => verb === 'escalate' || verb === 'bind');
  assert.ok(implied.length >= 4, `${implied.length} rights`);
  const objects = rendered.releases.flatMap(({ objects: all }) => [...all.values()]);
  let tried = 0;
  for (const right of implied) {
    assert.ok(right.names !== undefined, 'none of them holds for every name');
    const resource = right.resource.slice(0, right.resource.indexOf('.'));
    const kind = resource === 'roles' ? 'Role' : 'ClusterRole';
    const path =
      right.where === '*'
        ? `${rbac}/clusterroles/keelson-executor`
        : `${rbac}/namespaces/${right.where}/roles/keelson-executor`;
    const { body: role } = await admin.expect('GET', path);
    const writes = objects.filter((object: Loose) => {
      if (right.verb === 'escalate')
        return object.kind === kind && right.names?.has(object.metadata.name) && here(object, right.where);
      return (
        /^(Cluster)?RoleBinding$/.test(object.kind) &&
        object.roleRef.kind === kind &&
        right.names?.has(object.roleRef.name) &&
        here(object, right.where)
      );
    });
    assert.ok(writes.length > 0, `${right.verb} ${[...right.names].join()} in ${right.where}`);
    const rules = role.rules.filter(
      (rule: Loose) => !(rule.verbs.includes(right.verb) && rule.resources.includes(resource)),
    );
    const outcomes = async (): Promise<number[]> => {
      const replies = await Promise.all(writes.map((object) => dryApply(pathOf(object), object)));
      return replies.map(({ status }) => status);
    };
    assert.ok(
      (await outcomes()).every((status) => status < 300),
      `with the right: ${await outcomes()}`,
    );
    await admin.expect('PATCH', path, { ...merge, body: { rules } });
    await until(`${right.verb} ${resource} to be missed`, async () =>
      (await outcomes()).some((status) => status >= 400),
    );
    await admin.expect('PATCH', path, { ...merge, body: { rules: role.rules } });
    await until('the right to be back', async () => (await outcomes()).every((status) => status < 300));
    tried += writes.length;
  }
  console.log(`${implied.length} rights to escalate or bind, needed by ${tried} roles and bindings`);
});

/** Whether a right of a role is about an object: those of the ClusterRole are for all but the standing namespaces. */
const here = ({ metadata }: Loose, where: string): boolean =>
  where === '*' ? metadata.namespace !== 'kube-system' : metadata.namespace === where;

function pathOf({ kind, metadata }: Loose): string {
  const within = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  return `/apis/rbac.authorization.k8s.io/v1${within}/${kind.toLowerCase()}s/${metadata.name}`;
}

test.after(async () => {
  await account?.close();
  await bed.close();
  await shop.close();
});

test.run();
