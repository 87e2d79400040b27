import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Invocation } from '../../bin/invocation.ts';
import { main } from '../../bin/program.ts';
import { evidenceSecret, evidenceTrust } from '../../constructs/api/constants.ts';
import { evidenceAudience } from '../../constructs/api/evidence/identity.ts';
import type { EvidenceSubject } from '../../constructs/api/evidence.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { kubeletWay } from '../../executor/evidence/forward.ts';
import { type PullOptions, pullEvidence } from '../../executor/evidence/pull.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import { directWay, type Way } from '../../executor/evidence/way.ts';
import { AuthorityKeeper, type KeeperTimings } from '../../executor/pki/keeper.ts';
import { reviewToken } from '../../executor/pki/token.ts';
import { makeOffer } from '../../probes/server/offer.ts';
import { runProbe } from '../../probes/server/run.ts';
import { freshNamespace, serviceAccountToken } from '../apiserver/namespace.ts';
import { sharedApiServer } from '../apiserver/shared.ts';
import { chassisCollectors } from '../pure/evidence-bed.ts';
import { startKubelet } from '../standins/kubelet.ts';
import { tiedDirectory } from '../tools/directory.ts';
import { edgeOf, staticCredentials } from './kubeBed.ts';

const test = suite('evidence');
const server = await sharedApiServer();
const { client, transport } = edgeOf(server);
const signal = new AbortController().signal;
const directory = await tiedDirectory('keelson-evidence-');
const places = new Map<number, number>();
const kubelet = await startKubelet(places);
const said: string[] = [];
const stops: (() => Promise<void>)[] = [];
test.after(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await kubelet.close();
  await transport.close();
  await directory.remove();
});

/** A node whose kubelet is the stand-in. */
async function node(): Promise<string> {
  const name = `evidence-${randomBytes(4).toString('hex')}`;
  await server.admin.expect('POST', '/api/v1/nodes', {
    body: { apiVersion: 'v1', kind: 'Node', metadata: { name } },
  });
  await server.admin.expect('PATCH', `/api/v1/nodes/${name}/status`, {
    type: 'application/merge-patch+json',
    body: {
      status: {
        addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
        daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
      },
    },
  });
  stops.push(async () => void (await server.admin.request('DELETE', `/api/v1/nodes/${name}`)));
  return name;
}

/** A pod that the API server knows, and the probe that would run in it. */
async function probe(namespace: string, nodeName: string) {
  const name = `ovs-ovn-${randomBytes(3).toString('hex')}`;
  await serviceAccountToken(server.admin, namespace, 'ovn-ovs');
  const made = await server.admin.expect('POST', `/api/v1/namespaces/${namespace}/pods`, {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        nodeName,
        serviceAccountName: 'ovn-ovs',
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'keelson-probe', image: 'none' }],
      },
    },
  });
  const podUID = String(made.body.metadata.uid);
  await server.admin.expect('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}/status`, {
    type: 'application/merge-patch+json',
    body: { status: { phase: 'Running' } },
  });
  const subject: EvidenceSubject = {
    namespace,
    pod: name,
    podUID,
    container: 'keelson-probe',
    node: nodeName,
    nodeBootID: 'boot',
  };
  const [tokenFile, authoritiesFile] = [join(directory.path, `${name}.token`), join(directory.path, `${name}.crt`)];
  const pod = { name, uid: podUID };
  const token = await serviceAccountToken(server.admin, namespace, 'ovn-ovs', { audiences: [evidenceAudience], pod });
  await writeFile(tokenFile, token);
  const end = new AbortController();
  const listening = Promise.withResolvers<number>();
  const running = runProbe(
    {
      kind: 'chassis',
      collectors: chassisCollectors,
      subject,
      version: 'test',
      clock: systemClock,
      random: Math.random,
      ports: [0],
      host: '127.0.0.1',
      authoritiesFile,
      tokenFile,
      makeOffer: () => makeOffer(subject, ['127.0.0.1'], systemClock.now()),
      log: (message) => said.push(message),
      onListening: listening.resolve,
    },
    end.signal,
  );
  stops.push(async () => {
    end.abort();
    await running;
  });
  const target: ProbeTarget<'chassis'> = { ...subject, kind: 'chassis', addresses: ['127.0.0.1'] };
  return { target, port: await listening.promise, token, tokenFile, authoritiesFile };
}

