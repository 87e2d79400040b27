// time limit: 300s
/** A first install on a real API server: what is written, in which order, and what is told of it. */
import * as assert from 'uvu/assert';
import {
  bypass,
  changes,
  condition,
  gatesBypassed,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
  type RunningExecutor,
  system,
} from './network-bed.ts';
import { networkRelease } from './network-folder.ts';
import { checkpointWrites, leaseMoves, orderProblems, phaseOf, phaseOrder } from './network-log.ts';
import { workshopSuite } from './network-suite.ts';

const test = workshopSuite('network install');

const phases = ['definitions', 'access', 'central', 'data-plane'];
const reasonOf = (object: Loose, type: string): string => condition(object, type)?.reason;

/** Passes that are over: each lists the Deployments once, and its gates list them again. */
async function passes(executor: RunningExecutor, n: number, bed: NetworkBed): Promise<void> {
  const seen = (): number => executor.plan.count({ verb: 'list', resource: 'serviceaccounts' });
  const from = seen();
  await bed.until(paths.release, `${n} passes`, () => seen() >= from + n, 20_000);
}

test('ledger, checkpoint, then phase by phase; bypassed gates are told everywhere; afterwards nothing is written', async ({
  shop,
}) => {
  const bed = await networkBed(shop);
  try {
    const rendered = await bed.render();
    const { index } = networkRelease(rendered);
    await bed.deliver(rendered);
    bed.playKubelets();
    const executor = await bed.executor(bypass);
    // Others write the same status; being slower than they are, again and again, is no failure.
    const raced = executor.plan.inject({
      match: (request) => request.mutating && JSON.stringify(request.body).includes('applyCheckpoint'),
      times: 3,
      fault: { kind: 'status', code: 409 },
    });
    const seen: { phase: string; version: string | undefined; workloads: string }[] = [];
    const release = await bed.until(paths.release, 'the release to be through', gatesBypassed, 60_000);
    const installation = await bed.until(
      paths.installation,
      'the installation to be told of it',
      (object) => {
        seen.push({
          phase: object.status.phase,
          version: object.status.observedVersion,
          workloads: condition(object, 'WorkloadsReady')?.status,
        });
        return gatesBypassed(object) && object.status.observedVersion !== undefined;
      },
      20_000,
    );
    const { log } = executor.plan;

    const total = index.content.phases.flatMap(({ objects }) => objects).length;
    assert.equal(orderProblems(log), []);
    assert.equal(phaseOrder(log), phases);
    assert.is(payloadMutations(log).length, total);
    assert.ok(payloadMutations(log).every(({ verb, status }) => verb === 'apply' && status === 201));
    assert.is(executor.plan.violations.length, 0);

    const moves = leaseMoves(log);
    const centralTaken = moves.findIndex(({ move }) => move === 'take central');
    const firstCentral = payloadMutations(log).find((record) => phaseOf(record) === 'central')?.sequence ?? 0;
    const lastCentral = payloadMutations(log).findLast((record) => phaseOf(record) === 'central')?.sequence ?? 0;
    assert.is(moves[0]?.move, 'take installation');
    assert.equal(
      moves.slice(centralTaken - 1, centralTaken + 3).map(({ move }) => move),
      ['take installation', 'take central', 'free central', 'free installation'],
    );
    assert.ok((moves[centralTaken]?.sequence ?? 0) < firstCentral);
    assert.ok((moves[centralTaken + 1]?.sequence ?? 0) > lastCentral);

    const [entry] = index.content.installations;
    const wanted = {
      specDigest: entry?.specDigest,
      manifestDigest: entry?.manifestDigest,
      baseDigest: entry?.baseDigest,
      payloadDigest: index.digest,
    };
    assert.is(checkpointWrites(log).length, 1);
    assert.is(raced(), 3);
    const { recordedAt, ...recorded } = installation.status.applyCheckpoint;
    assert.equal(recorded, wanted);
    assert.match(recordedAt, /^\d{4}-/);
    assert.is(installation.status.authorisation.changeClass, 'additive');

    for (const object of [release, installation]) {
      assert.is(condition(object, 'Ready')?.status, 'Unknown');
      assert.is(condition(object, 'Reconciling'), undefined);
      assert.is(condition(object, 'Stalled'), undefined);
      assert.is(condition(object, 'Available')?.status, 'False');
      const managers = object.metadata.managedFields.filter((f: Loose) => f.subresource === 'status');
      assert.equal(
        managers.map((f: Loose) => f.manager),
        ['keelson-status'],
      );
    }
    assert.match(condition(release, 'Ready').message, /OVNDBReady\(central\), NorthdReady\(central\), DataPlaneReady/);
    assert.equal(
      release.status.phases.map((p: Loose) => [p.name, p.state, p.bypassed ?? false, p.applied === p.total]),
      phases.map((name, n) => [name, 'Done', n > 1, true]),
    );
    const gates = release.status.phases.flatMap((p: Loose) => p.gates);
    assert.equal(
      gates.filter((g: Loose) => g.bypassed).map((g: Loose) => [g.type, g.state, g.reason]),
      ['OVNDBReady', 'NorthdReady', 'DataPlaneReady'].map((type) => [type, 'Unknown', 'NoEvidence']),
    );
    assert.equal(
      ['WorkloadsReady', 'OVNDBReady', 'NorthdReady', 'DataPlaneReady', 'NetworkReady', 'TopologyRecorded'].map((t) => [
        t,
        condition(installation, t)?.status,
      ]),
      [
        ['WorkloadsReady', 'True'],
        ['OVNDBReady', 'Unknown'],
        ['NorthdReady', 'Unknown'],
        ['DataPlaneReady', 'Unknown'],
        ['NetworkReady', 'Unknown'],
        ['TopologyRecorded', 'Unknown'],
      ],
    );
    assert.is(installation.status.observedVersion, bed.chart.appVersion);
    assert.ok(seen.every(({ version, workloads }) => version === undefined || workloads === 'True'));

    const text = await executor.metrics();
    assert.match(text, /keelson_release_flag\{release="network-net",flag="bypassed"\} 1/);
    const labels = 'namespace="kube-system",name="net"';
    assert.match(text, /kubeovn_operator_reconcile_total\{result="ok"\} [1-9]/);
    assert.match(text, /kubeovn_operator_reconcile_duration_seconds_count [1-9]/);
    assert.ok(text.includes(`kubeovn_operator_installation_ready{${labels}} 0`));
    assert.ok(text.includes(`kubeovn_operator_installation_condition{${labels},condition="WorkloadsReady"} 1`));
    assert.ok(text.includes(`kubeovn_operator_installation_condition{${labels},condition="NetworkReady"} -1`));

    const events = await bed.until(
      '/apis/events.k8s.io/v1/namespaces/kube-system/events',
      'the event of the last phase',
      ({ items }) => items.some((e: Loose) => e.note === 'phase Applying -> Verifying'),
    );
    const notes = events.items.filter((e: Loose) => e.regarding.name === 'net');
    // A transition is told once: Ready stays Unknown all the way, and the phase moves on.
    assert.equal(notes.map((e: Loose) => `${e.reason} ${e.note.split(':')[0]}`).sort(), [
      'PhaseChanged phase Applying -> Verifying',
      'PhaseChanged phase none -> Applying',
      'ReadyChanged Ready none -> Unknown',
    ]);

    executor.plan.resetLog();
    await passes(executor, 3, bed);
    assert.equal(
      changes(executor.plan.log).map(({ verb, path }) => `${verb} ${path}`),
      [],
    );

    await executor.stop();
    const next = await bed.executor(bypass);
    await passes(next, 3, bed);
    assert.equal(payloadMutations(next.plan.log), []);
    assert.equal(checkpointWrites(next.plan.log), []);
    const again = await bed.until(paths.installation, 'the same as before', gatesBypassed);
    assert.equal(again.status.applyCheckpoint, installation.status.applyCheckpoint);
    console.log('requests', JSON.stringify(executor.plan.counts()));
  } finally {
    await bed.close();
  }
});

