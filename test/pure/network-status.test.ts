import { Registry } from 'prom-client';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { specDigest } from '../../constructs/api/digests.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { checkpointOf } from '../../executor/network/checkpoint.ts';
import { installationMetrics } from '../../executor/network/metrics.ts';
import { installationStatus } from '../../executor/network/status.ts';
import { transitionEvents } from '../../executor/network/transitions.ts';
import { emptyMemory, evidenceTypes, judgeRound, type Verdict } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { d2, d3, entry, installation, ref } from './network-support.ts';
import { centralRound, centralSample, databaseFacts } from './observe-support.ts';

const ready = { type: 'WorkloadsReady', status: 'True', reason: 'RolledOut', message: '' } as const;
const release = (conditions: JsonObject[], more: JsonObject = {}): KubeObject => ({
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: { name: 'network-main', generation: 1 },
  status: { observedGeneration: 1, actual: String(d3), conditions, ...more },
});
const condition = (type: string, status: string, reason = 'R', message = 'm'): JsonObject => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});
const statusOf = (
  object: KubeObject,
  carrier: KubeObject | undefined,
  planOnly = false,
  workloads: Parameters<typeof installationStatus>[0]['workloads'] = ready,
): JsonObject =>
  installationStatus({
    installation: object,
    spec: specOf(isObject(object.spec) ? { mode: object.spec.mode as 'full' } : {}),
    release: carrier,
    workloads,
    planOnly,
    now: 0,
    tick: 0,
  });
const readyOf = (status: JsonObject): string => {
  const found = (status.conditions as JsonObject[]).find((one) => one.type === 'Ready');
  return `${String(status.phase)} ${String(found?.status)}/${String(found?.reason)}`;
};

test('an adoption is told as such until the first phase is carried out', () => {
  const working = [
    condition('Ready', 'Unknown'),
    condition('Reconciling', 'True'),
    condition('Progressing', 'True', 'Applying'),
  ];
  const phaseWith = (adopted: number, applied: number): unknown =>
    statusOf(
      installation(),
      release(working, { plan: { counts: { adopted } }, phases: [{ name: 'central', applied }] }),
    ).phase;
  assert.equal([phaseWith(3, 0), phaseWith(3, 1), phaseWith(0, 0)], ['Adopting', 'Applying', 'Applying']);
});

test('status: what the Release says and what nobody observed', () => {
  assert.is(readyOf(statusOf(installation(), undefined)), 'Pending Unknown/ReleaseMissing');
  assert.is(readyOf(statusOf(installation(), undefined, true)), 'Planned False/PlanOnly');
  assert.is(
    readyOf(
      statusOf(
        installation(),
        release([
          condition('Ready', 'Unknown'),
          condition('Reconciling', 'True'),
          condition('Progressing', 'True', 'Applying'),
        ]),
      ),
    ),
    'Applying Unknown/Applying',
  );
  assert.is(
    readyOf(
      statusOf(installation(), release([condition('Ready', 'False', 'ChangeBlocked'), condition('Stalled', 'True')])),
    ),
    'Blocked False/ChangeBlocked',
  );
  assert.is(
    readyOf(statusOf(installation(), release([condition('Ready', 'True')]))),
    'Verifying Unknown/VerificationPending',
  );
  const bypassed = { phases: [{ name: 'central', gates: [{ type: 'OVNDBReady', scope: 'central', bypassed: true }] }] };
  assert.is(
    readyOf(statusOf(installation(), release([condition('Ready', 'Unknown', 'GatesBypassed')], bypassed))),
    'Verifying Unknown/GatesBypassed',
  );
});

test('status: a mode reports no condition of a part that it does not manage', () => {
  const types = (mode: 'full' | 'centralOnly' | 'nodeNetworking') =>
    (
      statusOf(
        installation(
          mode === 'nodeNetworking' ? { mode, external: { northbound: 'tcp:a:1', southbound: 'tcp:a:2' } } : { mode },
        ),
        undefined,
      ).conditions as JsonObject[]
    ).map((one) => String(one.type));
  assert.ok(types('full').includes('OVNDBReady') && types('full').includes('NetworkReady'));
  assert.not.ok(types('centralOnly').includes('DataPlaneReady'));
  assert.not.ok(
    types('nodeNetworking').includes('NorthdReady') || types('nodeNetworking').includes('TopologyRecorded'),
  );
});

test('status: observedVersion follows only a complete rollout of the very spec', () => {
  const object = installation();
  const fixed = {
    ...checkpointOf(entry({ specDigest: specDigest(ref, object.spec ?? {}) }), String(d3)),
    recordedAt: '2026-01-01T00:00:00Z',
  };
  const carrier = release([condition('Ready', 'True')]);
  const version = (status: JsonObject, live = ready as Parameters<typeof installationStatus>[0]['workloads']) =>
    statusOf({ ...object, status }, carrier, false, live).observedVersion;
  assert.is(version({ applyCheckpoint: fixed }), '1.16.13');
  assert.is(version({ applyCheckpoint: fixed }, { ...ready, status: 'False' }), undefined);
  assert.is(version({ applyCheckpoint: { ...fixed, specDigest: String(d2) } }), undefined);
  assert.is(version({ applyCheckpoint: { ...fixed, payloadDigest: String(d2) }, observedVersion: '1.15.0' }), '1.15.0');
});

