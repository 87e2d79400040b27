// time limit: 90s
/**
 * Executors as processes, and evidence servers that they enrol and ask for real: one that is killed in the middle of a round, one
 * that is stopped in the middle of one, and one that stands by. What a status says of the data plane is followed write by write.
 */
import { randomInt } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { evidenceTrust, labels, networkNamespace, ports, systemNamespace } from '../../constructs/api/constants.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { Reflector } from '../../executor/kube/reflector.ts';
import { bundleInParts } from '../../images/bundle.ts';
import type { Collectors } from '../../probes/server/collector.ts';
import { makeOffer } from '../../probes/server/offer.ts';
import { runProbe } from '../../probes/server/run.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { type MadeCluster, makeCluster } from '../bench/evidence/cluster.ts';
import { objectsOf } from '../bench/place.ts';
import { chassisCollectors } from '../pure/evidence-bed.ts';
import type { Member } from '../pure/evidence-fleet.ts';
import { type TiedDirectory, tiedDirectory } from '../tools/directory.ts';
import { type ExecutorProcess, startExecutorProcess } from './executor-process.ts';
import { edgeOf, until } from './kubeBed.ts';

interface Context {
  server: ApiServer;
  place: TiedDirectory;
  cluster: MadeCluster;
}

const test = suite<Context>('evidence process');
const top = join(import.meta.dirname, '../..');
const over = new AbortController();
const ended: Promise<unknown>[] = [];
const started: ExecutorProcess[] = [];
const nodes = 3;
/** A net of this run alone, so that the ports of the daemons' sidecars are free in it. */
const net = `127.${randomInt(100, 250)}.${randomInt(1, 250)}`;
const addressOf = (n: number): string => `${net}.${n + 1}`;

/** What the daemons say, and whether anybody who asks from now on has to wait for it. */
const world = { systemIDs: ['a', 'b', 'c'], connected: [true, true, true] };
let gate: PromiseWithResolvers<void> | undefined;
let waiting = 0;

/** Holds up what is asked from now on. What it says then is what was so when it was asked. */
function hold(): PromiseWithResolvers<void> {
  gate = Promise.withResolvers<void>();
  waiting = 0;
  return gate;
}

const collectorsOf = (n: number, asked: () => void): Collectors<'chassis'> => ({
  ...chassisCollectors,
  ovsdb: {
    limitMs: 60_000,
    async collect(signal) {
      asked();
      const systemID = world.systemIDs[n] ?? '';
      const facts = await chassisCollectors.ovsdb.collect(signal);
      if (gate !== undefined) {
        waiting += 1;
        await gate.promise;
      }
      return facts.type === 'ok'
        ? { ...facts, value: { ...facts.value, systemID, encaps: [{ type: 'geneve', ip: addressOf(n) }] } }
        : facts;
    },
  },
  controller: {
    limitMs: 60_000,
    async collect(signal) {
      const connected = world.connected[n] === true;
      const facts = await chassisCollectors.controller.collect(signal);
      return facts.type === 'ok' ? { ...facts, value: { ...facts.value, connected } } : facts;
    },
  },
});

/** Starts the sidecar of a pod; answers which port it has, and how to end it. */
async function serve(
  { subject, address, token }: Member,
  n: number,
  folder: string,
  asked = (): void => undefined,
): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const end = new AbortController();
  const tokenFile = join(folder, `token-${subject.podUID}`);
  await writeFile(tokenFile, token);
  const listening = Promise.withResolvers<number>();
  const running = runProbe(
    {
      kind: 'chassis',
      collectors: collectorsOf(n, asked),
      subject,
      version: 'test',
      clock: systemClock,
      random: Math.random,
      ports: [ports.chassis, ports.chassisSpare],
      host: address,
      authoritiesFile: join(folder, 'ca.crt'),
      tokenFile,
      makeOffer: () => makeOffer(subject, [address], Date.now()),
      log: () => undefined,
      onListening: listening.resolve,
    },
    AbortSignal.any([over.signal, end.signal]),
  );
  ended.push(running);
  return {
    port: await listening.promise,
    async stop() {
      end.abort();
      await running;
    },
  };
}

