import fc from 'fast-check';
import { Registry } from 'prom-client';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { specDigest } from '../../constructs/api/digests.ts';
import type { InstallationEntry, PayloadContent } from '../../constructs/api/payload.ts';
import { digestOf } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { admitNetwork } from '../../executor/network/admit.ts';
import { bindNetwork } from '../../executor/network/bind.ts';
import { authorisedClass, checkpointOf, withCheckpoint } from '../../executor/network/checkpoint.ts';
import { type ClassifyInput, classifyNetwork } from '../../executor/network/classify.ts';
import { evidenceGate } from '../../executor/network/domain.ts';
import { leasesOf } from '../../executor/network/guard.ts';
import { installationMetrics } from '../../executor/network/metrics.ts';
import { expectedOf, workloadsReady } from '../../executor/network/observe.ts';
import { type LiveNode, type NetworkSnapshot, readInstallation } from '../../executor/network/snapshot.ts';
import { installationStatus } from '../../executor/network/status.ts';
import { transitionEvents } from '../../executor/network/transitions.ts';
import { specOf } from './network-fixture.ts';

const [d1, d2, d3] = ['a', 'b', 'c'].map((letter) => digestOf(letter));
const ref = {
  apiVersion: 'network.keelson.dev/v1alpha1',
  kind: 'KubeOVNInstallation',
  namespace: 'kube-system',
  name: 'main',
};
const entry = (changes: Partial<InstallationEntry> = {}): InstallationEntry => ({
  ...ref,
  specDigest: String(d1),
  manifestDigest: String(d1),
  baseDigest: String(d1),
  version: '1.16.13',
  mode: 'full',
  nodes: [1, 2, 3].map((n) => ({ name: `n${n}`, uid: `u${n}`, addresses: [`10.0.0.${n}`] })),
  ...changes,
});
const none = { created: [], configured: [], replaced: [], pruned: [], absent: [] };
const classify = (changes: Partial<ClassifyInput>): string => {
  const verdict = classifyNetwork({
    next: entry(),
    previous: entry(),
    completed: true,
    checkpoint: checkpointOf(entry(), String(d3)),
    observedVersion: '1.16.13',
    actions: none,
    ...changes,
  });
  return `${verdict.verdict} ${verdict.changeClass}`;
};

const classes: [string, string, Partial<ClassifyInput>][] = [
  ['a first install', 'allowed additive', { previous: undefined, checkpoint: undefined, observedVersion: undefined }],
  ['the same again after the ledger was lost', 'allowed additive', { previous: undefined }],
  [
    'other objects after the ledger was lost',
    'blocked blocked',
    { previous: undefined, next: entry({ manifestDigest: String(d2) }) },
  ],
  ['nothing', 'allowed none', {}],
  ['a policy field', 'allowed policy', { next: entry({ specDigest: String(d2), baseDigest: String(d2) }) }],
  ['another object', 'allowed additive', { actions: { ...none, created: ['x'] } }],
  [
    'a changed object',
    'blocked blocked',
    { next: entry({ specDigest: String(d2), baseDigest: String(d2) }), actions: { ...none, configured: ['x'] } },
  ],
  ['a pruned object', 'blocked blocked', { actions: { ...none, pruned: ['x'] } }],
  ['a tombstone', 'blocked blocked', { actions: { ...none, absent: ['x'] } }],
  [
    'a newer version',
    'blocked versionOnly',
    { next: entry({ version: 'v1.17.0', specDigest: String(d2) }), actions: { ...none, configured: ['x'] } },
  ],
  [
    'a newer version that changes nothing',
    'blocked versionOnly',
    { next: entry({ version: '1.17.0', specDigest: String(d2) }) },
  ],
  [
    'an older version',
    'blocked rollback',
    { next: entry({ version: '1.9.0', specDigest: String(d2) }), actions: { ...none, configured: ['x'] } },
  ],
  [
    'the same version with a v',
    'allowed policy',
    { next: entry({ version: 'v1.16.13', specDigest: String(d2), baseDigest: String(d2) }) },
  ],
  [
    'replicas alone',
    'blocked membership',
    { next: entry({ specDigest: String(d2) }), actions: { ...none, configured: ['x'] } },
  ],
  [
    'a change while the first install is partial',
    'blocked blocked',
    { completed: false, actions: { ...none, configured: ['x'] } },
  ],
  [
    'more objects while the first install is partial',
    'allowed additive',
    { completed: false, actions: { ...none, created: ['x'] } },
  ],
];
for (const [what, expected, changes] of classes) test(`class of ${what}`, () => assert.is(classify(changes), expected));

