import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Invocation } from '../../bin/invocation.ts';
import { finishUninstall } from '../../bin/uninstall/carryout.ts';
import { standsFor } from '../../bin/uninstall/git.ts';
import type { LedgerEntry } from '../../constructs/api/ledger.ts';
import {
  approvalOf,
  formatUninstall,
  parseUninstall,
  type UninstallMode,
  type UninstallPlan,
  type UninstallRecord,
  uninstallPlan,
} from '../../constructs/api/uninstall.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { cutDown, marksLeft, marksOf } from '../../executor/apply/let-go.ts';
import { createClient, type KubeClient } from '../../executor/kube/client.ts';
import type { ManagedFieldsEntry } from '../../executor/kube/types.ts';
import { networkDomain } from '../../executor/network/domain.ts';
import { isApproved } from '../../executor/release/uninstall.ts';
import { digest, sha } from './executor-support.ts';
import { discoveryAnswer, scriptedTransport, statusOf } from './fakeTransport.ts';

const uidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

const ledgerOf = (ids: readonly string[], more: Partial<LedgerEntry> = {}): Map<string, LedgerEntry> =>
  new Map(
    ids.map((id, n) => [
      id,
      { id, uid: uidOf(n), state: 'applied', sha256: sha('a'), phase: 'one', payload: digest('1'), ...more },
    ]),
  );

const planOf = (release: string, ids: readonly string[], mode: UninstallMode, more: Partial<LedgerEntry> = {}) =>
  uninstallPlan({ release, releaseUID: 'release-uid', mode, ledger: ledgerOf(ids, more) });

const stepOf = (plan: UninstallPlan, id: string): number =>
  plan.steps.findIndex(({ objects }) => objects.some((object) => object.id === id));
const actionsOf = (plan: UninstallPlan): Record<string, string> =>
  Object.fromEntries(plan.steps.flatMap(({ objects }) => objects.map(({ id, action }) => [id, action])));

const network = [
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration//kube-ovn-webhook',
  'apps/DaemonSet/kube-system/kube-ovn-pinger',
  'apps/Deployment/kube-system/kube-ovn-monitor',
  'apps/Deployment/kube-system/kube-ovn-controller',
  'apps/DaemonSet/kube-system/kube-ovn-cni',
  'apps/DaemonSet/kube-system/ovs-ovn',
  'apps/Deployment/kube-system/ovn-central',
  '/Service/kube-system/ovn-nb',
  '/ConfigMap/kube-system/ovn-vpc-nat-config',
  '/ServiceAccount/kube-system/ovn',
  'rbac.authorization.k8s.io/ClusterRole//system:ovn',
  'apiextensions.k8s.io/CustomResourceDefinition//subnets.kubeovn.io',
  '/PersistentVolumeClaim/kube-system/ovn-central-data',
];

test('a network goes as Kube-OVN takes itself away: webhooks, tests, controllers, pods, databases, rights, definitions', () => {
  const plan = planOf('network-main', network, 'delete');
  const step = (name: string): number => {
    const id = network.find((one) => one.endsWith(`/${name}`));
    assert.ok(id);
    return stepOf(plan, id);
  };
  const order = [
    ['kube-ovn-webhook'],
    ['kube-ovn-pinger'],
    ['kube-ovn-monitor', 'kube-ovn-controller'],
    ['kube-ovn-cni'],
    ['ovs-ovn', 'ovn-central', 'ovn-nb'],
    ['ovn-vpc-nat-config'],
    ['ovn', 'system:ovn'],
    ['subnets.kubeovn.io'],
    ['ovn-central-data'],
  ];
  assert.equal(
    order.map((names) => [...new Set(names.map(step))].length),
    order.map(() => 1),
    'what stands together goes together',
  );
  const steps = order.map(([first = '']) => step(first));
  assert.equal(
    steps,
    [...steps].sort((a, b) => a - b),
  );
  assert.is(new Set(steps).size, order.length);
  // Elsewhere a Deployment of that name is a Deployment like any other.
  const plain = planOf('manifests-x', ['apps/Deployment/a/kube-ovn-cni', 'apps/Deployment/a/web'], 'delete');
  assert.is(plain.steps.length, 1);
});

