// time limit: 540s
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { apiVersion, networkApiVersion, systemNamespace } from '../../../constructs/api/constants.ts';
import { systemClock } from '../../../constructs/lib/clock.ts';
import type { EvidenceReport } from '../../../executor/page/evidence.ts';
import { killAll } from '../processes.ts';
import { mustRun } from '../run.ts';
import { additions, clusterNamespaces, heldNamespaces, type MachineSnapshot, takeSnapshot } from './machine.ts';
import { expectAddressOutlivesService } from './pipeline-addresses.ts';
import { type PipelineBed, pipelineBed } from './pipeline-bed.ts';
import { expectGuarded } from './pipeline-guard.ts';
import {
  answered,
  asking,
  changed,
  conditionOf,
  configMap,
  type PayloadRef,
  preflightJobs,
  readyNodes,
  requestsOf,
  textAt,
  until,
} from './pipeline-look.ts';
import { expectNodeOutlivesSwitch, expectPingersAnswer, expectPortsAndTunnels } from './pipeline-ports.ts';
import { expectGatesOpen, expectTold, untilMeasured, untilVerified, wellObserved } from './pipeline-verified.ts';

/** The main job on three real nodes: from specs in Git to workloads that run, and what a user does afterwards. */

let bed: PipelineBed;
let before: MachineSnapshot = {};
const greeting = 'manifests/demo/10-base/greeting.yaml';
const farewell = 'manifests/demo/10-base/farewell.yaml';

test.before(async () => {
  before = await takeSnapshot();
  bed = await pipelineBed('pipeline', { addresses: true });
});

test.after(async () => {
  await bed?.close();
});

const everything = (): PayloadRef[] => [...bed.look.payload('network-local'), ...bed.look.payload('manifests-demo')];

test('specs in Git become a network and an application, in a cluster that has no CNI configuration', async () => {
  const { cluster, look, keelson } = bed;
  bed.write(farewell, configMap('farewell', 'goodbye'));
  for (const node of cluster.nodes) assert.is((await node.exec(['ls', '-A', '/etc/cni/net.d'])).stdout, '');
  await bed.prepare();
  assert.equal(await readyNodes(bed.look), [], 'nothing gives the nodes a network yet');
  const told = await keelson('deliver', '--follow', '--timeout', '3m');
  assert.match(told, /network-local {2}Syncing {2}central .*WorkloadsReady\(central\)/);
  assert.match(told, /network-local {2}Reconciling {2}Completed 59\/59 {2}Ready=True Completed/);
  assert.match(told, /manifests-demo {2}Reconciling {2}Completed 6\/6 {2}Ready=True Completed/);

  assert.is((await readyNodes(bed.look)).length, 3);
  const ready = (await look.nodes()).map((node) => conditionOf(node, 'Ready')?.since ?? 0);
  const live = await look.snapshot(everything());
  for (const ref of everything()) {
    const object = live.get(ref.id);
    assert.ok(object !== undefined, `${ref.id} is missing`);
    if (ref.phase === 'network-probe')
      assert.ok(object.created >= Math.max(...ready), `${ref.id} was made before all nodes were ready`);
    else if (ref.phase !== 'data-plane')
      assert.ok(object.created <= Math.min(...ready), `${ref.id} of ${ref.phase} was made after a node became ready`);
  }
  const phases = new Set(look.payload('network-local').map(({ phase }) => phase));
  assert.equal([...phases], ['definitions', 'access', 'central', 'data-plane', 'network-probe']);
});

