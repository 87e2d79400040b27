/** The test chart has the shape of the chart that it stands for: objects by mode, endpoints, hooks, guards. Real Helm. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { getAt, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { readTarGz } from '../../constructs/lib/tar.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { packageChart } from '../charts/build.ts';
import { type ChartVariant, chartVariants } from '../charts/variants.ts';
import { ensureTool } from '../tools/tools.ts';

const run = promisify(execFile);

interface Context {
  helm: string;
  dir: string;
  archives: Map<ChartVariant, string>;
}
type Mode = 'full' | 'controlPlaneOnly' | 'dataPlaneOnly';
const members = 'MASTER_NODES=10.0.0.1\\,10.0.0.2\\,10.0.0.3';
const external = ['externalOvnCentral.nbEndpoint=192.0.2.1', 'externalOvnCentral.sbEndpoint=fd00::2'];

const definitions = (
  'bgp-confs dnsnameresolvers evpn-confs ippools ips iptables-dnat-rules iptables-eips iptables-fip-rules ' +
  'iptables-snat-rules ovn-dnat-rules ovn-eips ovn-fips ovn-snat-rules provider-networks qos-policies security-groups ' +
  'subnets switch-lb-rules vips vlans vpc-dnses vpc-egress-gateways vpc-nat-gateways vpcs'
).split(' ');

/** Kind, names and the modes (Full, Central only, Node networking) that have them. */
const table: readonly (readonly [kind: string, names: string, modes: string])[] = [
  ['CustomResourceDefinition', definitions.map((name) => `${name}.kubeovn.io`).join(' '), 'FN'],
  ['ServiceAccount', 'ovn kube-ovn-cni kube-ovn-app', 'FN'],
  ['ServiceAccount', 'ovn-ovs', 'FCN'],
  ['ClusterRole', 'system:ovn system:kube-ovn-cni system:kube-ovn-app', 'FN'],
  ['ClusterRole', 'system:ovn-ovs', 'FCN'],
  ['Role', 'secret-reader-ovn-ipsec', 'FN'],
  ['ClusterRoleBinding', 'ovn kube-ovn-cni kube-ovn-app', 'FN'],
  ['ClusterRoleBinding', 'ovn-ovs', 'FCN'],
  ['RoleBinding', 'ovn kube-ovn-cni kube-ovn-app kube-ovn-cni-secret-reader', 'FN'],
  ['ConfigMap', 'ovn-vpc-nat-config ovn-vpc-nat-gw-config', 'FN'],
  ['Service', 'ovn-nb ovn-sb ovn-northd', 'FC'],
  ['Service', 'kube-ovn-controller kube-ovn-cni kube-ovn-pinger', 'FN'],
  ['Service', 'kube-ovn-monitor', 'F'],
  ['Deployment', 'ovn-central', 'FC'],
  ['Deployment', 'kube-ovn-controller', 'FN'],
  ['Deployment', 'kube-ovn-monitor', 'F'],
  ['DaemonSet', 'ovs-ovn kube-ovn-cni kube-ovn-pinger', 'FN'],
];
const letters: Readonly<Record<Mode, string>> = { full: 'F', controlPlaneOnly: 'C', dataPlaneOnly: 'N' };
const expected = (mode: Mode): string[] =>
  table.flatMap(([kind, names, modes]) =>
    modes.includes(letters[mode]) ? names.split(' ').map((name) => `${kind} ${name}`) : [],
  );

const at = (object: JsonObject | undefined, pointer: string): JsonValue | undefined =>
  object === undefined ? undefined : getAt(object, pointer);
const idOf = (object: JsonObject): string => `${object.kind} ${at(object, '/metadata/name')}`;
const isHook = (object: JsonObject): boolean => at(object, '/metadata/annotations/helm.sh~1hook') !== undefined;
const find = (objects: readonly JsonObject[], id: string): JsonObject | undefined =>
  objects.find((object) => idOf(object) === id);
const containerEnv = (object: JsonObject | undefined): Map<string, JsonValue | undefined> => {
  const list = at(object, '/spec/template/spec/containers/0/env');
  return new Map((Array.isArray(list) ? list.filter(isObject) : []).map((entry) => [String(entry.name), entry.value]));
};

