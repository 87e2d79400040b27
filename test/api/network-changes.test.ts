// time limit: 300s
/**
 * What may be changed of an installation that is in place, and what deleting it does. Controllers, the garbage collector
 * among them, scheduler and fake kubelets take part.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { done, runKeelson, type Said } from '../commandline.ts';
import { until } from './kubeBed.ts';
import {
  bypass,
  changes,
  condition,
  gatesBypassed,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
  type RunningExecutor,
  type Workshop,
  workshop,
} from './network-bed.ts';
import type { ClusterText } from './network-folder.ts';
import { networkRelease, releaseName } from './network-folder.ts';
import { idOf } from './network-log.ts';

interface Context {
  shop: Workshop;
  bed: NetworkBed;
  executor: RunningExecutor;
  /** What is accepted: each test leaves the cluster with it. */
  accepted: Partial<ClusterText>;
}
const test = suite<Context>('network changes');

test.before(async (context) => {
  context.shop = await workshop();
  context.bed = await networkBed(context.shop, { with: ['controllers', 'scheduler', 'kwok'] });
  context.accepted = {};
  await context.bed.deliver(await context.bed.render());
  context.executor = await context.bed.executor(bypass);
  await context.bed.until(paths.release, 'the release to be through', gatesBypassed, 120_000);
});
test.after(async ({ shop, bed }) => {
  await bed.close();
  await shop.close();
});

const digestOf = (rendered: Parameters<typeof networkRelease>[0]): string => networkRelease(rendered).index.digest;
const carriedOut = (digest: string) => (object: Loose) =>
  object.status.actual === digest && object.status.desired === digest && gatesBypassed(object);

/** Delivers a change that goes through; answers the Release and the installation afterwards. */
async function goesThrough(
  { bed, executor }: Context,
  text: Partial<ClusterText>,
): Promise<{ release: Loose; installation: Loose }> {
  const rendered = await bed.render(text);
  executor.plan.resetLog();
  await bed.deliver(rendered);
  const digest = digestOf(rendered);
  const release = await bed.until(paths.release, 'the change to be carried out', carriedOut(digest), 60_000);
  const installation = await bed.until(
    paths.installation,
    'the checkpoint to move',
    (object) => object.status.applyCheckpoint.payloadDigest === digest && gatesBypassed(object),
  );
  return { release, installation };
}

/** Delivers a change that must be blocked; answers what the Release says. What is accepted is delivered again at the end. */
async function isBlocked(
  { bed, executor, accepted }: Context,
  text: Partial<ClusterText>,
  changeClass: string,
): Promise<string> {
  const [before, installed] = [await bed.release(), await bed.installation()];
  const rendered = await bed.render(text);
  executor.plan.resetLog();
  await bed.deliver(rendered);
  const release = await bed.until(
    paths.release,
    'the change to be blocked',
    (object) => condition(object, 'Ready')?.reason === 'ChangeBlocked',
    30_000,
  );
  const installation = await bed.until(
    paths.installation,
    'the installation to be told',
    (object) => condition(object, 'Ready')?.reason === 'ChangeBlocked',
  );
  for (const [object, earlier] of [
    [release, before],
    [installation, installed],
  ]) {
    assert.is(condition(object, 'Ready').status, 'False');
    assert.is(condition(object, 'Stalled')?.status, 'True');
    assert.is(condition(object, 'Available').status, condition(earlier, 'Available').status);
  }
  assert.is(installation.status.phase, 'Blocked');
  assert.is(release.status.actual, before.status.actual);
  assert.is(release.status.plan.changeClass, changeClass);
  assert.equal(installation.status.applyCheckpoint, installed.status.applyCheckpoint);
  const plan = JSON.parse((await bed.get(paths.plan)).data['plan.json']);
  assert.is(plan.blocked.reason, 'ChangeBlocked');

  // What is accepted is enforced all the same: an object that somebody deleted comes back.
  await bed.server.admin.expect('DELETE', '/api/v1/namespaces/kube-system/services/kube-ovn-pinger');
  await bed.until('/api/v1/namespaces/kube-system/services/kube-ovn-pinger', 'the object to come back', () => true);
  assert.equal(payloadMutations(executor.plan.log).map(idOf), ['/Service/kube-system/kube-ovn-pinger']);

  await bed.deliver(await bed.render(accepted));
  await bed.until(paths.release, 'the release to be well again', carriedOut(before.status.actual), 60_000);
  assert.is(payloadMutations(executor.plan.log).length, 1);
  const message = condition(release, 'Ready').message;
  assert.ok(condition(installation, 'Ready').message.includes(message));
  return message;
}

