import { randomUUID } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { namespaceTrouble } from '../../executor/apply/namespace.ts';
import type { ApplyOutcome } from '../../executor/kube/outcome.ts';
import { writeStatus } from '../../executor/kube/status.ts';
import { type KubeObject, refOf } from '../../executor/kube/types.ts';
import { kubectl } from '../apiserver/kubectl.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { configMap, edgeOf, type KubeBed, kubeBed, until } from './kubeBed.ts';

const fieldManager = 'keelson';
let bed: KubeBed;
let namespace: string;

test.before(async () => {
  bed = await kubeBed('edge');
  namespace = bed.namespace;
});

test.after(() => bed?.close());

function deployment(name: string, replicas: number, spec: JsonObject = {}): KubeObject {
  const labels = { app: name };
  const containers = [{ name: 'main', image: 'registry.example/x@sha256:abc' }];
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers, ...spec } },
    },
  };
}

function stored(outcome: ApplyOutcome): KubeObject {
  if (outcome.type === 'created' || outcome.type === 'configured' || outcome.type === 'unchanged')
    return outcome.object;
  throw new Error(JSON.stringify(outcome));
}

test('created, unchanged, configured; a dry run says so before and stores nothing', async () => {
  const { client } = bed;
  const first = configMap(namespace, 'life', { a: '1' });
  assert.is((await client.apply(first, { fieldManager, dryRun: true })).type, 'created');
  assert.is((await client.get(refOf(first))).type, 'absent');
  const created = await client.apply(first, { fieldManager });
  assert.is(created.type, 'created');
  const live = stored(created);
  const same = await client.apply(first, { fieldManager, live, uid: live.metadata.uid ?? '' });
  assert.is(same.type, 'unchanged');
  assert.is(stored(same).metadata.resourceVersion, live.metadata.resourceVersion);
  assert.is((await client.apply(first, { fieldManager, live, dryRun: true })).type, 'unchanged');
  const second = configMap(namespace, 'life', { a: '2' });
  const brief = await client.apply(second, { fieldManager, dryRun: true, metadataOnly: true });
  assert.is(brief.type, 'configured');
  if (brief.type === 'configured') {
    const { uid, resourceVersion } = live.metadata;
    assert.equal([brief.object.metadata.uid, brief.object.metadata.resourceVersion], [uid, resourceVersion]);
    assert.is(brief.object.data, undefined);
    assert.ok(brief.object.metadata.managedFields?.some(({ manager }) => manager === fieldManager));
  }
  const would = await client.apply(second, { fieldManager, live, dryRun: true });
  assert.is(would.type, 'configured');
  assert.is(stored(would).metadata.resourceVersion, live.metadata.resourceVersion);
  const configured = await client.apply(second, { fieldManager, live });
  assert.is(configured.type, 'configured');
  const read = await client.get(refOf(second));
  assert.equal(read.type === 'found' && read.object.data, { a: '2' });
  // What an apply carries of an object that was read back is only the intent.
  assert.is((await client.apply(stored(configured), { fieldManager, live: stored(configured) })).type, 'unchanged');
});

test('a conflict names the managers, how they took it, and the fields', async () => {
  const { client } = bed;
  await client.apply(deployment('shared', 2), { fieldManager: 'argocd-controller' });
  await kubectl(bed.server, ['-n', namespace, 'scale', 'deployment/shared', '--replicas=5']);
  await kubectl(bed.server, [
    '-n',
    namespace,
    'patch',
    'deployment/shared',
    '--type=merge',
    '-p',
    '{"spec":{"revisionHistoryLimit":3}}',
  ]);
  const outcome = await client.apply(
    {
      ...deployment('shared', 4),
      spec: { ...deployment('shared', 4).spec, revisionHistoryLimit: 4, selector: { matchLabels: { app: 'shared' } } },
    },
    { fieldManager },
  );
  assert.is(outcome.type, 'conflict');
  if (outcome.type !== 'conflict') return;
  const managers = [...outcome.managers].sort((a, b) => (a.manager < b.manager ? -1 : 1));
  assert.equal(managers, [
    { manager: 'kubectl', operation: 'Update', subresource: 'scale', fields: ['.spec.replicas'] },
    { manager: 'kubectl-patch', operation: 'Update', fields: ['.spec.revisionHistoryLimit'] },
  ]);
  assert.match(outcome.message, 'Deployment.apps');
  const applied = configMap(namespace, 'theirs', { a: '1' });
  await client.apply(applied, { fieldManager: 'helm' });
  const other = await client.apply(configMap(namespace, 'theirs', { a: '2' }), { fieldManager });
  assert.equal(other.type === 'conflict' && other.managers, [
    { manager: 'helm', operation: 'Apply', fields: ['.data.a'] },
  ]);
});