async function helmTemplate(
  { helm, dir, archives }: Context,
  variant: ChartVariant,
  sets: readonly string[],
): Promise<string> {
  const options = sets.flatMap((value) => ['--set', value]);
  const argv = [
    'template',
    'network',
    archives.get(variant) ?? '',
    '--namespace',
    'kube-system',
    '--kube-version',
    '1.34.2',
  ];
  const home = { HELM_CACHE_HOME: dir, HELM_CONFIG_HOME: dir, HELM_DATA_HOME: dir, KUBECONFIG: join(dir, 'none') };
  const { stdout } = await run(helm, [...argv, ...options], {
    env: home,
    maxBuffer: 32 * 1024 * 1024,
    timeout: 30_000,
  });
  return stdout;
}
async function render(context: Context, variant: ChartVariant, ...sets: string[]): Promise<JsonObject[]> {
  const { documents, problems } = parseYaml(await helmTemplate(context, variant, sets), `${variant}.yaml`);
  assert.equal(problems, []);
  return documents.map(({ value }) => value).filter(isObject);
}
async function refused(context: Context, variant: ChartVariant, ...sets: string[]): Promise<string> {
  try {
    await helmTemplate(context, variant, sets);
  } catch (error) {
    return (error as { stderr: string }).stderr;
  }
  throw new Error(`helm rendered ${variant} with ${sets.join(' ')}`);
}

const test = suite<Context>('chart shape');

test.before(async (context) => {
  context.helm = await ensureTool('helm', { onProgress: (line) => console.error(line) });
  context.dir = await mkdtemp(join(tmpdir(), 'keelson-chart-'));
  context.archives = new Map();
  for (const variant of chartVariants) {
    const file = join(context.dir, `${variant}.tgz`);
    await writeFile(file, (await packageChart(variant)).bytes);
    context.archives.set(variant, file);
  }
});
test.after(async ({ dir }) => rm(dir, { recursive: true, force: true }));

test('packing is repeatable', async () => {
  for (const variant of ['new', 'old', 'nestedChart'] as const) {
    assert.is((await packageChart(variant)).digest, (await packageChart(variant)).digest);
  }
});

test('lint finds nothing wrong in either shape', async (context) => {
  for (const variant of ['new', 'old'] as const) {
    const { stdout } = await run(context.helm, ['lint', context.archives.get(variant) ?? '']);
    assert.match(stdout, /0 chart\(s\) failed/);
  }
});

const modes: readonly (readonly [Mode, readonly string[], number, number])[] = [
  ['full', [members], 56, 4],
  ['controlPlaneOnly', [members], 7, 0],
  ['dataPlaneOnly', external, 50, 4],
];
for (const [mode, sets, count, hooks] of modes) {
  test(`${mode} has the objects of its table, ${count} and ${hooks} hooks`, async (context) => {
    const objects = await render(context, 'new', `installMode=${mode}`, ...sets);
    const plain = objects.filter((object) => !isHook(object));
    assert.equal(plain.map(idOf).sort(), expected(mode).sort());
    assert.is(plain.length, count);
    assert.is(objects.length - plain.length, hooks);
    const cluster = /^(CustomResourceDefinition|ClusterRole|ClusterRoleBinding)$/;
    for (const object of objects) {
      const wanted = cluster.test(String(object.kind)) ? undefined : 'kube-system';
      assert.is(at(object, '/metadata/namespace'), wanted, idOf(object));
    }
  });
}

test('the older shape has one mode, whatever installMode says, and no newer key', async (context) => {
  const objects = await render(context, 'old', members, 'installMode=controlPlaneOnly');
  assert.equal(
    objects
      .filter((object) => !isHook(object))
      .map(idOf)
      .sort(),
    expected('full').sort(),
  );
  const { stdout } = await run(context.helm, ['show', 'values', context.archives.get('old') ?? '']);
  assert.not.match(stdout, /installMode|externalOvnCentral|OVN_CENTRAL_MODE|hcp|TLS_/);
  const env = containerEnv(find(objects, 'Deployment ovn-central'));
  assert.is([...env.keys()].indexOf('NODE_IPS'), 1);
  assert.is(at(find(objects, 'Service ovn-nb'), '/spec/type'), undefined);
});

test('members reach the central pods and their consumers in the given order', async (context) => {
  const objects = await render(context, 'new', 'MASTER_NODES=10.0.0.3\\,10.0.0.1\\,10.0.0.2');
  const central = find(objects, 'Deployment ovn-central');
  assert.is(at(central, '/spec/replicas'), 3);
  assert.is([...containerEnv(central).keys()].indexOf('NODE_IPS'), 4);
  assert.is(containerEnv(central).get('NODE_IPS'), '10.0.0.3,10.0.0.1,10.0.0.2');
  for (const id of ['Deployment kube-ovn-controller', 'DaemonSet ovs-ovn']) {
    assert.is(containerEnv(find(objects, id)).get('OVN_DB_IPS'), '10.0.0.3,10.0.0.1,10.0.0.2', id);
  }
  assert.equal(at(central, '/spec/strategy'), {
    type: 'RollingUpdate',
    rollingUpdate: { maxSurge: 0, maxUnavailable: 1 },
  });
  assert.is(at(find(objects, 'Service ovn-sb'), '/spec/selector/ovn-sb-leader'), 'true');
});