test('a field of policy goes through: the checkpoint moves, and no object is written', async (context) => {
  const { bed, executor } = context;
  const before = (await bed.installation()).status.applyCheckpoint;
  const text = { spec: { upgrade: { pauseOnDegraded: true } } };
  const { release, installation } = await goesThrough(context, text);
  assert.is(release.status.plan.changeClass, 'policy');
  assert.equal(payloadMutations(executor.plan.log), []);
  const after = installation.status.applyCheckpoint;
  assert.is(after.manifestDigest, before.manifestDigest);
  assert.is.not(after.specDigest, before.specDigest);
  assert.is(after.baseDigest, after.specDigest);
  assert.is(installation.status.authorisation.changeClass, 'policy');
  assert.is(release.status.history.length, 2);
  context.accepted = text;
});

const more = `apiVersion: v1
kind: ConfigMap
metadata: {name: kept, namespace: "{{ .Values.namespace }}", annotations: {"helm.sh/resource-policy": keep}}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: further, namespace: "{{ .Values.namespace }}"}
data: {a: b}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: further, namespace: "{{ .Values.namespace }}"}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: further, resources: {requests: {storage: 1Gi}}}
`;

test('further objects go through: they are created, and nothing else is written', async (context) => {
  const { shop, bed, executor } = context;
  await bed.server.admin.expect('POST', '/api/v1/persistentvolumes', {
    body: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'further' },
      spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/further' } },
    },
  });
  const chart = await shop.edited('more', (files) => files.set('templates/zz-more.yaml', more));
  const text = { ...context.accepted, chart };
  const { release, installation } = await goesThrough(context, text);
  assert.is(release.status.plan.changeClass, 'additive');
  assert.equal(
    payloadMutations(executor.plan.log)
      .map((record) => `${idOf(record)} ${record.status}`)
      .sort(),
    [
      '/ConfigMap/kube-system/further 201',
      '/ConfigMap/kube-system/kept 201',
      '/PersistentVolumeClaim/kube-system/further 201',
    ],
  );
  assert.is(installation.status.authorisation.changeClass, 'additive');
  context.accepted = text;
});

test('D13: another network stack is blocked; it says what it would change and how to start anew', async (context) => {
  const message = await isBlocked(
    context,
    { ...context.accepted, spec: { ...context.accepted.spec, networkStack: 'dual_stack' } },
    'blocked',
  );
  assert.match(message, /change [0-9]+ object\(s\) \(.*\) that the checkpoint fixes/);
  assert.match(message, /keelson uninstall/);
  assert.match(message, /change class blocked/);
});

test('another version is blocked, up and down, with its class and the way back', async (context) => {
  const { shop, accepted } = context;
  const newer = await shop.edited('newer', (files) => files.set('templates/zz-more.yaml', more), '1.16.14');
  const up = await isBlocked(context, { ...accepted, chart: newer }, 'versionOnly');
  assert.match(up, /from 1\.16\.13 to 1\.16\.14 needs the upgrade lifecycle.*set spec\.version.* back to 1\.16\.13/);
  const older = await shop.edited('older', (files) => files.set('templates/zz-more.yaml', more), '1.16.12');
  const down = await isBlocked(context, { ...accepted, chart: older }, 'rollback');
  assert.match(down, /from 1\.16\.13 to 1\.16\.12 needs the rollback lifecycle/);
});