test('invalid: by validation, by schema, by type, by content; each with its field', async () => {
  const { client } = bed;
  const cases: [KubeObject, RegExp][] = [
    [deployment('bad', -1), /^spec\.replicas$/],
    [{ ...configMap(namespace, 'bad', {}), dato: { a: '1' } }, /^\.dato$/],
    [deployment('bad', 1, { nodeSelektor: { a: 'b' } }), /nodeSelektor/],
    [{ ...deployment('bad', 1), spec: { ...deployment('bad', 1).spec, replicas: 'many' } }, /^\.spec\.replicas$/],
    [configMap(namespace, 'bad', { 'not a key!': 'x' }), /^data\[not a key!\]$/],
  ];
  for (const [object, field] of cases) {
    for (const dryRun of [true, false]) {
      const outcome = await client.apply(object, { fieldManager, dryRun });
      assert.is(outcome.type, 'invalid', JSON.stringify(outcome));
      if (outcome.type === 'invalid')
        assert.ok(
          outcome.causes.some((cause) => field.test(cause.field)),
          JSON.stringify(outcome),
        );
    }
  }
  const base64 = await client.apply(
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'bad', namespace }, data: { k: '%%%' } },
    { fieldManager, attempts: 1 },
  );
  assert.is(base64.type, 'invalid');
});

test('nothing that comes back about a Secret quotes it', async () => {
  const { client } = bed;
  const canary = 'canary-51d7';
  const base: KubeObject = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'own', namespace } };
  const wrong: KubeObject[] = [
    { ...base, type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': canary } },
    { ...base, stringData: { [`bad key ${canary}`]: canary } },
    { ...base, data: { a: { b: canary } } },
    { ...base, [canary]: canary, type: 7 },
  ];
  for (const object of wrong) {
    const outcome = await client.apply(object, { fieldManager });
    assert.is(outcome.type, 'invalid', JSON.stringify(outcome));
    if (outcome.type === 'invalid')
      assert.not.match(JSON.stringify([outcome.message, outcome.causes.map(({ message }) => message)]), canary);
  }
});

test('forbidden, unauthorized, a missing namespace, a missing kind', async () => {
  const map = configMap(namespace, 'denied', { a: '1' });
  const plain = edgeOf(bed.server, { token: bed.server.tokens['user-1'] ?? '' });
  const nobody = edgeOf(bed.server, { token: 'no-such-token' });
  try {
    assert.is((await plain.client.apply(map, { fieldManager })).type, 'forbidden');
    assert.is((await plain.client.get(refOf(map))).type, 'forbidden');
    assert.is((await plain.client.list({ apiVersion: 'v1', kind: 'ConfigMap' })).type, 'forbidden');
    assert.is((await nobody.client.apply(map, { fieldManager })).type, 'unauthorized');
  } finally {
    await plain.transport.close();
    await nobody.transport.close();
  }
  const { client } = bed;
  for (const dryRun of [true, false]) {
    const outcome = await client.apply(configMap('no-such-place', 'a', {}), { fieldManager, dryRun });
    assert.is(outcome.type === 'namespaceMissing' && outcome.namespace, 'no-such-place');
  }
  const strange: KubeObject = { apiVersion: 'strange.example/v1', kind: 'Thing', metadata: { name: 'a' } };
  assert.is((await client.apply(strange, { fieldManager })).type, 'kindAbsent');
  assert.is((await client.apply({ ...strange, apiVersion: 'v1' }, { fieldManager })).type, 'kindAbsent');
  assert.is((await client.get(refOf(strange))).type, 'kindAbsent');
});

