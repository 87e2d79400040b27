// time limit: 240s
/** Evidence opens the gates and makes the conditions: on a real API server, with real controllers and pods that kwok plays. */
import * as assert from 'uvu/assert';
import { planRelease } from '../../bin/planning.ts';
import { main } from '../../bin/program.ts';
import { readTopologyRecord } from '../../constructs/api/topology.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { type Captured, captureInventory } from '../../executor/observe/inventory.ts';
import type { Rendered } from '../../renderer/render.ts';

import { type Sidecars, sidecars } from './evidence-bed.ts';
import { edgeOf, until } from './kubeBed.ts';
import {
  changes,
  condition,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  type RunningExecutor,
  system,
} from './network-bed.ts';
import { all, allWell, gate, image, imagesOf, member, told, well } from './network-evidence-words.ts';
import { type ClusterText, installationName, networkRelease, releaseName } from './network-folder.ts';
import { workshopSuite } from './network-suite.ts';

const test = workshopSuite('network evidence');

let bed: NetworkBed;
let executor: RunningExecutor;
let cars: Sidecars;
let pageAt = '';

/** What is published, as the next plan finds it. */
let published: Rendered;
const evidencePace = { openEveryMs: 200, settledEveryMs: 300 };
const daemonSet = '/apis/apps/v1/namespaces/kube-system/daemonsets/ovs-ovn';
/** What a command says, to people and about its work. */
async function said(...args: string[]): Promise<string> {
  const lines: string[] = [];
  const say = (text: string): void => void lines.push(text);
  const code = await main(args, {
    env: { KUBECONFIG: bed.server.kubeconfig },
    cwd: '/',
    clock: systemClock,
    random: Math.random,
    signal: AbortSignal.timeout(20_000),
    out: say,
    err: say,
    terminal: false,
  });
  assert.is(code, 0, lines.join('\n'));
  return lines.join('\n');
}

/** The inventory as `keelson inventory` takes it. */
async function captured(): Promise<Captured> {
  const edge = edgeOf(bed.server);
  try {
    return await captureInventory({
      client: edge.client,
      signal: AbortSignal.timeout(10_000),
      cluster: 'test',
      namespace: system,
      labels: new Set<string>(),
      serviceCIDRs: ['10.96.0.0/16'],
    });
  } finally {
    await edge.transport.close();
  }
}

test.before(async ({ shop }) => {
  bed = await networkBed(shop, { with: ['controllers', 'scheduler', 'kwok'] });
  cars = sidecars();
  published = await bed.render();
  await bed.deliver(published);
  executor = await bed.executor();
});
test.after(() => bed.close());

const onPage = (port: number): void => {
  pageAt = `http://127.0.0.1:${port}`;
};

/** Renders a change, and says what CI plans for it against what is published. */
async function planned(settings: NonNullable<ClusterText['settings']>): Promise<{ rendered: Rendered; plan: string }> {
  const rendered = await bed.render({ settings });
  const side = (of: Rendered) => {
    const { index, objects } = networkRelease(of);
    return { content: index.content, object: (id: string) => objects.get(id) };
  };
  const { plan } = planRelease(releaseName, side(published), side(rendered), {});
  return { rendered, plan: plan.digest };
}

/** Delivers a change with its plan approved. */
async function approved(settings: NonNullable<ClusterText['settings']>): Promise<void> {
  const { plan: planDigest } = await planned(settings);
  published = await bed.render({
    settings: { ...settings, releases: { [releaseName]: { approval: { mode: 'never', planDigest } } } },
  });
  await bed.deliver(published);
}

const imagesIn = ({ spec }: Loose): string[] => spec.template.spec.containers.map((one: Loose) => one.image);
const podsOf = async (app: string): Promise<Loose[]> =>
  (await bed.get(`/api/v1/namespaces/kube-system/pods?labelSelector=app%3D${app}`)).items;