const pathOf = ({ id }: Loose): string => {
  const [group = '', kind = '', namespace = '', name = ''] = id.split('/');
  const plural = kind === 'PersistentVolumeClaim' ? 'persistentvolumeclaims' : `${kind.toLowerCase()}s`;
  const base = group === '' ? '/api/v1' : `/apis/${group}/v1`;
  return `${base}${namespace === '' ? '' : `/namespaces/${namespace}`}/${plural}/${name}`;
};

const marksOf = ({ metadata }: Loose): Loose[] =>
  Object.entries(metadata.annotations ?? {}).filter(([key]) => key.startsWith('keelson.dev/'));
const managersOf = ({ metadata }: Loose): string[] =>
  metadata.managedFields
    .filter(({ manager, subresource }: Loose) => subresource === undefined && manager !== 'kube-controller-manager')
    .map(({ manager }: Loose) => manager)
    .sort();

/** Gives the containers of a DaemonSet an image by tag, which no manager holds. */
async function byTag(bed: NetworkBed, name: string): Promise<void> {
  const path = `/apis/apps/v1/namespaces/kube-system/daemonsets/${name}`;
  const { spec } = await bed.get(path);
  const containers = spec.template.spec.containers.map((container: Loose) => ({
    op: 'replace',
    path: `/spec/template/spec/containers/${spec.template.spec.containers.indexOf(container)}/image`,
    value: 'docker.io/kubeovn/kube-ovn:v1.16.12',
  }));
  const json = { type: 'application/json-patch+json', query: { fieldManager: 'person' } } as const;
  const { body } = await bed.server.admin.expect('PATCH', path, { ...json, body: containers });
  const managedFields = body.metadata.managedFields.filter(({ manager }: Loose) => manager !== 'person');
  await bed.server.admin.expect('PATCH', path, {
    ...json,
    body: [{ op: 'replace', path: '/metadata/managedFields', value: managedFields }],
  });
}

test('D14: deletion is denied without the UID; confirmed, it strips owners, writes no other value and takes nothing along', async (context) => {
  const { bed, executor } = context;
  const { admin } = bed.server;
  const installation = await bed.installation();
  const { uid } = installation.metadata;
  const denied = await admin.request('DELETE', paths.installation);
  assert.is(denied.status, 403);
  assert.match(denied.body.message, new RegExp(`confirm-delete=${uid}`));
  assert.is((await bed.installation()).metadata.deletionTimestamp, undefined);

  // A value that a person took meanwhile is in nobody's way, and one of the installation's own things goes with it.
  await bed.patch(paths.release, { spec: { paused: true } });
  const paused = (object: Loose): boolean => condition(object, 'Progressing')?.reason === 'Paused';
  await bed.until(paths.release, 'it to be paused', paused);
  await admin.expect('PATCH', `${paths.central}/scale`, {
    body: { spec: { replicas: 2 } },
    type: 'application/merge-patch+json',
    query: { fieldManager: 'kubectl' },
  });
  // Images that are not those of the payload, as an adoption under way has them, and that nobody holds.
  for (const name of ['ovs-ovn', 'kube-ovn-cni']) await byTag(bed, name);

  const ledger = await bed.ledger();
  const before = new Map<string, Loose>();
  for (const entry of ledger) before.set(entry.id, await bed.get(pathOf(entry)));
  const owned = [...before].filter(([, object]) => object.metadata.ownerReferences !== undefined).map(([id]) => id);
  assert.ok(owned.length > 20 && owned.includes('/ConfigMap/kube-system/further'));
  const unowned = ['/ConfigMap/kube-system/kept', '/PersistentVolumeClaim/kube-system/further'];
  assert.equal(
    unowned.filter((id) => owned.includes(id)),
    [],
  );
  assert.ok([...before.values()].every((object) => object.metadata.labels['keelson.dev/installation-uid'] === uid));

  const ownerReferences = [
    { apiVersion: installation.apiVersion, kind: installation.kind, name: installation.metadata.name, uid },
  ];
  const canary = '/api/v1/namespaces/kube-system/configmaps/canary';
  await admin.expect('POST', '/api/v1/namespaces/kube-system/configmaps', {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'canary', ownerReferences } },
  });
  executor.plan.resetLog();
  await bed.patch(paths.installation, { metadata: { annotations: { 'keelson.dev/confirm-delete': uid } } });
  await admin.expect('DELETE', paths.installation);
  await bed.until(
    '/apis/network.keelson.dev/v1alpha1/kubeovninstallations',
    'the installation to be gone',
    ({ items }) => items.length === 0,
    30_000,
  );
  await until('what the installation owned to be collected', async () => (await bed.get(canary)) === undefined, 60_000);

  for (const [id, object] of before) {
    const live = await bed.get(pathOf({ id }));
    assert.is(live?.metadata.uid, object.metadata.uid, id);
    assert.is(live.metadata.ownerReferences, undefined, id);
    assert.is(live.metadata.deletionTimestamp, undefined, id);
    for (const part of ['spec', 'data', 'rules', 'webhooks']) assert.equal(live[part], object[part], id);
    assert.equal([live.metadata.labels, marksOf(live)], [object.metadata.labels, marksOf(object)], id);
    // Controllers count revisions of a Deployment in its annotations, and with these its generation goes up.
    if (live.kind !== 'Deployment') assert.is(live.metadata.generation, object.metadata.generation, id);
    assert.equal(managersOf(live), managersOf(object), id);
  }
  const written = changes(executor.plan.log);
  assert.equal(
    written.filter(({ verb }) => verb.startsWith('delete')),
    [],
  );
  const touched = payloadMutations(written).filter(({ status }) => status === 200);
  assert.equal(
    [...new Set(touched.map(({ path }) => path))].sort(),
    owned.map((id) => pathOf({ id })).sort(),
    'nothing but what it owned is written',
  );
  await bed.patch(paths.release, { spec: { paused: false } });
  await bed.until(paths.release, 'the release to say so', (object) =>
    object.status.failures?.some((failure: Loose) => failure.reason === 'InstallationMissing'),
  );
});