type Probe = Awaited<ReturnType<typeof probe>>;

/** What a kubelet does with the ConfigMap in a pod's volume. */
async function refresh(namespace: string, { authoritiesFile }: Pick<Probe, 'authoritiesFile'>): Promise<void> {
  const { body } = await server.admin.expect('GET', `/api/v1/namespaces/${namespace}/configmaps/${evidenceTrust.name}`);
  await writeFile(authoritiesFile, String(body.data[evidenceTrust.key]));
}

function keeper(namespace: string, timings: Partial<KeeperTimings> = {}): AuthorityKeeper {
  const log = (_level: string, message: string) => void said.push(message);
  return new AuthorityKeeper({ client, clock: systemClock, namespace, probeNamespaces: [namespace], timings, log });
}

const pulling = (kept: AuthorityKeeper, ports: readonly number[], ways?: readonly Way[]): PullOptions => ({
  clock: systemClock,
  trust: () => kept.trust(),
  enroller: { validity: () => kept.validity(), review: (token, limit) => reviewToken(client, token, limit) },
  ways: () => ways ?? [directWay('127.0.0.1', 2_000)],
  ports: () => ports,
  limitMs: 10_000,
  log: (message) => said.push(message),
});

const secretPath = (namespace: string): string => `/api/v1/namespaces/${namespace}/secrets/${evidenceSecret}`;

test('a probe is enrolled by its token, and by no other', async () => {
  const namespace = await freshNamespace(server.admin, 'evidence');
  const kept = keeper(namespace);
  await kept.step(signal);
  const [a, b] = [await probe(namespace, await node()), await probe(namespace, await node())];
  await Promise.all([refresh(namespace, a), refresh(namespace, b)]);
  const good = await pullEvidence(a.target, pulling(kept, [a.port]), signal);
  assert.is(good.type, 'Evidence', JSON.stringify(good));
  await writeFile(b.tokenFile, a.token);
  const stolen = await pullEvidence(b.target, pulling(kept, [b.port]), signal);
  assert.match(JSON.stringify(stolen), /Untrusted.*the token is one of pod/);
  await writeFile(b.tokenFile, await serviceAccountToken(server.admin, namespace, 'ovn-ovs'));
  const ordinary = await pullEvidence(b.target, pulling(kept, [b.port]), signal);
  assert.match(JSON.stringify(ordinary), /Untrusted.*(audience|does not know)/);
  const unbound = await serviceAccountToken(server.admin, namespace, 'ovn-ovs', { audiences: [evidenceAudience] });
  await writeFile(b.tokenFile, unbound);
  assert.match(JSON.stringify(await pullEvidence(b.target, pulling(kept, [b.port]), signal)), /not bound to a pod/);
  await writeFile(b.tokenFile, b.token);
  assert.is((await pullEvidence(b.target, pulling(kept, [b.port]), signal)).type, 'Evidence');
  // One that was never reviewed: the API server hears of a deletion by a watch, and remembers for seconds what it found good.
  const gone = await probe(namespace, a.target.node);
  const path = `/api/v1/namespaces/${namespace}/pods/${gone.target.pod}`;
  await server.admin.expect('DELETE', path, { query: { gracePeriodSeconds: '0' } });
  await waitFor({
    what: 'the token of a pod that is gone to be refused',
    limitMs: 30_000,
    intervalMs: 200,
    clock: systemClock,
    probe: async (saw) => {
      const { type } = await reviewToken(client, gone.token, signal);
      saw(type);
      return type === 'refused' ? true : undefined;
    },
  });
});