test('sidecars come to a network that has none by a plan that a person approves, and what stood still goes on', async () => {
  await bed.until(
    paths.release,
    'the network to stop after its central phase',
    (one) => gate(one, 'OVNDBReady') === 'Unknown/NoEvidence' && gate(one, 'WorkloadsReady') === 'True/Ready',
    60_000,
  );
  const former = new Set((await podsOf('ovn-central')).map(({ metadata }) => metadata.uid));
  assert.is(former.size, 3);
  await executor.stop();
  // As a new executor finds it: pods of before answer nobody.
  const joining = member(3, { status: 'joining' });
  cars.spoil = (target, n) =>
    former.has(target.podUID) ? { type: 'Unreachable', message: 'no such port' } : joining(target, n);
  const change = await planned({ images: imagesOf('f') });
  await bed.deliver(change.rendered);
  executor = await bed.executor({ evidence: cars.evidence, evidencePace, pagePort: 0, onPage });
  const waiting = await bed.until(
    paths.release,
    'the plan to wait for a person',
    (one) => condition(one, 'Ready')?.reason === 'ApprovalRequired',
  );
  assert.match(
    condition(waiting, 'Ready').message,
    /pods of Deployment kube-system\/ovn-central are replaced, one at a time/,
  );
  assert.match(condition(waiting, 'Ready').message, /DaemonSet kube-system\/ovs-ovn .*packets of its pods may be lost/);
  assert.equal([waiting.status.plan.changeClass, waiting.status.plan.digest], ['keelson', change.plan]);
  assert.not.ok(imagesIn(await bed.get(paths.central)).includes(image('probe', 'f')));

  await approved({ images: imagesOf('f') });
  const installation = await bed.until(
    paths.installation,
    'the checkpoint to move',
    ({ status }) => status.applyCheckpoint.payloadDigest === networkRelease(published).index.digest,
  );
  assert.is(installation.status.authorisation.changeClass, 'keelson');
  await bed.until(paths.central, 'the members to be made anew', (one) => imagesIn(one).includes(image('probe', 'f')));
});

test('O1: the data plane waits until the databases are seen to be ready, however ready the pods are', async () => {
  const release = await bed.until(
    paths.release,
    'the gate of the databases to be shut by evidence',
    (one) => gate(one, 'OVNDBReady') === 'Unknown/MemberJoining' && gate(one, 'WorkloadsReady') === 'True/Ready',
    60_000,
  );
  assert.is(gate(release, 'WorkloadsReady'), 'True/Ready');
  assert.is(gate(release, 'NorthdReady'), 'True/OneActive');
  assert.is(await bed.get(daemonSet), undefined);
  const installation = await bed.until(
    paths.installation,
    'the condition to say so',
    (one) => told(one, 'OVNDBReady') === 'Unknown/MemberJoining',
  );
  assert.match(condition(installation, 'OVNDBReady').message, 'OVN_Northbound of node n3');
  assert.equal(
    installation.status.nodes.map(({ name }: Loose) => name),
    ['n1', 'n2', 'n3'],
  );
});

test('X2: with evidence the phases pass; without a probe image only NetworkReady stays Unknown', async () => {
  cars.spoil = () => undefined;
  const release = await bed.until(
    paths.release,
    'the Release to be complete',
    (one) => told(one, 'Ready') === 'True/Completed' || condition(one, 'Ready')?.status === 'True',
    60_000,
  );
  assert.is(gate(release, 'DataPlaneReady'), 'True/ChassisConnected');
  assert.ok(release.status.phases.every((phase: Loose) => phase.bypassed !== true));
  const installation = await bed.until(
    paths.installation,
    'everything else to be True',
    (one) => allWell(one) && told(one, 'Ready') === 'Unknown/VerificationPending',
  );
  assert.is(told(installation, 'NetworkReady'), 'Unknown/ProbeNotConfigured');
  assert.equal(
    [...cars.asked].sort(),
    ['n1', 'n2', 'n3'].flatMap((node) => [`central ${node}`, `chassis ${node}`]).sort(),
  );
  assert.equal(
    installation.status.topology.databases.map(({ name }: Loose) => name),
    ['OVN_Northbound', 'OVN_Southbound'],
  );
});

test('J4: the record is immutable, belongs to nobody, and status pins its name, UID and digest', async () => {
  const { inventory } = (await bed.installation()).status.topology;
  const configMap = await bed.get(`/api/v1/namespaces/${system}/configmaps/${inventory.name}`);
  assert.is(configMap.immutable, true);
  assert.is(configMap.metadata.ownerReferences, undefined);
  assert.is(configMap.metadata.uid, inventory.uid);
  const held = readTopologyRecord(configMap);
  assert.is(held?.digest, inventory.digest);
  assert.equal(
    held?.record.members.map(({ node }) => node.name),
    ['n1', 'n2', 'n3'],
  );
  const written = executor.plan.log.filter(
    ({ resource, name, mutating }) => mutating && resource === 'configmaps' && name === inventory.name,
  );
  assert.is(written.length, 1);
  const taken = await captured();
  assert.equal(taken.ok && taken.inventory.spec.topology?.net, {
    centralAddresses: ['10.0.0.1', '10.0.0.2', '10.0.0.3'],
    chartReplicas: 3,
    record: inventory,
  });
});