test('data, namespaces, definitions and what is to be kept are never deleted; what never became ours is not touched', () => {
  const ids = [
    '/PersistentVolumeClaim/a/data',
    '/PersistentVolume//data',
    '/Namespace//a',
    'apiextensions.k8s.io/CustomResourceDefinition//things.example.com',
    '/ConfigMap/a/settings',
    'example.com/Thing/a/one',
  ];
  assert.equal(actionsOf(planOf('manifests-x', ids, 'delete')), {
    '/PersistentVolumeClaim/a/data': 'letGo',
    '/PersistentVolume//data': 'letGo',
    '/Namespace//a': 'letGo',
    'apiextensions.k8s.io/CustomResourceDefinition//things.example.com': 'letGo',
    '/ConfigMap/a/settings': 'delete',
    'example.com/Thing/a/one': 'delete',
  });
  assert.equal([...new Set(Object.values(actionsOf(planOf('manifests-x', ids, 'orphan'))))], ['letGo']);
  assert.equal(
    Object.values(actionsOf(planOf('manifests-x', ids, 'delete', { keep: true }))).includes('delete'),
    false,
  );
  for (const state of ['unmanaged', 'adopting'] as const)
    assert.equal([...new Set(Object.values(actionsOf(planOf('manifests-x', ids, 'delete', { state }))))], ['forget']);
  // A custom resource goes while its controller still runs, the Namespace after everything in it.
  const plan = planOf('manifests-x', [...ids, 'apps/Deployment/a/operator'], 'delete');
  assert.ok(stepOf(plan, 'example.com/Thing/a/one') < stepOf(plan, 'apps/Deployment/a/operator'));
  assert.is(plan.steps.at(-1)?.name, 'data');
});

test('the digest is of one release, one mode, and these very objects', () => {
  const ids = ['/ConfigMap/a/one', '/ConfigMap/a/two'];
  const base = planOf('manifests-x', ids, 'orphan').digest;
  assert.is(planOf('manifests-x', [...ids], 'orphan').digest, base);
  const others = [
    planOf('manifests-y', ids, 'orphan').digest,
    planOf('manifests-x', ids, 'delete').digest,
    planOf('manifests-x', ids.slice(1), 'orphan').digest,
    planOf('manifests-x', ids.toReversed(), 'orphan').digest,
    uninstallPlan({ release: 'manifests-x', releaseUID: 'other', mode: 'orphan', ledger: ledgerOf(ids) }).digest,
  ];
  assert.is(new Set([base, ...others]).size, others.length + 1);
  const request = { mode: 'delete', digest: base } as const;
  assert.equal(parseUninstall(formatUninstall(request)), request);
  for (const text of ['', base, `wipe ${base}`, 'delete', 'delete sha256:1', `delete ${base} now`])
    assert.is(parseUninstall(text), undefined, text);
});

test('a record approves these very objects of this very Release, once', () => {
  const ids = ['/ConfigMap/a/one', '/ConfigMap/a/two'];
  const plan = planOf('manifests-x', ids, 'delete');
  const objects = plan.steps.flatMap((step) => step.objects);
  const target = { request: { mode: 'delete', digest: plan.digest }, releaseUID: 'release-uid' } as const;
  const record: UninstallRecord = {
    ...target.request,
    releaseUID: target.releaseUID,
    state: 'running',
    total: 2,
    definitions: [],
    approved: objects.map(approvalOf),
  };
  assert.ok(isApproved(record, target, plan));
  assert.ok(isApproved(record, target, planOf('manifests-x', ids.slice(0, 1), 'delete')), 'what is left of it');
  for (const [why, other] of [
    ['one more', planOf('manifests-x', [...ids, '/ConfigMap/a/new'], 'delete')],
    ['created anew', planOf('manifests-x', ids, 'delete', { uid: uidOf(9) })],
    ['another action', planOf('manifests-x', ids, 'delete', { keep: true })],
  ] as const)
    assert.not(isApproved(record, target, other), why);
  assert.not(isApproved(record, { ...target, releaseUID: 'another' }, plan), 'another Release of that name');
  assert.not(isApproved({ ...record, state: 'done' }, target, plan), 'it was done, and is there again');
  assert.ok(isApproved({ ...record, state: 'done' }, target, planOf('manifests-x', [], 'delete')));
});

/** A client of a server with these installations, which refuses Leases; and what it was asked. */
function clusterWith(namespaces: readonly string[]) {
  const group = '/apis/network.keelson.dev/v1alpha1';
  const resource = (name: string, kind: string) => ({ name, kind, namespaced: true, verbs: ['get', 'list'] });
  const object = (namespace: string) => ({ metadata: { name: 'main', namespace, uid: `uid-${namespace}` } });
  const gone = new Set<string>();
  const { transport, requests } = scriptedTransport(({ method, path }) => {
    if (path === group)
      return {
        status: 200,
        body: { kind: 'APIResourceList', resources: [resource('kubeovninstallations', 'KubeOVNInstallation')] },
      };
    if (path === '/apis/keelson.dev/v1alpha1')
      return { status: 200, body: { kind: 'APIResourceList', resources: [resource('releases', 'Release')] } };
    const here = namespaces.filter((one) => !gone.has(one));
    if (path === `${group}/kubeovninstallations`)
      return { status: 200, body: { kind: 'List', metadata: { resourceVersion: '1' }, items: here.map(object) } };
    const namespace = here.find((one) => path === `${group}/namespaces/${one}/kubeovninstallations/main`);
    if (namespace !== undefined) {
      if (method === 'DELETE') gone.add(namespace);
      return { status: 200, body: { apiVersion: 'v1', kind: 'KubeOVNInstallation', ...object(namespace) } };
    }
    if (path.endsWith('/configmaps')) return { status: 200, body: { kind: 'List', metadata: {}, items: [] } };
    if (path.includes('/leases')) return statusOf(403, 'Forbidden', 'no Leases here');
    return discoveryAnswer(path) ?? statusOf(404, 'NotFound', 'not found', { kind: path.split('/').at(-2) });
  });
  const client = createClient({ transport, clock: systemClock, random: () => 0 });
  return { client, requests };
}