test('where the network is broken the kubelet forwards, with the same proof', async () => {
  const namespace = await freshNamespace(server.admin, 'evidence');
  const kept = keeper(namespace);
  await kept.step(signal);
  const one = await probe(namespace, await node());
  await refresh(namespace, one);
  places.set(10674, one.port);
  const blocked: Way = async () => ({ type: 'unreachable', message: 'blocked' });
  const forwarded = kubeletWay(staticCredentials(server), one.target, 5_000);
  const outcome = await pullEvidence(one.target, pulling(kept, [10674], [blocked, forwarded]), signal);
  assert.is(outcome.type, 'Evidence', JSON.stringify(outcome));
  assert.ok(kubelet.paths.every((path) => path.startsWith(`/portForward/${namespace}/${one.target.pod}`)));
  const other = { ...one.target, podUID: '00000000-0000-4000-8000-000000000000' };
  const wrong = await pullEvidence(other, pulling(kept, [10674], [blocked, forwarded]), signal);
  assert.is(wrong.type, 'Untrusted');
  const dead = await pullEvidence(one.target, pulling(kept, [10675], [blocked, forwarded]), signal);
  assert.is(dead.type, 'Unreachable', 'the kubelet answers, and nobody behind it');
  const nobody = kubeletWay(staticCredentials(server), { namespace, pod: 'absent' }, 5_000);
  assert.is((await pullEvidence(one.target, pulling(kept, [10674], [nobody]), signal)).type, 'Unreachable');
});

test('an authority is replaced without a moment in which there is no evidence', async () => {
  const namespace = await freshNamespace(server.admin, 'evidence');
  const one = await probe(namespace, await node());
  // A second executor, started in the middle of it, knows only what is stored.
  const keepers = [keeper(namespace, { spreadMs: 0, retireMs: 0 }), keeper(namespace, { spreadMs: 0, retireMs: 0 })];
  const [kept, successor] = keepers;
  if (kept === undefined || successor === undefined) throw new Error('two keepers are needed');
  await kept.step(signal);
  await refresh(namespace, one);
  const ask = async (by: AuthorityKeeper, when: string) => {
    const outcome = await pullEvidence(one.target, pulling(by, [one.port]), signal);
    assert.is(outcome.type, 'Evidence', `${when}: ${JSON.stringify(outcome)}`);
  };
  await ask(kept, 'steady');
  const before = kept.trust()?.signer.id;
  await server.admin.expect('PATCH', secretPath(namespace), {
    type: 'application/merge-patch+json',
    body: { metadata: { annotations: { 'keelson.dev/rotate': 'r1' } } },
  });
  await kept.step(signal);
  assert.is(kept.trust()?.signer.id, before);
  assert.is(kept.trust()?.identities.length, 2);
  await ask(kept, 'introduced, not refreshed');
  await refresh(namespace, one);
  await ask(kept, 'introduced');
  await kept.step(signal);
  assert.is.not(kept.trust()?.signer.id, before);
  await ask(kept, 'promoted');
  const { body } = await server.admin.expect('GET', secretPath(namespace));
  assert.equal(Object.keys(body.data).sort(), [
    'answered',
    'previous.crt',
    'previous.key',
    'since',
    'tls.crt',
    'tls.key',
  ]);
  // It tells probes first whom to believe: the others may not have come to it.
  await successor.step(signal);
  await ask(successor, 'promoted, another executor');
  await successor.step(signal);
  await ask(successor, 'retired, another executor');
  await refresh(namespace, one);
  await ask(successor, 'retired, refreshed');
  assert.is(successor.trust()?.identities.length, 1);
  const last = await server.admin.expect('GET', secretPath(namespace));
  assert.equal(Object.keys(last.body.data).sort(), ['answered', 'tls.crt', 'tls.key']);
});

