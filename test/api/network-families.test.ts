// time limit: 180s
/**
 * A network of both address families on a real API server that hands out both, and a node of it that is taken away: real
 * controllers, pods that kwok plays, sidecars that answer as a test says.
 */
import * as assert from 'uvu/assert';
import { main } from '../../bin/program.ts';
import { networkProbe } from '../../constructs/api/constants.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { DrainReport } from '../../executor/page/evidence.ts';
import type { Rendered } from '../../renderer/render.ts';
import { createNodes } from '../apiserver/extras.ts';
import { answer, drainFacts, podOf } from '../pure/observe-support.ts';
import { type Sidecars, sidecars } from './evidence-bed.ts';
import { until } from './kubeBed.ts';
import { condition, type Loose, type NetworkBed, networkBed, paths, type RunningExecutor } from './network-bed.ts';
import { workshopSuite } from './network-suite.ts';
import { grantedAtoms, unneeded } from './rights-bed.ts';

const test = workshopSuite('network families');

let bed: NetworkBed;
let executor: RunningExecutor;
let cars: Sidecars;
let rendered: Rendered;
let pageAt = '';

const image = (name: string, digit: string): string =>
  `registry.example.com/keelson/${name}@sha256:${digit.repeat(64)}`;
const images = { executor: image('keelson', 'e'), probe: image('probe', 'f') };
const ranges = ['10.96.0.0/16', 'fd00:10:96::/112'];
const evidencePace = {
  openEveryMs: 200,
  settledEveryMs: 300,
  drainPace: { everyMs: 300, restMs: 1_000, retryMs: 300, most: 16 },
};
const merge = { type: 'application/merge-patch+json' };

const told = (object: Loose, type: string): string => {
  const found = condition(object, type);
  return `${found?.status}/${found?.reason}`;
};
const messageOf = (object: Loose): string => condition(object, 'NetworkReady')?.message ?? '';

/** Gives a node an address of IPv6 too, once whoever plays its kubelet has made it ready. */
async function secondFamily(n: number): Promise<void> {
  const node = `/api/v1/nodes/n${n}`;
  const isReady = ({ type, status }: Loose): boolean => type === 'Ready' && status === 'True';
  await bed.until(node, `node n${n} to be ready`, ({ status }) => status?.conditions?.some(isReady) === true);
  const addresses = [`10.0.0.${n}`, `fd00::${n}`].map((address) => ({ type: 'InternalIP', address }));
  await bed.server.admin.expect('PATCH', `${node}/status`, { ...merge, body: { status: { addresses } } });
}

const pods = '/api/v1/namespaces/kube-system/pods';

/** Gives the pods of the network probe on a node addresses of both families, or of the first alone, as the network would. */
async function families(node: string, n: number, many: 1 | 2): Promise<void> {
  const { body } = await bed.server.admin.expect('GET', pods, { query: { fieldSelector: `spec.nodeName=${node}` } });
  const mine = body.items.filter(({ metadata }: Loose) => metadata.name.startsWith('keelson-network-'));
  assert.is(mine.length, 2);
  for (const [at, { metadata }] of mine.entries()) {
    const own = [`10.16.${n}.${at + 2}`, `fd00:10:16::${n}${at}`].slice(0, many);
    const status = { podIP: own[0], podIPs: own.map((ip) => ({ ip })) };
    await bed.server.admin.expect('PATCH', `${pods}/${metadata.name}/status`, { ...merge, body: { status } });
  }
}

/** Renders by the nodes as they are now, and delivers. */
async function deliver(): Promise<void> {
  const inventory = await bed.inventory();
  rendered = await bed.render({
    inventory: { ...inventory, spec: { ...inventory.spec, serviceCIDRs: ranges } },
    settings: { images },
    spec: { networkStack: 'dual_stack', networkProbe: { image: images.probe } },
  });
  await bed.deliver(rendered);
}

test.before(async ({ shop }) => {
  bed = await networkBed(shop, {
    with: ['controllers', 'scheduler', 'kwok'],
    extraArgs: [`--service-cluster-ip-range=${ranges.join()}`],
  });
  // One node has one family until a test gives it the other.
  await Promise.all([1, 2].map(secondFamily));
  cars = sidecars(3, true);
  await deliver();
  const onPage = (port: number): void => {
    pageAt = `http://127.0.0.1:${port}`;
  };
  executor = await bed.executor({ evidence: cars.evidence, evidencePace, pagePort: 0, onPage });
});
test.after(() => bed.close());

