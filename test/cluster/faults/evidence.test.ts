// time limit: 1500s
/**
 * Live evidence on three real nodes: a network that is Ready because it was looked at, and what its status says of everything
 * that goes wrong with it. `KEELSON_OBSERVE=production` observes at the executor's own pace.
 */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ports, probeContainers } from '../../../constructs/api/constants.ts';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { getAt, isObject, type JsonObject, objectsOf } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import { conditionOf, requestsOf, textAt, until } from '../suite/pipeline-look.ts';
import { type Besides, type EvidenceBed, evidenceBed, type Played } from './evidence-bed.ts';
import { burdened, burdenTold } from './evidence-burden.ts';
import { judgeFault, parts } from './evidence-judge.ts';
import { type Fault, type FaultName, faults } from './evidence-matrix.ts';
import { packetsMet, portTaken, rules } from './node-tools.ts';

const production = process.env.KEELSON_OBSERVE === 'production';
let beds: EvidenceBed | undefined;
const played: [string, Played][] = [];

const bed = (): EvidenceBed => {
  if (beds === undefined) throw new Error('the cluster did not start');
  return beds;
};

test.before(async () => {
  beds = await evidenceBed(production ? undefined : '1s');
});
test.after(async () => {
  const seconds = (ms: number | undefined): string => (ms === undefined ? '-' : `${(ms / 1000).toFixed(1)} s`);
  for (const [name, { node, toldMs, backMs }] of played)
    console.log(`${name} on ${node}: told after ${seconds(toldMs)}, back after ${seconds(backMs)}`);
  await beds?.close();
});

test('X1: a fresh install is Ready by VerificationComplete, and not before packets were seen to arrive', async () => {
  const { watch, bed: user } = bed();
  const { look } = user;
  await user.keelson('deliver');
  await watch.rest(300_000);
  const installation = await look.installation();
  assert.is(conditionOf(installation, 'Ready')?.reason, 'VerificationComplete');
  assert.not.equal(textAt(installation, '/status/applyCheckpoint/specDigest'), '');
  assert.not.equal(textAt(installation, '/status/topology/inventory/uid'), '');
  const writes = watch.since(Number.NEGATIVE_INFINITY);
  for (const { conditions } of writes)
    if (conditions.Ready?.status === 'True')
      for (const type of parts) assert.is(conditions[type]?.status, 'True', `Ready before ${type}`);
  // Progress: the databases were seen before the data plane was, and that before any packet.
  const first = (type: string): number =>
    writes.find(({ conditions }) => conditions[type]?.status === 'True')?.at ?? Number.POSITIVE_INFINITY;
  const order = ['OVNDBReady', 'DataPlaneReady', 'NetworkReady', 'Ready'].map(first);
  assert.equal(
    order,
    order.toSorted((a, b) => a - b),
  );
});

/** What the installation was told of in Events, by reason and count. */
async function events(): Promise<string[]> {
  const listed = await bed().bed.look.client.list({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    namespace: 'kube-system',
  });
  if (listed.type !== 'listed') throw new Error(listed.message);
  return listed.items
    .filter(({ regarding }) => isObject(regarding) && regarding.kind === 'KubeOVNInstallation')
    .map((event) => `${event.metadata.name} ${JSON.stringify(event.series ?? null)}`)
    .sort();
}

const database = async (name: string): Promise<JsonObject> => {
  const databases = getAt((await bed().bed.look.installation()) ?? {}, '/status/topology/databases');
  return objectsOf(databases).find((one) => one.name === name) ?? {};
};

/** UIDs of the pods of the network that are not on a node: what is on one that is gone, Kubernetes takes after a while. */
async function podsElsewhere(node: string): Promise<string[]> {
  const listed = await bed().bed.look.client.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system' });
  if (listed.type !== 'listed') throw new Error(listed.message);
  return listed.items.flatMap(({ spec, metadata }) => (spec?.nodeName === node ? [] : [metadata.uid ?? ''])).sort();
}

/** How many requests the executor that leads has sent to delete something. */
async function deletions(): Promise<number> {
  const { look } = bed().bed;
  const { pod = '' } = (await look.leader()) ?? {};
  return (await requestsOf(look, pod)).DELETE ?? 0;
}

/** The term of a database that its members agreed on in the last round. */
const termOf = (database: string): bigint => {
  const terms = bed()
    .watch.report()
    .members.filter((member) => member.database === database)
    .map(({ term }) => term ?? '');
  assert.is(new Set(terms).size, 1, `members are of one term: ${terms.join(', ')}`);
  return BigInt(terms[0] ?? '');
};