test('the image of the sidecars moves once the databases are whole, and the record of the topology holds', async () => {
  const { inventory } = (await bed.installation()).status.topology;
  cars.spoil = member(3, { status: 'joining' });
  await bed.until(paths.installation, 'a member to join', (one) => told(one, 'OVNDBReady') === 'Unknown/MemberJoining');
  await approved({ images: imagesOf('a') });
  const waiting = await bed.until(
    paths.release,
    'the rollout to wait',
    (one) => condition(one, 'Ready')?.reason === 'RolloutWaits',
  );
  assert.match(condition(waiting, 'Ready').message, /ovn-central.*MemberJoining/);
  assert.not.ok(imagesIn(await bed.get(paths.central)).includes(image('probe', 'a')));
  cars.spoil = () => undefined;
  await bed.until(
    paths.release,
    'the Release to be complete again',
    ({ status }) =>
      status.history[0].digest === networkRelease(published).index.digest && status.history[0].state === 'Completed',
    60_000,
  );
  for (const path of [paths.central, daemonSet])
    assert.equal(
      new Set(imagesIn(await bed.get(path)).filter((one) => one.includes('/probe@'))),
      new Set([image('probe', 'a')]),
    );
  const installation = await bed.until(paths.installation, 'everything to be True', allWell);
  assert.equal(installation.status.topology.inventory, inventory);
});

test('sidecars that say nothing keep the data plane as it is, and are taken back by another commit without a pin', async () => {
  const known = new Set((await podsOf('ovn-central')).map(({ metadata }) => metadata.uid));
  cars.spoil = ({ kind, podUID }) =>
    kind === 'central' && !known.has(podUID) ? { type: 'Unreachable', message: 'connection refused' } : undefined;
  await approved({ images: imagesOf('b') });
  await bed.until(
    paths.release,
    'the rollout to stop after central',
    (one) =>
      one.status.actual === networkRelease(published).index.digest &&
      gate(one, 'WorkloadsReady') === 'True/Ready' &&
      gate(one, 'OVNDBReady') === 'Unknown/EvidenceUnreachable',
    30_000,
  );
  assert.ok(imagesIn(await bed.get(paths.central)).includes(image('probe', 'b')));
  await approved({ images: imagesOf('a') });
  const { digest } = networkRelease(published).index;
  await bed.until(paths.release, 'it to be taken back', ({ status }) => status.actual === digest);
  cars.spoil = () => undefined;
  await bed.until(
    paths.release,
    'it to be complete',
    ({ status }) => status.history[0].digest === digest && status.history[0].state === 'Completed',
    60_000,
  );
  for (const path of [paths.central, daemonSet])
    assert.not.ok(imagesIn(await bed.get(path)).includes(image('probe', 'b')));
  await bed.until(paths.installation, 'everything to be True', allWell);
});

test('X7: one server down: OVNDBReady and Ready are False at once, nothing else moves, and back', async () => {
  cars.spoil = member(3, 'down');
  const broken = await bed.until(
    paths.installation,
    'OVNDBReady to be False',
    (one) => told(one, 'OVNDBReady') === 'False/DaemonDown',
  );
  assert.equal(all(broken), ['OVNDBReady False', ...well.slice(1, 4), 'Degraded True']);
  assert.is(told(broken, 'Ready'), 'False/DaemonDown');
  assert.match(
    condition(broken, 'Ready').message,
    /^OVNDBReady: ovsdb-server of OVN_Northbound of node n3 .*2 of 3 members, quorum 2/,
  );
  assert.equal(
    broken.status.topology.databases[0].members.map(({ node }: Loose) => node),
    ['n1', 'n2'],
  );
  cars.spoil = () => undefined;
  await bed.until(paths.installation, 'everything to be True again', allWell);
});

