// time limit: 300s
/** Payloads that must not be enforced: every reason is told at once, and nothing of them is written. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createNodes } from '../apiserver/extras.ts';
import type { RequestRecord } from '../faults/plan.ts';
import { until } from './kubeBed.ts';
import {
  bypass,
  changes,
  condition,
  controlNodes,
  controlPlane,
  type ExecutorInput,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
  system,
  type Workshop,
  workshop,
} from './network-bed.ts';
import { networkRelease } from './network-folder.ts';
import { checkpointWrites, ledgerWrites } from './network-log.ts';

interface Context {
  shop: Workshop;
  bed: NetworkBed;
}
const test = suite<Context>('network refusals');

test.before(async (context) => {
  context.shop = await workshop();
  context.bed = await networkBed(context.shop);
  await context.bed.deliver(await context.bed.render());
});
test.after(async ({ shop, bed }) => {
  await bed.close();
  await shop.close();
});

/** Undoes what a test did to the cluster, also when it fails. */
async function during(prepare: () => Promise<unknown>, undo: () => Promise<unknown>, work: () => Promise<void>) {
  await prepare();
  try {
    await work();
  } finally {
    await undo();
  }
}

/** Runs an executor until it has refused what was delivered; answers everything that it had against it. */
async function refusal(bed: NetworkBed, reason: string, input: ExecutorInput = bypass): Promise<string> {
  const executor = await bed.executor(input);
  // What an earlier executor said still stands in the status: the report of this one says that it has looked.
  const reported = ({ name, status }: RequestRecord): boolean =>
    name?.startsWith('keelson-report-') === true && (status === 200 || status === 201);
  const release = await bed.until(
    paths.release,
    `it to be refused for ${reason}`,
    (object) =>
      executor.plan.log.some(reported) &&
      condition(object, 'Accepted')?.status === 'False' &&
      object.status.failures.some((failure: Loose) => failure.reason === reason),
  );
  await executor.stop();
  const { log } = executor.plan;
  assert.equal(payloadMutations(log), []);
  assert.equal(checkpointWrites(log), []);
  assert.is(ledgerWrites(log).size, 0);
  assert.equal(
    log.filter(({ name }) => name?.startsWith('keelson-installation-')),
    [],
  );
  assert.is(condition(release, 'Ready')?.status === 'True', false);
  assert.is((await bed.installation()).status.applyCheckpoint, undefined);
  const report = `keelson-report-${release.spec.payload.digest.slice('sha256:'.length, 'sha256:'.length + 12)}`;
  return (await bed.get(`/api/v1/namespaces/${system}/configmaps/${report}`)).data['problems.txt'];
}

test('X3: four nodes for three replicas are refused at render, both numbers named', async ({ bed }) => {
  const inventory = await bed.inventory();
  const [first] = inventory.spec.nodes;
  if (first === undefined) throw new Error('no node');
  const fourth = { ...first, name: 'n4', uid: '00000000-0000-4000-8000-000000000004', internalIPs: ['10.0.0.4'] };
  const more = { ...inventory, spec: { ...inventory.spec, nodes: [...inventory.spec.nodes, fourth] } };
  const outcome = await bed.tryRender({ inventory: more });
  assert.not(outcome.ok);
  const problems = outcome.ok ? [] : outcome.problems;
  assert.equal(
    problems.map(({ reason }) => reason),
    ['CentralNodeCount'],
  );
  assert.match(problems[0]?.message ?? '', /^4 nodes match .*asks for 3/);
});

const nodesPath = '/api/v1/nodes';
const [, second, , fourth] = controlNodes(4).map((node) => ({ ...node, labels: controlPlane }));
const make = async (bed: NetworkBed, path: string, body: object): Promise<Loose> =>
  (await bed.server.admin.expect('POST', path, { body })).body;
const remove = (bed: NetworkBed, ...paths: string[]) =>
  Promise.all(paths.map((path) => bed.server.admin.request('DELETE', path)));
const lineOf = (told: string, text: string): string =>
  told.split('\n').find((one) => one.includes(text)) ?? `nothing of ${text} in\n${told}`;