test('a blocked change says what to do', () => {
  for (const [, expected, changes] of classes.filter(([, verdict]) => verdict.startsWith('blocked'))) {
    const input = {
      next: entry(),
      previous: entry(),
      completed: true,
      checkpoint: checkpointOf(entry(), String(d3)),
      observedVersion: '1.16.13',
      actions: none,
      ...changes,
    };
    const verdict = classifyNetwork(input);
    assert.ok(verdict.verdict === 'blocked' && /keelson uninstall|set spec\.version/.test(verdict.message), expected);
  }
});

test('property: a payload that touches an object of a recorded installation is never allowed', () => {
  const ids = fc.array(fc.constantFrom('a', 'b'), { maxLength: 2 });
  fc.assert(
    fc.property(
      fc.record({ configured: ids, replaced: ids, pruned: ids, absent: ids, created: ids }),
      fc.boolean(),
      (actions, completed) => {
        const touched =
          actions.configured.length + actions.replaced.length + actions.pruned.length + actions.absent.length;
        assert.is(classify({ actions, completed }).startsWith('allowed'), touched === 0);
      },
    ),
  );
});

const node = (n: number, changes: Partial<LiveNode> = {}): LiveNode => ({
  name: `n${n}`,
  uid: `u${n}`,
  internalIPs: [`10.0.0.${n}`],
  labels: { 'node-role.kubernetes.io/control-plane': '' },
  ...changes,
});
const installation = (spec: Parameters<typeof specOf>[0] = {}, status: JsonObject = {}): KubeObject => ({
  apiVersion: ref.apiVersion,
  kind: ref.kind,
  metadata: { name: 'main', namespace: 'kube-system', uid: 'uid-1', generation: 1 },
  spec: specOf(spec) as unknown as JsonObject,
  status,
});
const snapshot = (spec: Parameters<typeof specOf>[0] = {}, nodes = [1, 2, 3].map((n) => node(n))): NetworkSnapshot => ({
  installation: readInstallation(installation(spec)).installation,
  nodes,
});
const content = (installations: InstallationEntry[] = [entry()]): PayloadContent =>
  ({ installations }) as unknown as PayloadContent;
const refusals = (
  input: { content: PayloadContent; previous?: { content: PayloadContent } },
  seen = snapshot(),
): string[] => admitNetwork(input, seen).map((problem) => problem.reason);

test('admission: the rendered nodes are exactly the labelled ones, with their UIDs and addresses', () => {
  assert.equal(refusals({ content: content() }), []);
  for (const nodes of [
    [1, 2].map((n) => node(n)),
    [1, 2, 3, 4].map((n) => node(n)),
    [node(1), node(2), node(3, { uid: 'other' })],
    [node(1), node(2), node(3, { internalIPs: ['10.0.0.9'] })],
    [node(1), node(2), node(3, { labels: {} })],
  ])
    assert.equal(refusals({ content: content() }, snapshot({}, nodes)), ['InventoryStale']);
});

test('admission: the order of central addresses never changes once a payload was accepted', () => {
  const reordered = entry({ nodes: [...entry().nodes].reverse() });
  assert.equal(refusals({ content: content([reordered]), previous: { content: content() } }), ['CentralOrderChanged']);
  assert.equal(refusals({ content: content([reordered]) }), []);
});

test('admission: what no component stands behind is refused, all at once', () => {
  const hcp = {
    enabled: true,
    role: 'central',
    peerNamespace: 'p',
    tlsSecretRef: { name: 'k' },
    northbound: 'tcp:a:1',
    southbound: 'tcp:a:2',
  } as const;
  const seen = snapshot({
    mode: 'centralOnly',
    hcp,
    adoption: { enabled: true, selector: { matchLabels: { a: 'b' } } },
  });
  assert.equal(refusals({ content: content() }, seen), ['ComponentMissing', 'ComponentMissing']);
  assert.equal(refusals({ content: content([]) }), ['PayloadIntegrity']);
  assert.equal(refusals({ content: content([entry(), entry({ name: 'b' })]) }), ['PayloadIntegrity']);
});