test('a node without the second family is told before anything is written; the ranges of both fit the API server', async () => {
  const waits = await bed.until(
    paths.release,
    'the node to be told',
    (one) => told(one, 'Ready') === 'False/FamilyUnavailable',
    60_000,
  );
  assert.match(condition(waits, 'Ready').message, 'node n3 has no internal address of IPv6');
  assert.not.match(condition(waits, 'Ready').message, /RangeDiffers|node n[12] /);
  assert.is(await bed.get(paths.central), undefined);
  await secondFamily(3);
  await deliver();
});

test('X22: pods of one family leave NetworkReady False by node and family, until each has both', async () => {
  const first = await bed.until(
    paths.installation,
    'the missing family to be told',
    (one) => told(one, 'NetworkReady') === 'False/FamilyMissing' && messageOf(one).includes('node n3'),
    90_000,
  );
  assert.match(messageOf(first), /^node n1 has no IPv6 address, wanted IPv4 and IPv6; likewise node n2, node n3/);
  const service = await bed.get(`/api/v1/namespaces/kube-system/services/${networkProbe.service}`);
  assert.equal(service.spec.ipFamilies, ['IPv4', 'IPv6']);
  await families('n1', 1, 2);
  await families('n2', 2, 2);
  const last = await bed.until(
    paths.installation,
    'one node to be left',
    (one) => told(one, 'NetworkReady') === 'False/FamilyMissing' && messageOf(one).startsWith('node n3 '),
  );
  assert.match(messageOf(last), /^node n3 has no IPv6 address, wanted IPv4 and IPv6/);
  assert.ok(last.status.network.missing.includes('node n3: IPv6'));
  await families('n3', 3, 2);
  const ready = await bed.until(
    paths.installation,
    'all of it to be verified',
    (one) => told(one, 'Ready') === 'True/VerificationComplete',
    60_000,
  );
  assert.equal(ready.status.network.families, ['ipv4', 'ipv6']);
  assert.is(ready.status.network.checks, 24);
  assert.match(messageOf(ready), '24 of 24 checks from 3 nodes passed by IPv4 and IPv6');
});

test('X22: a family that is taken away moves NetworkReady alone, and it is back with the family', async () => {
  const parts = ['WorkloadsReady', 'OVNDBReady', 'NorthdReady', 'DataPlaneReady', 'TopologyRecorded'];
  const others = (object: Loose): string[] => parts.map((type) => told(object, type));
  const before = others(await bed.get(paths.installation));
  await families('n3', 3, 1);
  const without = await bed.until(
    paths.installation,
    'the missing family to be told',
    (one) => told(one, 'NetworkReady') === 'False/FamilyMissing',
  );
  assert.match(messageOf(without), /^node n3 has no IPv6 address, wanted IPv4 and IPv6/);
  assert.is(condition(without, 'Ready')?.status, 'False', 'of the same write');
  assert.equal(others(without), before);
  await families('n3', 3, 2);
  const back = await bed.until(
    paths.installation,
    'the family to be back',
    (one) => told(one, 'Ready') === 'True/VerificationComplete',
  );
  assert.equal(others(back), before);
});

test('what is looked at stays what was accepted while the specification asks for something else', async () => {
  const spec = (networkStack: string): Promise<unknown> =>
    bed.server.admin.expect('PATCH', paths.installation, { ...merge, body: { spec: { networkStack } } });
  const told24 = '24 of 24 checks from 3 nodes passed by IPv4 and IPv6';
  await spec('ipv4');
  await bed.until(
    paths.installation,
    'the change to be told',
    (one) => told(one, 'Ready') === 'Unknown/SpecPayloadSkew',
  );
  const rounds = async (): Promise<void> => {
    // The round that runs may have begun before the change; the two after it did not.
    for (let round = 0; round < 3; round += 1) {
      cars.asked.clear();
      await until('another round', async () => cars.asked.has('network n3'), 20_000);
    }
  };
  await rounds();
  const meanwhile = await bed.get(paths.installation);
  assert.equal([told(meanwhile, 'NetworkReady'), messageOf(meanwhile)], ['True/PacketsDelivered', told24]);
  assert.is(meanwhile.status.enforced.networkStack, 'dual_stack');
  await spec('dual_stack');
  await bed.until(
    paths.installation,
    'it to be as before',
    (one) => told(one, 'Ready') === 'True/VerificationComplete',
  );
});

/** What a command says. */
async function said(...args: string[]): Promise<string> {
  const lines: string[] = [];
  const say = (text: string): void => void lines.push(text);
  const signal = AbortSignal.timeout(20_000);
  const common = { cwd: '/', clock: systemClock, random: Math.random, terminal: false };
  const env = { KUBECONFIG: bed.server.kubeconfig };
  assert.is(await main(args, { ...common, env, signal, out: say, err: say }), 0, lines.join('\n'));
  return lines.join('\n');
}