test('the network is Ready by what was seen: databases, northd, every chassis, packets, the record of its members', async () => {
  const { cluster, look, keelson } = bed;
  const installation = await untilVerified(look, 60_000);
  expectGatesOpen(await look.release('network-local'));
  expectTold(installation, cluster);
  assert.match(conditionOf(installation, 'WorkloadsReady')?.message ?? '', /^(\d+) of \1 workloads/);
  const since = (type: string): number => conditionOf(installation, type)?.since ?? Number.NaN;
  assert.ok(since('NetworkReady') >= since('DataPlaneReady'), 'packets are sent once every chassis is connected');
  assert.ok(since('DataPlaneReady') >= since('OVNDBReady'), 'the data plane comes after the databases');
  assert.is((await preflightJobs(bed.look)).length, 0, 'the Jobs that looked at the nodes are gone');

  const status = await keelson('status');
  assert.match(status, /network-local +True +Completed/);
  assert.match(status, /network +kube-system\/local, Ready, Kube-OVN 1\.16\.13/);
  assert.match(status, /probe +12 of 12 checks passed on 3 nodes \(ipv4\)/);
  const evidence = JSON.parse(await keelson('evidence', '-o', 'json')) as EvidenceReport & { source: string };
  assert.is(evidence.source, 'executor', 'the executor that leads was asked');
  assert.equal(
    evidence.installations[0]?.nodes.map(({ name, kubelet, central, chassis, probe }) => [
      name,
      ...[kubelet, central, chassis, probe].map(({ state }) => state),
    ]),
    cluster.nodes.map(({ name }) => [name, 'well', 'well', 'well', 'well']),
  );
  const leader = await look.nodeOf((await look.leader())?.pod ?? '');
  const metrics = await untilMeasured(look, leader);
  assert.match(metrics, /^keelson_gate_state\{release="network-local",phase="network-probe",gate="NetworkReady"\} 1$/m);
  assert.match(await look.page(leader), /NetworkReady/);
  // What the record holds comes back into Git, and changes nothing of what is rendered.
  await keelson('inventory');
  await bed.commit('Take the recorded topology');
  assert.match(await keelson('publish'), /nothing differs .*no commit was made/);
});

test('OVN central is one RAFT cluster of three per database, with one leader and one active northd', async () => {
  const { cluster } = bed;
  const pods = (
    await cluster.kubectl(['-n', 'kube-system', 'get', 'pods', '-l', 'app=ovn-central', '-o', 'name'])
  ).split('\n');
  const members = pods.filter(Boolean);
  assert.is(members.length, 3);
  const inside = (pod: string, ...argv: string[]): Promise<string> =>
    cluster.kubectl(['-n', 'kube-system', 'exec', pod, '-c', 'ovn-central', '--', ...argv]);
  for (const [control, database] of [
    ['ovnnb_db', 'OVN_Northbound'],
    ['ovnsb_db', 'OVN_Southbound'],
  ] as const) {
    const told = await Promise.all(
      members.map((pod) => inside(pod, 'ovs-appctl', '-t', `/var/run/ovn/${control}.ctl`, 'cluster/status', database)),
    );
    const field = (name: string): string[] =>
      told.map((status) => new RegExp(`^${name}: (.*)$`, 'm').exec(status)?.[1] ?? '');
    assert.equal(field('Role').sort(), ['follower', 'follower', 'leader'], database);
    assert.equal([...new Set(field('Status'))], ['cluster member'], database);
    assert.is(new Set(field('Cluster ID')).size, 1, database);
    assert.is(new Set(field('Server ID')).size, 3, database);
    for (const status of told)
      for (const { ip } of cluster.nodes) assert.ok(status.includes(` at tcp:[${ip}]:`), `${database}: ${ip}`);
  }
  const northd = await Promise.all(members.map((pod) => inside(pod, 'ovn-appctl', '-t', 'ovn-northd', 'status')));
  assert.equal(northd.map((line) => line.trim()).sort(), ['Status: active', 'Status: standby', 'Status: standby']);
});

test('the application answers over its Service, from every node and from a pod', async () => {
  const { cluster } = bed;
  const address = await cluster.kubectl(['-n', 'demo', 'get', 'service', 'app', '-o', 'jsonpath={.spec.clusterIP}']);
  const script = asking(`http://${address}/`);
  for (const node of cluster.nodes)
    assert.is(await answered(['nsenter', `--net=${node.netns}`, process.execPath, '-e', script]), 'hello from Git\n');
  for (const each of [script, asking('http://app/'), asking('http://app.demo.svc.cluster.local/')]) {
    const answer = await cluster.kubectl(['-n', 'demo', 'exec', 'deploy/app', '--', '/bin/node', '-e', each]);
    assert.is(answer, 'hello from Git\n');
  }
});

test('a claimed address outlives its Service', () => expectAddressOutlivesService(bed));

test('pods are ports of OVN that reach each other through tunnels, and no node depends on its switch', async () => {
  const { cluster } = bed;
  await expectPingersAnswer(cluster);
  await expectPortsAndTunnels(cluster);
  const podIP = ['-n', 'demo', 'get', 'pods', '-o', 'jsonpath={.items[0].status.podIP} {.items[0].spec.nodeName}'];
  const [address, name = ''] = (await cluster.kubectl(podIP)).split(' ');
  await expectNodeOutlivesSwitch(cluster, cluster.node(name), `http://${address}:8080/`);
});