test('bindings: owner and labels carry the UID of the live installation, and nothing is bound that is not known', () => {
  const bind = bindNetwork(snapshot().installation);
  const target = {} as Parameters<typeof bind>[2];
  assert.equal(bind('uidLabels', '/x', target), { value: 'uid-1' });
  const owner = bind('owner', '/x', target);
  assert.ok('value' in owner && JSON.stringify(owner.value).includes('"uid":"uid-1"'));
  assert.ok('problem' in bind('retainedReplicas', '/x', target));
  assert.ok('problem' in bindNetwork(undefined)('owner', '/x', target));
});

test('Leases: installation always before central, and central only for its phase', () => {
  const uid = '12345678-0000-0000-0000-000000000000';
  assert.equal(leasesOf('central', uid), ['keelson-installation-12345678', 'keelson-central-12345678']);
  assert.equal(leasesOf('data-plane', uid), ['keelson-installation-12345678']);
});

test('the checkpoint is moved only by what authorises itself, and stands still otherwise', () => {
  const wanted = checkpointOf(entry(), String(d3));
  const first = withCheckpoint({ phase: 'Pending' }, undefined, wanted, 0);
  assert.equal(first.applyCheckpoint, { ...wanted, recordedAt: '1970-01-01T00:00:00Z' });
  const recorded = { ...wanted, recordedAt: '1970-01-01T00:00:00Z' };
  assert.is(withCheckpoint(first, recorded, wanted, 5000), first);
  assert.is(authorisedClass(recorded, { ...wanted, specDigest: String(d2) }), 'policy');
  assert.is(authorisedClass(recorded, { ...wanted, manifestDigest: String(d2) }), 'additive');
});

test('an unreadable checkpoint is never taken for none', () => {
  assert.equal(
    readInstallation(installation({}, { applyCheckpoint: { specDigest: 'x' } })).problems.map((p) => p.reason),
    ['CheckpointUnreadable'],
  );
});

test('no evidence gate of the network is ever open by itself', () => {
  for (const type of ['OVNDBReady', 'NorthdReady', 'DataPlaneReady', 'NetworkReady'])
    assert.is(evidenceGate({ type, scope: 'central' })?.state, 'Unknown');
  assert.is(evidenceGate({ type: 'WorkloadsReady', scope: 'central' }), undefined);
});

const deployment = (ready: number): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'ovn-central', namespace: 'kube-system', generation: 1 },
  spec: { replicas: 3 },
  status: { observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: ready, availableReplicas: ready },
});
const ledgerEntry = (id: string, state: 'applied' | 'pruning' | 'unmanaged' = 'applied') =>
  [id, { id, state, sha256: 'a'.repeat(64), phase: 'central', payload: String(d1) }] as const;

test('WorkloadsReady: everything expected, overridden objects too, what is being pruned not', () => {
  const id = 'apps/Deployment/kube-system/ovn-central';
  const ledger = new Map([
    ledgerEntry(id, 'unmanaged'),
    ledgerEntry('/ConfigMap/kube-system/x'),
    ledgerEntry('apps/DaemonSet/kube-system/gone', 'pruning'),
  ]);
  const expected = expectedOf(ledger as never);
  assert.equal(
    expected.map((one) => one.id),
    [id],
  );
  assert.is(workloadsReady(expected, new Map([[id, deployment(3)]])).status, 'True');
  const open = workloadsReady(expected, new Map([[id, deployment(2)]]));
  assert.equal(
    [open.status, open.message],
    ['False', '0 of 1 are ready; Deployment.apps kube-system/ovn-central: 2 of 3 replicas are ready'],
  );
  assert.is(workloadsReady(expected, new Map()).reason, 'NotFound');
  assert.is(workloadsReady([], new Map()).status, 'Unknown');
});

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
  });
const readyOf = (status: JsonObject): string => {
  const found = (status.conditions as JsonObject[]).find((one) => one.type === 'Ready');
  return `${String(status.phase)} ${String(found?.status)}/${String(found?.reason)}`;
};

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
