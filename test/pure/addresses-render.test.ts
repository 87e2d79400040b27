import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readIndex } from '../../constructs/api/payload-codec.ts';
import type { Tree } from '../../constructs/api/tree.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import {
  classText,
  objectsIn,
  provisioner,
  publicClass,
  rendered,
  renderLedger,
  writeClasses,
  writeSettings,
} from './addresses-render-support.ts';
import { using } from './render-support.ts';

/** The release of the ledger, and its role. */

const system = 'sync/10-system';
const payload = 'payload/addresses';
const rbac = 'rbac.authorization.k8s.io';
const admission = 'admissionregistration.k8s.io';

// biome-ignore lint/suspicious/noExplicitAny: objects of the tree, as a person reads them
type Loose = any;

test('a class in Git brings definitions, role and release; without one there is none of them', () =>
  using(async (copy) => {
    const without = (await rendered(copy)).tree;
    assert.not.ok([...without.keys()].some((path) => /addresses|local\.sdn/.test(path)));
    writeClasses(copy, publicClass);
    const { tree, releases } = await rendered(copy);
    const names = [...tree.keys()];
    for (const path of [
      `${system}/customresourcedefinition.apiextensions.k8s.io___ipaddressclasses.local.sdn.cozystack.io.yaml`,
      `${system}/customresourcedefinition.apiextensions.k8s.io___ipaddresses.local.sdn.cozystack.io.yaml`,
      `${system}/customresourcedefinition.apiextensions.k8s.io___ipaddressclaims.local.sdn.cozystack.io.yaml`,
      `${system}/deployment.apps_keelson-system_keelson-addresses.yaml`,
      `${system}/serviceaccount_keelson-system_keelson-addresses.yaml`,
      'sync/30-specs/ipaddressclass.local.sdn.cozystack.io___public.yaml',
      'sync/20-releases/release.keelson.dev_keelson-system_addresses.yaml',
    ])
      assert.ok(tree.has(path), `${path} is not among ${names.join('\n')}`);
    const release = releases.find(({ name }) => name === 'addresses');
    assert.is(release?.index.content.release.domain, 'addresses');
    const spec = objectsIn(tree, 'sync/30-specs').get('ipaddressclass.local.sdn.cozystack.io___public.yaml') as Loose;
    assert.is(spec.metadata.annotations['kustomize.toolkit.fluxcd.io/prune'], 'disabled', 'couriers leave it');
    const again = (await rendered(copy)).tree;
    assert.equal([...again.keys()], names);
  }));

test('the phases of the release: access, then the role, then admission where it is asked for', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass);
    const index = (tree: Tree): Loose => {
      const read = readIndex(tree.get(`${payload}/index.json`) ?? new Uint8Array());
      if (!read.ok) throw new Error(JSON.stringify(read.problems));
      return read.value.content;
    };
    const plain = index((await rendered(copy)).tree);
    assert.equal(
      plain.phases.map(({ dir }: Loose) => dir),
      ['20-access', '30-controller'],
    );
    assert.equal(plain.phases[1].gates, [
      {
        type: 'Condition',
        scope: 'controller',
        target: {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          namespace: 'keelson-system',
          name: 'keelson-addresses',
          condition: 'Available',
        },
        softLimit: '10m',
      },
    ]);
    const namespace = plain.phases[0].objects.find(({ kind }: Loose) => kind === 'Namespace');
    assert.is(namespace.createOnly, true, 'one that is there is used as it is');
    assert.is(namespace.keep, true, 'holds of addresses are in it');
    writeSettings(copy, '{admission: {addressName: {enabled: true}}}');
    const more = index((await rendered(copy)).tree);
    assert.equal(
      more.phases.map(({ dir }: Loose) => dir),
      ['20-access', '30-controller', '50-admission'],
    );
  }));

const deploymentOf = (tree: Tree): Loose =>
  objectsIn(tree, system).get('deployment.apps_keelson-system_keelson-addresses.yaml');

test('the Deployment runs the pinned image with what cluster.yaml says', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass);
    const container = async (): Promise<Loose> =>
      deploymentOf((await rendered(copy)).tree).spec.template.spec.containers[0];
    const plain = await container();
    assert.match(plain.image, /@sha256:[0-9a-f]{64}$/);
    assert.ok(plain.resources.limits.memory);
    assert.equal(plain.args, [
      'executor',
      '--role=addresses',
      '--namespace=keelson-system',
      '--workers=core,driver',
      '--api-server=192.0.2.10:6443',
      '--metallb-namespace=metallb-system',
      '--placeholder-namespace=metallb-iad-system',
      '--forced-release=deleted',
    ]);
    writeSettings(
      copy,
      '{leaseNamespace: old, metallb: {namespace: lb, placeholderNamespace: holds, loadBalancerClass: metallb.io/lb, forcedRelease: always}}',
    );
    assert.equal((await container()).args.slice(3), [
      '--workers=core,driver',
      '--lease-namespace=old',
      '--api-server=192.0.2.10:6443',
      '--metallb-namespace=lb',
      '--placeholder-namespace=holds',
      '--lb-class=metallb.io/lb',
      '--forced-release=always',
    ]);
    writeSettings(copy, '{workers: [core]}');
    assert.equal((await container()).args.slice(3), ['--workers=core', '--api-server=192.0.2.10:6443']);
  }));

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const rulesOf = (object: JsonObject | undefined): Rule[] => (object?.rules ?? []) as unknown as Rule[];
const verbsOn = (rules: readonly Rule[], resource: string): string[] =>
  rules.flatMap(({ resources, verbs }) => (resources.includes(resource) ? verbs : [])).sort();