test('X3: a node that got the label after the render is refused at acceptance, both numbers named', async ({ bed }) => {
  await during(
    () => createNodes(bed.server.admin, fourth === undefined ? [] : [fourth]),
    () => remove(bed, `${nodesPath}/n4`),
    async () => assert.match(await refusal(bed, 'InventoryStale'), /4 nodes .* rendered for 3.* n4 /),
  );
});

test('X3: a node that was replaced by another of its name is refused', async ({ bed }) => {
  await remove(bed, `${nodesPath}/n2`);
  await createNodes(bed.server.admin, second === undefined ? [] : [second]);
  const told = await refusal(bed, 'InventoryStale');
  assert.match(told, /n2/);
  assert.not.match(told, / more/, 'it is told twice');
  await bed.deliver(await bed.render());
});

/** Waits until the API server judges the executor by the rules that were just written. */
async function untilDenied(bed: NetworkBed, resourceAttributes: object): Promise<void> {
  const spec = { user: `system:serviceaccount:${system}:keelson-executor`, resourceAttributes };
  await until('the rights to be gone', async () => {
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
    const answer = await make(bed, '/apis/authorization.k8s.io/v1/subjectaccessreviews', review);
    return answer.status.allowed === false;
  });
}

test('D15: every right that is missing is told at once', async ({ bed }) => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const paths = ['clusterroles', 'namespaces/kube-system/roles'].map((place) => `${rbac}/${place}/keelson-executor`);
  const denied = ['daemonsets', 'services'];
  const fewer = (rules: Loose[]): Loose[] =>
    rules
      .map((rule: Loose) => ({ ...rule, resources: rule.resources.filter((name: string) => !denied.includes(name)) }))
      .filter((rule: Loose) => rule.resources.length > 0 && !rule.verbs.includes('escalate'));
  const roles: Loose[] = await Promise.all(paths.map((path) => bed.get(path)));
  const give = async (change: (rules: Loose[]) => Loose[]): Promise<void> => {
    for (const { apiVersion, kind, metadata, rules } of roles) {
      const { name, namespace, labels } = metadata;
      const role = { apiVersion, kind, metadata: { name, labels, ...(namespace === undefined ? {} : { namespace }) } };
      await bed.apply({ ...role, rules: change(rules) }, 'keelson-deliver');
    }
  };
  await during(
    async () => {
      await give(fewer);
      for (const verb of ['list', 'patch'])
        await untilDenied(bed, { verb, resource: 'services', namespace: 'kube-system', name: 'ovn-nb' });
    },
    () => give((rules) => rules),
    async () => {
      const told = await refusal(bed, 'AccessMissing');
      for (const verb of ['get', 'list', 'create', 'patch'])
        for (const what of ['services in kube-system', 'daemonsets.apps in kube-system'])
          assert.match(told, new RegExp(`may not ${verb} ${what}`), `${verb} ${what}`);
      for (const name of ['system:ovn', 'system:ovn-ovs', 'system:kube-ovn-cni', 'system:kube-ovn-app'])
        assert.match(
          lineOf(told, `ClusterRole.rbac.authorization.k8s.io ${name}:`),
          /attempting to grant RBAC permissions/,
        );
    },
  );
});

test('D7: an object that the server refuses, the last of the last phase, keeps everything from being written', async ({
  bed,
  shop,
}) => {
  const chart = await shop.edited('invalid', (files) => {
    files.set(
      'templates/zz-last.yaml',
      `apiVersion: apps/v1
kind: Deployment
metadata: {name: zz-last, namespace: "{{ .Values.namespace }}"}
spec:
  selector: {matchLabels: {app: one}}
  template: {metadata: {labels: {app: other}}, spec: {containers: [{name: main, image: "docker.io/kubeovn/kube-ovn:v1.16.13"}]}}
`,
    );
  });
  const rendered = await bed.render({ chart });
  assert.is(networkRelease(rendered).index.content.phases.at(-1)?.objects.at(-1)?.name, 'zz-last');
  await during(
    () => bed.deliver(rendered),
    async () => bed.deliver(await bed.render()),
    async () =>
      assert.match(
        lineOf(await refusal(bed, 'ObjectInvalid'), 'kube-system/zz-last'),
        /spec\.template\.metadata\.labels/,
      ),
  );
});

