// time limit: 540s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { labels } from '../../../constructs/api/constants.ts';
import { isObject } from '../../../constructs/lib/json.ts';
import { type PipelineBed, pipelineBed } from './pipeline-bed.ts';
import { bulkObjects, carried, converged, intended, pruned, writeBulk } from './pipeline-bulk.ts';
import { Killer, type Moment } from './pipeline-kill.ts';
import { conditionOf, until } from './pipeline-look.ts';
import { expectGatesOpen, expectTold, untilVerified } from './pipeline-verified.ts';

/** The executor killed, cut off from the API server and powered off, at its work on three real nodes. */

let bed: PipelineBed;
let killer: Killer;

test.before(async () => {
  bed = await pipelineBed('faults');
  bed.edit('cluster.yaml', (text) =>
    text.replace('  executor:\n    #', '  executor:\n    testLeaseDuration: 5s\n    #'),
  );
  await bed.prepare();
  killer = new Killer(bed.look);
  await killer.bothRun();
});

test.after(async () => {
  await bed?.close();
});

const phaseWritten = (name: string): Moment => ({
  what: `phase ${name} to be written`,
  selection: {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    namespace: 'keelson-system',
    name: 'network-local',
  },
  reached: (objects) => {
    const [release] = objects.values();
    const phases = release?.status?.phases;
    return (Array.isArray(phases) ? phases : [])
      .filter(isObject)
      .some((phase) => phase.name === name && (phase.state === 'Waiting' || phase.state === 'Done'));
  },
});

const applied = (apiVersion: string, kind: string, count: number): Moment => ({
  what: `${count} ${kind} of the network`,
  selection: { apiVersion, kind, namespace: 'kube-system', labelSelector: `${labels.release}=network-local` },
  reached: (objects) => objects.size >= count,
});

const checkpointed: Moment = {
  what: 'the checkpoint of the installation',
  selection: { apiVersion: 'network.keelson.dev/v1alpha1', kind: 'KubeOVNInstallation', namespace: 'kube-system' },
  reached: (objects) => [...objects.values()].some((each) => isObject(each.status?.applyCheckpoint)),
};

test('the network is installed though the leader is killed five times on the way', async () => {
  const { look, cluster } = bed;
  await bed.keelson('deliver');
  const uids = new Map<string, string>();
  const moments = [
    checkpointed,
    applied('v1', 'ServiceAccount', 2),
    phaseWritten('central'),
    applied('apps/v1', 'DaemonSet', 1),
    phaseWritten('data-plane'),
  ];
  for (const moment of moments) {
    await killer.killAt(moment);
    for (const [id, { uid }] of await look.snapshot(look.payload('network-local'))) {
      assert.is(uids.get(id) ?? uid, uid, `${id} was made anew`);
      uids.set(id, uid);
    }
  }
  const follow = await bed.keelson('deliver', '--follow', '--timeout', '3m');
  assert.match(follow, /network-local {2}Reconciling {2}Completed 59\/59/);
  const live = await look.snapshot(look.payload('network-local'));
  assert.is(live.size, 59);
  for (const [id, uid] of uids) assert.is(live.get(id)?.uid, uid, `${id} was made anew`);
  expectGatesOpen(await look.release('network-local'));
  expectTold(await untilVerified(look, 120_000), cluster);
  const history = (await look.release('network-local'))?.status?.history;
  assert.equal(
    (Array.isArray(history) ? history : []).filter(isObject).map(({ digest, state }) => [digest, state]),
    [[look.digest('network-local'), 'Completed']],
  );
  // One template was ever rolled out: no workload was written with other content in between.
  const sets = await cluster.kubectl([
    '-n',
    'kube-system',
    'get',
    'replicasets',
    '-o',
    'jsonpath={.items[*].metadata.ownerReferences[0].name}',
  ]);
  assert.equal(sets.split(' ').sort(), ['kube-ovn-controller', 'kube-ovn-monitor', 'ovn-central']);
  for (const kind of ['deployments', 'daemonsets'])
    assert.match(
      await cluster.kubectl(['-n', 'kube-system', 'get', kind, '-o', 'jsonpath={.items[*].metadata.generation}']),
      /^1( 1)*$/,
    );
});

