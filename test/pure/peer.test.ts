/** The other half of a hosted pair, seen through real TLS on loopback: each way in which it does not fit, and no byte of the keys. */
import { createServer } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { peerDatabases } from '../../bin/peer-databases.ts';
import { specDigest } from '../../constructs/api/digests.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { type Clock, systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject, ObjectRef } from '../../executor/kube/types.ts';
import { enforcedPart } from '../../executor/network/enforced.ts';
import { peerProblems } from '../../executor/network/peer.ts';
import { readInstallation } from '../../executor/network/snapshot.ts';
import { judgePeer } from '../../executor/observe/hcp.ts';
import { inClusterPeers } from '../../executor/peer/in-cluster.ts';
import { observePeer } from '../../executor/peer/observe.ts';
import type { PeerProvider, PeerRequest } from '../../executor/peer/provider.ts';
import { makeExecutorPair } from '../../executor/pki/certificates.ts';
import { checkpointAt } from './network-support.ts';
import {
  closeAll,
  hour,
  listening,
  makeHalves,
  northdVersion,
  pairKeys,
  serve,
  tracesOf,
  validity,
} from './peer-support.ts';

const halves = await makeHalves();

type Hcp = NonNullable<InstallationSpec['hcp']>;

const specOf = (
  role: Hcp['role'],
  peerNamespace: string,
  changes: Partial<Hcp> = {},
  version = '1.16.13',
): JsonObject => ({
  mode: role === 'central' ? 'centralOnly' : 'nodeNetworking',
  version,
  chart: { source: 'oci://charts.example.com/kube-ovn:1', digest: `sha256:${'a'.repeat(64)}` },
  hcp: {
    enabled: true,
    role: role ?? 'central',
    peerNamespace,
    tlsSecretRef: { name: 'pair-tls' },
    northbound: halves.northbound,
    southbound: halves.southbound,
    ...(changes as JsonObject),
  },
});

const installation = (namespace: string, spec: JsonObject): KubeObject => ({
  apiVersion: 'network.keelson.dev/v1alpha1',
  kind: 'KubeOVNInstallation',
  metadata: { name: 'net', namespace, uid: `uid-${namespace}` },
  spec,
});

const own = (changes: Partial<Hcp> = {}): KubeObject => installation('tenant', specOf('dataPlane', 'hosted', changes));

interface World {
  peers: readonly KubeObject[];
  data: Record<string, string> | undefined;
  version: number;
  uid: string;
  /** Called after every reading of the Secret, with how often it was read. */
  afterRead: (times: number) => void;
}

const pairData = (changes: Record<string, string> = {}): Record<string, string> => ({
  'ca.crt': halves.authority.certificate,
  'tls.crt': halves.client.certificate,
  'tls.key': halves.client.key,
  ...changes,
});

const worldOf = (changes: Partial<World> = {}): World => ({
  peers: [installation('hosted', specOf('central', 'tenant'))],
  data: pairData(),
  version: 7,
  uid: 'secret-1',
  afterRead: () => undefined,
  ...changes,
});

/** Only reads: whatever else is asked of it is an error. */
function clientOf(world: World): KubeClient {
  let times = 0;
  const encoded = () =>
    Object.fromEntries(
      Object.entries(world.data ?? {}).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
    );
  return {
    list: async ({ namespace }: { namespace: string }) => ({
      type: 'listed',
      items: world.peers.filter(({ metadata }) => metadata.namespace === namespace),
    }),
    get: async (ref: ObjectRef) => {
      const { name } = ref;
      const metadata = { name, namespace: 'tenant', uid: world.uid, resourceVersion: String(world.version) };
      const object = { apiVersion: 'v1', kind: 'Secret', metadata, data: encoded() };
      const answer = world.data === undefined ? { type: 'absent' } : { type: 'found', object };
      times += 1;
      world.afterRead(times);
      return answer;
    },
  } as unknown as KubeClient;
}