test('D6, D8: what exists is not taken over: another controller, another manager, or nobody we know', async ({
  bed,
}) => {
  const core = '/api/v1/namespaces/kube-system';
  const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  const owner = await make(bed, `${core}/configmaps`, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'other-owner' },
  });
  const { uid } = owner.metadata;
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'other-owner', uid, controller: true }];
  await during(
    async () => {
      await make(bed, `${core}/services`, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'kube-ovn-pinger', ownerReferences },
        spec: { ports: [{ port: 80 }] },
      });
      await make(bed, roles, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: 'system:kube-ovn-app', ownerReferences },
      });
      await make(bed, `${core}/serviceaccounts`, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'kube-ovn-cni' },
      });
    },
    () =>
      remove(
        bed,
        `${core}/configmaps/other-owner`,
        `${core}/services/kube-ovn-pinger`,
        `${core}/serviceaccounts/kube-ovn-cni`,
        `${roles}/system:kube-ovn-app`,
      ),
    async () => {
      const told = await refusal(bed, 'OwnedByAnother');
      assert.match(lineOf(told, 'Service kube-system/kube-ovn-pinger'), /ConfigMap other-owner.*\[OwnedByAnother\]/);
      assert.match(lineOf(told, 'k8s.io system:kube-ovn-app'), /ConfigMap other-owner.*\[OwnedByAnother\]/);
      assert.match(
        lineOf(told, 'ServiceAccount kube-system/kube-ovn-cni'),
        /exists and is not ours.*\[AlreadyExists\]/,
      );
    },
  );
});

test('X5: a foreign manager that holds replicas of ovn-central is named with the field, and not overruled', async ({
  bed,
}) => {
  const labels = { app: 'ovn-central' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'example.com/main' }] } };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'ovn-central', namespace: 'kube-system' },
    spec: { replicas: 5, selector: { matchLabels: labels }, template },
  };
  await during(
    () => bed.apply(deployment, 'other-tool'),
    () => remove(bed, paths.central),
    async () => {
      const told = await refusal(bed, 'FieldConflict');
      assert.match(
        lineOf(told, 'kube-system/ovn-central'),
        /other-tool \(Apply\) holds \.spec\.replicas \[FieldConflict\]/,
      );
      const live = await bed.get(paths.central);
      assert.is(live.spec.replicas, 5);
      assert.equal(
        live.metadata.managedFields.map((entry: Loose) => entry.manager),
        ['other-tool'],
      );
    },
  );
});

test('X6: an adoption that finds nothing to adopt writes nothing, and names every object', async ({ bed }) => {
  const adoption = { enabled: true, selector: { matchLabels: { app: 'kube-ovn' } } };
  await during(
    async () => bed.deliver(await bed.render({ spec: { adoption } })),
    async () => bed.deliver(await bed.render()),
    async () => {
      const told = await refusal(bed, 'AdoptionRefused');
      assert.match(lineOf(told, 'kube-system/ovn-central'), /it does not exist.*\[AdoptionRefused\]/);
      assert.ok(told.split('\n').filter((line) => line.includes('AdoptionRefused')).length > 20);
    },
  );
});

test('X24: an executor that only plans takes no operation Lease, fetches nothing, writes a plan and says so', async ({
  bed,
  shop,
}) => {
  const requests = shop.shelf.requests();
  const executor = await bed.executor({ ...bypass, planOnly: true });
  const planned = (object: Loose): boolean => condition(object, 'Ready')?.reason === 'PlanOnly';
  const release = await bed.until(paths.release, 'the release to be planned', planned);
  const installation = await bed.until(paths.installation, 'the installation to be told of it', planned);
  assert.is(condition(release, 'Ready').status, 'False');
  assert.is(condition(installation, 'Ready').status, 'False');
  assert.is(installation.status.phase, 'Planned');
  assert.is(installation.status.applyCheckpoint, undefined);
  assert.is(installation.status.observedVersion, undefined);

  assert.is(shop.shelf.requests(), requests);
  const plan = JSON.parse((await bed.get(paths.plan)).data['plan.json']);
  const { index } = networkRelease(await bed.render());
  assert.is(plan.payload, index.digest);
  assert.is(plan.changeClass, 'additive');
  assert.equal(
    plan.phases.map((p: Loose) => p.name),
    index.content.phases.map(({ name }) => name),
  );
  const objects = plan.phases.flatMap((p: Loose) => p.objects);
  assert.is(objects.length, index.content.phases.flatMap((p) => p.objects).length);
  assert.ok(objects.every((o: Loose) => o.action === 'created'));
  assert.ok(objects.some((o: Loose) => o.id === 'apps/Deployment/kube-system/ovn-central'));
  await executor.stop();

  const written = changes(executor.plan.log).map(({ verb, resource, name, subresource }) =>
    [verb, resource, subresource ?? '', resource === 'configmaps' ? name : ''].join(' ').trim(),
  );
  assert.equal([...new Set(written)].sort(), [
    'apply configmaps  keelson-plan-network-net',
    'create events',
    'patch kubeovninstallations status',
    'patch releases status',
  ]);
  const leases = await bed.get(`/apis/coordination.k8s.io/v1/namespaces/${system}/leases`);
  assert.equal(
    leases.items.map((lease: Loose) => lease.metadata.name),
    ['keelson-executor'],
  );
});