test('without members offline, everything says standalone', async (context) => {
  const objects = await render(context, 'new');
  assert.is(at(find(objects, 'Deployment ovn-central'), '/spec/replicas'), 1);
  assert.is(containerEnv(find(objects, 'Deployment ovn-central')).get('NODE_IPS'), '');
});

test('external endpoints are tcp even with TLS; hosted addresses are taken as they are', async (context) => {
  const given = await render(context, 'new', 'installMode=dataPlaneOnly', ...external);
  const controller = containerEnv(find(given, 'Deployment kube-ovn-controller'));
  assert.is(controller.get('OVN_NB_ADDR'), 'tcp:192.0.2.1:6641');
  assert.is(controller.get('OVN_SB_ADDR'), 'tcp:[fd00::2]:6642');
  assert.is(controller.get('KUBE_OVN_TLS_ROTATION_INTERVAL'), '0');
  assert.not(controller.has('OVN_DB_IPS'));
  const node = containerEnv(find(given, 'DaemonSet ovs-ovn'));
  assert.is(node.get('OVN_SB_ADDR'), 'tcp:[fd00::2]:6642');
  assert.not(node.has('OVN_NB_ADDR'));
  const hcp = ['nbAddress=ssl:a.example:6641', 'sbAddress=ssl:a.example:6642', 'enabled=true'].map(
    (set) => `ovn-central.hcp.${set}`,
  );
  const hosted = await render(context, 'new', 'installMode=dataPlaneOnly', ...hcp);
  assert.is(containerEnv(find(hosted, 'DaemonSet ovs-ovn')).get('OVN_SB_ADDR'), 'ssl:a.example:6642');
});

test('a standalone central has one replica, a kept claim and Services that name no leader', async (context) => {
  const objects = await render(context, 'new', 'OVN_CENTRAL_MODE=single', members);
  const claim = find(objects, 'PersistentVolumeClaim ovn-central-data');
  assert.is(at(claim, '/metadata/annotations/helm.sh~1resource-policy'), 'keep');
  assert.is(at(find(objects, 'Deployment ovn-central'), '/spec/strategy/type'), 'Recreate');
  assert.is(at(find(objects, 'Deployment ovn-central'), '/spec/replicas'), 1);
  assert.equal(at(find(objects, 'Service ovn-nb'), '/spec/selector'), { app: 'ovn-central' });
  const existing = await render(context, 'new', 'OVN_CENTRAL_MODE=single', 'ovn-central.storage.existingClaim=mine');
  assert.not(existing.some((object) => object.kind === 'PersistentVolumeClaim'));
});

test('a hosted central is a StatefulSet that deletes its claims', async (context) => {
  const objects = await render(context, 'new', 'installMode=controlPlaneOnly', 'ovn-central.hcp.enabled=true');
  const ids =
    'ServiceAccount ovn-central,Role ovn-central,RoleBinding ovn-central,Service ovn-central,StatefulSet ovn-central';
  for (const id of ids.split(',')) assert.is(at(find(objects, id), '/metadata/namespace'), 'hcp', id);
  const policy = at(find(objects, 'StatefulSet ovn-central'), '/spec/persistentVolumeClaimRetentionPolicy');
  assert.equal(policy, { whenDeleted: 'Delete', whenScaled: 'Delete' });
});

test('TLS material differs on every render, and data plane only refuses to render it', async (context) => {
  const secret = async (): Promise<JsonValue | undefined> =>
    at(find(await render(context, 'new', members, 'networking.ENABLE_SSL=true'), 'Secret kube-ovn-tls'), '/data/key');
  const first = await secret();
  assert.type(first, 'string');
  assert.is.not(first, await secret());
  const why = await refused(context, 'new', 'installMode=dataPlaneOnly', ...external, 'networking.ENABLE_SSL=true');
  assert.match(why, /ovn-tls-secret\.yaml/);
});

