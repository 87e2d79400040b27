import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { installationStatus as statusSchema } from '../../constructs/api/kinds/kubeovn-installation-status.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import {
  evidenceConditions,
  evidenceGate,
  evidenceStatus,
  type Observed,
  recordable,
} from '../../executor/network/evidence.ts';
import { installationStatus } from '../../executor/network/status.ts';
import { matrixOf } from '../../executor/observe/matrix.ts';
import { pinOf } from '../../executor/observe/retained.ts';
import { emptyMemory, judgeRound, type Round } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { installation } from './network-support.ts';
import { networkRound } from './observe-network-support.ts';
import { centralRound, chassisRound, withNb, withoutComponent } from './observe-support.ts';

const spec = specOf();
const id = { namespace: 'kube-system', name: 'main', uid: 'uid-1' };
const observedAt = (startedTick: number, changes: Partial<Round> = {}): Observed => {
  const time = { startedAt: startedTick, endedAt: startedTick + 500, startedTick, endedTick: startedTick + 500 };
  const round: Round = {
    time,
    central: centralRound(),
    chassis: chassisRound(),
    peer: { type: 'noProvider' },
    ...changes,
  };
  const verdict = judgeRound(round, { spec, installation: id, chartReplicas: 3, pin: undefined }, emptyMemory);
  return { verdict, limitMs: 60_000 };
};
const gate = (type: string, observed: Observed | undefined, since = 0, tick = 1_000) => {
  const verdict = evidenceGate({ type, scope: 'central' }, { observed, since, tick });
  return `${verdict?.state}/${verdict?.reason}`;
};

test('a gate opens by a round that began after its phase was written, and by no other', () => {
  assert.is(gate('OVNDBReady', undefined), 'Unknown/EvidencePending');
  assert.is(gate('OVNDBReady', observedAt(100), 101), 'Unknown/EvidencePending');
  assert.is(gate('OVNDBReady', observedAt(100), 100), 'True/MembersAgree');
  assert.is(gate('NorthdReady', observedAt(100)), 'True/OneActive');
  assert.is(gate('DataPlaneReady', observedAt(100)), 'True/ChassisConnected');
  assert.is(gate('NetworkReady', observedAt(100)), 'Unknown/ProbeNotConfigured');
  assert.is(
    evidenceGate({ type: 'OVNDBReady', scope: 'central' }, { observed: observedAt(100), since: 0, tick: 0 })
      ?.evidenceTime,
    600,
  );
});

test('a gate is shut by what was seen to be broken, and not by what is too old', () => {
  const down = { central: centralRound(3, withoutComponent(3, 'nb', 'refused')) };
  assert.is(gate('OVNDBReady', observedAt(100, down)), 'False/DaemonDown');
  assert.is(gate('OVNDBReady', observedAt(100, down), 0, 61_000), 'Unknown/EvidenceStale');
});

test('X7: a payload in place that waits for a gate once more hides nothing that was seen to be broken', () => {
  const digest = `sha256:${'d'.repeat(64)}`;
  const working = (['Ready', 'Reconciling'] as const).map((type) => ({
    type,
    status: type === 'Ready' ? 'Unknown' : 'True',
    reason: 'Waiting',
    message: 'DataPlaneReady(data-plane)',
  }));
  const carrier = (state: 'Completed' | 'Partial', desired = digest) => ({
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    metadata: { name: 'network-main', generation: 1 },
    status: {
      observedGeneration: 1,
      actual: digest,
      desired,
      conditions: working,
      history: [{ digest, state }],
    } as unknown as JsonObject,
  });
  const readyOf = (release: ReturnType<typeof carrier>, observed: Observed): string => {
    const workloads = { type: 'WorkloadsReady', status: 'False', reason: 'RolloutInProgress', message: '' } as const;
    const view = { installation: installation(), spec, release, workloads, observed, observing: true, planOnly: false };
    const { conditions } = installationStatus({ ...view, tick: 1_000, now: 0 });
    const ready = (conditions as unknown as JsonObject[]).find(({ type }) => type === 'Ready');
    return `${ready?.status}/${ready?.reason}`;
  };
  const down = observedAt(0, { central: centralRound(3, withoutComponent(3, 'nb', 'refused')) });
  assert.is(readyOf(carrier('Completed'), down), 'False/DaemonDown');
  assert.is(readyOf(carrier('Completed'), observedAt(0)), 'Unknown/Waiting', 'workloads that roll out are work');
  assert.is(readyOf(carrier('Partial'), down), 'Unknown/Waiting', 'a first install is under way');
  assert.is(readyOf(carrier('Completed', `sha256:${'e'.repeat(64)}`), down), 'Unknown/Waiting', 'another one comes');
});

