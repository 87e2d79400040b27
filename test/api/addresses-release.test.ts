// time limit: 120s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressesApiVersion } from '../../constructs/api/addresses.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { coreWorker } from '../../executor/addresses/core/core-worker.ts';
import { metallbWorker } from '../../executor/addresses/metallb/metallb-worker.ts';
import type { Rendered } from '../../renderer/render.ts';
import type { AdminClient, Reply } from '../apiserver/client.ts';
import { classText, publicClass } from '../pure/addresses-render-support.ts';
import { runMetallb } from '../standins/metallb.ts';
import {
  accountClient,
  address,
  claim,
  create,
  createNamespace,
  deliver,
  gone,
  isNow,
  live,
  merge,
  metallbKinds,
  phase,
  pool,
  provenMinimal,
  renderLedger,
  service,
  startExecutor,
  startRole,
  unitOf,
  untilRelease,
} from './addresses-release-bed.ts';
import { edgeOf, until } from './kubeBed.ts';
import {
  accepted,
  apply,
  as,
  bindAll,
  closeAll,
  installSystem,
  namespace,
  pathOf,
  refused,
  server,
} from './policies-bed.ts';

/** The release of the ledger on a real API server: its policies as each account, its rights, and what it leaves alone. */

const provisioner = 'metallb.drivers.local.sdn.cozystack.io';
const pin = 'metallb.io/loadBalancerIPs';
const admission =
  '{addressName: {enabled: true, allowedUsers: [user-2]}, pins: {enabled: true, allowedUsers: [user-2], allowedGroups: [platform]}, provisioner: {enabled: true}}';
const settings = `{admission: ${admission}}`;
const holds = 'metallb-iad-system';

/** Edits claims and Services of its namespace. */
const tenant = as(server.tokens['user-1'] ?? '');
/** Is named in the policies. */
const gitops = as(server.tokens['user-2'] ?? '');
/** May do everything by RBAC, and is named nowhere. */
const clusterAdmin = as(server.tokens['user-3'] ?? '');
/** Administrators of Keelson. */
const keelsonAdmin = as(server.tokens.grouped ?? '');
let role: AdminClient;
let metallb: AdminClient;
let rendered: Rendered;
let executor: Awaited<ReturnType<typeof startExecutor>>;

/** Creates an object without storing it. */
const tryCreate = (client: AdminClient, object: JsonObject): Promise<Reply> => {
  const path = pathOf(object);
  return client.request('POST', path.slice(0, path.lastIndexOf('/')), { body: object, query: { dryRun: 'All' } });
};
/** Changes an object without storing it. */
const tryMerge = (client: AdminClient, object: JsonObject, body: JsonObject): Promise<Reply> =>
  client.request('PATCH', pathOf(object), { ...merge(body), query: { dryRun: 'All' } });
const annotated = (annotations: JsonObject): JsonObject => ({ metadata: { annotations } });

test.before(async () => {
  rendered = await renderLedger([publicClass], settings);
  for (const name of ['metallb-system', 'tenant']) await createNamespace(name);
  await metallbKinds();
  await installSystem(unitOf(rendered, '10-system'));
  for (const name of ['user-2', 'user-3'])
    await bindAll(name, { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name });
  await bindAll('admins', { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'keelson-admins' });
  await bindAll('metallb', { kind: 'ServiceAccount', name: 'controller', namespace: 'metallb-system' });
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'user-1' }];
  const rules = [{ apiGroups: [''], resources: ['services'], verbs: ['*'] }];
  const place = { name: 'services', namespace: 'tenant' };
  const ref = (kind: string, name: string): JsonObject => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name });
  for (const object of [
    { ...rbac, kind: 'Role', metadata: place, rules },
    { ...rbac, kind: 'RoleBinding', metadata: place, roleRef: ref('Role', 'services'), subjects },
    {
      ...rbac,
      kind: 'RoleBinding',
      metadata: { name: 'claims', namespace: 'tenant' },
      roleRef: ref('ClusterRole', 'keelson-ipaddressclaim-editor'),
      subjects,
    },
  ])
    accepted(await apply(server.admin, object), object.metadata.name);
  role = await accountClient(namespace, 'keelson-addresses');
  metallb = await accountClient('metallb-system', 'controller');
});

