import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, configMapNames, labels, managers } from '../../constructs/api/constants.ts';
import { orphanObjects } from '../../executor/network/orphan.ts';
import { startApiServer } from '../apiserver/server.ts';
import { crashTransport } from '../faults/crash.ts';
import type { RequestRecord } from '../faults/plan.ts';
import { edgeOf, until } from './kubeBed.ts';
import { is, payloadMutations, type SliceBed, sliceBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, testKey } from './slice-payload.ts';
import { isLetGo, phasesOf, uninstaller } from './uninstall-bed.ts';

/** `keelson uninstall` with controllers and the garbage collector at work: what stays, what goes, in which order. */

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

const server = await startApiServer({ with: ['controllers'] });

const { uninstall, planOf } = uninstaller(server);

async function installed(): Promise<{ bed: SliceBed; built: BuiltPayload; paths: Record<string, string> }> {
  const bed = await sliceBed(server);
  const { names, system } = bed;
  const { body: live } = await server.admin.expect('POST', `/api/v1/namespaces/${system}/configmaps`, {
    body: configMap(system, 'owner'),
  });
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: live.metadata.uid };
  // An owner in another namespace is none that the garbage collector would look for there: it is one of cluster scope.
  const { body: scoped } = await server.admin.expect('GET', '/api/v1/namespaces/kube-system');
  const cluster = { ...owner, kind: 'Namespace', name: 'kube-system', uid: scoped.metadata.uid };
  const built = await buildPayload({ release: names.release, phases: phasesOf(bed, cluster), key: testKey });
  await bed.deliver(built);
  await bed.applyRelease(built);
  const within = (base: string, plural: string, name: string): string =>
    `${base}/namespaces/${names.namespace}/${plural}/${name}`;
  const custom = `/apis/${names.group}/v1`;
  const paths = {
    namespace: `/api/v1/namespaces/${names.namespace}`,
    widgets: `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${names.group}`,
    gadgets: `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.${names.group}`,
    account: within('/api/v1', 'serviceaccounts', 'app'),
    role: `/apis/rbac.authorization.k8s.io/v1/clusterroles/${names.release}-reader`,
    settings: within('/api/v1', 'configmaps', 'settings'),
    kept: within('/api/v1', 'configmaps', 'kept'),
    server: within('/apis/apps/v1', 'deployments', 'server'),
    widget: within(custom, 'widgets', 'first'),
    gadget: within(custom, 'gadgets', 'first'),
    data: within('/api/v1', 'persistentvolumeclaims', 'data'),
    webhook: `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${names.release}.example.com`,
  };
  return { bed, built, paths };
}

const ready = (bed: SliceBed): Promise<unknown> =>
  bed.untilStatus('it is in place', (status) => is(status, 'Ready', 'True'), 60_000);

const snapshot = async (bed: SliceBed, paths: Record<string, string>): Promise<Map<string, Loose>> => {
  const found = new Map<string, Loose>();
  for (const [name, path] of Object.entries(paths)) found.set(name, await bed.get(path));
  return found;
};

/** Nothing of the Release, of its records and of its request is left in the namespace of the executor. */
async function nothingStands({ server: { admin }, system, names }: SliceBed): Promise<void> {
  const releases = await admin.expect('GET', `/apis/keelson.dev/v1alpha1/namespaces/${system}/releases`);
  assert.equal(releases.body.items, []);
  const maps = await admin.expect('GET', `/api/v1/namespaces/${system}/configmaps`);
  assert.equal(
    maps.body.items.map((item: Loose) => item.metadata.name).filter((name: string) => name.includes(names.release)),
    [],
  );
}

const deletes = (log: readonly RequestRecord[]): string[] =>
  log
    .filter(({ verb, status }) => verb === 'delete' && status === 200)
    .map(({ resource, name }) => `${resource}/${name}`);