test('E9: status holds what the last round saw; a stale one, and none, leave only the pin', () => {
  const pin = { name: 'record', uid: 'cm-1', digest: `sha256:${'a'.repeat(64)}` };
  const before: JsonObject = {
    phase: 'Ready',
    topology: { inventory: { ...pin }, databases: [] },
    network: { nodes: 3 },
    hcp: {},
  };
  const fresh = evidenceStatus(before, observedAt(0), 1_000);
  assert.is((fresh.topology as { databases: unknown[] }).databases.length, 2);
  assert.equal([fresh.network, fresh.hcp, fresh.phase], [undefined, undefined, 'Ready']);
  for (const status of [evidenceStatus(before, undefined, 0), evidenceStatus(before, observedAt(0), 99_000)])
    assert.equal(status, { phase: 'Ready', topology: { inventory: pin } });
  assert.equal(pinOf(before), pin);
  assert.equal(pinOf(evidenceStatus({}, undefined, 0, pin)), pin);
  assert.is(pinOf({ topology: { inventory: { name: 'x' } } }), undefined);
});

test('a status is not written anew for what moves in ordinary work, and is for everything else', () => {
  const later = (startedTick: number, index: string, term = '5'): Observed =>
    observedAt(startedTick, {
      central: centralRound(3, (n) => withNb(n, { index, term })(n)),
    });
  const first = evidenceStatus({}, later(0, '10'), 1_000);
  assert.equal(evidenceStatus(first, later(60_000, '20'), 61_000), first);
  const moved = evidenceStatus(first, later(60_000, '20', '6'), 61_000) as {
    topology: { observedAt: string; databases: { term: string }[] };
  };
  assert.equal([moved.topology.observedAt, moved.topology.databases[0]?.term], ['1970-01-01T00:01:00Z', '6']);
  assert.is.not(JSON.stringify(evidenceStatus(first, later(301_000, '20'), 302_000)), JSON.stringify(first));
});