test('each worker brings its own rights: the core makes no address and sees no Service', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass, classText('office', ['198.51.100.0/28']));
    writeSettings(copy, '{workers: [core]}');
    const cluster = async (): Promise<Rule[]> =>
      rulesOf(objectsIn((await rendered(copy)).tree, system).get(`clusterrole.${rbac}___keelson-addresses.yaml`));
    const core = await cluster();
    assert.equal(verbsOn(core, 'ipaddresses'), ['delete', 'get', 'list', 'patch', 'watch']);
    assert.equal(verbsOn(core, 'services'), []);
    assert.not.ok([...objectsIn((await rendered(copy)).tree, payload).keys()].some((file) => /namespace_/.test(file)));
    writeSettings(copy, '{workers: [driver], leaseNamespace: old}');
    const driver = await cluster();
    assert.ok(verbsOn(driver, 'ipaddresses').includes('create'));
    assert.equal(verbsOn(driver, 'services'), ['get', 'list', 'patch', 'watch'], 'none is made or deleted everywhere');
    assert.equal(verbsOn(driver, 'ipaddressclaims'), ['get', 'list', 'watch']);
    const inPayload = objectsIn((await rendered(copy)).tree, payload);
    const role = (namespace: string): Rule[] =>
      rulesOf(inPayload.get(`20-access/role.${rbac}_${namespace}_keelson-addresses.yaml`));
    assert.equal(verbsOn(role('metallb-iad-system'), 'services'), ['create', 'delete']);
    assert.equal(
      role('metallb-system').flatMap(({ resourceNames }) => resourceNames ?? []),
      ['iad-office', 'iad-public'],
    );
    assert.equal(
      role('old').map(({ resourceNames }) => resourceNames),
      [undefined, ['e1633266.iad.cozystack.io']],
    );
    const own = objectsIn((await rendered(copy)).tree, system);
    assert.not.ok(own.has(`role.${rbac}_keelson-system_keelson-addresses.yaml`), 'its Leases are elsewhere');
    assert.ok(
      [...core, ...driver].every((rule) => ![...rule.apiGroups, ...rule.resources, ...rule.verbs].includes('*')),
    );
  }));

test('the executor may look at what its gate waits for, and at the ledger', () =>
  using(async (copy) => {
    const rules = async (): Promise<Rule[]> =>
      rulesOf(objectsIn((await rendered(copy)).tree, system).get(`clusterrole.${rbac}___keelson-executor.yaml`));
    assert.equal(verbsOn(await rules(), 'ipaddresses'), []);
    writeClasses(copy, publicClass);
    assert.equal(verbsOn(await rules(), 'ipaddresses'), ['list', 'watch']);
    const role = rulesOf(
      objectsIn((await rendered(copy)).tree, system).get(`role.${rbac}_keelson-system_keelson-executor.yaml`),
    );
    assert.equal(
      role.filter(({ resources }) => resources.includes('deployments')),
      [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'], resourceNames: ['keelson-addresses'] }],
    );
  }));

test('tenants edit claims; addresses and classes are edited by nobody of themselves', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass);
    const objects = objectsIn((await rendered(copy)).tree, `${payload}/20-access`);
    const into = (name: string): string[] => {
      const found = objects.get(`clusterrole.${rbac}___${name}.yaml`) as Loose;
      return Object.keys(found.metadata.labels)
        .filter((label) => label.includes('aggregate-to-'))
        .map((label) => label.replace(/.*aggregate-to-/, ''))
        .sort();
    };
    assert.equal(into('keelson-ipaddressclaim-editor'), ['admin', 'edit']);
    for (const kind of ['ipaddress', 'ipaddressclass']) assert.equal(into(`keelson-${kind}-editor`), []);
    for (const kind of ['ipaddressclaim', 'ipaddress', 'ipaddressclass'])
      assert.equal(into(`keelson-${kind}-viewer`), ['view']);
  }));

