import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Tree } from '../../constructs/api/tree.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { at, deliverBy, objectsIn, problemsOf, treeOf } from './courier-support.ts';
import { using } from './render-support.ts';

/** What Flux is given to carry a rendered tree. */

const url = 'https://git.example.com/platform/rendered.git';
const flux = [`repository: ${url}`, 'branch: live', 'path: sites/one', 'courier: flux'];

function kustomization(tree: Tree, name: string): JsonObject {
  const found = [...objectsIn(tree, 'courier').values()].find(
    (object) => object.kind === 'Kustomization' && at(object, 'metadata', 'name') === name,
  );
  if (found === undefined) throw new Error(`no Kustomization ${name}`);
  return found;
}

test('a repository, three units that do not wait, and a mirror of the Releases', () =>
  using(async (copy) => {
    deliverBy(copy, flux);
    const tree = await treeOf(copy);
    const objects = objectsIn(tree, 'courier');
    assert.equal(
      [...objects.keys()],
      [
        'gitrepository.source.toolkit.fluxcd.io_flux-system_keelson.yaml',
        'health/kustomization.kustomize.toolkit.fluxcd.io_flux-system_keelson-health.yaml',
        'kustomization.kustomize.toolkit.fluxcd.io_flux-system_keelson-10-system.yaml',
        'kustomization.kustomize.toolkit.fluxcd.io_flux-system_keelson-20-releases.yaml',
        'kustomization.kustomize.toolkit.fluxcd.io_flux-system_keelson-30-specs.yaml',
      ],
    );
    assert.equal(at(objects.get('gitrepository.source.toolkit.fluxcd.io_flux-system_keelson.yaml'), 'spec'), {
      url,
      ref: { branch: 'live' },
      interval: '1m',
      timeout: '300s',
      ignore: '/*\n!/sites\n/sites/*\n!/sites/one\n',
    });
    for (const [unit, after] of [
      ['10-system', undefined],
      ['20-releases', [{ name: 'keelson-10-system' }]],
      ['30-specs', [{ name: 'keelson-10-system' }]],
    ] as const) {
      const { spec } = kustomization(tree, `keelson-${unit}`);
      assert.is(at(spec, 'path'), `./sites/one/sync/${unit}`);
      assert.equal(at(spec, 'dependsOn'), after);
      assert.equal(
        ['wait', 'prune', 'force', 'deletionPolicy', 'healthChecks'].map((field) => at(spec, field)),
        [false, true, false, 'Orphan', undefined],
      );
    }
    assert.ok([...objects.values()].every((o) => at(o, 'metadata', 'labels', 'keelson.dev/cluster') === 'example'));
  }));

test('the mirror follows the Releases of the tree, holds itself alone, and comes after what it mirrors', () =>
  using(async (copy) => {
    deliverBy(copy, flux);
    const first = kustomization(await treeOf(copy), 'keelson-health').spec;
    assert.equal(at(first, 'healthChecks'), [
      { apiVersion: 'keelson.dev/v1alpha1', kind: 'Release', namespace: 'keelson-system', name: 'manifests-demo' },
    ]);
    assert.equal(at(first, 'dependsOn'), [{ name: 'keelson-20-releases' }, { name: 'keelson-30-specs' }]);
    assert.equal([at(first, 'prune'), at(first, 'wait')], [false, false]);
    copy.write(
      'manifests/more/10-a/a.yaml',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n',
    );
    const tree = await treeOf(copy);
    const checks = at(kustomization(tree, 'keelson-health'), 'spec', 'healthChecks') as JsonObject[];
    assert.equal(
      checks.map((check) => check.name),
      ['manifests-demo', 'manifests-more'],
    );
    const folder = String(at(kustomization(tree, 'keelson-health'), 'spec', 'path')).replace('./sites/one/', '');
    assert.equal(
      [...objectsIn(tree, folder).values()].map((object) => at(object, 'metadata', 'name')),
      ['keelson-health'],
    );
  }));

test('settings reach the objects; clusters that share a namespace are told apart', () =>
  using(async (copy) => {
    deliverBy(copy, [
      'repository: ssh://git@git.example.com/platform/rendered.git',
      'courier: flux',
      'flux: {namespace: gitops, prefix: site-one, interval: 20s, timeout: 1h, secretRef: {name: deploy-key}}',
    ]);
    const tree = await treeOf(copy);
    const source = objectsIn(tree, 'courier').get('gitrepository.source.toolkit.fluxcd.io_gitops_site-one.yaml');
    assert.equal(
      ['interval', 'timeout', 'secretRef', 'ref'].map((field) => at(source, 'spec', field)),
      ['20s', '3600s', { name: 'deploy-key' }, { branch: 'main' }],
    );
    const { spec } = kustomization(tree, 'site-one-20-releases');
    assert.equal(at(spec, 'sourceRef'), { kind: 'GitRepository', name: 'site-one' });
    assert.equal(at(spec, 'dependsOn'), [{ name: 'site-one-10-system' }]);
  }));

