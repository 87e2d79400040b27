import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { deliverBy } from '../../pure/courier-support.ts';
import { openCourierBed } from './courier-bed.ts';

/** What the real kustomize-controller makes of the objects that it is given, without a cluster around it. */

const bed = await openCourierBed();
deliverBy(bed.specs, [
  'repository: https://git.example.com/platform/rendered.git',
  'courier: flux',
  'flux: {interval: 5s, timeout: 30s}',
]);

const unit = (name: string): string =>
  `/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/keelson-${name}`;
const release = '/apis/keelson.dev/v1alpha1/namespaces/keelson-system/releases/manifests-demo';
const inbox = '/api/v1/namespaces/keelson-system/configmaps?labelSelector=keelson.dev%2Fholds%3Dpayload';

// biome-ignore lint/suspicious/noExplicitAny: a Kustomization is read loosely
type Loose = any;
const ready = (object: Loose): Loose => object?.status?.conditions?.find((c: Loose) => c.type === 'Ready');
const appliedAt = (object: Loose, revision: string): boolean =>
  ready(object)?.status === 'True' && object.status.lastAppliedRevision === revision;

test('all units are applied, the empty one as well; the mirror waits for the Release and applies itself', async () => {
  await bed.keelson('bootstrap', '--no-wait', '--from', await bed.render());
  const revision = await bed.publish();
  for (const name of ['10-system', '20-releases', '30-specs'])
    await bed.until(`${name} to be applied`, unit(name), (object) => appliedAt(object, revision));
  assert.equal((await bed.get(unit('30-specs'))).status.inventory?.entries ?? [], []);
  const mirror = await bed.until('the mirror to look', unit('health'), (object) =>
    JSON.stringify(object.status.inventory ?? '').includes('keelson-health'),
  );
  assert.is.not(ready(mirror)?.status, 'True');
  assert.is(mirror.status.inventory.entries.length, 1);
});

test('the mirror is Ready when the Release is, and not while it only works on it', async () => {
  await bed.report('manifests-demo', 'steady', 'all of it');
  await bed.until('the mirror to be Ready', unit('health'), (object) => ready(object)?.status === 'True');
  await bed.report('manifests-demo', 'terminal', 'the change is blocked');
  const failed = await bed.until('the mirror to fail', unit('health'), (object) => ready(object)?.status === 'False');
  assert.is(ready(failed).reason, 'HealthCheckFailed');
  assert.match(ready(failed).message, /manifests-demo/);
});

test('a next commit is applied while the mirror sees a failure; old inbox objects go, new Releases are mirrored', async () => {
  const before = (await bed.get(inbox)).items.map((item: Loose) => item.metadata.name);
  bed.specs.write(
    'manifests/more/10-a/a.yaml',
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n',
  );
  bed.specs.write(
    'manifests/demo/20-config/more.yaml',
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: demo}\n',
  );
  const began = performance.now();
  const revision = await bed.publish();
  await bed.until('the Releases to be applied', unit('20-releases'), (object) => appliedAt(object, revision));
  assert.ok(performance.now() - began < 25_000, 'sooner than the mirror gives up');
  const after = (await bed.get(inbox)).items.map((item: Loose) => item.metadata.name);
  assert.equal(
    after.filter((name: string) => before.includes(name)),
    [],
  );
  assert.is(after.length, 2);
  await bed.until('the mirror to know the new Release', unit('health'), (object) =>
    object.spec.healthChecks.some((check: Loose) => check.name === 'manifests-more'),
  );
});

test('what people annotate stays, what Git names is enforced', async () => {
  const { spec } = await bed.get(release);
  await bed.kubectl('annotate', release, { metadata: { annotations: { 'keelson.dev/hold': 'INC-42' } } });
  await bed.kubectl('edit', release, { spec: { payload: { digest: `sha256:${'0'.repeat(64)}` } } });
  bed.specs.write(
    'manifests/demo/20-config/more.yaml',
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: most, namespace: demo}\n',
  );
  const revision = await bed.publish();
  await bed.until('the Releases to be applied', unit('20-releases'), (object) => appliedAt(object, revision));
  const live = await bed.get(release);
  assert.is(live.metadata.annotations['keelson.dev/hold'], 'INC-42');
  assert.not.equal(live.spec.payload.digest, spec.payload.digest);
  assert.not.match(live.spec.payload.digest, /0{64}/);
});

test('a release that leaves the tree, and Kustomizations that are deleted, lose nothing', async () => {
  bed.specs.remove('manifests/more');
  const revision = await bed.publish();
  await bed.until('the Releases to be applied', unit('20-releases'), (object) => appliedAt(object, revision));
  assert.ok(await bed.get(release.replace('demo', 'more')), 'the Release that left stays');
  const names = ['health', '30-specs', '20-releases', '10-system'];
  for (const name of names) await bed.delete(unit(name));
  for (const name of names) await bed.until(`${name} to be gone`, unit(name), (object) => object === undefined);
  const kept = [
    release,
    '/api/v1/namespaces/keelson-system',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/releases.keelson.dev',
    '/apis/apps/v1/namespaces/keelson-system/deployments/keelson-executor',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/keelson-executor',
  ];
  for (const path of kept) assert.is((await bed.get(path))?.metadata.deletionTimestamp, undefined, path);
  for (const path of kept) assert.ok(await bed.get(path), path);
  assert.is((await bed.get(inbox)).items.length, 1);
});

test.after(() => bed.close());

test.run();
