/** The network probe on a real API server: its objects, its pods, the tokens that prove them, and what watches make of it. */
import { randomBytes, randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { evidenceTrust, networkProbe } from '../../constructs/api/constants.ts';
import { evidenceAudience } from '../../constructs/api/evidence/identity.ts';
import { networkProbeObjects } from '../../constructs/k8s/networkprobe.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { getAt, type JsonObject } from '../../constructs/lib/json.ts';
import { type PullOptions, pullEvidence } from '../../executor/evidence/pull.ts';
import { directWay } from '../../executor/evidence/way.ts';
import { ClusterWatch } from '../../executor/network/cluster-watch.ts';
import type { ClusterLook } from '../../executor/observe/expect.ts';
import { runRound } from '../../executor/observe/run-round.ts';
import { emptyMemory, judgeRound } from '../../executor/observe/verdict.ts';
import { AuthorityKeeper } from '../../executor/pki/keeper.ts';
import { reviewToken } from '../../executor/pki/token.ts';
import { freshNamespace, serviceAccountToken } from '../apiserver/namespace.ts';
import { sharedApiServer } from '../apiserver/shared.ts';
import { specOf } from '../pure/network-fixture.ts';
import { networkProcesses, type ProbePod } from '../pure/network-processes.ts';
import { edgeOf, until } from './kubeBed.ts';

const test = suite('network probe');
const server = await sharedApiServer();
const { admin } = server;
const { client, transport } = edgeOf(server);
const namespace = await freshNamespace(admin, 'probe');
const node = `probe-${randomBytes(4).toString('hex')}`;
const installationUID = randomUUID();
const image = 'registry.example.com/keelson/probe:0.1.0';
const objects = networkProbeObjects({ namespace, image, pullSecrets: [], scheduling: {}, stack: undefined });
const run = await networkProcesses(namespace);
const over = new AbortController();
const said: string[] = [];
let news = 0;
const common = { client, clock: systemClock, namespace };
const watch = new ClusterWatch({
  ...common,
  namespaces: [namespace],
  random: Math.random,
  onNode: () => undefined,
  onService: () => {
    news += 1;
  },
  onProblem: (message) => said.push(message),
});
const watching = watch.run(over.signal);
const keeper = new AuthorityKeeper({
  ...common,
  probeNamespaces: [namespace],
  log: (_level, message) => said.push(message),
});
test.after(async () => {
  over.abort();
  await watching;
  await run.close();
  await admin.request('DELETE', `/api/v1/nodes/${node}`);
  await transport.close();
});

const nameOf = (object: JsonObject): string => String(getAt(object, '/metadata/name'));
const pathOf = (object: JsonObject): string =>
  object.kind === 'Service'
    ? `/api/v1/namespaces/${namespace}/services/${nameOf(object)}`
    : `/apis/apps/v1/namespaces/${namespace}/daemonsets/${nameOf(object)}`;
const named = (name: string): JsonObject => {
  const found = objects.find((object) => nameOf(object) === name);
  if (found === undefined) throw new Error(`no ${name} is rendered`);
  return found;
};

/** Applies the objects as an executor does, with their installation as the owner. */
async function apply(): Promise<JsonObject[]> {
  const kind = { apiVersion: 'network.keelson.dev/v1alpha1', kind: 'KubeOVNInstallation', name: 'main' };
  const ownerReferences = [{ ...kind, uid: installationUID, controller: true }];
  const made: JsonObject[] = [];
  for (const object of objects) {
    const { body } = await admin.expect('PATCH', pathOf(object), {
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'keelson' },
      body: { ...object, metadata: { ...(object.metadata as JsonObject), ownerReferences } },
    });
    made.push(body);
  }
  return made;
}

const status = (path: string, body: JsonObject) =>
  admin.expect('PATCH', `${path}/status`, { type: 'application/merge-patch+json', body: { status: body } });