test('the page, and keelson evidence, show what the round saw and how old it is', async () => {
  const gatesOf = (page: Loose): string[] =>
    page.releases
      .find(({ name }: Loose) => name === releaseName)
      .phases.find(({ name }: Loose) => name === 'central')
      .gates.map(({ name, mark }: Loose) => `${name} ${mark}`);
  let model: Loose;
  let html = '';
  // Gates are looked at again after the condition has told of the round; Ready follows them.
  await until(
    'the gates to be well again',
    async () => {
      model = await (await fetch(`${pageAt}/page.json`)).json();
      html = await (await fetch(pageAt)).text();
      return gatesOf(model).every((shownGate) => shownGate.endsWith(' well')) && html.includes('Not verified');
    },
    30_000,
  );
  const [shown] = model.installations;
  assert.equal([model.standing.type, shown.name, shown.evidence.stale], ['leading', installationName, false]);
  assert.equal(
    shown.databases.map(({ leader, members }: Loose) => [leader, members.length]),
    [
      ['n1', 3],
      ['n1', 3],
    ],
  );
  assert.equal(
    shown.matrix.rows.map(({ name, cells }: Loose) => [name, cells[2].word]),
    ['n1', 'n2', 'n3'].map((node) => [node, 'connected']),
  );
  assert.equal(gatesOf(model), ['WorkloadsReady well', 'OVNDBReady well', 'NorthdReady well']);
  for (const text of ['OVN_Northbound', 'Not verified', releaseName]) assert.match(html, text);
  const metrics = await executor.metrics();
  assert.match(metrics, /keelson_evidence_age_seconds\{[^}]*name="[^"]+"\} \d/);
  assert.match(metrics, /keelson_gate_state\{release="[^"]+",phase="central",gate="OVNDBReady"\} 1/);
  const evidence = await said('evidence', '--node', 'n2', '--page', pageAt);
  assert.match(evidence, /seen \d+m?s ago/);
  assert.match(evidence, /n2 +ready +follows +connected/);
  assert.not.match(evidence, /n3/);
  // Nobody can be asked through a kubelet here, and that is said.
  const status = await said('evidence');
  assert.match(status, /the executor could not be asked .*this is what the status holds/);
  assert.match(status, /OVN_Northbound +n1 +5 +n1 n2 n3/);
  const all = await said('status');
  assert.match(all, /chassis +True +ChassisConnected +3 of 3 chassis/);
});

test('E9: a sidecar that does not answer makes its conditions Unknown, and never False', async () => {
  cars.spoil = (target, n) =>
    target.kind === 'chassis' && n === 2 ? { type: 'Unreachable', message: 'connection refused' } : undefined;
  const silent = await bed.until(
    paths.installation,
    'DataPlaneReady to be Unknown',
    (one) => told(one, 'DataPlaneReady') === 'Unknown/EvidenceUnreachable',
  );
  assert.equal(all(silent), [
    'OVNDBReady True',
    'NorthdReady True',
    'DataPlaneReady Unknown',
    'TopologyRecorded True',
    'Degraded Unknown',
  ]);
  assert.match(condition(silent, 'DataPlaneReady').message, 'node n2');
  cars.spoil = () => undefined;
  await bed.until(paths.installation, 'everything to be True again', allWell);
});

test('J7: a record that is gone blocks verification, and the pin stays', async () => {
  const { inventory } = (await bed.installation()).status.topology;
  await bed.server.admin.expect('DELETE', `/api/v1/namespaces/${system}/configmaps/${inventory.name}`);
  const gone = await bed.until(
    paths.installation,
    'TopologyRecorded to be False',
    (one) => told(one, 'TopologyRecorded') === 'False/TopologyRecordMissing',
  );
  assert.equal(gone.status.topology.inventory, inventory);
  const taken = await captured();
  assert.is(taken.ok ? undefined : taken.problems[0]?.reason, 'TopologyRecordMissing');
});

test('X23: a node that is deleted is told within seconds, and nothing is taken away for it', async () => {
  const from = executor.plan.log.length;
  await bed.server.admin.expect('DELETE', '/api/v1/nodes/n3');
  const gone = await bed.until(
    paths.installation,
    'the member to be missed',
    (one) => told(one, 'OVNDBReady') === 'False/MemberMissing',
  );
  assert.match(condition(gone, 'OVNDBReady').message, /^OVN central is wanted on node n3 .*: the node is gone/);
  assert.is(condition(gone, 'Degraded').status, 'True');
  const since = changes(executor.plan.log.slice(from)).filter(({ resource }) => resource !== 'events');
  assert.equal(
    [...new Set(since.map(({ verb, resource }) => `${verb} ${resource}`))].filter((one) => one.startsWith('delete')),
    [],
  );
});

test.run();