test('a bypass is refused without the mark of a test cluster; without one central waits for evidence and no data plane is written', async ({
  shop,
}) => {
  const bed = await networkBed(shop);
  try {
    await bed.deliver(await bed.render());
    await bed.patch(`/api/v1/namespaces/${system}`, { metadata: { labels: { 'keelson.dev/test-cluster': null } } });
    const refused = await bed.executor(bypass);
    const error = await refused.ended.then(
      () => undefined,
      (reason: Loose) => reason,
    );
    assert.is(error?.problems[0].reason, 'BypassRefused');
    assert.equal(changes(refused.plan.log), []);

    bed.playKubelets();
    const executor = await bed.executor();
    const release = await bed.until(
      paths.release,
      'central to wait',
      (object) => object.status.sync?.blocker?.gate === 'OVNDBReady(central)',
      60_000,
    );
    assert.is(release.status.sync.blocker.reason, 'NoEvidence');
    assert.is(condition(release, 'Ready')?.status, 'Unknown');
    assert.is(reasonOf(release, 'Ready'), 'Waiting');
    const looks = (): number => executor.plan.count({ verb: 'list', resource: 'deployments' });
    const from = looks();
    const later = await bed.until(paths.release, 'ten more looks', () => looks() > from + 10);
    assert.equal(
      later.status.phases.map((p: Loose) => p.state),
      ['Done', 'Done', 'Waiting', 'Pending'],
    );
    assert.equal(phaseOrder(executor.plan.log), phases.slice(0, 3));
    const installation = await bed.installation();
    assert.is(condition(installation, 'Ready')?.status, 'Unknown');
    assert.is(installation.status.observedVersion, undefined);
    assert.is((await bed.get('/apis/apps/v1/namespaces/kube-system/daemonsets')).items.length, 0);
  } finally {
    await bed.close();
  }
});

test.run();
