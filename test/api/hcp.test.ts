// time limit: 150s
/** A half of a hosted pair on a real API server: nothing is written before the other half fits, and no byte of its keys is anywhere. */
import * as assert from 'uvu/assert';
import { peerDatabases } from '../../bin/peer-databases.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { type InClusterOptions, inClusterPeers } from '../../executor/peer/in-cluster.ts';
import { observePeer } from '../../executor/peer/observe.ts';
import type { EvidenceMaker } from '../../executor/run.ts';
import { closeAll, makeHalves, pairKeys, tracesOf } from '../pure/peer-support.ts';
import { makeCanary } from './canary-bed.ts';
import { sidecars } from './evidence-bed.ts';
import {
  bypass,
  condition,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
  type RunningExecutor,
  system,
} from './network-bed.ts';
import { workshopSuite } from './network-suite.ts';

const test = workshopSuite('hosted pair');

const halves = await makeHalves();
const canary = makeCanary();
let bed: NetworkBed;
let executor: RunningExecutor;

const image = (name: string, digit: string): string =>
  `registry.example.com/keelson/${name}@sha256:${digit.repeat(64)}`;
const images = { executor: image('keelson', 'e'), probe: image('probe', 'f') };
const secret = '/api/v1/namespaces/kube-system/secrets/peer-tls';
const peer = '/apis/network.keelson.dev/v1alpha1/namespaces/hosted/kubeovninstallations/central';

/** The evidence of a bed, and the provider of this cluster beside it. */
const evidence: EvidenceMaker = (parts) => {
  const made = sidecars().evidence(parts);
  const options: InClusterOptions = { ...parts, databases: peerDatabases(systemClock) };
  const provider = inClusterPeers(options);
  return {
    ...made,
    source: { ...made.source, peer: (installation, stop) => observePeer(installation, provider, parts, stop) },
  };
};

const half = (role: 'central' | 'dataPlane', peerNamespace: string) =>
  ({
    enabled: true,
    role,
    peerNamespace,
    tlsSecretRef: { name: 'peer-tls' },
    northbound: halves.northbound,
    southbound: halves.southbound,
  }) as const;

const told = (object: Loose): string => {
  const found = condition(object, 'HCPReady');
  return `${found?.status}/${found?.reason}`;
};

test.before(async ({ shop }) => {
  bed = await networkBed(shop);
  const { admin } = bed.server;
  const spec = { mode: 'nodeNetworking', hcp: half('dataPlane', 'hosted') } as const;
  await bed.deliver(await bed.render({ spec, settings: { images } }));
  bed.playKubelets();
  await admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'hosted' } },
  });
  await admin.expect('POST', '/api/v1/namespaces/kube-system/secrets', {
    body: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'peer-tls' },
      stringData: { ...pairKeys(halves), note: canary.value } satisfies JsonObject,
    },
  });
  const own = await bed.installation();
  await bed.apply(
    {
      apiVersion: 'network.keelson.dev/v1alpha1',
      kind: 'KubeOVNInstallation',
      metadata: { name: 'central', namespace: 'hosted' },
      spec: { mode: 'centralOnly', version: '1.15.0', chart: own.spec.chart, hcp: half('central', 'kube-system') },
    },
    'admin',
  );
  executor = await bed.executor({
    ...bypass,
    evidence,
    evidencePace: { openEveryMs: 200, settledEveryMs: 300 },
  });
});
test.after(async () => {
  await bed.close();
  await closeAll(halves.servers);
});

test('X19: a peer of another version keeps the payload out, and nothing of it is written', async () => {
  const release = await bed.until(paths.release, 'it to be refused', (one) =>
    one.status?.failures?.some(({ reason }: Loose) => reason === 'PeerVersionDiffers'),
  );
  assert.is(release.status.failures.length, 1);
  assert.equal(payloadMutations(executor.plan.log), []);
  await bed.until(paths.installation, 'its condition', (one) => told(one) === 'False/PeerVersionDiffers');
});

test('Q1: once the halves fit the payload goes ahead, and the pair is told in the status', async () => {
  const { version } = (await bed.installation()).spec;
  await bed.patch(peer, { spec: { version } });
  const installation = await bed.until(
    paths.installation,
    'the pair to be seen',
    (one) => told(one) === 'True/PeerVerified' && one.status.observedVersion !== undefined,
    60_000,
  );
  assert.is(installation.status.hcp.peer.namespace, 'hosted');
  assert.equal(
    installation.status.hcp.endpoints.map(({ reachable }: Loose) => reachable),
    [true, true],
  );
  assert.ok(payloadMutations(executor.plan.log).length > 0);
});

test('Q4 P7: a Secret that is replaced is looked at anew, and one that is gone clears what was told', async () => {
  const before = (await bed.installation()).status.hcp.secret.resourceVersion;
  await bed.patch(secret, { metadata: { annotations: { rotated: 'yes' } } });
  await bed.until(
    paths.installation,
    'the new generation',
    (one) => told(one) === 'True/PeerVerified' && one.status.hcp?.secret?.resourceVersion !== before,
  );
  await bed.server.admin.expect('DELETE', secret);
  const gone = await bed.until(paths.installation, 'the loss', (one) => told(one) === 'False/PeerSecretMissing');
  assert.is(gone.status.hcp, undefined);
});

test('X19 Q5: no byte of the Secret is in any object, log or metric', async () => {
  const { admin } = bed.server;
  const lists = [
    `/api/v1/namespaces/${system}/configmaps`,
    '/api/v1/namespaces/kube-system/configmaps',
    '/apis/events.k8s.io/v1/events',
    '/apis/keelson.dev/v1alpha1/releases',
    '/apis/network.keelson.dev/v1alpha1/kubeovninstallations',
    '/apis/apps/v1/deployments',
    '/apis/apps/v1/daemonsets',
    '/apis/coordination.k8s.io/v1/leases',
  ];
  const objects = await Promise.all(lists.map(async (path) => JSON.stringify((await admin.expect('GET', path)).body)));
  const sent = executor.plan.log.map(({ body, path }) => `${path} ${JSON.stringify(body ?? '')}`);
  const everything = [...objects, ...sent, ...executor.said, await executor.metrics()];
  const traces = Object.values(pairKeys(halves)).flatMap(tracesOf);
  for (const text of everything) {
    assert.not(canary.foundIn(text), text.slice(0, 200));
    for (const trace of traces) assert.not(text.includes(trace), text.slice(0, 200));
  }
});

test.run();