test('guards: endpoints, load balancer address, unknown words', async (context) => {
  assert.match(await refused(context, 'new', 'installMode=dataPlaneOnly'), /Endpoint is required/);
  assert.match(await refused(context, 'new', 'ovn-central.service.type=LoadBalancer'), /loadBalancerIP is required/);
  assert.match(await refused(context, 'new', 'installMode=some'), /installMode is "some"/);
  assert.match(await refused(context, 'old', 'networking.NET_STACK=ipv5'), /NET_STACK is "ipv5"/);
});

test('optional workloads, pull Secrets, dual stack, update strategy', async (context) => {
  const sets = [
    'func.ENABLE_IC=true',
    'HYBRID_DPDK=true',
    'networking.NET_STACK=dual_stack',
    'ovs-ovn.updateStrategy.type=OnDelete',
  ];
  const objects = await render(context, 'new', members, ...sets, 'global.registry.imagePullSecrets={one,two}');
  assert.is(objects.filter((object) => !isHook(object)).length, 58);
  for (const object of objects.filter(({ kind }) => kind === 'Service'))
    assert.is(at(object, '/spec/ipFamilyPolicy'), 'PreferDualStack');
  assert.equal(at(find(objects, 'ServiceAccount ovn'), '/imagePullSecrets'), [{ name: 'one' }, { name: 'two' }]);
  const node = find(objects, 'DaemonSet ovs-ovn');
  assert.equal(at(node, '/spec/updateStrategy'), { type: 'OnDelete' });
  assert.is(at(node, '/spec/template/metadata/annotations/chart-version'), 'kube-ovn-v1.16.13');
  assert.ok(find(objects, 'DaemonSet ovs-ovn-dpdk') && find(objects, 'Deployment ovn-ic-controller'));
});

test('definitions: scope and subresources', async (context) => {
  const objects = (await render(context, 'new', members)).filter(({ kind }) => kind === 'CustomResourceDefinition');
  const withoutStatus = objects.filter((object) => at(object, '/spec/versions/0/subresources/status') === undefined);
  const plural = (object: JsonObject): string => String(at(object, '/spec/names/plural'));
  assert.equal(withoutStatus.map(plural).sort(), ['bgp-confs', 'evpn-confs', 'ips', 'vips']);
  const namespaced = objects.filter((object) => at(object, '/spec/scope') === 'Namespaced');
  assert.equal(namespaced.map(plural), ['vpc-egress-gateways']);
  assert.ok(at(namespaced[0], '/spec/versions/0/subresources/scale'));
});

test('each variant has its defect and nothing less', async (context) => {
  const count = 60;
  const ids = async (variant: ChartVariant): Promise<string[]> => (await render(context, variant, members)).map(idOf);
  for (const variant of ['appVersionMismatch', 'missingAppVersion', 'otherName'] as const) {
    assert.is((await ids(variant)).length, count, variant);
  }
  assert.is((await packageChart('otherName')).name, 'kube-ovn-v2');
  assert.match(await refused(context, 'kubeVersionTooNew', members), />= 1\.99\.0-0/);
  const extra: readonly (readonly [ChartVariant, string])[] = [
    ['nestedChart', 'ConfigMap inner'],
    ['installHook', 'ConfigMap hooked'],
    ['duplicateObject', 'ConfigMap ovn-vpc-nat-config'],
    ['foreignNamespace', 'ConfigMap foreign'],
    ['unexpectedKind', 'MutatingWebhookConfiguration unexpected'],
    ['namelessObject', 'ConfigMap undefined'],
    ['secretWithData', 'Secret carried'],
    ['randomOutput', 'ConfigMap random'],
    ['oversizeObject', 'ConfigMap oversize'],
  ];
  const plain = await ids('new');
  for (const [variant, id] of extra) {
    const rest = await ids(variant);
    for (const each of plain) rest.splice(rest.indexOf(each), 1);
    assert.equal(rest, [id], variant);
  }
  // Helm drops an object with an unknown hook word and only mentions it on stderr: a renderer has to read that.
  assert.equal(await ids('unknownHook'), plain);
  const random = () => helmTemplate(context, 'randomOutput', [members]);
  assert.is.not(await random(), await random());
});

test('damaged and hostile archives are refused as a whole', async () => {
  const reasons = {
    pathTraversal: /leaves its folder/,
    absolutePath: /absolute path/,
    doubleEntry: /two entries of one name/,
    gzipBomb: /unpacks to more than/,
    truncated: /damaged or truncated/,
  };
  for (const [variant, reason] of Object.entries(reasons)) {
    const { bytes } = await packageChart(variant as ChartVariant);
    await readTarGz(bytes).then(
      () => assert.unreachable(variant),
      (error: Error) => assert.match(error.message, reason, variant),
    );
  }
});

test.run();