test('at rest no object changes: not by publishing and delivering again, not in a minute, not by a new leader', async () => {
  const { look, keelson } = bed;
  await untilVerified(look, 60_000);
  await keelson('deliver');
  const started = systemClock.monotonic();
  const earlier = await look.snapshot(everything());
  const commits = bed.published();
  const first = (await look.leader())?.pod ?? '';
  assert.match(await keelson('publish'), /nothing differs .*no commit was made/);
  assert.is(bed.published(), commits);
  assert.match(await keelson('deliver'), /0 created, 0 configured/);
  const atFirst = await requestsOf(bed.look, first);
  await until('half a minute to pass', 60_000, async () =>
    systemClock.monotonic() - started > 31_000 ? true : undefined,
  );
  const later = await requestsOf(bed.look, first);
  for (const method of ['POST', 'DELETE']) assert.is(later[method], atFirst[method], `${method} at rest`);
  // The time of what the installation tells is written anew every five minutes.
  assert.ok((later.PATCH ?? 0) - (atFirst.PATCH ?? 0) <= 1, `${atFirst.PATCH} and then ${later.PATCH} PATCH at rest`);
  const victim = look.executors().get(first);
  assert.ok(victim !== undefined, `the process of ${first} is not found`);
  await killAll([victim], systemClock);
  await until('the other replica to lead', 90_000, async (saw) => {
    const now = await look.leader();
    saw(`${now?.holder} leads`);
    return now !== undefined && now.pod !== first ? true : undefined;
  });
  await until('a minute to pass', 90_000, async () => (systemClock.monotonic() - started > 60_000 ? true : undefined));
  assert.equal(changed(earlier, await look.snapshot(everything())), []);
  const release = await look.release('manifests-demo');
  assert.is(conditionOf(release, 'Ready')?.status, 'True');
  assert.is(textAt(release, '/status/state'), 'Reconciling');
  console.log(`requests of the executor: ${JSON.stringify(atFirst)}, half a minute later ${JSON.stringify(later)}`);
});

test('an edit is planned, approved and carried out: one object configured, one pruned, all others untouched', async () => {
  const { cluster, look, keelson } = bed;
  await cluster.kubectl(['-n', 'demo', 'create', 'configmap', 'bystander', '--from-literal=mine=yes']);
  const refs = everything();
  const earlier = await look.snapshot(refs);
  bed.edit(greeting, (text) => text.replace('hello from Git', 'hello again'));
  bed.write(farewell, undefined);
  const plan = await keelson('plan');
  assert.match(plan, /release manifests-demo: free; 1 configured, 4 unchanged, 1 pruned/);
  assert.match(plan, /~ ConfigMap demo\/greeting/);
  assert.match(plan, /- ConfigMap demo\/farewell \(pruned\)/);
  assert.match(plan, /release network-local: none; 59 unchanged/);
  await bed.commit('Greet again');
  await keelson('publish');
  const unapproved = await bed.start('deliver', '--follow', '--timeout', '1m').ended;
  assert.is(unapproved.code, 1, unapproved.text);
  assert.match(unapproved.out, /manifests-demo .*ApprovalRequired/);
  assert.equal(changed(earlier, await look.snapshot(refs)), [], 'nothing is written without approval');
  const digest = /approve manifests-demo --plan (sha256:[0-9a-f]{64})/.exec(plan)?.[1] ?? '';
  const lines = await keelson('approve', 'manifests-demo', '--plan', digest);
  bed.edit('cluster.yaml', (text) => `${text.trimEnd()}\n${lines.replace(/^spec:\n/, '')}\n`);
  await bed.commit('Approve');
  await keelson('publish');
  assert.match(await keelson('deliver', '--follow', '--timeout', '1m'), /manifests-demo .*Ready=True Completed/);

  const now = await look.snapshot(refs);
  assert.equal(changed(earlier, now).sort(), ['/ConfigMap/demo/farewell', '/ConfigMap/demo/greeting']);
  assert.is(now.get('/ConfigMap/demo/greeting')?.uid, earlier.get('/ConfigMap/demo/greeting')?.uid);
  const texts = await cluster.kubectl(['-n', 'demo', 'get', 'configmaps', '-o', 'jsonpath={.items[*].metadata.name}']);
  assert.equal(texts.split(' ').sort(), ['bystander', 'greeting', 'kube-root-ca.crt']);
  const told = await look.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'greeting' });
  assert.is(textAt(told, '/data/text'), 'hello again');
});

