import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { at, deliverBy, objectsIn, treeOf } from './courier-support.ts';
import { using } from './render-support.ts';

/** What Argo CD is given to carry a rendered tree. */

const argo = [
  'repository: git@git.example.com:platform/rendered.git',
  'branch: live',
  'path: sites/one',
  'courier: argo',
  'argo: {namespace: gitops, project: substrate}',
];

const applications = (objects: ReadonlyMap<string, JsonObject>): JsonObject[] =>
  [...objects.values()].filter(({ kind }) => kind === 'Application');

test('one Application for each unit, that prunes, and waits for nothing that comes after it', () =>
  using(async (copy) => {
    deliverBy(copy, argo);
    const found = applications(objectsIn(await treeOf(copy), 'courier'));
    assert.equal(
      found.map((object) => [at(object, 'metadata', 'name'), at(object, 'spec', 'source', 'path')]),
      ['10-system', '20-releases', '30-specs'].map((unit) => [`keelson-${unit}`, `sites/one/sync/${unit}`]),
    );
    for (const object of found) {
      assert.is(at(object, 'metadata', 'namespace'), 'gitops');
      // Deleting an Application leaves what it carried: there is no finalizer to take it along.
      assert.is(at(object, 'metadata', 'finalizers'), undefined);
      assert.is(at(object, 'spec', 'project'), 'substrate');
      assert.is(at(object, 'spec', 'source', 'targetRevision'), 'live');
      assert.equal(at(object, 'spec', 'syncPolicy', 'automated'), { allowEmpty: false, prune: true, selfHeal: true });
      const options = at(object, 'spec', 'syncPolicy', 'syncOptions') as string[];
      for (const option of ['ServerSideApply=true', 'RespectIgnoreDifferences=true'])
        assert.ok(options.includes(option));
      // It would hold a commit up until what was carried is healthy.
      assert.not(options.includes('PruneLast=true'));
      assert.ok(Number(at(object, 'spec', 'syncPolicy', 'retry', 'limit')) > 0, 'retries of a bad commit end');
    }
  }));

test('rules cover what the executor and people write, and never what the executor gives up again', () =>
  using(async (copy) => {
    deliverBy(copy, argo);
    const found = applications(objectsIn(await treeOf(copy), 'courier'));
    const rules = (unit: string): Record<string, string[]> => {
      const object = found.find((one) => at(one, 'metadata', 'name') === `keelson-${unit}`);
      const list = at(object, 'spec', 'ignoreDifferences') as { kind: string; jsonPointers: string[] }[];
      return Object.fromEntries(list.map(({ kind, jsonPointers }) => [kind, jsonPointers]));
    };
    const notes = ['hold', 'pin', 'confirm-delete'].map((name) => `/metadata/annotations/keelson.dev~1${name}`);
    assert.equal(rules('20-releases'), { Release: ['/status', ...notes] });
    assert.equal(rules('30-specs'), { KubeOVNInstallation: ['/status', ...notes], IPAddressClass: notes });
    assert.equal(rules('10-system'), { Namespace: notes, CustomResourceDefinition: notes });
    for (const object of found) assert.not.match(JSON.stringify(at(object, 'spec', 'ignoreDifferences')), /finalizers/);
  }));

test('definitions come first, then accounts, then what needs both; nothing has a wave after them', () =>
  using(async (copy) => {
    deliverBy(copy, argo);
    const tree = await treeOf(copy);
    const waves = new Map<unknown, Set<unknown>>();
    for (const object of objectsIn(tree, 'sync/10-system').values()) {
      const wave = at(object, 'metadata', 'annotations', 'argocd.argoproj.io/sync-wave');
      waves.set(wave, (waves.get(wave) ?? new Set()).add(object.kind));
    }
    assert.equal([...waves.keys()].sort(), ['-10', '-20', undefined]);
    assert.equal([...(waves.get('-20') ?? [])], ['CustomResourceDefinition']);
    assert.ok(waves.get('-10')?.has('Namespace') && waves.get('-10')?.has('ClusterRole'));
    assert.ok(waves.get(undefined)?.has('Deployment'));
    for (const unit of ['20-releases', '30-specs'])
      for (const object of objectsIn(tree, `sync/${unit}`).values())
        assert.is(at(object, 'metadata', 'annotations', 'argocd.argoproj.io/sync-wave'), undefined);
  }));

test('a deleted Application takes nothing of the system along, and pruning takes no protected kind', () =>
  using(async (copy) => {
    deliverBy(copy, argo);
    const tree = await treeOf(copy);
    const kept = new Set(['Namespace', 'CustomResourceDefinition', 'Release', 'KubeOVNInstallation']);
    for (const unit of ['10-system', '20-releases', '30-specs'])
      for (const [path, object] of objectsIn(tree, `sync/${unit}`)) {
        const options = String(at(object, 'metadata', 'annotations', 'argocd.argoproj.io/sync-options') ?? '').split(
          ',',
        );
        if (unit === '10-system') assert.ok(options.includes('Delete=false'), path);
        if (kept.has(String(object.kind))) assert.ok(options.includes('Prune=false'), path);
        if (object.kind === 'ConfigMap') assert.not(options.includes('Prune=false'), 'the inbox is pruned');
      }
  }));

test('the health of every kind is a part that joins the settings of Argo CD', () =>
  using(async (copy) => {
    deliverBy(copy, argo);
    const tree = await treeOf(copy);
    const parts = [...objectsIn(tree, 'courier/merge').values()];
    assert.is(parts.length, 1);
    assert.equal(at(parts[0], 'metadata'), { name: 'argocd-cm', namespace: 'gitops' });
    assert.equal(Object.keys(at(parts[0], 'data') as JsonObject), [
      'resource.customizations.health.keelson.dev_Release',
      'resource.customizations.health.network.keelson.dev_KubeOVNInstallation',
      'resource.customizations.health.network.keelson.dev_KubeOVNMemberRemovalApproval',
      'resource.customizations.health.network.keelson.dev_KubeOVNRecoveryRequest',
    ]);
  }));

test.run();