test('V3: without the policies everybody may choose, and nothing but RBAC decides', async () => {
  accepted(await tryCreate(clusterAdmin, claim('a', { addressName: 'ip-1' })), 'addressName');
  accepted(await tryCreate(tenant, service('a', { [pin]: '203.0.113.1' })), 'pin');
});

test('the release is accepted and written by the account of the executor, and ready once its role is available', async () => {
  executor = await startExecutor();
  await deliver(rendered);
  const waiting = await untilRelease(
    'addresses',
    'the role to be waited for',
    ({ status }) => status?.sync?.blocker?.gate === 'Condition(controller)',
  );
  assert.match(waiting.status.sync.blocker.message, /Deployment\.apps keelson-system\/keelson-addresses/);
  assert.is(isNow(waiting, 'Ready', 'Unknown'), true);
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments/keelson-addresses`;
  const live = (await server.admin.expect('GET', path)).body;
  const conditions = [{ type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message: '' }];
  await server.admin.expect('PATCH', `${path}/status`, {
    ...merge({ status: { observedGeneration: live.metadata.generation, replicas: 2, conditions } }),
  });
  await untilRelease('addresses', 'Ready', (release) => isNow(release, 'Ready', 'True'));
  await untilRelease('manifests-app', 'Ready', (release) => isNow(release, 'Ready', 'True'));
  assert.equal(
    executor.plan.log.filter(({ status }) => status === 403).map(({ verb, path: at }) => `${verb} ${at}`),
    [],
    'a right is missing',
  );
});

test('V1: who asks for one particular address is named, or is the core', async () => {
  await until('the policy to be in force', async () => {
    const reply = await tryCreate(tenant, claim('a', { addressName: 'ip-1' }));
    return reply.status === 403 && /spec\.addressName/.test(reply.body.message);
  });
  const named = claim('named', { addressName: 'ip-1' });
  refused(
    await tryCreate(tenant, named),
    /user-1: only who is named .*admission\.addressName of cluster\.yaml/,
    'tenant',
  );
  refused(await tryCreate(clusterAdmin, named), /only who is named/, 'RBAC does not help');
  for (const client of [gitops, keelsonAdmin, server.admin]) accepted(await tryCreate(client, named), 'named');
  accepted(await tryCreate(tenant, claim('plain', {})), 'a claim of any address');
  await create(gitops, named);
  accepted(await tryMerge(tenant, named, { spec: { className: 'public' } }), 'other fields');
  accepted(await tryMerge(tenant, named, { spec: { addressName: null } }), 'giving it up');
  refused(await tryMerge(tenant, named, { spec: { addressName: 'ip-2' } }), /addressName/, 'another one');
  await create(tenant, claim('later', {}));
  refused(await tryMerge(tenant, claim('later', {}), { spec: { addressName: 'ip-2' } }), /addressName/, 'later');
});

test('V2: who chooses addresses of MetalLB is named, or is the driver or MetalLB', async () => {
  const guarded = [
    ...['metallb.io', 'metallb.universe.tf'].flatMap((prefix) =>
      ['address-pool', 'loadBalancerIPs', 'allow-shared-ip'].map((key) => `${prefix}/${key}`),
    ),
    `${provisioner}/pinned`,
    `${provisioner}/releasing`,
  ];
  const all = Object.fromEntries(guarded.map((key) => [key, 'true']));
  const [bare, chosen] = [service('bare'), service('chosen', all, 'tenant', { loadBalancerIP: '203.0.113.1' })];
  await create(tenant, bare);
  await create(gitops, chosen);
  for (const key of guarded) {
    refused(await tryCreate(tenant, service('x', { [key]: '' })), /only who is named/, `create with ${key}`);
    for (const [what, object, value] of [
      ['add', bare, 'x'],
      ['change', chosen, 'x'],
      ['remove', chosen, null],
    ] as const)
      refused(await tryMerge(tenant, object, annotated({ [key]: value })), /admission\.pins/, `${what} ${key}`);
  }
  for (const ip of ['203.0.113.2', null])
    refused(await tryMerge(tenant, chosen, { spec: { loadBalancerIP: ip } }), /loadBalancerIP/, `${ip}`);
  refused(await tryMerge(clusterAdmin, bare, annotated({ [pin]: 'x' })), /only who is named/, 'RBAC does not help');
  accepted(await tryMerge(tenant, chosen, { metadata: { labels: { a: 'b' } } }), 'labels');
  accepted(
    await tryMerge(tenant, chosen, annotated({ 'local.sdn.cozystack.io/ip-address-claim': 'web' })),
    'the claim',
  );
  for (const client of [gitops, keelsonAdmin, role, metallb, server.admin])
    accepted(await tryMerge(client, chosen, annotated({ [pin]: null, [`${provisioner}/pinned`]: null })), 'named');
  const status = { status: { loadBalancer: { ingress: [{ ip: '198.51.100.77' }] } } };
  accepted(
    await clusterAdmin.request('PATCH', `${pathOf(bare)}/status`, merge(status)),
    'status is MetalLB’s to write',
  );
});

test('the provisioner of a claim is written by the core alone', async () => {
  const stamp = 'local.sdn.cozystack.io/provisioner';
  refused(await tryCreate(tenant, claim('x', {}, { [stamp]: provisioner })), /only the core writes/, 'create');
  await create(tenant, claim('stamped', {}));
  refused(await tryMerge(tenant, claim('stamped', {}), annotated({ [stamp]: 'x' })), /only the core writes/, 'add');
  await role.expect('PATCH', pathOf(claim('stamped', {})), merge(annotated({ [stamp]: provisioner })));
  refused(await tryMerge(tenant, claim('stamped', {}), annotated({ [stamp]: null })), /only the core writes/, 'remove');
  accepted(await tryMerge(tenant, claim('stamped', {}), { metadata: { labels: { a: 'b' } } }), 'labels');
});

test('the namespace of placeholders is closed to everybody but the driver', async () => {
  const held = service('iad-held', { [pin]: '203.0.113.3' }, holds);
  await create(role, held);
  for (const client of [clusterAdmin, gitops, metallb]) {
    refused(await tryCreate(client, service('mine', {}, holds)), /only the driver writes placeholders/, 'create');
    refused(await tryMerge(client, held, annotated({ [pin]: null })), /only (the driver|who is named)/, 'pin');
    refused(await tryMerge(client, held, { spec: { selector: { a: 'b' } } }), /only the driver/, 'selector');
    refused(await tryMerge(client, held, { metadata: { labels: { a: 'b' } } }), /only the driver/, 'labels');
    refused(await client.request('DELETE', pathOf(held), { query: { dryRun: 'All' } }), /only the driver/, 'delete');
    const slices = `/apis/discovery.k8s.io/v1/namespaces/${holds}/endpointslices`;
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'x', labels: { 'kubernetes.io/service-name': 'iad-held' } },
      addressType: 'IPv4',
      endpoints: [],
    };
    refused(await client.request('POST', slices, { body: slice }), /only the driver/, 'endpoints');
  }
  accepted(await tryMerge(metallb, held, annotated({ 'metallb.io/ip-allocated-from-pool': 'iad-public' })), 'notes');
  const collector = await accountClient('kube-system', 'generic-garbage-collector');
  await bindAll('collector', { kind: 'ServiceAccount', name: 'generic-garbage-collector', namespace: 'kube-system' });
  await until('the collector to have its rights', async () => {
    const reply = await collector.request('DELETE', pathOf(held), { query: { dryRun: 'All' } });
    return reply.status === 200;
  });
  refused(await tryCreate(collector, service('mine', {}, holds)), /only the driver/, 'the collector makes none');
});

test('tenants edit claims of their namespace, and neither addresses nor classes', async () => {
  await create(tenant, claim('own', {}));
  accepted(await tenant.request('DELETE', pathOf(claim('own', {}))), 'delete');
  const public_ = { apiVersion: addressesApiVersion, kind: 'IPAddressClass', metadata: { name: 'public' } };
  for (const object of [address('ip-1', '203.0.113.1'), public_]) {
    assert.is((await tryCreate(tenant, object)).status, 403);
    assert.is((await tenant.request('GET', pathOf(object))).status, 403);
  }
  assert.is((await tryCreate(tenant, { ...claim('x', {}), metadata: { name: 'x', namespace: 'app' } })).status, 403);
  assert.is((await tryMerge(tenant, claim('stamped', {}), {})).status, 200);
  const status = await tenant.request('PATCH', `${pathOf(claim('stamped', {}))}/status`, merge({ status: {} }));
  assert.is(status.status, 403, 'the status of a claim is not its tenant’s');
});

test('the core works as its account with every right of it, and no other', async () => {
  // What somebody else changed meanwhile is read anew.
  const late = ['ipaddressclasses', 'ipaddresses', 'ipaddressclaims'];
  const core = await startRole((registry) => coreWorker(registry, Date.now), late);
  const claims = [claim('keep', { className: 'public' }), claim('drop', { className: 'public' })] as const;
  const [kept, dropped] = [address('ip-203-0-113-1', '203.0.113.1'), address('ip-203-0-113-2', '203.0.113.2')];
  for (const one of claims) await create(tenant, one);
  await phase(claims[0], 'Pending');
  const refTo = (name: string): JsonObject => ({ claimRef: { namespace: 'tenant', name } });
  await create(server.admin, { ...kept, spec: { ...(kept.spec as JsonObject), ...refTo('keep') } });
  await create(server.admin, {
    ...dropped,
    spec: { ...(dropped.spec as JsonObject), ...refTo('drop'), reclaimPolicy: 'Delete' },
  });
  for (const one of [...claims, kept, dropped]) await phase(one, 'Bound');
  for (const one of claims) await tenant.expect('DELETE', pathOf(one));
  await phase(kept, 'Released');
  await gone(dropped);
  // A class that came by hand goes by hand, once nothing of it is left.
  const spare = {
    apiVersion: addressesApiVersion,
    kind: 'IPAddressClass',
    metadata: { name: 'spare' },
    spec: { provisioner: 'x' },
  };
  await create(server.admin, spare);
  await until('the class is protected', async () => (await live(spare)).metadata.finalizers?.length === 1);
  const { uid } = (await live(spare)).metadata;
  await server.admin.expect('PATCH', pathOf(spare), merge(annotated({ 'keelson.dev/confirm-delete': uid })));
  await server.admin.expect('DELETE', pathOf(spare));
  await gone(spare);
  await core.stop();
  await provenMinimal(core.plan, '{workers: [core]}');
});

test('the driver works as its account with every right of it, and no other', async () => {
  const edge = edgeOf(server);
  const over = new AbortController();
  const given = runMetallb({ client: edge.client, admin: server.admin, namespace: 'metallb-system' }, over.signal);
  const core = await startRole((registry) => coreWorker(registry, Date.now), []);
  const settled = {
    metallbNamespace: 'metallb-system',
    placeholderNamespace: holds,
    forcedRelease: 'deleted',
  } as const;
  const late = ['services', 'ipaddresses', 'ipaddresspools', 'l2advertisements'];
  const driver = await startRole((registry) => metallbWorker(registry, Date.now, settled), late);
  const auto = claim('auto', { className: 'public' });
  await create(tenant, auto);
  await phase(auto, 'Bound');
  const [found] = (await live(auto)).status.addresses;
  // An address that the driver made, and that its claim never had, goes again.
  const { uid } = (await live(auto)).metadata;
  const surplus = address('ip-203-0-113-5', '203.0.113.5', { claimRef: { namespace: 'tenant', name: 'auto', uid } });
  await create(server.admin, {
    ...surplus,
    metadata: { name: 'ip-203-0-113-5', finalizers: [`${provisioner}/teardown`] },
  });
  const second = service(`iad-${uid}-v4-2`, { [pin]: '203.0.113.5' }, holds);
  const marks = { [`${provisioner}/placeholder`]: 'true', [`${provisioner}/ip-address`]: 'ip-203-0-113-5' };
  await create(role, { ...second, metadata: { ...(second.metadata as JsonObject), labels: marks } });
  await gone(surplus);
  const user = service('user', { 'local.sdn.cozystack.io/ip-address-claim': 'auto' });
  await create(tenant, user);
  await until(
    'the Service to have it',
    async () => (await live(user)).status?.loadBalancer?.ingress?.[0]?.ip === found.address,
  );
  // What is special about an advertisement stays, and what is wrong with it, or with the pool, is set right.
  const advertised = { ...pool('iad-public', []), kind: 'L2Advertisement' };
  await server.admin.expect('PATCH', pathOf(advertised), merge({ spec: { ipAddressPools: ['other'] } }));
  await server.admin.expect('PATCH', pathOf(pool('iad-public', [])), merge({ spec: { autoAssign: true } }));
  await until('the pool to be set right', async () => (await live(pool('iad-public', []))).spec.autoAssign === false);
  await until('so is its advertisement', async () => (await live(advertised)).spec.ipAddressPools.length === 2);
  await tenant.expect('DELETE', pathOf(user));
  await tenant.expect('DELETE', pathOf(auto));
  const made = address(found.name, '');
  await phase(made, 'Released');
  await server.admin.expect('DELETE', pathOf(made));
  await gone(made);
  await driver.stop();
  await core.stop();
  over.abort();
  await given;
  await edge.transport.close();
  await provenMinimal(driver.plan, '{workers: [driver]}');
});

test('a class is not deleted without its own UID, nor are the placeholders all at once', async () => {
  for (const path of [`/apis/${addressesApiVersion}/ipaddressclasses/public`, `/api/v1/namespaces/${holds}`]) {
    const { uid } = (await server.admin.expect('GET', path)).body.metadata;
    refused(await server.admin.request('DELETE', path), new RegExp(`is guarded: .*confirm-delete=${uid}`), path);
  }
});

test('what is runtime stays as it is: neither pruned nor set back, and what would break it is refused', async () => {
  const web = service('web', {}, 'app');
  await server.admin.expect(
    'PATCH',
    pathOf(web),
    merge({ metadata: { annotations: { [pin]: '203.0.113.1', [`${provisioner}/pinned`]: 'true' } } }),
  );
  const poolOfClass = pool('iad-public', ['203.0.113.0/29', '2001:db8::/126']);
  const used = address('ip-203-0-113-6', '203.0.113.6');
  await create(server.admin, used);
  await create(server.admin, pool('office', ['198.51.100.0/28']));
  const watched = [poolOfClass, web, service('iad-held', {}, holds), claim('stamped', {})];
  const versions = async (): Promise<string[]> =>
    Promise.all(
      watched.map(async (object) => (await server.admin.expect('GET', pathOf(object))).body.metadata.resourceVersion),
    );
  const before = await versions();
  const sent = executor.plan.log.length;
  await deliver(await renderLedger([classText('public', ['203.0.113.0/30', '198.51.100.0/29'])], settings));
  const blocked = await untilRelease('addresses', 'the change to be refused', ({ status }) =>
    /AddressWithoutRange/.test(JSON.stringify(status)),
  );
  const said = JSON.stringify(blocked.status);
  assert.match(said, /ip-203-0-113-6 \(203\.0\.113\.6/);
  assert.match(said, /AddressRangeTaken.*metallb-system\/office/);
  assert.is(blocked.status.history[0].state, 'Completed', 'what was accepted stays enforced');
  // What stands against it goes, and it goes on by itself.
  await server.admin.expect('DELETE', pathOf(pool('office', [])));
  await server.admin.expect('DELETE', pathOf(used));
  await untilRelease(
    'addresses',
    'the change to be carried out',
    (release) => isNow(release, 'Ready', 'True') && !/AddressWithoutRange/.test(JSON.stringify(release.status)),
  );
  assert.equal(await versions(), before);
  const touched = executor.plan.log
    .slice(sent)
    .filter(({ mutating, path }) => mutating && watched.some((object) => path.startsWith(pathOf(object))))
    .map(({ verb, path }) => `${verb} ${path}`);
  assert.equal(touched, []);
});

test.after(async () => {
  await executor?.stop();
  await closeAll();
});

test.run();