test('a change that the checkpoint fixes is blocked, what was accepted stays enforced, and a revert heals', async () => {
  const { cluster, look, keelson } = bed;
  const accepted = textAt(await look.release('network-local'), '/status/actual');
  const earlier = await look.snapshot(everything());
  bed.edit('network.yaml', (text) => text.replace('networkStack: ipv4', 'networkStack: dual_stack'));
  await bed.commit('Two stacks');
  await keelson('publish');
  const said = await bed.start('deliver', '--follow', '--timeout', '1m').ended;
  assert.is(said.code, 1, said.text);
  assert.match(said.out, /network-local .*Ready=False ChangeBlocked .*no lifecycle carries this change out/);
  const blocked = await until('the installation to tell', 40_000, async (saw) => {
    const installation = await look.installation();
    saw(textAt(installation, '/status'));
    return textAt(installation, '/status/phase') === 'Blocked' ? installation : undefined;
  });
  const release = await look.release('network-local');
  for (const object of [release, blocked])
    for (const [type, status] of Object.entries({ Ready: 'False', Stalled: 'True', Failing: 'True' })) {
      assert.is(conditionOf(object, type)?.status, status, type);
      assert.is(conditionOf(object, type)?.reason, 'ChangeBlocked', type);
    }
  assert.is(textAt(release, '/status/actual'), accepted);
  // What was accepted is looked at as before.
  await until('all that is observed to be well, while the change is blocked', 60_000, async (saw) => {
    const installation = await look.installation();
    const open = ['WorkloadsReady', ...Object.keys(wellObserved)].filter(
      (type) => conditionOf(installation, type)?.status !== 'True',
    );
    saw(open.map((type) => `${type}: ${conditionOf(installation, type)?.message}`).join('; '));
    return open.length === 0 && textAt(installation, '/status/phase') === 'Blocked' ? true : undefined;
  });
  assert.equal(changed(earlier, await look.snapshot(everything())), []);

  const monitor = { apiVersion: 'v1', kind: 'Service', namespace: 'kube-system', name: 'kube-ovn-monitor' };
  await cluster.kubectl(['-n', 'kube-system', 'delete', 'service', monitor.name]);
  await until('the accepted payload to bring a deleted Service back', 90_000, () => look.get(monitor));

  bed.edit('network.yaml', (text) => text.replace('networkStack: dual_stack', 'networkStack: ipv4'));
  await bed.ship('One stack');
  await bed.keelson('deliver', '--follow', '--timeout', '1m');
  const healed = await look.release('network-local');
  assert.is(textAt(healed, '/status/desired'), accepted);
  assert.is(conditionOf(healed, 'Stalled'), undefined);
  assert.is(conditionOf(healed, 'Ready')?.status, 'True');
  expectTold(await untilVerified(look, 40_000), bed.cluster);
});

/** Annotates a Release as a person would. */
const annotate = (release: string, what: string): Promise<string> =>
  bed.cluster.kubectl(['-n', systemNamespace, 'annotate', 'release', release, what]);

const greets = async (): Promise<string> =>
  textAt(
    await bed.look.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'greeting' }),
    '/data/text',
  );

test('a hold keeps everything from being written, a pin enforces an earlier payload, and both are told', async () => {
  const { look, keelson } = bed;
  const former = textAt(await look.release('manifests-demo'), '/status/actual');
  await annotate('manifests-demo', 'keelson.dev/hold=looking');
  bed.edit(greeting, (text) => text.replace('hello again', 'hello held'));
  await bed.commit('While it is held');
  await keelson('publish');
  const held = await bed.start('deliver', '--follow', '--timeout', '1m').ended;
  assert.is(held.code, 1, held.text);
  assert.match(held.out, /manifests-demo .*held by annotation keelson\.dev\/hold: looking/);
  assert.match(await keelson('status'), /manifests-demo .*ReleaseHeld .*looking; nothing is written/);
  assert.is(await greets(), 'hello again');
  await annotate('manifests-demo', 'keelson.dev/hold-');
  await keelson('deliver', '--follow', '--timeout', '1m');
  assert.is(await greets(), 'hello held');

  await annotate('manifests-demo', `keelson.dev/pin=${former}`);
  await until('the pinned payload to be enforced', 60_000, async () =>
    (await greets()) === 'hello again' ? true : undefined,
  );
  bed.edit(greeting, (text) => text.replace('hello held', 'hello pinned'));
  await bed.commit('While it is pinned');
  await keelson('publish');
  const pinned = await bed.start('deliver', '--follow', '--timeout', '1m').ended;
  assert.is(pinned.code, 1, pinned.text);
  assert.match(pinned.out, new RegExp(`pinned to ${former}`));
  assert.match(await keelson('status'), /manifests-demo .*pinned to sha256:/);
  assert.is(conditionOf(await look.release('manifests-demo'), 'Pinned')?.status, 'True');
  assert.is(await greets(), 'hello again');
  await annotate('manifests-demo', 'keelson.dev/pin-');
  await keelson('deliver', '--follow', '--timeout', '1m');
  assert.is(await greets(), 'hello pinned');
});