test('a namespace that is being deleted reads as a missing one that is going', async () => {
  const dying = await freshNamespace(bed.server.admin, 'dying');
  const { client } = bed;
  const found = await client.get({ apiVersion: 'v1', kind: 'Namespace', name: dying });
  const uid = found.type === 'found' ? (found.object.metadata.uid ?? '') : '';
  // Nobody finishes the deletion here: no controller manager runs.
  const deleted = await client.delete(
    { apiVersion: 'v1', kind: 'Namespace', name: dying },
    { uid, propagation: 'Background' },
  );
  assert.is(deleted.type, 'terminating');
  const outcome = await client.apply(configMap(dying, 'a', {}), { fieldManager });
  assert.ok(outcome.type === 'namespaceMissing' && outcome.terminating);
  if (outcome.type === 'namespaceMissing')
    assert.equal(namespaceTrouble(outcome).message, `namespace ${dying} is being deleted`);
});

test('a kind is usable as soon as its definition is established, and absent after it is gone', async () => {
  const { client } = bed;
  const group = `x${namespace.replaceAll('-', '')}.example`;
  const schema = {
    type: 'object',
    properties: {
      spec: { type: 'object', properties: { n: { type: 'integer' } } },
      status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  };
  const crd: KubeObject = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      names: { plural: 'widgets', kind: 'Widget' },
      scope: 'Namespaced',
      versions: [
        { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema }, subresources: { status: {} } },
      ],
    },
  };
  const widget: KubeObject = {
    apiVersion: `${group}/v1`,
    kind: 'Widget',
    metadata: { name: 'w', namespace },
    spec: { n: 1 },
  };
  assert.is((await client.apply(widget, { fieldManager })).type, 'kindAbsent');
  const made = await client.apply(crd, { fieldManager });
  assert.is(made.type, 'created');
  const began = performance.now();
  let outcome = await client.apply(widget, { fieldManager });
  await until('the kind is served', async () => {
    outcome = outcome.type === 'created' ? outcome : await client.apply(widget, { fieldManager });
    return outcome.type === 'created' || outcome.type === 'configured';
  });
  for (const object of [
    { ...widget, spec: { n: 1, m: 2 } },
    { ...widget, colour: 'red' },
  ])
    assert.is(
      (await client.apply(object, { fieldManager })).type,
      'invalid',
      'fields that its schema does not declare',
    );
  console.log(`kind usable ${Math.round(performance.now() - began)} ms after its definition was stored`);
  const live = stored(outcome);
  const written = await writeStatus(client, live, () => ({ phase: 'On', list: [1, 2] }), {
    fieldManager: 'keelson-status',
  });
  assert.equal(written.type === 'written' && written.status, { phase: 'On', list: [1, 2] });
  const again = await writeStatus(client, live, () => ({ phase: 'Off' }), { fieldManager: 'keelson-status' });
  assert.equal(again.type === 'written' && again.status, { phase: 'Off' }, 'the stale version was read again');
  if (again.type !== 'written') return;
  const entries = again.object.metadata.managedFields?.map(
    (entry) => `${entry.manager} ${entry.operation} ${entry.subresource ?? ''}`,
  );
  assert.equal(entries?.sort(), ['keelson Apply ', 'keelson-status Update status']);
  await client.delete(refOf(crd), { uid: stored(made).metadata.uid ?? '', propagation: 'Background' });
  await until('the kind is absent', async () => (await client.apply(widget, { fieldManager })).type === 'kindAbsent');
});

test('a UID is a precondition: deleted and replaced are told apart, nothing is made', async () => {
  const { client } = bed;
  const map = configMap(namespace, 'once', { a: '1' });
  const uid = stored(await client.apply(map, { fieldManager })).metadata.uid ?? '';
  const changed = configMap(namespace, 'once', { a: '2' });
  assert.is((await client.apply(changed, { fieldManager, uid })).type, 'configured');
  assert.is(
    (await client.delete(refOf(map), { uid: randomUUID(), propagation: 'Background' })).type,
    'preconditionFailed',
  );
  assert.is(
    (await client.delete(refOf(map), { uid, resourceVersion: '1', propagation: 'Background' })).type,
    'preconditionFailed',
  );
  assert.is((await client.delete(refOf(map), { uid, propagation: 'Background', dryRun: true })).type, 'deleted');
  assert.is((await client.delete(refOf(map), { uid, propagation: 'Background' })).type, 'deleted');
  assert.is((await client.delete(refOf(map), { uid, propagation: 'Background' })).type, 'absent');
  const gone = await client.apply(changed, { fieldManager, uid });
  assert.is(gone.type === 'gone' && gone.why, 'deleted');
  assert.is((await client.get(refOf(map))).type, 'absent');
  await client.apply(map, { fieldManager });
  const replaced = await client.apply(changed, { fieldManager, uid });
  assert.is(replaced.type === 'gone' && replaced.why, 'replaced');
});