/** A pod as the DaemonSet's controller makes it, with the addresses that a kubelet tells. */
async function pod(owner: JsonObject, addresses: readonly string[]): Promise<ProbePod> {
  const { body: set } = await admin.expect('GET', pathOf(owner));
  const template = getAt(owner, '/spec/template') as JsonObject;
  const name = `${nameOf(owner)}-${randomBytes(3).toString('hex')}`;
  const { metadata } = set;
  const ownerReferences = [
    { apiVersion: 'apps/v1', kind: 'DaemonSet', name: metadata.name, uid: metadata.uid, controller: true },
  ];
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const { body } = await admin.expect('POST', pods, {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...(template.metadata as JsonObject), name, ownerReferences },
      spec: { ...(template.spec as JsonObject), nodeName: node },
    },
  });
  await status(`${pods}/${name}`, {
    phase: 'Running',
    podIP: String(addresses[0]),
    podIPs: addresses.map((ip) => ({ ip })),
  });
  const count = { currentNumberScheduled: 1, desiredNumberScheduled: 1, updatedNumberScheduled: 1, numberReady: 1 };
  await status(pathOf(owner), { ...count, numberMisscheduled: 0, observedGeneration: 1 });
  return { name, uid: String(body.metadata.uid), node, addresses };
}

test('the API server takes the objects and keeps them as they were written', async () => {
  const made = await apply();
  const [service] = made;
  assert.match(String(getAt(service ?? {}, '/spec/clusterIP')), /^[0-9a-f.:]+$/);
  const versions = (all: readonly JsonObject[]) => all.map((one) => getAt(one, '/metadata/resourceVersion'));
  assert.equal(versions(await apply()), versions(made), 'written again they are the same');
});