/** The sidecars, by the number of their node. */
let sidecars: Awaited<ReturnType<typeof serve>>[] = [];

/** Who leads, and who stands by. */
let leader: ExecutorProcess | undefined;
let idle: ExecutorProcess | undefined;

/** What was told of the data plane, each word once until it is another one. */
const history: string[] = [];
const last = (): string | undefined => history.at(-1);
const tells = (word: string, limitMs = 20_000): Promise<void> =>
  until(`the data plane to be ${word}: ${history.join(', ')}`, () => last() === word, limitMs).catch((error) => {
    throw new Error(`${error.message}; told was ${history.join(', ')}`);
  });

async function start({ server, place }: Context): Promise<ExecutorProcess> {
  const flags = ['--page-port', '0', '--evidence', '--test-observe-interval', '300ms'];
  const program = join(place.path, 'program', 'keelson.mjs');
  const made = await startExecutorProcess({ server, namespace: systemNamespace, program, folder: place.path, flags });
  started.push(made);
  return made;
}

/** Writes of the status that went through. */
const told = ({ proxy }: ExecutorProcess): number =>
  proxy.plan.requests({ mutating: true, resource: 'kubeovninstallations' }).filter(({ status }) => status === 200)
    .length;

test.before(async (context) => {
  context.place = await tiedDirectory('keelson-evidence-process-');
  const folder = context.place.path;
  const bundled = bundleInParts(join(top, 'bin/keelson.ts'), join(folder, 'program'));
  context.server = await startApiServer({ tools: { onProgress: (line) => console.error(line) } });
  const { admin } = context.server;
  await admin.expect('POST', '/api/v1/namespaces', {
    body: {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: systemNamespace, labels: { [labels.testCluster]: 'true' } },
    },
  });
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  await Promise.all(
    objectsOf(join(top, 'constructs/api/generated/crds')).map((body) => admin.expect('POST', definitions, { body })),
  );
  await mkdir(join(folder, 'tokens'));
  const cluster = await makeCluster(admin, { nodes, hangs: () => false, addressOf });
  context.cluster = cluster;
  sidecars = await Promise.all(cluster.members.map((member, n) => serve(member, n, join(folder, 'tokens'))));
  await until('installations are served', async () => {
    const { status } = await admin.request('GET', '/apis/network.keelson.dev/v1alpha1/kubeovninstallations');
    return status === 200;
  });
  await cluster.install();
  const edge = edgeOf(context.server);
  const watch = new Reflector({
    client: edge.client,
    clock: systemClock,
    random: Math.random,
    selection: { apiVersion: 'network.keelson.dev/v1alpha1', kind: 'KubeOVNInstallation', namespace: networkNamespace },
    handler: (event) => {
      if (event.type === 'synced') return;
      const conditions = (event.object.status?.conditions ?? []) as { type: string; status: string; reason: string }[];
      const found = conditions.find(({ type }) => type === 'DataPlaneReady');
      const word = `${found?.status}/${found?.reason}`;
      if (found !== undefined && last() !== word) history.push(word);
    },
  });
  ended.push(watch.run(over.signal).then(() => edge.transport.close()));
  await bundled;
});

test.after(async ({ server, place }) => {
  gate?.resolve();
  await Promise.all(started.map((one) => one.end()));
  over.abort();
  await Promise.all(ended);
  await server.stop();
  await place.remove();
});