test('E3: Ready is False by what is broken, Unknown by what is not seen, in the reconcile that saw it', () => {
  const release = {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    metadata: { name: 'network-main', generation: 1 },
    status: {
      observedGeneration: 1,
      actual: 'sha256:x',
      conditions: [
        { type: 'Ready', status: 'True', reason: 'R', message: 'm', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    },
  };
  const ready = (observed: Observed | undefined): string => {
    const workloads = { type: 'WorkloadsReady', status: 'True', reason: 'RolledOut', message: '' } as const;
    const view = { installation: installation(), spec, release, workloads, planOnly: false, now: 0, tick: 1_000 };
    const status = installationStatus({ ...view, ...(observed && { observed }) });
    const {
      status: is,
      reason,
      message,
    } = (status.conditions as { type: string; status: string; reason: string; message: string }[]).find(
      ({ type }) => type === 'Ready',
    ) ?? { status: '', reason: '', message: '' };
    return `${is}/${reason}: ${message}`;
  };
  assert.match(ready(undefined), 'Unknown/VerificationPending');
  assert.match(ready(observedAt(0)), /^Unknown\/VerificationPending: .*NetworkReady, TopologyRecorded$/);
  assert.match(
    ready(observedAt(0, { central: centralRound(3, withoutComponent(3, 'nb', 'refused')) })),
    /^False\/DaemonDown: OVNDBReady: .*node n3/,
  );
});

test('what an earlier generation did not know is not observed yet, and before the first round nothing is', () => {
  const external = specOf({ mode: 'nodeNetworking', external: { northbound: 'tcp:a:1', southbound: 'tcp:a:2' } });
  const reasons = (observed: Observed | undefined, observing: boolean): string[] =>
    evidenceConditions(external, observed, { tick: 0, observing }).map(({ type, reason }) => `${type} ${reason}`);
  assert.equal(reasons(observedAt(0), true).slice(0, 3), [
    'DataPlaneReady ChassisConnected',
    'NetworkReady ProbeNotConfigured',
    'HCPReady RoundPending',
  ]);
  assert.equal(new Set(reasons(undefined, true).map((one) => one.split(' ')[1])), new Set(['RoundPending']));
  assert.equal(new Set(reasons(undefined, false).map((one) => one.split(' ')[1])), new Set(['NoEvidence']));
});

test('E18, E19, E20: what a status holds of evidence is what its definition allows', () => {
  const probed = specOf({ networkStack: 'dual_stack', networkProbe: { image: 'registry.example.com/probe:1' } });
  const time = { startedAt: 0, endedAt: 500, startedTick: 0, endedTick: 500 };
  const round: Round = {
    time,
    central: centralRound(),
    chassis: chassisRound(),
    network: networkRound(),
    peer: { type: 'noProvider' },
  };
  const verdict = judgeRound(round, { spec: probed, installation: id, chartReplicas: 3, pin: undefined }, emptyMemory);
  const peer = {
    peer: { namespace: 'hosted', name: 'central', uid: 'peer-1', version: '1.16.13' },
    secret: { name: 'tls', uid: 'secret-1', resourceVersion: '7' },
    endpoints: [{ endpoint: 'ssl:10.0.0.1:6641', reachable: true }],
  };
  const pin = { name: 'record', uid: 'cm-1', digest: `sha256:${'a'.repeat(64)}` };
  const status = evidenceStatus(
    { observedGeneration: 1 },
    { verdict: { ...verdict, peer }, limitMs: 60_000, matrix: matrixOf(round) },
    1_000,
    pin,
  );
  assert.equal(Object.keys(status).sort(), ['dataPlane', 'hcp', 'network', 'northd', 'observedGeneration', 'topology']);
  assert.equal(status.northd, {
    observedAt: '1970-01-01T00:00:00Z',
    members: [
      { node: 'n1', state: 'active' },
      { node: 'n2', state: 'standby' },
      { node: 'n3', state: 'standby' },
    ],
  });
  assert.equal(status.dataPlane, { observedAt: '1970-01-01T00:00:00Z', nodes: 3, connected: 3 });
  const parsed = statusSchema.safeParse(status);
  assert.ok(parsed.success, JSON.stringify(parsed.error?.issues));
});

test('a status stays small in a large cluster: it counts chassis, and names few of those that are not well', () => {
  const silent = new Set(Array.from({ length: 70 }, (_, n) => `n${n * 14 + 1}`));
  const whole = chassisRound(1_000);
  const chassis = {
    ...whole,
    samples: whole.samples.map((sample) =>
      silent.has(sample.target.node) ? { ...sample, outcome: { type: 'Hung', limitMs: 10_000 } as const } : sample,
    ),
  };
  const observed = { ...observedAt(0, { chassis }), matrix: matrixOf({ central: centralRound(), chassis }) };
  const status = evidenceStatus({}, observed, 1_000);
  const { nodes, connected, missing } = status.dataPlane as JsonObject;
  assert.equal([nodes, connected, (missing as string[]).length], [1_000, 930, 20]);
  assert.is((missing as string[])[0], 'n1: hung');
  assert.ok(statusSchema.safeParse(status).success);
  assert.ok(JSON.stringify(status).length < 8_192);
  assert.equal(evidenceStatus(status, observed, 1_100), status);
});

test('a topology is recorded from what was seen just now, and never from what is too old: a record never changes', () => {
  const observed = observedAt(100);
  assert.ok(observed.verdict.toRecord);
  assert.is(recordable(observed, 60_600), observed.verdict.toRecord);
  assert.is(recordable(observed, 60_601), undefined);
  assert.is(recordable(undefined, 0), undefined);
});

test.run();
