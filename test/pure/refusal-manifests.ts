import { add, at, configMap, pod, type RefusalCase } from './refusal-support.ts';

/** Manifests that are refused for what stands in them. */
export const manifestRefusals: readonly RefusalCase[] = [
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
];