/** What is told of a node, as `state reasons`. */
async function drain(node: string): Promise<string> {
  const report = (await (await fetch(`${pageAt}/evidence.json?node=${node}`)).json()) as Loose;
  const [found] = (report.installations[0]?.drains ?? []) as DrainReport[];
  if (found === undefined) return 'nothing';
  const why = [...found.blockers, ...found.unknown].map(({ reason }) => reason);
  return [found.state, ...why].join(' ');
}
const drained = (node: string, wanted: string): Promise<void> => {
  let last = '';
  return until(
    `${node}: ${wanted}`,
    async () => {
      last = await drain(node);
      return last === wanted;
    },
    15_000,
  ).catch((error: Error) => {
    throw new Error(`${error.message}; last seen: ${last}`);
  });
};

const requests = (resource: string): number =>
  executor.plan.log.filter((one) => one.verb === 'list' && one.resource === resource && one.namespace === undefined)
    .length;

test('a node that is taken away: what is left on it is told by name, from daemons and from the API server', async () => {
  const { admin } = bed.server;
  // It comes when all workloads have their places: those of Kube-OVN tolerate a cordon, and would come back.
  await createNodes(admin, [{ name: 'n4', address: '10.0.0.4' }]);
  await drained('n4', 'blocked NodeNotCordoned');
  assert.equal([requests('pods'), requests('volumeattachments')], [0, 0], 'while none is cordoned nobody is asked');
  await admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
  });
  await until('the account of the namespace', async () => {
    return (await admin.request('GET', '/api/v1/namespaces/shop/serviceaccounts/default')).status === 200;
  });
  await admin.expect('POST', '/api/v1/namespaces/shop/pods', {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: {
        nodeName: 'n4',
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'web', image: 'none' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'disk' } }],
      },
    },
  });
  const attachment = '/apis/storage.k8s.io/v1/volumeattachments';
  await admin.expect('POST', attachment, {
    body: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: 'csi-1' },
      spec: { attacher: 'csi.example.com', nodeName: 'n4', source: { persistentVolumeName: 'pv-1' } },
    },
  });
  const gateway = { count: 1, first: [{ port: 'cr-out', priority: 20, active: true, others: 1 }] };
  cars.spoil = (target, n) =>
    target.kind === 'drain' && n === 4
      ? (answer('drain', podOf(target), drainFacts(4, { gateways: gateway })) as never)
      : undefined;
  await bed.patch('/api/v1/nodes/n4', { spec: { unschedulable: true } });
  await drained('n4', 'blocked PodsRemain ClaimsInUse VolumesAttached GatewayActive');
  const page = await (await fetch(pageAt)).text();
  for (const text of ['pv-1 (csi.example.com)', 'shop/disk of pod web', 'cr-out (1 could take over)'])
    assert.ok(page.includes(text), text);
  cars.spoil = () => undefined;
  await admin.expect('DELETE', `${attachment}/csi-1`);
  const left = await admin.expect('GET', '/api/v1/pods', { query: { fieldSelector: 'spec.nodeName=n4' } });
  for (const { metadata } of left.body.items as Loose[])
    if (metadata.ownerReferences?.[0]?.kind !== 'DaemonSet')
      await admin.expect('DELETE', `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`, {
        query: { gracePeriodSeconds: '0' },
      });
  await drained('n4', 'drained');
  await drained('n1', 'blocked NodeNotCordoned');
  assert.match(await said('evidence', '--page', pageAt), /\nn4 +drained +\d+m?s ago +-\n3 nodes are not cordoned/);
  assert.match(
    await said('evidence', '--page', pageAt, '--node', 'n1'),
    /\nn1 +blocked .* NodeNotCordoned +node n1 is not/,
  );
  cars.spoil = (target, n) =>
    target.kind === 'drain' && n === 4 ? { type: 'Unreachable', message: 'connection refused' } : undefined;
  await drained('n4', 'unknown EvidenceUnreachable');
  cars.spoil = () => undefined;
  await bed.patch('/api/v1/nodes/n4', { spec: { unschedulable: null } });
  await drained('n4', 'blocked NodeNotCordoned');
  assert.ok(requests('pods') > 0 && requests('volumeattachments') > 0);
  const denied = executor.plan.log.filter(({ status }) => status === 403);
  assert.equal(denied, [], 'the account may do all of it');
  const looks = /^\S+ (list|watch) (pods|services|persistentvolumeclaims|endpointslices|volumeattachments)/;
  const unused = unneeded(grantedAtoms(rendered), executor.plan.log).filter((right) => looks.test(right));
  assert.equal(unused, [], 'and has no right to look that it does not use');
});

test.run();