const signal = AbortSignal.timeout(60_000);
const target = { release: 'network-main', namespace: 'keelson-system' };

test('the right to uninstall a network is that of its installation, in whatever namespace it is', async () => {
  const domain = networkDomain({ identity: 'test', leaseLimitMs: 1 });
  const ask = (client: KubeClient) => domain.guardRemoval?.(target, { client, clock: systemClock, signal });
  const reasonOf = async (namespaces: readonly string[]): Promise<string | undefined> => {
    const outcome = await ask(clusterWith(namespaces).client);
    return outcome === undefined || outcome.granted ? undefined : outcome.problem.reason;
  };
  assert.is(await reasonOf(['ovn']), 'LeaseUnavailable', 'no Leases, no right');
  assert.is(await reasonOf(['kube-system']), 'LeaseUnavailable');
  assert.is(await reasonOf(['kube-system', 'ovn']), 'InstallationTwice');
  assert.is(await reasonOf([]), undefined, 'nobody can hold Leases of an installation that is nowhere');
});

test('the command removes the installation where it is, and asks when there is more than one', async () => {
  const finish = async (namespaces: readonly string[]): Promise<string[]> => {
    const { client, requests } = clusterWith(namespaces);
    const invocation = { signal, clock: systemClock, err: () => undefined } as unknown as Invocation;
    await finishUninstall({ invocation, client, target, limitMs: 10_000 }, {});
    return requests.filter(({ method }) => method === 'DELETE').map(({ path }) => path);
  };
  assert.equal(await finish(['ovn']), ['/apis/network.keelson.dev/v1alpha1/namespaces/ovn/kubeovninstallations/main']);
  const told = await finish(['kube-system', 'ovn']).catch((error: Error) => error.message);
  assert.match(String(told), /kube-system, ovn.*InstallationTwice/s);
});

test('what would bring a release back is its Release, and its installation in whatever namespace', () => {
  const ids = [
    'keelson.dev/Release/keelson-system/network-main',
    'network.keelson.dev/KubeOVNInstallation/ovn/main',
    'network.keelson.dev/KubeOVNInstallation/kube-system/main',
    'keelson.dev/Release/elsewhere/network-main',
    'keelson.dev/Release/keelson-system/network-other',
    'network.keelson.dev/KubeOVNInstallation/ovn/other',
    '/ConfigMap/ovn/main',
  ];
  assert.equal(
    ids.filter((id) => standsFor(id, 'network-main', 'keelson-system')),
    ids.slice(0, 3),
  );
});

const ours: JsonObject = {
  'f:metadata': {
    'f:labels': { 'f:app': {}, 'f:app.kubernetes.io/managed-by': {}, 'f:keelson.dev/release': {} },
    'f:annotations': { 'f:keelson.dev/id': {}, 'f:helm.sh/resource-policy': {} },
    'f:ownerReferences': { 'k:{"uid":"u"}': {} },
  },
  'f:spec': { 'f:replicas': {} },
};

test('letting go takes marks and owner, and never a value', () => {
  assert.equal(marksOf(ours, true), {
    'f:metadata': {
      'f:labels': { 'f:app.kubernetes.io/managed-by': {}, 'f:keelson.dev/release': {} },
      'f:annotations': { 'f:keelson.dev/id': {} },
      'f:ownerReferences': { 'k:{"uid":"u"}': {} },
    },
  });
  const entry = (manager: string, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry => ({
    manager,
    operation: 'Apply',
    fieldsV1: ours,
    ...more,
  });
  const others = [
    entry('kubectl'),
    entry('keelson', { operation: 'Update' }),
    entry('keelson', { subresource: 'status' }),
  ];
  const cut = cutDown([entry('keelson'), ...others]);
  assert.equal(cut.slice(1), others);
  assert.equal(Object.keys(cut[0]?.fieldsV1 ?? {}), ['f:metadata']);
  assert.equal(cutDown(cut), cut, 'a second time changes nothing');
  assert.equal(cutDown([entry('keelson', { fieldsV1: { 'f:spec': {} } })]), [], 'an entry without marks goes');
  const left = marksLeft({
    labels: { app: 'x', 'app.kubernetes.io/managed-by': 'Helm' },
    annotations: { 'keelson.dev/hold': 'mine', 'keelson.dev/id': 'x' },
  });
  assert.equal(left, ['keelson.dev/id'], 'a hold is a person’s, and so is what others manage');
});

test.run();