test('an authority that was brought along is used, never written, and followed when it is replaced', async () => {
  const namespace = await freshNamespace(server.admin, 'evidence');
  const donor = await freshNamespace(server.admin, 'evidence');
  const provide = async (method: 'POST' | 'PUT') => {
    await server.admin.request('DELETE', secretPath(donor));
    await keeper(donor).step(signal);
    const { data } = (await server.admin.expect('GET', secretPath(donor))).body;
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: evidenceSecret },
      type: 'kubernetes.io/tls',
      data,
    };
    const path = method === 'POST' ? `/api/v1/namespaces/${namespace}/secrets` : secretPath(namespace);
    await server.admin.expect(method, path, { body: secret });
  };
  await provide('POST');
  const one = await probe(namespace, await node());
  const kept = keeper(namespace);
  await kept.step(signal);
  await refresh(namespace, one);
  assert.is((await pullEvidence(one.target, pulling(kept, [one.port]), signal)).type, 'Evidence');
  await provide('PUT');
  const { resourceVersion } = (await server.admin.expect('GET', secretPath(namespace))).body.metadata;
  await kept.step(signal);
  assert.is((await pullEvidence(one.target, pulling(kept, [one.port]), signal)).type, 'Evidence', 'not refreshed');
  await refresh(namespace, one);
  assert.is((await pullEvidence(one.target, pulling(kept, [one.port]), signal)).type, 'Evidence');
  const after = await server.admin.expect('GET', secretPath(namespace));
  assert.is(after.body.metadata.resourceVersion, resourceVersion);
});

test('what can not be read leaves what was', async () => {
  const namespace = await freshNamespace(server.admin, 'evidence');
  const kept = keeper(namespace);
  await kept.step(signal);
  const before = kept.trust();
  await server.admin.expect('PATCH', secretPath(namespace), {
    type: 'application/merge-patch+json',
    body: { data: { 'tls.key': Buffer.from('canary-key-9c1').toString('base64') } },
  });
  await kept.step(signal);
  assert.is(kept.trust(), before);
  assert.match(said.join('\n'), /tls\.key is not the key of tls\.crt/);
});

test('a person sees who signs and who is believed, and asks for another authority', async () => {
  const namespace = await freshNamespace(server.admin, 'evidence');
  const keelson = async (...args: string[]) => {
    const invocation: Invocation = {
      env: { KUBECONFIG: server.kubeconfig },
      cwd: directory.path,
      clock: systemClock,
      random: Math.random,
      signal,
      out: (text) => said.push(text),
      err: (text) => said.push(text),
      terminal: false,
    };
    const code = await main([...args, '-n', namespace], invocation);
    return { code, said: String(said.at(-1)) };
  };
  const missing = await keelson('pki', 'status');
  assert.is(missing.code, 1);
  assert.match(missing.said, /evidence-ca does not exist/);
  const kept = keeper(namespace);
  await kept.step(signal);
  const first = String(kept.trust()?.signer.id.slice(0, 12));
  assert.match(
    (await keelson('pki', 'status')).said,
    new RegExp(`made by the executor, steady[\\s\\S]*${first} +signs`),
  );
  assert.match((await keelson('pki', 'rotate')).said, /asked for/);
  const again = await keelson('pki', 'rotate');
  assert.is(again.code, 1);
  assert.match(again.said, /the executor has not begun/);
  await kept.step(signal);
  const { stage, asked, authorities, next } = JSON.parse((await keelson('pki', 'status', '-o', 'json')).said);
  assert.equal([stage, asked, next.step], ['introduced', false, 'promote']);
  assert.equal(
    authorities.map(({ does }: { does: string }) => does),
    ['signs', 'believed'],
  );
  assert.is(authorities[0].id, first);
  assert.match((await keelson('pki', 'rotate')).said, /it is introduced for/);
});

test('no key and no token is in anything that was said', async () => {
  const all = said.join('\n');
  assert.not.match(all, /PRIVATE KEY|canary-key|eyJ/);
  assert.ok(said.length > 0);
  // The ConfigMap that everybody may read holds certificates only.
  const maps = await server.admin.expect('GET', '/api/v1/configmaps', {
    query: { fieldSelector: `metadata.name=${evidenceTrust.name}` },
  });
  assert.ok(maps.body.items.length > 0);
  assert.not.match(JSON.stringify(maps.body), /PRIVATE KEY/);
});

test.run();
