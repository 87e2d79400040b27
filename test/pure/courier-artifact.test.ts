import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Tree } from '../../constructs/api/tree.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { DomainRelease, DomainRenderer } from '../../renderer/domain.ts';
import { at, deliverBy, objectsIn, problemsOf, treeOf } from './courier-support.ts';
import { renderFolder, using } from './render-support.ts';

/** Releases whose payload comes out of the artifact of Flux. */

const flux = ['repository: https://git.example.com/platform/rendered.git', 'path: sites/one', 'courier: flux'];
const artifacts = [...flux, 'flux:', '  namespace: sources', '  prefix: one', '  artifactFor: [manifests-demo]'];

const kinds = (tree: Tree): string[] =>
  [...objectsIn(tree, 'sync/20-releases').values()].map(({ kind }) => String(kind)).sort();

function find(tree: Tree, folder: string, kind: string, name: string): JsonObject {
  const found = [...objectsIn(tree, folder).values()].find(
    (o) => o.kind === kind && at(o, 'metadata', 'name') === name,
  );
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
}

const rulesOf = (tree: Tree): JsonObject[] => {
  const { rules } = find(tree, 'sync/10-system', 'ClusterRole', 'keelson-executor');
  return (Array.isArray(rules) ? rules : []).filter(isObject);
};

const argsOf = (tree: Tree): unknown =>
  at(
    find(tree, 'sync/10-system', 'Deployment', 'keelson-executor'),
    'spec',
    'template',
    'spec',
    'containers',
    0,
    'args',
  );

const aboutSources = (rule: JsonObject): boolean => JSON.stringify(rule).includes('source.toolkit.fluxcd.io');

test('such a release names the folder of its payload in the tree, and no ConfigMap carries it', () =>
  using(async (copy) => {
    deliverBy(copy, artifacts);
    const tree = await treeOf(copy);
    assert.equal(kinds(tree), ['Release']);
    const release = find(tree, 'sync/20-releases', 'Release', 'manifests-demo');
    assert.equal(at(release, 'spec', 'source'), {
      flux: { kind: 'GitRepository', name: 'one', namespace: 'sources', path: 'sites/one/payload/manifests-demo' },
    });
    assert.ok(tree.has('payload/manifests-demo/index.json'));
    const source = find(tree, 'courier', 'GitRepository', 'one');
    assert.is(at(source, 'metadata', 'namespace'), 'sources');
    assert.ok(JSON.stringify(argsOf(tree)).includes('"--flux-namespaces=sources"'));
    assert.is(rulesOf(tree).filter(aboutSources).length, 1);
  }));

test('without such a release the executor has no right to read a source, and is told of none', () =>
  using(async (copy) => {
    deliverBy(copy, flux);
    const tree = await treeOf(copy);
    assert.equal(kinds(tree), ['ConfigMap', 'Release']);
    assert.equal(at(find(tree, 'sync/20-releases', 'Release', 'manifests-demo'), 'spec', 'source'), { configMaps: {} });
    assert.not.ok(JSON.stringify(argsOf(tree)).includes('--flux-namespaces'));
    assert.is(rulesOf(tree).filter(aboutSources).length, 0);
  }));

test('a release that does not exist, and another courier, are refused where they are named', () =>
  using(async (copy) => {
    deliverBy(copy, [...flux, 'flux:', '  artifactFor: [manifests-demo, manifests-dmeo]']);
    const [unknown, ...rest] = await problemsOf(copy);
    assert.equal(rest, []);
    assert.is(unknown?.reason, 'UnknownRelease');
    assert.is(unknown?.path, 'spec.delivery.flux.artifactFor');
    assert.match(unknown?.remedy ?? '', 'manifests-demo');
    deliverBy(copy, ['repository: ../rendered.git', 'courier: none', 'flux:', '  artifactFor: [manifests-demo]']);
    assert.match(JSON.stringify(await problemsOf(copy)), 'flux settings need courier: flux');
  }));

test('the release that brings the network travels in ConfigMaps', () =>
  using(async (copy) => {
    const release: DomainRelease = {
      ...{ name: 'network-one', domain: 'network', phases: [], installations: [] },
      ...{ requires: [], spans: [], charts: [], filteredHooks: [] },
    };
    const network: DomainRenderer = {
      domain: 'network',
      kinds: [],
      render: async () => ({ releases: [release], problems: [], warnings: [] }),
    };
    deliverBy(copy, [...flux, 'flux:', '  artifactFor: [network-one]']);
    const outcome = await renderFolder(copy.folder, { domains: [network] });
    const problems = outcome.ok ? [] : outcome.problems;
    assert.equal(
      problems.map(({ reason }) => reason),
      ['ArtifactNeedsNetwork'],
    );
  }));

test.run();