test('by default everything stays, and nothing on it says any more that it was ours', async () => {
  const { bed, paths } = await installed();
  try {
    const executor = bed.executor();
    await ready(bed);
    const before = await snapshot(bed, paths);
    executor.plan.resetLog();

    const shown = await uninstall(bed);
    assert.is(shown.code, 0, shown.err);
    assert.match(shown.out, /everything stays in the cluster/);
    const plan = await planOf(bed);
    assert.match(shown.out, `keelson uninstall ${bed.names.release} --approve ${plan.digest}`);
    const wrong = await uninstall(bed, '--approve', `sha256:${'0'.repeat(64)}`);
    assert.equal([wrong.code, /UninstallNotApproved/.test(wrong.err)], [2, true], wrong.err);
    const mixed = await uninstall(bed, '--delete', '--approve', plan.digest);
    assert.is(mixed.code, 2, 'what was approved was not to delete');
    assert.equal(payloadMutations(executor.plan, bed.system), [], 'showing does nothing');

    const said = await uninstall(bed, '--approve', plan.digest);
    assert.is(said.code, 0, said.err);
    assert.match(said.out, /none of its 12 objects is ours any more/);
    for (const [name, path] of Object.entries(paths)) isLetGo(await bed.get(path), before.get(name), name);
    await nothingStands(bed);
    assert.equal(deletes(payloadMutations(executor.plan, bed.system)), []);
    assert.equal(executor.plan.violations, []);
    const again = await uninstall(bed, '--approve', plan.digest);
    assert.equal([again.code, /UnknownRelease/.test(again.err)], [2, true]);
  } finally {
    await bed.close();
  }
});

test('with --delete: webhooks first, rights last, each gone before the next; data, namespaces and what is kept stay', async () => {
  const { bed, paths } = await installed();
  try {
    const executor = bed.executor({ engine: { goneMs: 20_000, gatePollMs: 100 } });
    await ready(bed);
    const before = await snapshot(bed, paths);
    // Somebody has put a definition of ours to use: it must stay.
    const { names } = bed;
    const mine = { apiVersion: `${names.group}/v1`, kind: 'Gadget', metadata: { name: 'mine', namespace: 'default' } };
    await server.admin.expect('POST', `/apis/${names.group}/v1/namespaces/default/gadgets`, { body: mine });
    executor.plan.resetLog();
    const { digest } = await planOf(bed, '--delete');
    const said = await uninstall(bed, '--delete', '--delete-definitions', '--approve', digest);
    assert.is(said.code, 0, said.err);
    assert.match(said.out, `deleted definition widgets.${names.group}`);
    assert.match(said.out, `definition gadgets.${names.group} stays: 1 object(s) of it are left`);

    const order = deletes(payloadMutations(executor.plan, bed.system));
    assert.is(order[0], `validatingwebhookconfigurations/${names.release}.example.com`);
    assert.equal(order.slice(1, 3).sort(), ['gadgets/first', 'widgets/first']);
    assert.equal(order.slice(3, 5), ['deployments/server', 'configmaps/settings']);
    assert.equal(order.slice(5).sort(), [`clusterroles/${names.release}-reader`, 'serviceaccounts/app']);
    for (const name of ['account', 'role', 'settings', 'server', 'widget', 'gadget', 'webhook'])
      await until(`${name} to be gone`, async () => (await bed.get(paths[name] ?? '')) === undefined);
    const sets = await bed.get(`/apis/apps/v1/namespaces/${names.namespace}/replicasets`);
    assert.equal(sets?.items, [], 'what the Deployment owned was gone before the next step');
    for (const name of ['namespace', 'data', 'kept', 'gadgets'])
      isLetGo(await bed.get(paths[name] ?? ''), before.get(name), name);
    await until('the unused definition to go', async () => (await bed.get(paths.widgets ?? '')) === undefined);
    await nothingStands(bed);
  } finally {
    await bed.close();
  }
});

const annotateObject = (path: string, key: string, value: string | null): Promise<unknown> =>
  server.admin.expect('PATCH', path, {
    body: { metadata: { annotations: { [key]: value } } },
    type: 'application/merge-patch+json',
  });