const besides: Partial<Record<FaultName, Besides>> = {
  'server-killed': async (node) => async () => {
    const places = objectsOf((await database('OVN_Northbound')).members).map((member) => member.node);
    assert.is(places.length, 2, 'evidence of the others is left');
    assert.not.ok(places.includes(node), 'evidence of the dead one is gone');
  },
  'leadership-moved': async (node) => {
    const [term, told] = [termOf('OVN_Northbound'), await events()];
    return async () => {
      const now = await database('OVN_Northbound');
      const leader = objectsOf(now.members).find(({ serverID }) => serverID === now.leader);
      assert.is.not(leader?.node, node);
      assert.is(String(now.term), String(term + 1n), 'one election, and no more');
      assert.equal(await events(), told, 'nobody is told of what is no fault');
    };
  },
  'node-cordoned': async (name) => {
    const { bed: user, watch } = bed();
    const relieve = await burdened(user, user.cluster.node(name));
    return async () => {
      try {
        await burdenTold(() => watch.report(), name);
      } finally {
        await relieve();
      }
    };
  },
  'node-deleted': async (node) => {
    const [pods, deleted] = [await podsElsewhere(node), await deletions()];
    return async () => {
      const left = new Set(await podsElsewhere(node));
      assert.equal(
        pods.filter((uid) => !left.has(uid)),
        [],
        'whoever is on another node stays',
      );
      assert.is(await deletions(), deleted, 'nothing is removed by itself');
    };
  },
};

for (const fault of faults) {
  const { scenario }: Fault = fault;
  test(`${scenario === undefined ? '' : `${scenario}: `}${fault.broken}`, async () => {
    played.push([fault.name, await bed().play(fault, besides[fault.name])]);
  });
}

test('a sidecar that can not be reached directly is asked through the kubelet, and nothing moves', async () => {
  const { watch, leaderNode, bed: user } = bed();
  const before = await watch.rest(120_000);
  const leads = await leaderNode();
  const node = user.cluster.nodes.find(({ name }) => name !== leads);
  assert.ok(node !== undefined);
  const direct = ['!', '-i', 'lo', '-p', 'tcp', '--dport', String(ports.chassis), '-j', 'DROP'];
  const forwarded = ['-i', 'lo', '-p', 'tcp', '--dport', String(ports.chassis), '-j', 'ACCEPT'];
  const all = [forwarded, direct].map((match) => ({ chain: 'INPUT', match }));
  const doneAt = systemClock.monotonic();
  await rules(node.netns, '-I', all);
  try {
    await watch.judged(
      `a blocked port on ${node.name}`,
      { before, doneAt },
      (seen) => judgeFault(seen, [], [], { limitMs: 30_000, rounds: 3 }),
      120_000,
    );
    const [dropped = 0, through = 0] = await packetsMet(node.netns, 'INPUT');
    assert.ok(dropped > 0, 'the direct way was tried, and is shut');
    assert.ok(through > 0, 'the kubelet came by the loopback address');
    assert.is(watch.report().nodes.find(({ name }) => name === node.name)?.chassis.word, 'connected');
  } finally {
    await rules(node.netns, '-D', all);
  }
});

/** When the sidecar of a pod said something, in milliseconds since the epoch. */
async function saidAt(pod: string, words: RegExp): Promise<number | undefined> {
  const logs = ['-n', 'kube-system', 'logs', pod, '-c', probeContainers.chassis];
  const line = (await bed().bed.cluster.kubectl(logs)).split('\n').find((each) => words.test(each));
  return line === undefined ? undefined : Date.parse(String(JSON.parse(line).time));
}

test('beside the pod that it replaces a sidecar finds no port: it waits, its pod is Ready, and it takes the port that gets free', async () => {
  const { bed: user, watch } = bed();
  const { look, cluster } = user;
  const pods = async (): Promise<KubeObject[]> => {
    const listed = await look.client.list({
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'kube-system',
      labelSelector: 'app=ovs',
    });
    if (listed.type !== 'listed') throw new Error(listed.message);
    return [...listed.items];
  };
  await watch.rest(120_000);
  const old = new Map((await pods()).map((pod) => [pod.metadata.uid, textAt(pod, '/spec/nodeName')]));
  // The other port that a sidecar of a chassis may have is somebody else's on every node.
  const taken = await Promise.all(cluster.nodes.map(({ netns }) => portTaken(netns, ports.chassisSpare)));
  try {
    await cluster.kubectl(['-n', 'kube-system', 'rollout', 'restart', 'daemonset/ovs-ovn']);
    const fresh = await until('a sidecar that finds no port', 60_000, async (saw) => {
      for (const pod of await pods()) {
        if (old.has(pod.metadata.uid)) continue;
        const name = pod.metadata.name ?? '';
        const beside = [...old.values()].includes(textAt(pod, '/spec/nodeName'));
        const said = beside ? await saidAt(name, /no port is free/).catch(() => undefined) : undefined;
        saw(`${name}: ${textAt(pod, '/status/phase')}`);
        if (said !== undefined) return name;
      }
      return undefined;
    });
    const listening = await until('it to have a port', 90_000, () => saidAt(fresh, /listening on port/));
    const pod = (await pods()).find(({ metadata }) => metadata.name === fresh);
    const ready = conditionOf(pod, 'Ready');
    assert.is(ready?.status, 'True');
    assert.ok((ready?.since ?? Number.NaN) <= listening, 'its pod was Ready while it waited');
    const restarts = objectsOf(pod?.status?.containerStatuses).map(({ name, restartCount }) => [name, restartCount]);
    assert.equal([...new Set(restarts.map(([, count]) => count))], [0], JSON.stringify(restarts));
  } finally {
    for (const free of taken) await free();
  }
});

test.run();