test('a release of forty objects converges whenever executors are killed, one or all of them', async () => {
  const steps: readonly ((revision: number) => Promise<void>)[] = [
    () => killer.killAt(intended).then(() => killer.killAt(carried(1, 12))),
    (revision) => killer.killAt(carried(revision, 6)),
    (revision) => killer.killAt(pruned(revision)),
    (revision) => killer.killAllAt(carried(revision, 20)),
  ];
  for (const [index, kill] of steps.entries()) {
    const before = await bulkObjects(bed);
    writeBulk(bed, index + 1);
    const [killed] = await Promise.allSettled([kill(index + 1), bed.ship(`Revision ${index + 1}`)]);
    if (killed.status === 'rejected') throw killed.reason;
    await converged(bed, index + 1, before);
  }
  assert.ok(killer.kills >= 10, `only ${killer.kills} kills`);
  assert.ok(killer.moves >= 5, `the other replica took over only ${killer.moves} times`);
  for (const { ms, waited } of killer.takeovers)
    if (waited) assert.ok(ms < 30_000, `a replica that waited took ${ms} ms to take over a Lease of 5 s`);
  const told = killer.takeovers.map(({ ms, waited }) => `${(ms / 1000).toFixed(1)}${waited ? '' : ' (restart)'}`);
  console.log(`${killer.kills} kills, ${killer.moves} times the other replica took over, after ${told.join(', ')} s`);
});

/** Whether the executor on a node leads, by its own account. */
const leads = async (node: string): Promise<string> =>
  /^keelson_leader (.*)$/m.exec(await bed.look.metrics(node))?.[1] ?? '';

test('an API server that dies in the middle, and stays away longer than a Lease counts, stops the work and loses none', async () => {
  const { cluster, look } = bed;
  const before = await bulkObjects(bed);
  await killer.bothRun();
  const processes = [...look.executors()];
  const node = await look.nodeOf((await look.leader())?.pod ?? '');
  assert.is(await leads(node), '1');
  writeBulk(bed, 5);
  const { what, selection, reached } = carried(5, 5);
  const [met] = await Promise.allSettled([
    killer.at({ what, selection, reached }).then(() => cluster.stopApiServer()),
    bed.ship('Revision 5'),
  ]);
  if (met.status === 'rejected') throw met.reason;
  try {
    await until('the leader to see that its Lease is over', 60_000, async () =>
      (await leads(node)) === '0' ? true : undefined,
    );
  } finally {
    await cluster.startApiServer();
  }
  await converged(bed, 5, before);
  assert.equal([...look.executors()], processes, 'no executor ended');
});

test('with the registry away nothing changes but what needs it, which is named, and heals with it', async () => {
  const { cluster, look, keelson } = bed;
  await cluster.stopRegistry();
  try {
    bed.write(
      'manifests/late/10-late/late.yaml',
      `apiVersion: apps/v1
kind: Deployment
metadata:
  name: late
  namespace: bulk
spec:
  selector:
    matchLabels:
      app: late
  template:
    metadata:
      labels:
        app: late
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: late
          image: docker.io/kubeovn/vpc-nat-gateway:v1.16.13
          command: [sleep, infinity]
`,
    );
    writeBulk(bed, 6);
    const before = await bulkObjects(bed);
    await bed.ship('Revision 6');
    await converged(bed, 6, before);
    const told = await until('the release to name what it waits for', 90_000, async (saw) => {
      const status = await keelson('status', 'manifests-late');
      saw(status);
      return /Deployment\.apps bulk\/late: 0 of 1 replicas are ready/.test(status) ? status : undefined;
    });
    assert.match(told, /manifests-late +Unknown +Waiting/);
    assert.is(conditionOf(await look.installation(), 'WorkloadsReady')?.status, 'True');
  } finally {
    await cluster.startRegistry();
  }
  await until('the image to come', 120_000, async (saw) => {
    const ready = conditionOf(await look.release('manifests-late'), 'Ready');
    saw(JSON.stringify(ready));
    return ready?.status === 'True' ? true : undefined;
  });
});

test('a node that loses its power in the middle of a delivery is seen, and comes back', async () => {
  const { cluster, look, keelson } = bed;
  const before = await bulkObjects(bed);
  const first = await look.leader();
  const node = await look.nodeOf(first?.pod ?? '');
  writeBulk(bed, 7);
  const [met] = await Promise.allSettled([
    killer.at(carried(7, 8)).then(() => cluster.stopNode(node)),
    bed.ship('Revision 7'),
  ]);
  if (met.status === 'rejected') throw met.reason;
  await converged(bed, 7, before);
  assert.is.not((await look.leader())?.pod, first?.pod);
  const broken = await until('the installation to see what is missing', 120_000, async (saw) => {
    const condition = conditionOf(await look.installation(), 'WorkloadsReady');
    saw(condition?.message ?? '');
    return condition?.status === 'False' ? condition : undefined;
  });
  assert.match(broken.message, /^\d+ of \d+ are ready; (DaemonSet|Deployment)\.apps kube-system\/[\w-]+: 2 of 3 /);
  assert.match(await keelson('status'), /network-local .*(central|data-plane)/);
  await cluster.startNode(node);
  await untilVerified(look, 120_000);
  const healed = await keelson('deliver', '--follow', '--timeout', '1m');
  assert.match(healed, /network-local {2}Reconciling {2}Completed 59\/59/);
});

test.run();