const steady = AbortSignal.timeout(60_000);
const providerOf = (client: KubeClient, clock: Clock): PeerProvider =>
  inClusterPeers({ client, clock, databases: peerDatabases(systemClock) });

/** Everything that a look left anywhere: what status would say, and what acceptance would. */
async function look(world: World, object = own(), clock: Clock = systemClock, provider?: PeerProvider) {
  const client = clientOf(world);
  const told: PeerRequest[] = [];
  const asked = provider ?? providerOf(client, clock);
  const listened: PeerProvider = {
    look: (request, signal) => {
      told.push(request);
      return asked.look(request, signal);
    },
  };
  const observation = await observePeer(object, listened, { client, clock }, steady);
  const live = readInstallation(object).installation;
  assert.ok(live, 'the installation can be read');
  const { namespace = '', name = '' } = object.metadata;
  const judged = judgePeer({ namespace, name, spec: live.spec }, observation);
  const problems = await peerProblems(live, async () => observation, steady);
  const left = JSON.stringify({ told, observation, judged, problems });
  for (const trace of Object.values(world.data ?? {}).flatMap(tracesOf))
    assert.not(left.includes(trace), 'of a Secret');
  const { status, reason, message } = judged.condition;
  return {
    head: `${status}/${reason}`,
    message,
    reasons: problems.map((one) => one.reason),
    problems,
    view: judged.view,
  };
}

const test = suite('the other half');

test.after(async () => {
  await closeAll(halves.servers);
});

test('Q1 Q6: both halves fit, with either set of names for the keys', async () => {
  const kubeOVN = pairKeys(halves);
  for (const data of [pairData(), kubeOVN]) {
    const { head, view, reasons } = await look(worldOf({ data }));
    assert.is(head, 'True/PeerVerified');
    assert.equal(reasons, []);
    assert.equal(view?.secret, { name: 'pair-tls', uid: 'secret-1', resourceVersion: '7' });
    assert.equal(
      view?.endpoints.map(({ reachable }) => reachable),
      [true, true],
    );
  }
});

test('Q7: a database that is listed and not connected is not served; what SB tells chassis is heard', async () => {
  const joining = createServer(serve(['OVN_Northbound', '_Server'], false));
  const { head, message } = await look(worldOf(), own({ northbound: `tcp:${await listening(joining)}` }));
  await closeAll([joining]);
  assert.is(head, 'Unknown/PeerEndpointUnreachable');
  assert.match(message, 'OVN_Northbound is not connected to its cluster');
  const southbound = createServer(serve(['OVN_Southbound', '_Server']));
  const found = await peerDatabases(systemClock)(`tcp:${await listening(southbound)}`, undefined, steady);
  await closeAll([southbound]);
  assert.equal(found.type === 'served' && [found.unconnected, found.northdVersion], [[], northdVersion]);
});

const turned = (changes: Partial<World>): Promise<Awaited<ReturnType<typeof look>>> => look(worldOf(changes));
const hosted = (spec: JsonObject): Partial<World> => ({ peers: [installation('hosted', spec)] });

test('X19: every way of not fitting has a reason of its own, and none of them lets a payload in', async () => {
  const later: Clock = { ...systemClock, now: () => Date.now() + 2 * hour };
  const cases: Record<string, Awaited<ReturnType<typeof look>>> = {
    'False/PeerUntrusted': await turned({ data: pairData({ 'ca.crt': halves.other.certificate }) }),
    'False/PeerCertificateExpired': await look(worldOf(), own(), later),
    'False/PeerVersionDiffers': await turned(hosted(specOf('central', 'tenant', {}, '1.15.0'))),
    'False/PeerMissing': await turned({ peers: [] }),
    'False/PeerNotReciprocal': await turned(hosted(specOf('central', 'elsewhere'))),
    'False/PeerRoleWrong': await turned(hosted(specOf('dataPlane', 'tenant'))),
    'False/PeerSecretMissing': await turned({ data: undefined }),
    'False/PeerSecretKeysMissing': await turned({ data: { 'tls.crt': 'x' } }),
    'False/PeerCertificateInvalid': await turned({ data: pairData({ 'tls.key': halves.other.key }) }),
    'False/PeerSchemaDiffers': await look(worldOf(), own({ northbound: halves.southbound })),
    'Unknown/PeerEndpointUnreachable': await look(worldOf(), own({ southbound: 'ssl:127.0.0.1:1' })),
  };
  for (const [wanted, { head, reasons }] of Object.entries(cases)) {
    assert.is(head, wanted);
    assert.ok(reasons.includes(wanted.split('/')[1] ?? ''), wanted);
  }
});