test('with the pod network broken on every node, keelson deliver is accepted and carried out', async () => {
  const { cluster, look, keelson } = bed;
  // A folder in the place of the file: the node agent can not write it anew, and the runtime finds no network.
  const conflists = cluster.nodes.map((node) => join(node.root, 'etc/cni/net.d/01-kube-ovn.conflist'));
  for (const file of conflists) {
    rmSync(file);
    mkdirSync(file);
  }
  await until('all nodes to lose their network', 90_000, async () =>
    (await readyNodes(bed.look)).length === 0 ? true : undefined,
  );
  // No cluster address leads anywhere either.
  for (const node of cluster.nodes) {
    await node.stopService('kube-proxy');
    await mustRun(['nsenter', `--net=${node.netns}`, 'iptables', '-t', 'nat', '-F', 'KUBE-SERVICES']);
  }
  bed.edit(greeting, (text) => text.replace('hello pinned', 'hello in the dark'));
  bed.edit('manifests/demo/20-app/app.yaml', (text) => text.replace('replicas: 2', 'replicas: 3'));
  await bed.commit('Without a network');
  await keelson('publish');
  const follow = bed.start('deliver', '--follow', '--timeout', '2m');
  await follow.said(
    /manifests-demo {2}Syncing {2}app 5\/5 .*WorkloadsReady\(app\).*Deployment\.apps demo\/app: 2 of 3/,
  );
  assert.is(await greets(), 'hello in the dark');
  for (const file of conflists) rmSync(file, { recursive: true });
  for (const node of cluster.nodes) await node.startService('kube-proxy');
  const { code, text } = await follow.ended;
  assert.is(code, 0, text);
  assert.is(conditionOf(await look.release('manifests-demo'), 'Ready')?.status, 'True');
  await until('all nodes to have their network again', 90_000, async () =>
    (await readyNodes(bed.look)).length === 3 ? true : undefined,
  );
});

test('what must not be deleted by accident is not, and a deletion that is meant leaves the network running', async () => {
  const { cluster, look } = bed;
  await expectGuarded(cluster);
  const ids = everything();
  const earlier = await look.snapshot(ids);
  const pods = (): Promise<string> =>
    cluster.kubectl(['-n', 'kube-system', 'get', 'pods', '-o', 'jsonpath={.items[*].metadata.uid}']);
  const running = await pods();
  const central = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'kube-system', name: 'ovn-central' };
  assert.match(textAt(await look.get(central), '/metadata/ownerReferences'), /KubeOVNInstallation/);
  const uid = textAt(await look.installation(), '/metadata/uid');
  await cluster.kubectl(['-n', 'kube-system', 'annotate', 'koi', 'local', `keelson.dev/confirm-delete=${uid}`]);
  await cluster.kubectl(['-n', 'kube-system', 'delete', 'koi', 'local', '--timeout=50s']);
  const now = await look.snapshot(ids);
  assert.equal(
    [...earlier].filter(([id, was]) => now.get(id)?.uid !== was.uid).map(([id]) => id),
    [],
  );
  assert.is(textAt(await look.get(central), '/metadata/ownerReferences'), '');
  assert.is(await pods(), running);
  const gone = { apiVersion: networkApiVersion, kind: 'KubeOVNInstallation', namespace: 'kube-system', name: 'local' };
  assert.is(await look.get(gone), undefined);
  assert.ok(await look.get({ apiVersion, kind: 'Release', namespace: systemNamespace, name: 'network-local' }));
});

test('nothing is left of the cluster, its pods and its network', async () => {
  const { id, directory, cgroup } = bed.cluster.state();
  const namespaces = clusterNamespaces(id);
  assert.ok(namespaces.length > 30, `seen only ${namespaces.length} namespaces`);
  await bed.close();
  assert.not.ok(existsSync(directory));
  // Other clusters of this machine come and go; nothing of this one stays, and the machine's own state is as before.
  const own = (line: string): boolean =>
    [id, directory, cgroup].some((name) => line.includes(name)) || /^(settings|firewall|files): /.test(line);
  await until('the machine to be as before', 30_000, async (saw) => {
    const left = [...additions(before, await takeSnapshot()).filter(own), ...heldNamespaces(namespaces)];
    saw(left.slice(0, 20).join('\n'));
    return left.length === 0 ? true : undefined;
  });
});

test.run();