test('a hold stops it, a finalizer is named and never stripped, and it goes on when they are gone', async () => {
  const { bed, paths } = await installed();
  try {
    const executor = bed.executor({ engine: { goneMs: 300, gatePollMs: 100 } });
    await ready(bed);
    const { settings = '', widget = '' } = paths;
    await annotateObject(settings, annotations.hold, 'incident 7');
    const merge = { type: 'application/merge-patch+json' };
    await server.admin.expect('PATCH', widget, { ...merge, body: { metadata: { finalizers: ['example.com/slow'] } } });
    const { digest } = await planOf(bed, '--delete');
    const running = uninstall(bed, '--delete', '--approve', digest);
    const stuck = await bed.untilStatus('the finalizer is named', (status) =>
      (status.raw.failures ?? []).some(({ reason }: Loose) => reason === 'ObjectTerminating'),
    );
    assert.match(JSON.stringify(stuck.raw.failures), 'example.com/slow');
    assert.is.not(await bed.get(paths.server ?? ''), undefined, 'what comes later waits');
    // The executor ends and another one goes on: what is done is known from the ledger, what was approved from the record.
    await executor.stop();
    bed.executor({ engine: { goneMs: 300, gatePollMs: 100 } });
    await server.admin.expect('PATCH', widget, { ...merge, body: { metadata: { finalizers: null } } });
    const held = await bed.untilStatus(
      'the hold is named',
      (status) => (status.raw.failures ?? []).some(({ reason }: Loose) => reason === 'ObjectHeld'),
      60_000,
    );
    assert.match(JSON.stringify(held.raw.failures), 'incident 7');
    await annotateObject(settings, annotations.hold, null);
    const said = await running;
    assert.is(said.code, 0, said.err);
    assert.is(await bed.get(settings), undefined);
    await nothingStands(bed);
  } finally {
    await bed.close();
  }
});

/** An object that is in the way of nothing but counts as a write of the uninstall. */
const ofUninstall = (
  { mutating, resource, namespace, name, subresource }: RequestRecord | Loose,
  system: string,
): boolean =>
  mutating &&
  !['leases', 'events'].includes(resource) &&
  subresource === undefined &&
  (namespace !== system || name?.startsWith('keelson-uninstall-') || name?.startsWith('keelson-ledger-'));

async function diesAtEveryWrite(mode: 'orphan' | 'delete'): Promise<void> {
  const bed = await sliceBed(server);
  try {
    const { names, system } = bed;
    await server.admin.expect('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: names.namespace } },
    });
    const manifests = ['a', 'b', 'c'].map((name) => ({ object: configMap(names.namespace, name) }));
    const built = await buildPayload({ release: names.release, phases: [{ name: 'one', manifests }], key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built);
    const first = bed.executor();
    await ready(bed);
    await first.stop();
    const flags = mode === 'delete' ? ['--delete'] : [];
    const { digest } = await planOf(bed, ...flags);
    await bed.annotate(annotations.uninstall, `${mode} ${digest}`);
    const record = `/api/v1/namespaces/${system}/configmaps/keelson-uninstall-${names.release}`;
    const lease = `/apis/coordination.k8s.io/v1/namespaces/${system}/leases/keelson-executor`;
    const done = async (): Promise<boolean> =>
      ((await bed.get(record)) as Loose)?.data?.['uninstall.json']?.includes('"done"') === true;
    let deaths = 0;
    while (!(await done())) {
      assert.ok(deaths < 40, 'every process gets a step further');
      // Half of them die before their second write is sent, half after the effect of their first, unanswered.
      const point =
        deaths % 2 === 0 ? ({ nth: 1, at: 'afterEffect' } as const) : ({ nth: 2, at: 'beforeSend' } as const);
      let crash: ReturnType<typeof crashTransport> | undefined;
      const executor = bed.executor({
        engine: { concurrency: 1, goneMs: 5_000, gatePollMs: 100 },
        wrap: (inner) => {
          crash = crashTransport(inner, { ...point, match: (request) => ofUninstall(request, system) });
          return crash.transport;
        },
      });
      await until('it has died, or is done', async () => crash?.crashed.aborted === true || (await done()), 30_000);
      await executor.stop();
      deaths += 1;
      // A dead process gives its Lease up to nobody; time would do what is done here.
      await server.admin.request('DELETE', lease);
    }
    assert.ok(deaths > 5, `only ${deaths} processes`);
    const { body } = await server.admin.expect('GET', `/api/v1/namespaces/${names.namespace}/configmaps`);
    const left = body.items.filter(({ metadata }: Loose) => metadata.name !== 'kube-root-ca.crt');
    if (mode === 'delete') assert.equal(left, []);
    else {
      assert.is(left.length, 3);
      for (const object of left) isLetGo(object, object, object.metadata.name);
    }
    assert.equal(await bed.ledger(), {});
    bed.executor();
    const said = await uninstall(bed, ...flags, '--approve', digest);
    assert.is(said.code, 0, said.err);
    await nothingStands(bed);
    console.log(`${mode}: ${deaths} processes died on the way`);
  } finally {
    await bed.close();
  }
}