const hcp = {
  enabled: true,
  role: 'dataPlane',
  peerNamespace: 'hosted',
  tlsSecretRef: { name: 'peer-tls' },
  northbound: 'ssl:192.0.2.1:6641',
  southbound: 'ssl:192.0.2.2:6642',
} as const;

test('X20: endpoints behind TLS render as ssl: in every variable, and no object knows the name of the chart for the keys', async ({
  bed,
}) => {
  const release = networkRelease(await bed.render({ spec: { mode: 'nodeNetworking', hcp } }));
  const text = JSON.stringify([...release.objects.values()]);
  const addresses = [...text.matchAll(/\{"name":"(OVN_[NS]B_ADDR[^"]*)","value":"([^"]*)"\}/g)];
  assert.ok(addresses.length > 1, `${addresses.length} variables with an address`);
  for (const [, name, value] of addresses) assert.match(value ?? '', /^ssl:192\.0\.2\.[12]:664[12]$/, name);
  assert.not.match(text, /tcp:192\.0\.2/);
  assert.not.match(text, /"secretName":"kube-ovn-tls"|"resourceNames":\[[^\]]*"kube-ovn-tls"/);
  assert.match(text, /"secretName":"peer-tls"/);
  assert.match(text, /"resourceNames":\[[^\]]*"peer-tls"/);
  assert.not([...release.objects.values()].some((object) => object.kind === 'Secret'));
  assert.equal(release.index.content.requires, [
    { kind: 'Secret', namespace: 'kube-system', name: 'peer-tls', keys: ['cacert', 'cert', 'key'] },
  ]);
});

test('Q2: a hosted half is not enforced without a provider; an installation that wrote nothing is let go once its deletion is confirmed', async ({
  bed,
}) => {
  const { admin } = bed.server;
  const rendered = await bed.render({ spec: { mode: 'nodeNetworking', hcp } });
  await bed.deliver(rendered, ['10-system', '20-releases']);
  const executor = await bed.executor(bypass);
  const before = await bed.until(paths.installation, 'the finalizer', (o) => o.metadata.finalizers !== undefined);
  const denied = await admin.request('DELETE', paths.installation);
  assert.is(denied.status, 403);
  assert.match(denied.body.message, new RegExp(`keelson\\.dev/confirm-delete=${before.metadata.uid}`));
  await bed.patch(paths.installation, {
    metadata: { annotations: { 'keelson.dev/confirm-delete': before.metadata.uid } },
  });
  await admin.expect('DELETE', paths.installation);
  await bed.until(
    '/apis/network.keelson.dev/v1alpha1/kubeovninstallations',
    'the installation to be gone',
    ({ items }) => items.length === 0,
  );
  await bed.deliver(rendered, ['30-specs']);
  const release = await bed.until(paths.release, 'it to be refused', (object) =>
    object.status.failures?.some((failure: Loose) => failure.reason === 'PeerProviderMissing'),
  );
  const told = release.status.failures.map((failure: Loose) => `${failure.reason} ${failure.message}`).sort();
  assert.is(told.length, 2);
  assert.match(told[0], /^PeerProviderMissing .*spec\.hcp/);
  assert.match(told[1], /^RequirementMissing .*peer-tls/);
  assert.equal(payloadMutations(executor.plan.log), []);
  await executor.stop();
});

test.run();