test('of two executors one asks and tells; the other asks nobody, and writes nothing but its word for the Lease', async (context) => {
  const both = await Promise.all([start(context), start(context)]);
  const { admin } = context.server;
  const trust = `/api/v1/namespaces/${networkNamespace}/configmaps/${evidenceTrust.name}`;
  let bundle = '';
  await until('probes are told whom to believe', async () => {
    const { body } = await admin.request('GET', trust);
    bundle = String(body?.data?.[evidenceTrust.key] ?? '');
    return bundle !== '';
  });
  await writeFile(join(context.place.path, 'tokens', 'ca.crt'), bundle);
  await tells('True/ChassisConnected');
  [idle, leader] = both.toSorted((a, b) => told(a) - told(b));
  assert.ok(idle && leader && told(leader) > 0);
  // Beside that it finds out which kinds there are, and whether this is a test cluster.
  const asked = idle.proxy.plan.log.filter(({ resource }) => !['', 'leases', 'namespaces'].includes(resource));
  assert.equal(
    asked.map(({ method, path }) => `${method} ${path}`),
    [],
  );
  assert.is(idle.proxy.plan.mutations().filter(({ status }) => status === 200 || status === 201).length, 0);
});

test('killed in the middle of a round: nothing is True before the next process has seen it, and it knows nothing of before', async () => {
  assert.ok(leader && idle);
  // What only a comparison shows: a chassis that became another one is told for ten minutes.
  world.systemIDs[1] = 'another';
  await tells('False/ChassisIDChanged');
  const held = hold();
  await until('a round is under way', () => waiting === nodes);
  const before = history.length;
  waiting = 0;
  await leader.kill();
  await until('the next process asks', () => waiting === nodes, 20_000);
  await tells('Unknown/RoundPending');
  gate = undefined;
  held.resolve();
  await tells('True/ChassisConnected');
  assert.equal(history.slice(before), ['Unknown/RoundPending', 'True/ChassisConnected']);
  assert.ok(told(idle) > 0);
  leader = idle;
});

test('stopped in the middle of a round and woken up after another one took over: what it was told late it tells nobody', async (context) => {
  const stopped = leader;
  assert.ok(stopped);
  const other = await start(context);
  await until('it stands by', () => other.proxy.plan.count({ verb: 'get', resource: 'leases' }) > 1, 20_000);
  const held = hold();
  await until('a round is under way', () => waiting === nodes);
  stopped.signal('SIGSTOP');
  gate = undefined;
  world.connected[0] = false;
  const before = history.length;
  await tells('False/ChassisDisconnected');
  stopped.proxy.plan.resetLog();
  held.resolve();
  stopped.signal('SIGCONT');
  await until('it knows that it lost its Lease', () => stopped.said('lease stopped'), 20_000);
  await until('it stands by', () => stopped.proxy.plan.count({ verb: 'get', resource: 'leases' }) > 1, 20_000);
  const written = stopped.proxy.plan.mutations().filter(({ status }) => status === 200 || status === 201);
  assert.equal(
    written.map(({ method, path }) => `${method} ${path}`),
    [],
  );
  world.connected[0] = true;
  await tells('True/ChassisConnected');
  const since = history.slice(before).filter((word) => word !== 'Unknown/RoundPending');
  assert.equal(since, ['False/ChassisDisconnected', 'True/ChassisConnected']);
});

test('a pod that comes beside the one that goes has the spare port, and is the one that is asked', async (context) => {
  const { cluster, place, server } = context;
  const before = history.length;
  const next = await cluster.surge(2);
  let asked = 0;
  const sidecar = await serve(next, 2, join(place.path, 'tokens'), () => {
    asked += 1;
  });
  assert.equal([sidecars[2]?.port, sidecar.port], [ports.chassis, ports.chassisSpare]);
  await until('it is asked', () => asked > 1);
  await tells('True/ChassisConnected');
  await sidecars[2]?.stop();
  const pods = `/api/v1/namespaces/${networkNamespace}/pods`;
  await server.admin.expect('DELETE', `${pods}/ovs-ovn-2`, { query: { gracePeriodSeconds: '0' } });
  const then = asked;
  await until('it is asked on', () => asked > then + 1);
  assert.is(last(), 'True/ChassisConnected');
  assert.not.ok(
    history.slice(before).some((word) => word.startsWith('False')),
    history.join(),
  );
});

test.run();