test('a server that hangs up on our certificate is not taken for one that fits', async () => {
  const stranger = await makeExecutorPair(halves.other, validity);
  const data = pairData({ 'tls.crt': stranger.certificate, 'tls.key': stranger.key });
  const { head, reasons } = await turned({ data });
  assert.is(head, 'Unknown/PeerEndpointUnreachable');
  assert.is(reasons.length, 2, 'both endpoints');
});

/** An installation that asks for one thing and was accepted with another. */
function acceptedWith(object: KubeObject, accepted: JsonObject): KubeObject {
  const { apiVersion, kind } = object;
  const digest = specDigest({ apiVersion, kind }, accepted);
  const applyCheckpoint = checkpointAt(digest);
  const then = { ...object, spec: accepted, status: { applyCheckpoint } };
  const spec = readInstallation(then).installation?.spec;
  assert.ok(spec);
  return { ...object, status: { applyCheckpoint, ...enforcedPart(then, spec) } };
}

const fitting = specOf('central', 'tenant');
const { hcp: _hcp, ...single } = fitting;

test('the other half is judged by what it was accepted with, whatever it asks for now', async () => {
  const elsewhere: Record<string, JsonObject> = {
    PeerVersionDiffers: specOf('central', 'tenant', {}, '1.15.0'),
    PeerNotReciprocal: specOf('central', 'elsewhere'),
    PeerRoleWrong: specOf('dataPlane', 'tenant'),
    PeerMissing: single,
  };
  for (const [reason, spec] of Object.entries(elsewhere)) {
    const stands = await turned({ peers: [acceptedWith(installation('hosted', spec), fitting)] });
    assert.equal([stands.head, stands.reasons], ['True/PeerVerified', []], `a blocked ${reason} ends no pair`);
    const fits = await turned({ peers: [acceptedWith(installation('hosted', fitting), spec)] });
    assert.equal([fits.head, fits.reasons], [`False/${reason}`, [reason]], 'nor does a blocked change make one');
  }
});

test('two that are in place become a pair: either may go first, and nobody is told that the pair stands', async () => {
  const becoming = acceptedWith(installation('hosted', fitting), single);
  const mine = acceptedWith(own(), specOf('dataPlane', 'elsewhere'));
  const { head, reasons } = await look(worldOf({ peers: [becoming] }), mine);
  assert.equal([head, reasons], ['False/PeerMissing', []]);
  const other = acceptedWith(installation('hosted', specOf('central', 'elsewhere')), single);
  assert.equal(
    (await look(worldOf({ peers: [other] }), mine)).reasons,
    ['PeerMissing'],
    'as long as it asks for this pair',
  );
});

test('Q4: a Secret that is rotated while the look lasts is no evidence, also when it is back at the end', async () => {
  for (const at of [1, 2]) {
    const world = worldOf();
    world.afterRead = (times) => {
      if (times === at) world.version += 1;
    };
    assert.is((await look(world)).head, 'Unknown/PeerSecretRotated', `rotated after reading ${at}`);
  }
  const world = worldOf();
  world.afterRead = (times) => {
    if (times === 1) world.version = 8;
    if (times === 2) world.version = 7;
  };
  assert.is((await look(world)).head, 'Unknown/PeerSecretRotated', 'there and back');
  const anew = worldOf();
  anew.afterRead = (times) => {
    if (times === 2) anew.uid = 'secret-2';
  };
  assert.is((await look(anew)).head, 'Unknown/PeerSecretRotated', 'made anew');
});

