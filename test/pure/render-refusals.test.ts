import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type Copy, copyExample, renderFolder } from './render-support.ts';

/** What is refused, where, and the words that must stand in the message or the remedy. */
interface Case {
  readonly what: string;
  readonly change: (copy: Copy) => void;
  readonly reason: string;
  readonly file: string;
  readonly line?: number;
  readonly path?: string;
  readonly says?: RegExp;
}

const at = 'manifests/demo/20-config/bad.yaml';
const configMap = (more: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n  namespace: demo\n${more}`;
const pod = (lines: string[]): string =>
  ['apiVersion: v1', 'kind: Pod', 'metadata:', '  name: bad', '  namespace: demo', 'spec:', ...lines, ''].join('\n');

const add = (text: string) => (copy: Copy) => copy.write(at, text);

const inventory =
  'apiVersion: keelson.dev/v1alpha1\nkind: Inventory\nmetadata: {name: example}\nspec:\n  clusterUID: 00000000-0000-0000-0000-000000000001\n  kubernetesVersion: 1.34.2\n  serviceCIDRs: [10.96.0.1/12]\n  nodes:\n    - {name: a, uid: a, internalIPs: [010.0.0.1], labels: {}}\n    - {name: b, uid: b, internalIPs: [192.0.2.1], labels: {}}\n    - {name: c, uid: c, internalIPs: [192.0.2.1], labels: {}}\n';

const cases: Case[] = [
  { what: 'broken YAML', change: add('a: [1, 2\n'), reason: 'InvalidYAML', file: at },
  {
    what: 'a duplicate key',
    change: add(configMap('data:\n  a: x\n  a: y\n')),
    reason: 'DuplicateKey',
    file: at,
    line: 8,
  },
  {
    what: 'a document without a kind',
    change: add('apiVersion: v1\nmetadata:\n  name: x\n'),
    reason: 'FieldMissing',
    file: at,
    path: 'kind',
  },
  {
    what: 'a document without a name',
    change: add('apiVersion: v1\nkind: Namespace\nmetadata: {}\n'),
    reason: 'FieldMissing',
    file: at,
    path: 'metadata.name',
  },
  {
    what: 'generateName',
    change: add('apiVersion: v1\nkind: Namespace\nmetadata:\n  generateName: x-\n'),
    reason: 'FieldMissing',
    file: at,
    says: /generateName/,
  },
  { what: 'a scalar document', change: add('just text\n'), reason: 'InvalidDocument', file: at },
  {
    what: 'a namespaced object without namespace',
    change: add('apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n'),
    reason: 'NamespaceMissing',
    file: at,
  },
  {
    what: 'a cluster-wide object with a namespace',
    change: add('apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n  namespace: demo\n'),
    reason: 'NamespaceForbidden',
    file: at,
    line: 5,
  },
  {
    what: 'two documents of one identity',
    change: add('apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n  namespace: demo\n'),
    reason: 'DuplicateObject',
    file: 'manifests/demo/20-config/config.yaml',
    says: /bad\.yaml:1/,
  },
  {
    what: 'one object in two releases',
    change: (c) => c.write('manifests/other/10-a/x.yaml', 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: demo\n'),
    reason: 'DuplicateObject',
    file: 'manifests/other/10-a/x.yaml',
    says: /demo\/10-base/,
  },
  {
    what: 'a Secret with data',
    change: add('apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: demo\ndata:\n  a: aGk=\n'),
    reason: 'SecretInGit',
    file: at,
    line: 6,
  },
  {
    what: 'a Secret with stringData',
    change: add(
      'apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: demo\nstringData:\n  a: canary-value\n',
    ),
    reason: 'SecretInGit',
    file: at,
    path: 'stringData',
  },
  {
    what: 'a UID',
    change: add(configMap('').replace('  name: bad\n', '  name: bad\n  uid: 12\n')),
    reason: 'ServerField',
    file: at,
    line: 5,
    path: 'metadata.uid',
  },
  {
    what: 'owner references',
    change: add(configMap('').replace('  name: bad\n', '  name: bad\n  ownerReferences: [{name: x}]\n')),
    reason: 'ServerField',
    file: at,
  },
  {
    what: 'a hold in Git',
    change: add(configMap('').replace('  name: bad\n', '  name: bad\n  annotations: {keelson.dev/hold: "true"}\n')),
    reason: 'LiveAnnotation',
    file: at,
  },
  {
    what: 'annotations over the limit',
    change: add(
      configMap('').replace('  name: bad\n', `  name: bad\n  annotations: {big: "${'x'.repeat(262_200)}"}\n`),
    ),
    reason: 'AnnotationsTooLarge',
    file: at,
  },
  {
    what: 'an object over the limit',
    change: add(configMap(`data:\n  big: "${'x'.repeat(1_048_600)}"\n`)),
    reason: 'ObjectTooLarge',
    file: at,
  },
  {
    what: 'two container ports of one key',
    change: add(
      pod([
        '  containers:',
        '    - name: a',
        '      image: registry.example.com/demo/web:1.4',
        '      ports:',
        '        - containerPort: 80',
        '          protocol: TCP',
        '        - containerPort: 80',
      ]),
    ),
    reason: 'DuplicateListKey',
    file: at,
    line: 13,
  },
  {
    what: 'two environment variables of one name',
    change: add(
      pod([
        '  containers:',
        '    - name: a',
        '      image: registry.example.com/demo/web:1.4',
        '      env:',
        '        - {name: A, value: "1"}',
        '        - {name: A, value: "2"}',
      ]),
    ),
    reason: 'DuplicateListKey',
    file: at,
    line: 12,
    path: 'spec.containers[0].env[1]',
  },
  {
    what: 'a one-shot kind',
    change: add(
      'apiVersion: network.keelson.dev/v1alpha1\nkind: KubeOVNRecoveryRequest\nmetadata:\n  name: x\n  namespace: kube-system\n',
    ),
    reason: 'OneShotKind',
    file: at,
    says: /keelson op KubeOVNRecoveryRequest/,
  },
  {
    what: 'an operation on storage',
    change: add(
      'apiVersion: storage.simplyblock.io/v1alpha2\nkind: StorageNodeOps\nmetadata:\n  name: x\n  namespace: demo\n',
    ),
    reason: 'OneShotKind',
    file: at,
    says: /keelson op/,
  },
  {
    what: 'an address claim',
    change: add(
      'apiVersion: local.sdn.cozystack.io/v1alpha1\nkind: IPAddressClaim\nmetadata:\n  name: x\n  namespace: demo\n',
    ),
    reason: 'OneShotKind',
    file: at,
    says: /keelson addresses/,
  },
  {
    what: 'a Release in Git',
    change: add(
      'apiVersion: keelson.dev/v1alpha1\nkind: Release\nmetadata:\n  name: addresses\n  namespace: demo\nspec: {}\n',
    ),
    reason: 'SpecAmongManifests',
    file: at,
  },
  {
    what: 'an image that is not locked',
    change: add(pod(['  containers:', '    - name: a', '      image: registry.example.com/demo/other:2'])),
    reason: 'ImageNotLocked',
    file: at,
    path: '/spec/containers/0/image',
    says: /keelson lock/,
  },
  {
    what: 'an image that is no reference',
    change: add(pod(['  containers:', '    - name: a', '      image: "not a reference"'])),
    reason: 'ImageInvalid',
    file: at,
  },
  {
    what: 'an unlocked image in an argument',
    change: (c) =>
      c.write(
        at,
        pod([
          '  containers:',
          '    - name: a',
          '      image: registry.example.com/demo/web:1.4',
          '      args: ["--helper=registry.example.com/demo/web:1.5"]',
        ]),
      ),
    reason: 'ImageNotLocked',
    file: at,
    path: '/spec/containers/0/args/0',
  },
  {
    what: 'an object in the namespace of the executor',
    change: add(configMap('').replace('namespace: demo', 'namespace: keelson-system')),
    reason: 'SystemNamespace',
    file: at,
  },
  {
    what: 'an unknown conflict policy',
    change: add(
      configMap('').replace('  name: bad\n', '  name: bad\n  annotations: {keelson.dev/conflict-policy: take}\n'),
    ),
    reason: 'FieldInvalid',
    file: at,
    says: /"fail" or "yield"/,
  },
  {
    what: 'recreating a namespace',
    change: add(
      'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n  annotations: {keelson.dev/recreate: "true"}\n',
    ),
    reason: 'PolicyContradiction',
    file: at,
  },
  {
    what: 'a phase folder without a number',
    change: (c) => c.write('manifests/demo/base/x.yaml', configMap('')),
    reason: 'FilePlace',
    file: 'manifests/demo/base/x.yaml',
    says: /NN-phase/,
  },
  {
    what: 'two phases of one name',
    change: (c) => c.write('manifests/demo/11-base/x.yaml', configMap('')),
    reason: 'DuplicatePhase',
    file: 'manifests/demo/11-base',
  },
  {
    what: 'a manifest at the top',
    change: (c) => c.write('stray.yaml', configMap('')),
    reason: 'UnknownSpecKind',
    file: 'stray.yaml',
  },
  {
    what: 'a JSON file',
    change: (c) => c.write('manifests/demo/10-base/x.json', '{}'),
    reason: 'FileRefused',
    file: 'manifests/demo/10-base/x.json',
  },
  {
    what: 'a link',
    change: (c) => symlinkSync('/etc/hosts', join(c.folder, 'manifests/demo/10-base/x.yaml')),
    reason: 'FileRefused',
    file: 'manifests/demo/10-base/x.yaml',
    says: /links/,
  },
  {
    what: 'a release of comments only',
    change: (c) => c.write('manifests/empty/10-a/x.yaml', '# nothing\n'),
    reason: 'EmptyPayload',
    file: 'manifests/empty',
  },
  {
    what: 'an unknown field of cluster.yaml',
    change: (c) =>
      c.write(
        'cluster.yaml',
        'apiVersion: keelson.dev/v1alpha1\nkind: Cluster\nmetadata:\n  name: example\nspec:\n  kubernetesVersion: 1.34.2\n  kubernetesVersoin: 1\n  delivery: {repository: "x", author: {name: a, email: b@c}}\n  images: {executor: "registry.example.com/keelson/keelson:0.1.0"}\n',
      ),
    reason: 'UnknownField',
    file: 'cluster.yaml',
    line: 7,
  },
  {
    what: 'an old Kubernetes',
    change: (c) =>
      c.write(
        'cluster.yaml',
        'apiVersion: keelson.dev/v1alpha1\nkind: Cluster\nmetadata:\n  name: example\nspec:\n  kubernetesVersion: 1.29.0\n  delivery: {repository: "x", author: {name: a, email: b@c}}\n  images: {executor: "registry.example.com/keelson/keelson:0.1.0"}\n',
      ),
    reason: 'InvalidValue',
    file: 'cluster.yaml',
    line: 6,
  },
  { what: 'no cluster.yaml', change: (c) => c.remove('cluster.yaml'), reason: 'FileMissing', file: 'cluster.yaml' },
  {
    what: 'a missing lock',
    change: (c) => c.remove('keelson.lock.yaml'),
    reason: 'ImageNotLocked',
    file: 'cluster.yaml',
    path: 'spec.images.executor',
  },
  {
    what: 'the lock of another cluster',
    change: (c) =>
      c.write(
        'keelson.lock.yaml',
        'apiVersion: keelson.dev/v1alpha1\nkind: Lock\nmetadata: {name: other}\nspec: {tools: {}, charts: [], images: [], determinism: []}\n',
      ),
    reason: 'ClusterMismatch',
    file: 'keelson.lock.yaml',
  },
  {
    what: 'a service range that begins inside of itself',
    change: (c) => c.write('inventory.yaml', inventory),
    reason: 'InvalidValue',
    file: 'inventory.yaml',
    path: 'spec.serviceCIDRs[0]',
  },
  {
    what: 'an address with leading zeros',
    change: (c) => c.write('inventory.yaml', inventory.replace('10.96.0.1/12', '10.96.0.0/12')),
    reason: 'InvalidValue',
    file: 'inventory.yaml',
    line: 9,
    path: 'spec.nodes[0].internalIPs[0]',
  },
  {
    what: 'two nodes of one address',
    change: (c) =>
      c.write(
        'inventory.yaml',
        inventory.replace(/10\.96\.0\.1\/12|010\.0\.0\.1/g, (text) =>
          text.startsWith('010') ? '192.0.2.9' : '10.96.0.0/12',
        ),
      ),
    reason: 'InvalidValue',
    file: 'inventory.yaml',
    path: 'spec.nodes[2].internalIPs[0]',
    says: /node b/,
  },
];

const told = (problems: readonly Problem[]): string =>
  problems.map((p) => `${p.file}:${p.line} ${p.path} ${p.reason} ${p.message} | ${p.remedy}`).join('\n');

for (const wanted of cases)
  test(`refuses ${wanted.what}`, async () => {
    const copy = copyExample();
    try {
      wanted.change(copy);
      const outcome = await renderFolder(copy.folder);
      assert.is(outcome.ok, false, 'it was rendered');
      if (outcome.ok) return;
      const found = outcome.problems.find(
        (p) => p.reason === wanted.reason && p.file === `clusters/plain/${wanted.file}`,
      );
      assert.ok(found, told(outcome.problems));
      if (wanted.line !== undefined) assert.is(found?.line, wanted.line, told(outcome.problems));
      if (wanted.path !== undefined) assert.is(found?.path, wanted.path);
      if (wanted.says !== undefined) assert.match(`${found?.message} ${found?.remedy}`, wanted.says);
      // A value out of its bounds says itself what would be in them.
      if (found?.reason !== 'InvalidValue') assert.ok(found?.remedy, 'a remedy is missing');
      assert.not.match(told(outcome.problems), /canary-value/);
    } finally {
      copy.dispose();
    }
  });

test('tells all problems of all files at once', async () => {
  const copy = copyExample();
  try {
    copy.write(at, 'a: [1, 2\n');
    copy.write('manifests/demo/10-base/two.yaml', 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n');
    copy.write('stray.yaml', configMap(''));
    copy.remove('keelson.lock.yaml');
    const outcome = await renderFolder(copy.folder);
    assert.is(outcome.ok, false);
    if (outcome.ok) return;
    const reasons = new Set(outcome.problems.map((p) => p.reason));
    for (const reason of ['InvalidYAML', 'NamespaceMissing', 'UnknownSpecKind']) assert.ok(reasons.has(reason), reason);
  } finally {
    copy.dispose();
  }
});

test('warns of annotations that come near the limit', async () => {
  const copy = copyExample();
  try {
    copy.write(
      at,
      configMap('').replace('  name: bad\n', `  name: bad\n  annotations: {big: "${'x'.repeat(210_000)}"}\n`),
    );
    const outcome = await renderFolder(copy.folder);
    assert.is(outcome.ok, true);
    if (outcome.ok)
      assert.equal(
        outcome.rendered.warnings.map((w) => w.reason),
        ['AnnotationsLarge'],
      );
  } finally {
    copy.dispose();
  }
});

test.run();
