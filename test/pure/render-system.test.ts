import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Tree } from '../../constructs/api/tree.ts';
import { treeFile } from '../../constructs/api/tree.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import type { DomainRenderer } from '../../renderer/domain.ts';
import { type Copy, renderFolder, using } from './render-support.ts';

/** Rights and the executor's Deployment as they follow from what is rendered. */

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

async function rendered(copy: Copy, previous?: Tree, forgetKinds = false): Promise<Tree> {
  const outcome = await renderFolder(copy.folder, { forgetKinds, ...(previous === undefined ? {} : { previous }) });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.rendered.tree;
}

function object(tree: Tree, path: string): JsonObject {
  const bytes = tree.get(`sync/10-system/${path}`);
  const value = bytes === undefined ? undefined : parseYaml(Buffer.from(bytes).toString(), path).documents[0]?.value;
  if (!isObject(value)) throw new Error(`${path} is missing; there are ${[...tree.keys()].join(' ')}`);
  return value;
}

const rbac = 'rbac.authorization.k8s.io';
const clusterRules = (tree: Tree): Rule[] =>
  object(tree, `clusterrole.${rbac}___keelson-executor.yaml`).rules as unknown as Rule[];
const roleRules = (tree: Tree, namespace: string): Rule[] =>
  object(tree, `role.${rbac}_${namespace}_keelson-executor.yaml`).rules as unknown as Rule[];

/** Verbs on a resource, without those that are bound to names. */
const verbs = (rules: readonly Rule[], group: string, resource: string): string[] =>
  [
    ...new Set(
      rules
        .filter((r) => r.resourceNames === undefined && r.apiGroups.includes(group) && r.resources.includes(resource))
        .flatMap((r) => r.verbs),
    ),
  ].sort();
const named = (rules: readonly Rule[], verb: string): Rule[] => rules.filter((rule) => rule.verbs.includes(verb));

const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:reader"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:reader"}
subjects: [{kind: ServiceAccount, name: web, namespace: demo}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: auth-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: web, namespace: demo}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: late, namespace: demo}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`;

/** Verbs on one object of a resource, beyond those on all of them. */
const verbsOn = (rules: readonly Rule[], group: string, resource: string, name: string): string[] =>
  rules
    .filter((r) => r.apiGroups.includes(group) && r.resources.includes(resource))
    .filter((r) => r.resourceNames?.includes(name) === true)
    .flatMap((r) => r.verbs)
    .sort();
const writing = ['create', 'delete', 'get', 'patch'];

test('the executor may write the objects that payloads name, and no others', () =>
  using(async (copy) => {
    const tree = await rendered(copy);
    const rules = clusterRules(tree);
    assert.equal(verbs(rules, 'apps', 'deployments'), ['list', 'watch']);
    assert.equal(verbsOn(rules, 'apps', 'deployments', 'web'), writing);
    assert.equal(verbsOn(rules, 'apps', 'deployments', 'other'), []);
    assert.equal(verbs(rules, 'apps', 'daemonsets'), []);
    assert.equal(verbs(rules, '', 'configmaps'), ['list', 'watch'], 'those of its own namespace are in a Role there');
    copy.write(
      'manifests/demo/20-config/more.yaml',
      `apiVersion: v1