test('a finalizer is reported and left alone', async () => {
  const { client } = bed;
  const map = configMap(namespace, 'held', {});
  map.metadata.finalizers = ['keelson.dev/orphan'];
  const uid = stored(await client.apply(map, { fieldManager })).metadata.uid ?? '';
  const outcome = await client.delete(refOf(map), { uid, propagation: 'Background' });
  assert.equal(outcome, { type: 'terminating', finalizers: ['keelson.dev/orphan'] });
  assert.is((await client.get(refOf(map))).type, 'found');
});

test('warnings of the server come along', async () => {
  const outcome = await bed.client.apply(
    deployment('warned', 1, { nodeSelector: { 'beta.kubernetes.io/os': 'linux' } }),
    { fieldManager, dryRun: true },
  );
  assert.match(outcome.type === 'created' ? (outcome.warnings[0] ?? '') : '', /beta\.kubernetes\.io\/os/);
});

test('a value that a hand took comes back without overwriting: the hand’s entry goes, then the usual apply', async () => {
  const { client } = bed;
  const intent = deployment('drift', 2);
  const uid = stored(await client.apply(intent, { fieldManager })).metadata.uid ?? '';
  await kubectl(bed.server, ['-n', namespace, 'scale', 'deployment/drift', '--replicas=5']);
  assert.is((await client.apply(intent, { fieldManager, uid })).type, 'conflict');
  const read = await client.get(refOf(intent));
  if (read.type !== 'found') throw new Error(read.type);
  const { resourceVersion = '', managedFields = [] } = read.object.metadata;
  const entries = managedFields.filter(({ manager }) => manager !== 'kubectl');
  assert.is((await client.replaceManagedFields(refOf(intent), { uid, resourceVersion: '1', entries })).type, 'stale');
  assert.is(
    (await client.replaceManagedFields(refOf(intent), { uid: randomUUID(), resourceVersion, entries })).type,
    'stale',
  );
  assert.is((await client.replaceManagedFields(refOf(intent), { uid, resourceVersion, entries })).type, 'updated');
  const back = stored(await client.apply(intent, { fieldManager, uid }));
  assert.is(back.spec?.replicas, 2);
  assert.equal(
    back.metadata.managedFields?.map(({ manager }) => manager),
    [fieldManager],
  );
});

test('1,100 objects: applied within the limiter, listed in pages, cluster-wide and by selector', async () => {
  const { client } = bed;
  const many = await freshNamespace(bed.server.admin, 'many');
  const count = 1100;
  const began = performance.now();
  const outcomes = await Promise.all(
    Array.from({ length: count }, (_, n) => {
      const map = configMap(many, `m${n}`, { n: String(n) });
      map.metadata.labels = { parity: n % 2 === 0 ? 'even' : 'odd' };
      return client.apply(map, { fieldManager });
    }),
  );
  console.log(`${count} applies in ${Math.round(performance.now() - began)} ms, limit ${client.load().limit}`);
  assert.is(outcomes.filter(({ type }) => type === 'created').length, count);
  const all = await client.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: many });
  assert.is(all.type === 'listed' && new Set(all.items.map((item) => item.metadata.name)).size, count);
  const odd = await client.list({ apiVersion: 'v1', kind: 'ConfigMap', labelSelector: 'parity=odd' });
  assert.is(odd.type === 'listed' && odd.items.filter((item) => item.metadata.namespace === many).length, count / 2);
  const one = await client.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: many, name: 'm7' });
  assert.equal(one.type === 'listed' && one.items.map((item) => [item.kind, item.metadata.name]), [
    ['ConfigMap', 'm7'],
  ]);
});

test('a review is answered, a path that is no object is read', async () => {
  const { client } = bed;
  const review = await client.create(
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      metadata: {},
      spec: { resourceAttributes: { verb: 'patch', resource: 'configmaps', namespace } },
    },
    { fieldManager },
  );
  assert.is(review.type === 'created' && (review.object.status as JsonObject).allowed, true);
  const version = await client.getPath('/version');
  assert.match(version.type === 'text' ? version.text : '', 'v1.34.2');
  assert.is((await client.getPath('/no/such/path')).type, 'absent');
});

test.run();