test('policies are rendered one by one, and only where they are asked for', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass);
    const policies = async (settings: string): Promise<string[]> => {
      writeSettings(copy, settings);
      return [...objectsIn((await rendered(copy)).tree, `${payload}/50-admission`).keys()].map((file) =>
        file.replace(/^.*___|\.yaml$/g, ''),
      );
    };
    assert.equal(await policies('{}'), []);
    assert.equal(await policies('{admission: {pins: {enabled: true}}}'), [
      'keelson-address-pins',
      'keelson-address-pins',
    ]);
    writeSettings(
      copy,
      '{admission: {addressName: {enabled: true, allowedUsers: ["a\\"b"], allowedGroups: [g]}, provisioner: {enabled: true}}}',
    );
    const objects = objectsIn((await rendered(copy)).tree, `${payload}/50-admission`);
    const names = objects.get(`validatingadmissionpolicy.${admission}___keelson-address-names.yaml`) as Loose;
    assert.is(names.spec.failurePolicy, 'Fail');
    assert.match(names.spec.variables[0].expression, '"a\\"b"', 'a name is a text, and no part of the rule');
    assert.ok(objects.has(`validatingadmissionpolicy.${admission}___keelson-address-provisioners.yaml`));
  }));

test('an older Kubernetes, whose API server knows no such policies, is refused', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass);
    copy.write('cluster.yaml', copy.read('cluster.yaml').replace('1.34.2', '1.29.9'));
    const outcome = await renderLedger(copy);
    assert.is(outcome.ok, false);
    if (!outcome.ok) assert.is(outcome.problems[0]?.path, 'spec.kubernetesVersion');
  }));

test('spec.addresses alone keeps the role; without it and without a class a published ledger is told to go', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass);
    const before = (await rendered(copy)).tree;
    copy.remove('addresses.yaml');
    const gone = await rendered(copy, before);
    assert.equal(
      gone.changes.map(({ reason }) => reason),
      ['LedgerLeavesGit'],
    );
    assert.is(deploymentOf(gone.tree), undefined);
    writeSettings(copy, '{}');
    const kept = await rendered(copy, before);
    assert.ok(deploymentOf(kept.tree));
    assert.equal(kept.changes, []);
    assert.ok(
      kept.tree.has(
        `${system}/customresourcedefinition.apiextensions.k8s.io___ipaddresses.local.sdn.cozystack.io.yaml`,
      ),
    );
  }));

test('with Argo CD Services keep what the driver writes on them', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass);
    const text = copy.read('cluster.yaml').replace('repository: .', 'repository: https://git.example.com/r.git');
    copy.write('cluster.yaml', text.replace('    branch:', '    courier: argo\n    branch:'));
    const { tree } = await rendered(copy);
    const settings = [...objectsIn(tree, 'courier/merge').values()][0] as Loose;
    const rule = settings.data['resource.customizations.ignoreDifferences.Service'];
    assert.match(rule, 'metallb.io~1loadBalancerIPs');
    assert.match(rule, 'metallb.drivers.local.sdn.cozystack.io~1pinned');
    const specs = objectsIn(tree, 'courier').get('application.argoproj.io_argocd_keelson-30-specs.yaml') as Loose;
    const kinds = specs.spec.ignoreDifferences.map(({ kind }: Loose) => kind);
    assert.ok(kinds.includes('IPAddressClass'));
    assert.not.ok(kinds.includes('IPAddressClaim'), 'none is ever in Git');
  }));

test('with Flux the health of the tree waits for the release of the ledger', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass);
    const text = copy.read('cluster.yaml').replace('repository: .', 'repository: https://git.example.com/r.git');
    copy.write('cluster.yaml', text.replace('    branch:', '    courier: flux\n    branch:'));
    const own = objectsIn((await rendered(copy)).tree, 'courier');
    const health = [...own.values()].find(({ metadata }) => (metadata as Loose).name === 'keelson-health') as Loose;
    const checks = health.spec.healthChecks.map(({ kind, name }: Loose) => `${kind} ${name}`);
    assert.ok(checks.includes('Release addresses'), checks.join());
    assert.not.ok(
      checks.some((check: string) => check.startsWith('IPAddress')),
      'a class tells nothing of itself',
    );
  }));

test('what the page on addresses shows is taken as it stands there', () =>
  using(async (copy) => {
    const page = readFileSync(new URL('../../docs/addresses.md', import.meta.url), 'utf8');
    const [, shown = ''] = /## In Git\n\n```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    const [classes = '', settings = ''] = shown.split('---\n');
    copy.write('addresses.yaml', classes);
    copy.write('cluster.yaml', copy.read('cluster.yaml') + settings.replace(/[\s\S]*spec:\n/, ''));
    const { args } = deploymentOf((await rendered(copy)).tree).spec.template.spec.containers[0];
    assert.ok(args.includes('--lease-namespace=cozy-address-controller'), args.join(' '));
    assert.ok(args.includes('--lb-class=metallb.io/lb'));
    const { tree } = await rendered(copy);
    assert.is(objectsIn(tree, `${payload}/50-admission`).size, 6);
  }));

test('ranges of a class that no driver of ours serves are nobody’s business here', () =>
  using(async (copy) => {
    const foreign = classText('cloud', ['anything']).replace(provisioner, 'cloud.example.com');
    writeClasses(copy, publicClass, foreign);
    const { tree } = await rendered(copy);
    const record = objectsIn(tree, `${payload}/20-access`).get(
      'configmap_metallb-iad-system_keelson-address-ranges.yaml',
    ) as Loose;
    assert.equal(record.data, { public: '203.0.113.0/29\n2001:db8::/126' });
  }));

test.run();