test('Q3 Q5: a provider of another cluster is told names and generations, and what it throws is not repeated', async () => {
  const requests: PeerRequest[] = [];
  const remote: PeerProvider = {
    look: async (request) => {
      requests.push(request);
      throw new Error(`can not use ${halves.client.key}`);
    },
  };
  const { head, message } = await look(worldOf(), own(), systemClock, remote);
  assert.is(head, 'Unknown/EvidenceIncomplete');
  assert.match(message, 'the provider failed');
  assert.equal(Object.keys(requests[0] ?? {}).sort(), ['hcp', 'installation', 'secret', 'version']);
  assert.equal(requests[0]?.secret, { name: 'pair-tls', uid: 'secret-1', resourceVersion: '7' });
});

test('a provider that hangs is given up, whether it hears signals or not', async () => {
  const hurried: Clock = { ...systemClock, sleep: async () => undefined };
  const deaf: PeerProvider = { look: () => new Promise(() => undefined) };
  const { head, message } = await look(worldOf(), own(), hurried, deaf);
  assert.is(head, 'Unknown/EvidenceIncomplete');
  assert.match(message, 'took too long');
});

test('Q2: without a provider no half is written, and the central half does not wait for itself', async () => {
  const data = readInstallation(own()).installation;
  assert.equal(
    (await peerProblems(data, undefined, steady)).map(({ reason }) => reason),
    ['PeerProviderMissing'],
  );
  const away = { northbound: 'tcp:127.0.0.1:1', southbound: 'tcp:127.0.0.1:1' };
  const central = installation('tenant', specOf('central', 'hosted', away));
  const { head, reasons } = await look(worldOf(hosted(specOf('dataPlane', 'tenant'))), central);
  assert.is(head, 'Unknown/PeerEndpointUnreachable');
  assert.equal(reasons, [], 'its databases come with its own payload');
});

test('E16: databases outside of any pair are asked themselves, by TLS with the keys of Kube-OVN, and plain without any', async () => {
  const at = (northbound: string, southbound: string): KubeObject => {
    const { hcp: _, ...spec } = specOf('dataPlane', 'x');
    return installation('tenant', { ...spec, external: { northbound, southbound } });
  };
  // No other installation is looked for.
  const lonely = worldOf({ peers: [] });
  const { head, message, reasons, view } = await look(lonely, at(halves.northbound, halves.southbound));
  assert.is(head, 'True/PeerVerified', message);
  assert.match(message, northdVersion);
  assert.equal([reasons, view], [[], undefined]);
  const strange = worldOf({ data: pairData({ 'ca.crt': halves.other.certificate }) });
  assert.is((await look(strange, at(halves.northbound, halves.southbound))).head, 'False/PeerUntrusted');
  const [nb, sb] = [
    createServer(serve(['OVN_Northbound', '_Server'])),
    createServer(serve(['OVN_Southbound', '_Server'])),
  ];
  const plain = at(`tcp:${await listening(nb)}`, `tcp:${await listening(sb)}`);
  const unkeyed = worldOf({ data: undefined });
  unkeyed.afterRead = () => assert.unreachable('no Secret is read');
  assert.is((await look(unkeyed, plain)).head, 'True/PeerVerified');
  await closeAll([nb, sb]);
  assert.is((await look(unkeyed, plain)).head, 'Unknown/PeerEndpointUnreachable');
});

test('Q7: a plain endpoint is asked without keys, and somebody who is no database proves nothing', async () => {
  const [plain, mute] = [createServer(serve(['OVN_Northbound'])), createServer(serve([]))];
  const [northbound, southbound] = await Promise.all([plain, mute].map(listening));
  try {
    const found = await look(worldOf(), own({ northbound: `tcp:${northbound}`, southbound: `tcp:${southbound}` }));
    assert.is(found.head, 'False/PeerSchemaDiffers');
    assert.match(found.message, 'no database');
    assert.is(found.reasons.length, 1);
  } finally {
    for (const server of [plain, mute]) server.close();
  }
});

test.run();