test('its pods are ordinary: the strictest profile lets them in', async () => {
  const strict = await freshNamespace(admin, 'probe');
  await admin.expect('PATCH', `/api/v1/namespaces/${strict}`, {
    type: 'application/merge-patch+json',
    body: { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
  });
  await serviceAccountToken(admin, strict, 'default');
  const enter = (spec: JsonObject) =>
    admin.request('POST', `/api/v1/namespaces/${strict}/pods`, {
      query: { dryRun: 'All' },
      body: { apiVersion: 'v1', kind: 'Pod', metadata: { generateName: 'probe-' }, spec },
    });
  for (const name of [networkProbe.clients, networkProbe.servers]) {
    const spec = getAt(named(name), '/spec/template/spec') as JsonObject;
    const reply = await enter(spec);
    assert.is(reply.status, 201, `${name}: ${reply.body?.message}`);
    assert.is((await enter({ ...spec, hostNetwork: true })).status, 403, 'the profile is at work');
  }
});

/** Addresses that the Service has here: those of the API server lead nowhere on loopback. */
const serviceAddresses = ['127.0.0.43', '::1'];

function look(): ClusterLook {
  const seen = watch.look();
  if (seen === undefined) throw new Error(`the watches have ended: ${said.join('; ')}`);
  const services = seen.services.map((one) => ({ ...one, spec: { ...one.spec, clusterIPs: serviceAddresses } }));
  return { ...seen, services };
}

const pulling: PullOptions = {
  clock: systemClock,
  trust: () => keeper.trust(),
  enroller: { validity: () => keeper.validity(), review: (token, limit) => reviewToken(client, token, limit) },
  ways: ({ addresses }) => addresses.slice(0, 1).map((address) => directWay(address, 2_000)),
  ports: ({ podUID }) => [run.evidencePorts.get(podUID) ?? 0],
  limitMs: 20_000,
  log: (message) => said.push(message),
};

/** NetworkReady of a round, run as the executor runs it. */
async function observe(): Promise<string> {
  const external = { northbound: 'tcp:192.0.2.1:6641', southbound: 'tcp:192.0.2.1:6642' };
  const probed = { networkProbe: { image }, networkStack: 'dual_stack' } as const;
  const wanted = {
    spec: specOf({ mode: 'nodeNetworking', external, ...probed }),
    installation: { namespace, name: 'main', uid: installationUID },
    chartReplicas: 3,
    pin: undefined,
  };
  const networkNames = { ...networkProbe, echoPort: run.echoPort };
  const { round } = await runRound(
    { wanted, centralNodes: [], networkNames, memory: emptyMemory, before: new Map() },
    {
      clock: systemClock,
      atOnce: 4,
      containers: { central: '-', chassis: '-', network: 'keelson-network-probe' },
      look,
      peer: async () => ({ type: 'noProvider' }),
      record: async () => undefined,
      ask: (target, signal) => pullEvidence(target, pulling, signal),
    },
    over.signal,
  );
  const found = judgeRound(round, wanted, emptyMemory).conditions.find(({ type }) => type === 'NetworkReady');
  return `${found?.status}/${found?.reason} ${found?.message}`;
}

test('a client is enrolled by the token of its pod, and sends packets to the pods that watches have found', async () => {
  await keeper.step(over.signal);
  await admin.expect('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata: { name: node } } });
  await serviceAccountToken(admin, namespace, 'default');
  const serving = await pod(named(networkProbe.servers), ['127.0.0.41', '::1']);
  const asking = await pod(named(networkProbe.clients), ['127.0.0.42', '::1']);
  const bound = { audiences: [evidenceAudience], pod: { name: asking.name, uid: asking.uid } };
  const token = await serviceAccountToken(admin, namespace, 'default', bound);
  const { body } = await admin.expect('GET', `/api/v1/namespaces/${namespace}/configmaps/${evidenceTrust.name}`);
  run.dns.names.set(run.serviceName, serviceAddresses);
  const gateway = ['127.0.0.43'];
  const [server] = await Promise.all([
    run.serve(serving),
    run.serve(serving, gateway),
    run.ask(asking, { token, authorities: String(body.data[evidenceTrust.key]) }),
  ]);
  await until('watches to see all of it', () => {
    const seen = watch.look();
    const rolledOut = seen?.daemonSets.every((set) => set.status?.numberReady === 1) === true;
    return rolledOut && seen?.pods.filter((one) => one.status?.podIPs !== undefined).length === 2;
  });
  assert.match(await observe(), /^True\/PacketsDelivered 6 of 6 checks/);
  const has = async (addresses: readonly string[]): Promise<void> => {
    const podIPs = addresses.map((ip) => ({ ip }));
    await status(`/api/v1/namespaces/${namespace}/pods/${asking.name}`, { podIPs });
    const found = () => watch.look()?.pods.find(({ metadata }) => metadata.uid === asking.uid)?.status?.podIPs;
    await until('the watch to see its addresses', () => JSON.stringify(found()) === JSON.stringify(podIPs));
  };
  await has(['127.0.0.42']);
  assert.match(
    await observe(),
    new RegExp(`^False/FamilyMissing node ${node} has no IPv6 address, wanted IPv4 and IPv6`),
    'X22',
  );
  await has(asking.addresses);
  assert.match(await observe(), /^True\/PacketsDelivered 6 of 6 checks/);
  await run.stop(server);
  await run.serve({ ...serving, uid: randomUUID() });
  assert.match(await observe(), new RegExp(`^False/ProbeWrongPeer .*${serving.uid}`), 'X21');
});

test('J10: where the Service leads is news at once, and that nothing of it changed is none', async () => {
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'stray', labels: { 'kubernetes.io/service-name': networkProbe.service } },
    addressType: 'IPv6',
    endpoints: [{ addresses: ['fd00::9'] }],
    ports: [],
  };
  const after = async (what: string, change: () => Promise<unknown>): Promise<void> => {
    const before = news;
    await change();
    await until(what, () => news > before, 3_000);
  };
  await after('a stray endpoint to be news', () => admin.expect('POST', slices, { body: slice }));
  const merge = { type: 'application/merge-patch+json' };
  const quiet = news;
  const touched = { metadata: { annotations: { touched: 'yes' } } };
  await admin.expect('PATCH', `${slices}/stray`, { ...merge, body: touched });
  const service = pathOf(named(networkProbe.service));
  await admin.expect('PATCH', service, { ...merge, body: touched });
  await after('another selector to be news', () =>
    admin.expect('PATCH', service, { ...merge, body: { spec: { selector: { app: 'other' } } } }),
  );
  assert.is(news, quiet + 1, 'annotations are none');
  await after('an endpoint that goes to be news', () => admin.expect('DELETE', `${slices}/stray`));
});

test('nothing secret was said', () => {
  assert.not.match(said.join('\n'), /PRIVATE KEY|eyJ/);
});

test.run();