test('only the tree of the cluster is in its artifact, whatever else the repository holds', () =>
  using(async (copy) => {
    deliverBy(copy, flux);
    const tree = await treeOf(copy);
    const source = objectsIn(tree, 'courier').get('gitrepository.source.toolkit.fluxcd.io_flux-system_keelson.yaml');
    const work = mkdtempSync(join(tmpdir(), 'keelson-ignore-'));
    try {
      const paths = [
        'sites/one/sync/a.yaml',
        'sites/one/payload/r/index.json',
        'sites/two/sync/a.yaml',
        'other/x',
        'y',
      ];
      for (const path of paths) {
        mkdirSync(join(work, dirname(path)), { recursive: true });
        writeFileSync(join(work, path), '');
      }
      // Git reads these patterns as Flux does: the artifact holds what Git would not leave out.
      writeFileSync(join(work, '.git-exclude'), String(at(source, 'spec', 'ignore')));
      const git = (...args: string[]): string => execFileSync('git', args, { cwd: work, encoding: 'utf8' });
      git('init', '--quiet');
      const left = git('ls-files', '--others', '--exclude-from=.git-exclude').trim().split('\n');
      assert.equal(left, ['sites/one/payload/r/index.json', 'sites/one/sync/a.yaml']);
    } finally {
      rmSync(work, { recursive: true });
    }
  }));

test('what leaves a tree with its courier: nothing of it is rendered without one', () =>
  using(async (copy) => {
    deliverBy(copy, flux);
    const before = await treeOf(copy);
    deliverBy(copy, [`repository: ${url}`, 'path: sites/one', 'courier: none']);
    const after = await treeOf(copy, before);
    const courier = (tree: Tree): string[] => [...tree.keys()].filter((path) => path.startsWith('courier/'));
    assert.equal([courier(before).length, courier(after).length], [5, 0]);
    // Who may write follows the courier, and so the system unit; what is carried does not.
    const rest = (tree: Tree) => [...tree].filter(([path]) => /^(payload|sync\/20-releases)\//.test(path));
    assert.equal(rest(after), rest(before), 'a courier changes nothing of what it carries');
  }));

test('a unit without objects is a folder that Flux reads as empty', () =>
  using(async (copy) => {
    deliverBy(copy, flux);
    const specs = objectsIn(await treeOf(copy), 'sync/30-specs');
    assert.equal([...specs.keys()], ['kustomization.yaml']);
    // A kustomization without any field of its own is refused as empty.
    assert.ok(Object.keys(specs.get('kustomization.yaml') ?? {}).some((key) => !['apiVersion', 'kind'].includes(key)));
    assert.not([...(await treeOf(copy)).keys()].includes('sync/20-releases/kustomization.yaml'));
  }));

test('settings by which nothing could be carried are refused at their place, all at once', () =>
  using(async (copy) => {
    const refused = async (...lines: string[]) => {
      deliverBy(copy, lines);
      return (await problemsOf(copy)).map(({ reason, path, line, remedy }) => ({ reason, path, line, remedy }));
    };
    const [relative] = await refused('repository: ../rendered.git', 'courier: flux');
    assert.match(relative?.remedy ?? '', 'https:// or ssh://');
    assert.equal(
      [relative?.reason, relative?.path, relative?.line],
      ['CourierRepository', 'spec.delivery.repository', 8],
    );
    assert.is((await refused('repository: .', 'courier: argo'))[0]?.reason, 'CourierRepository');
    assert.is((await refused('repository: file:///srv/rendered.git', 'courier: argo'))[0]?.reason, 'CourierRepository');
    const [scp] = await refused('repository: git@git.example.com:platform/rendered.git', 'courier: flux');
    assert.match(scp?.remedy ?? '', 'ssh://git@git.example.com/platform/rendered.git');
    const both = await refused(
      'repository: ssh://git@git.example.com/rendered.git',
      'courier: flux',
      'flux: {interval: 0s}',
    );
    assert.equal(
      both.map(({ path }) => path),
      ['spec.delivery.repository', 'spec.delivery.flux.interval'],
    );
    assert.equal(await refused('repository: git@git.example.com:platform/rendered.git', 'courier: none'), []);
    assert.equal(await refused('repository: ../rendered.git', 'courier: none'), []);
  }));

test.run();