test('what a deleted installation left is uninstalled in the order of Kube-OVN, under the rights that were rendered', async ({
  bed,
  executor,
}) => {
  const env = { PATH: process.env.PATH ?? '', HOME: bed.server.directory, KUBECONFIG: bed.server.kubeconfig };
  const keelson = (...args: string[]): Promise<Said> =>
    runKeelson(['uninstall', releaseName, '--delete', '--no-git-check', ...args], { env, cwd: bed.server.directory });
  const ledger = await bed.ledger();
  const plan = JSON.parse(done(await keelson('-o', 'json')).out);
  executor.plan.resetLog();
  done(await keelson('--approve', plan.digest));
  const deleted = executor.plan.log
    .filter(({ verb, status, group }) => verb === 'delete' && status === 200 && group === 'apps')
    .map(({ name = '' }) => name);
  const order = ['kube-ovn-pinger', 'kube-ovn-controller', 'kube-ovn-cni', 'ovs-ovn'].map((name) =>
    deleted.indexOf(name),
  );
  assert.ok(
    order.every((at) => at >= 0) && order.join() === [...order].sort((a, b) => a - b).join(),
    deleted.join(' '),
  );
  assert.ok(deleted.indexOf('ovn-central') > deleted.indexOf('kube-ovn-cni'), deleted.join(' '));
  let stayed = 0;
  for (const { id } of ledger) {
    const live = await bed.get(pathOf({ id }));
    const stays =
      /^(\/PersistentVolumeClaim|\/Namespace|apiextensions)/.test(id) || id === '/ConfigMap/kube-system/kept';
    if (!stays) {
      assert.is(live, undefined, id);
      continue;
    }
    stayed += 1;
    assert.is(live?.metadata.labels?.['keelson.dev/release'], undefined, id);
    assert.is(live?.metadata.deletionTimestamp, undefined, id);
  }
  assert.ok(stayed > 2 && ledger.length - stayed > 30, `${stayed} of ${ledger.length} stayed`);
  assert.is(await bed.get(paths.release), undefined);
  assert.equal(await bed.ledger(), []);
});

test.run();