test('a specification that was changed and came with no payload is not Ready, however well the rest runs', () => {
  const object = installation();
  const verdict: Verdict = {
    conditions: evidenceTypes(specOf()).map((type) => ({
      type,
      status: type === 'Degraded' ? ('False' as const) : ('True' as const),
      reason: 'Seen',
      message: '',
    })),
    memory: emptyMemory,
    databases: [],
    network: undefined,
    peer: undefined,
    toRecord: undefined,
    time: { startedAt: 0, endedAt: 0, startedTick: 0, endedTick: 0 },
  };
  const ready = (spec: JsonObject, broken?: string): string => {
    const applied = specDigest(ref, object.spec ?? {});
    const conditions = verdict.conditions.map((one) =>
      one.type === broken ? { ...one, status: 'False' as const } : one,
    );
    const status = installationStatus({
      installation: {
        ...object,
        spec,
        status: { applyCheckpoint: { ...checkpointOf(entry({ specDigest: applied }), String(d3)), recordedAt: '' } },
      },
      spec: specOf(),
      release: release([condition('Ready', 'True')]),
      workloads: { type: 'WorkloadsReady', status: 'True', reason: 'RolledOut', message: '' },
      observed: { verdict: { ...verdict, conditions }, limitMs: 60_000 },
      planOnly: false,
      now: 0,
      tick: 0,
    });
    return readyOf(status);
  };
  const other = { ...(object.spec ?? {}), version: '1.16.14' };
  assert.is(ready(object.spec ?? {}), 'Ready True/VerificationComplete');
  assert.is(ready(other), 'Verifying Unknown/SpecPayloadSkew');
  // What is seen to be broken is told first.
  assert.is(ready(other, 'OVNDBReady'), 'Verifying False/Seen');
});

test('status: what workloads, daemons and a Release say of themselves is told without secrets', () => {
  const canary = 'hunter2hunter2';
  const said = `failed to pull https://robot:${canary}@registry.example.com/x; token=${canary}`;
  const storage = databaseFacts('nb', 2, 3, { storage: said });
  const central = centralRound(3, (n) => (n === 2 ? centralSample(2, 3, { nb: storage }) : undefined));
  const time = { startedAt: 0, endedAt: 0, startedTick: 0, endedTick: 0 };
  const wanted = {
    spec: specOf(),
    installation: { namespace: 'a', name: 'b', uid: 'c' },
    chartReplicas: 3,
    pin: undefined,
  };
  const verdict = judgeRound({ time, central, peer: { type: 'noProvider' } }, wanted, emptyMemory);
  assert.ok(JSON.stringify(verdict.conditions).includes('StorageFailed'));
  for (const message of [said, 'fine']) {
    const status = installationStatus({
      installation: installation(),
      spec: specOf(),
      release: release([condition('Ready', 'False', 'Failed', message)]),
      workloads: { type: 'WorkloadsReady', status: 'False', reason: 'RolloutInProgress', message: said },
      observed: { verdict, limitMs: 60_000 },
      planOnly: false,
      now: 0,
      tick: 0,
    });
    const text = JSON.stringify(status);
    assert.not(text.includes(canary), text);
    assert.ok(text.includes('registry.example.com') && text.includes('StorageFailed'), text);
  }
});

test('Events: on transitions only', () => {
  const before = statusOf(installation(), undefined);
  const after = statusOf(
    installation(),
    release([condition('Ready', 'False', 'ChangeBlocked'), condition('Stalled', 'True')]),
  );
  assert.equal(
    transitionEvents(ref, {}, before).map((event) => event.reason),
    ['PhaseChanged', 'ReadyChanged'],
  );
  assert.equal(transitionEvents(ref, before, before), []);
  assert.equal(
    transitionEvents(ref, before, after).map((event) => [event.reason, event.type]),
    [
      ['PhaseChanged', 'Warning'],
      ['ReadyChanged', 'Warning'],
    ],
  );
});

test('metrics: names, labels and values that dashboards know; a gone installation leaves nothing', async () => {
  const registry = new Registry();
  const metrics = installationMetrics(registry);
  metrics.reconciled('ok', 0.2);
  metrics.report('kube-system', 'main', [
    { type: 'Ready', status: 'True' },
    { type: 'Degraded', status: 'False' },
    { type: 'NetworkReady', status: 'Unknown' },
  ]);
  const text = await registry.metrics();
  for (const line of [
    'kubeovn_operator_reconcile_total{result="ok"} 1',
    'kubeovn_operator_reconcile_duration_seconds_count 1',
    'kubeovn_operator_installation_ready{namespace="kube-system",name="main"} 1',
    'kubeovn_operator_installation_condition{namespace="kube-system",name="main",condition="Degraded"} 0',
    'kubeovn_operator_installation_condition{namespace="kube-system",name="main",condition="NetworkReady"} -1',
  ])
    assert.ok(text.includes(line), line);
  metrics.forget('kube-system', 'main');
  assert.not.match(await registry.metrics(), 'name="main"');
});

test.run();