kind: ConfigMap
metadata: {name: public, namespace: default}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: demo}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`,
    );
    const more = await rendered(copy);
    assert.equal(verbsOn(roleRules(more, 'default'), '', 'configmaps', 'public'), writing);
    assert.equal(verbsOn(clusterRules(more), '', 'configmaps', 'public'), [], 'only where it is');
    assert.equal(
      verbsOn(clusterRules(more), '', 'persistentvolumeclaims', 'data'),
      ['create', 'get', 'patch'],
      'what is never removed needs no right to',
    );
    assert.equal(verbs(rules, '', 'secrets'), []);
    assert.equal(verbs(rules, '', 'nodes'), ['list']);
    assert.equal(named(rules, 'escalate'), []);
    assert.ok(rules.every((rule) => ![...rule.apiGroups, ...rule.resources, ...rule.verbs].includes('*')));
  }));

test('escalating and binding are bound to the names of the payload', () =>
  using(async (copy) => {
    copy.write('manifests/demo/20-config/roles.yaml', roles);
    const tree = await rendered(copy);
    const rules = clusterRules(tree);
    const of = (resource: string, verb: string) =>
      named(rules, verb)
        .filter((rule) => rule.resources.includes(resource))
        .map((rule) => rule.resourceNames);
    assert.equal(of('clusterroles', 'escalate'), [['system:reader']]);
    assert.equal(of('clusterroles', 'bind'), [['system:reader']]);
    // The namespace comes with the payload, so a Role of ours could not be delivered into it.
    assert.equal(of('roles', 'escalate'), [['late']]);
    assert.equal(of('roles', 'bind'), []);
    assert.equal(
      named(roleRules(tree, 'kube-system'), 'bind').map((rule) => rule.resourceNames),
      [['extension-apiserver-authentication-reader']],
    );
    // Letting go of roles and bindings takes the same rights as writing them.
    copy.remove('manifests/demo/20-config/roles.yaml');
    const left = await rendered(copy, tree);
    const still = await rendered(copy, left);
    for (const after of [left, still]) {
      const kept = clusterRules(after);
      for (const [resource, verb, names] of [
        ['clusterroles', 'escalate', ['system:reader']],
        ['clusterroles', 'bind', ['system:reader']],
        ['roles', 'escalate', ['late']],
      ] as const)
        assert.equal(
          named(kept, verb)
            .filter((rule) => rule.resources.includes(resource))
            .map((rule) => rule.resourceNames),
          [names],
          `${verb} ${resource}`,
        );
      assert.equal(
        named(roleRules(after, 'kube-system'), 'bind').map((rule) => rule.resourceNames),
        [['extension-apiserver-authentication-reader']],
      );
    }
  }));

test('an object that left the payloads can still be kept and removed, until it is forgotten', () =>
  using(async (copy) => {
    const first = await rendered(copy);
    copy.remove('manifests/demo/30-web');
    const second = await rendered(copy, first);
    for (const [group, resource] of [
      ['apps', 'deployments'],
      ['', 'services'],
    ] as const) {
      assert.equal(verbs(clusterRules(second), group, resource), ['list', 'watch']);
      assert.equal(verbsOn(clusterRules(second), group, resource, 'web'), writing);
    }
    const third = await rendered(copy, second);
    assert.equal([...third], [...second], 'a further render changes nothing');
    const list = JSON.parse(Buffer.from(third.get(treeFile) ?? '').toString()) as { departed: unknown };
    assert.equal(list.departed, [{ id: '/Service/demo/web' }, { id: 'apps/Deployment/demo/web' }]);
    const forgotten = await rendered(copy, third, true);
    assert.equal(verbs(clusterRules(forgotten), 'apps', 'deployments'), []);
    assert.equal(verbsOn(clusterRules(forgotten), 'apps', 'deployments', 'web'), []);
    copy.write(
      'manifests/demo/30-web/back.yaml',
      'apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: demo}\n',
    );
    const back = await rendered(copy, third);
    const after = JSON.parse(Buffer.from(back.get(treeFile) ?? '').toString()) as { departed: unknown };
    assert.equal(after.departed, [{ id: 'apps/Deployment/demo/web' }]);
  }));

test('the executor needs neither DNS, nor a cluster address, nor a ready node', () =>
  using(async (copy) => {
    const deployment = object(await rendered(copy), 'deployment.apps_keelson-system_keelson-executor.yaml') as {
      spec?: { replicas?: number; template?: { spec?: JsonObject } };
    };
    const pod = deployment.spec?.template?.spec ?? {};
    assert.is(deployment.spec?.replicas, 2);
    assert.equal(
      [pod.hostNetwork, pod.dnsPolicy, pod.priorityClassName, pod.tolerations],
      [true, 'Default', 'system-cluster-critical', [{ operator: 'Exists' }]],
    );
    const [container] = pod.containers as unknown as { image: string; args: string[]; ports?: unknown }[];
    assert.match(container?.image ?? '', /^registry\.example\.com\/keelson\/keelson@sha256:1{64}$/);
    assert.ok(container?.args.includes('--api-server=192.0.2.10:6443'));
    assert.is(container?.ports, undefined);
  }));

test('the deletion guard can be left out, the rights of writers can not', () =>
  using(async (copy) => {
    const has = (tree: Tree, name: string): boolean =>
      [...tree.keys()].some((path) => path.endsWith(`___${name}.yaml`));
    const before = await rendered(copy);
    assert.ok(has(before, 'keelson-deletion-guard') && has(before, 'keelson-writers'));
    copy.write('cluster.yaml', `${copy.read('cluster.yaml')}  deletionGuard: false\n`);
    const after = await rendered(copy);
    assert.ok(!has(after, 'keelson-deletion-guard') && has(after, 'keelson-writers'));
  }));

test('the deletion guard knows the namespace of every spec', () =>
  using(async (copy) => {
    const chart = `{source: "https://charts.example.com/kube-ovn.tgz", digest: "sha256:${'a'.repeat(64)}"}`;
    copy.write(
      'network.yaml',
      `apiVersion: network.keelson.dev/v1alpha1
kind: KubeOVNInstallation
metadata: {name: main, namespace: ovn}
spec: {mode: full, version: 1.16.13, chart: ${chart}}
`,
    );
    const network: DomainRenderer = {
      domain: 'network',
      kinds: ['network.keelson.dev/KubeOVNInstallation'],
      render: async () => ({ releases: [], problems: [], warnings: [] }),
    };
    const outcome = await renderFolder(copy.folder, { domains: [network] });
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
    const { tree } = outcome.rendered;
    const [path = ''] = [...tree.keys()].filter((one) => /policy\..*___keelson-deletion-guard/.test(one));
    const { spec } = object(tree, path.replace('sync/10-system/', ''));
    assert.match(JSON.stringify(spec), 'oldObject.metadata.name in [\\"keelson-system\\", \\"ovn\\"]');
  }));

test.run();
