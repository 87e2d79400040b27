import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { configMap, type RefusalCase } from './refusal-support.ts';

const inventory =
  'apiVersion: keelson.dev/v1alpha1\nkind: Inventory\nmetadata: {name: example}\nspec:\n  clusterUID: 00000000-0000-0000-0000-000000000001\n  kubernetesVersion: 1.34.2\n  serviceCIDRs: [10.96.0.1/12]\n  nodes:\n    - {name: a, uid: a, internalIPs: [010.0.0.1], labels: {}}\n    - {name: b, uid: b, internalIPs: [192.0.2.1], labels: {}}\n    - {name: c, uid: c, internalIPs: [192.0.2.1], labels: {}}\n';

/** Where a tree must not go: names that git would refuse late, or take for an option or a place of its own. */
const deliveries: readonly (readonly [field: 'path' | 'branch' | 'repository', value: string])[] = [
  ...['a/../b', 'a/./b', 'a//b', 'a/', 'a/.git/hooks', 'a/.GIT'].map((value) => ['path', value] as const),
  ...['a..b', 'a//b', 'a/', 'a.', 'a/.b', 'a.lock', 'a.lock/b', 'HEAD', 'refs/heads/a'].map(
    (value) => ['branch', value] as const,
  ),
  ...['--mirror', '-o@host:x', 'a@-o:x', 'ssh://-oProxyCommand=x/y', 'ext::sh -c x', 'https://a:b@c/d'].map(
    (value) => ['repository', value] as const,
  ),
];

const deliveryRefusals: readonly RefusalCase[] = deliveries.map(([field, value]) => ({
  what: `${field} ${value} of the delivery`,
  change: (c) => {
    const text = c.read('cluster.yaml').replace(new RegExp(`\n    ${field}: .*`), '');
    c.write('cluster.yaml', text.replace('  delivery:\n', `  delivery:\n    ${field}: "${value}"\n`));
  },
  reason: field === 'repository' && !value.startsWith('https') ? 'InvalidValue' : 'RuleViolated',
  file: 'cluster.yaml',
}));

/** Folders that are refused for a file that is missing, out of place, or says what it must not. */
export const folderRefusals: readonly RefusalCase[] = [
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
  ...deliveryRefusals,
];