for (const mode of ['orphan', 'delete'] as const)
  test(`${mode}: it gets done by processes of which each dies after a single write`, () => diesAtEveryWrite(mode));

test('an adoption that died before the ledger could say so: what bears our marks is let go all the same', async () => {
  const { bed, paths } = await installed();
  const { names, system } = bed;
  try {
    const first = bed.executor();
    await ready(bed);
    await first.stop();
    const path = `/api/v1/namespaces/${system}/configmaps/${configMapNames.ledger(names.release, 0)}`;
    const { body } = await server.admin.expect('GET', path);
    const entries: Loose[] = JSON.parse(body.data['entries.json']);
    const text = JSON.stringify(entries.map((entry) => ({ ...entry, state: 'adopting' })));
    const metadata = { name: body.metadata.name, labels: body.metadata.labels, annotations: body.metadata.annotations };
    await server.admin.expect('PATCH', path, {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'entries.json': text } },
      type: 'application/apply-patch+yaml',
      query: { fieldManager: managers.objects },
    });
    const before = await snapshot(bed, paths);
    const { digest, steps } = await planOf(bed, '--delete');
    const actions = steps.flatMap(({ objects }: Loose) => objects.map(({ action }: Loose) => action));
    assert.equal([...new Set(actions)], ['forget']);
    const executor = bed.executor();
    const said = await uninstall(bed, '--delete', '--approve', digest);
    assert.is(said.code, 0, said.err);
    for (const [name, at] of Object.entries(paths)) isLetGo(await bed.get(at), before.get(name), name);
    assert.equal(deletes(payloadMutations(executor.plan, system)), []);
    await nothingStands(bed);
  } finally {
    await bed.close();
  }
});

test('what the ledger has lost outlives its owner, and the garbage collector takes the rest', async () => {
  const { admin } = server;
  const maps = '/api/v1/namespaces/default/configmaps';
  const { body: owner } = await admin.expect('POST', maps, { body: configMap('default', 'installation') });
  const { uid } = owner.metadata;
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'installation', uid }];
  const owned = (name: string, more: Loose) => ({
    ...configMap('default', name),
    metadata: { name, namespace: 'default', ownerReferences, ...more },
  });
  const release = 'network-lost';
  const marks = {
    labels: { [labels.release]: release, [labels.installationUID]: uid },
    annotations: { [annotations.id]: '/ConfigMap/default/lost' },
  };
  const { body: lost } = await admin.expect('PATCH', `${maps}/lost`, {
    body: owned('lost', marks),
    type: 'application/apply-patch+yaml',
    query: { fieldManager: managers.objects },
  });
  await admin.expect('POST', maps, { body: owned('canary', {}) });
  const { client, transport } = edgeOf(server);
  const problems = await orphanObjects(
    {
      client,
      release,
      namespace: 'default',
      installationUID: uid,
      installationNamespace: 'default',
      authorised: false,
      guard: { check: () => undefined, release: () => Promise.resolve() },
    },
    AbortSignal.timeout(60_000),
  );
  await transport.close();
  assert.equal(problems, []);
  await admin.expect('DELETE', `${maps}/installation`);
  await until('what is not ours to go', async () => (await admin.request('GET', `${maps}/canary`)).status === 404);
  const { body: live } = await admin.expect('GET', `${maps}/lost`);
  assert.equal([live.metadata.uid, live.data], [lost.metadata.uid, lost.data]);
  assert.equal([live.metadata.ownerReferences, live.metadata.deletionTimestamp], [undefined, undefined]);
});

test.after(async () => {
  await server.stop();
});

test.run();
