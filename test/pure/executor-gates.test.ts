import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import { isWorkload } from '../../constructs/k8s/kinds.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { GateScope } from '../../executor/release/domain.ts';
import { commonGate, gateMessage, observedItems, patience } from '../../executor/release/gates.ts';
import { lintDefinition, lintMarks, lintWebhooks } from '../../executor/release/lint.ts';
import { problemOutcome } from '../../executor/release/outcomes.ts';
import { checkDependencies } from '../../executor/release/preconditions.ts';
import { conditionReadiness, hasReadiness, readinessOf } from '../../executor/release/readiness.ts';
import { retryOfAll } from '../../executor/release/retry.ts';
import { surplus } from '../../executor/source/retained.ts';
import { gate, item, release } from './executor-support.ts';

const workload = (kind: string, spec: JsonObject, status: JsonObject, generation = 2): KubeObject => ({
  apiVersion: kind === 'Job' ? 'batch/v1' : ['PersistentVolumeClaim', 'Pod'].includes(kind) ? 'v1' : 'apps/v1',
  kind,
  metadata: { name: 'x', namespace: 'demo', generation },
  spec,
  status,
});

const full = { observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 };
const everywhere = {
  observedGeneration: 2,
  desiredNumberScheduled: 3,
  updatedNumberScheduled: 3,
  numberReady: 3,
  numberAvailable: 3,
};
const revisions = { currentRevision: 'r', updateRevision: 'r' };

test('workloads are ready by the rules of their kind, and by nothing less', () => {
  const cases: [string, KubeObject, string, string][] = [
    ['a complete Deployment', workload('Deployment', { replicas: 2 }, full), 'True', 'Ready'],
    ['no status yet', workload('Deployment', { replicas: 2 }, {}), 'Unknown', 'NotObserved'],
    [
      'an older generation',
      workload('Deployment', { replicas: 2 }, { ...full, observedGeneration: 1 }),
      'Unknown',
      'NotObserved',
    ],
    ['zero wanted', workload('Deployment', { replicas: 0 }, { observedGeneration: 2 }), 'Unknown', 'NothingDesired'],
    [
      'one is not updated',
      workload('Deployment', { replicas: 2 }, { ...full, updatedReplicas: 1 }),
      'Unknown',
      'RolloutInProgress',
    ],
    [
      'an old one is left',
      workload('Deployment', { replicas: 2 }, { ...full, replicas: 3 }),
      'Unknown',
      'RolloutInProgress',
    ],
    [
      'one is not ready',
      workload('Deployment', { replicas: 2 }, { ...full, readyReplicas: 1 }),
      'Unknown',
      'RolloutInProgress',
    ],
    [
      'no progress',
      workload(
        'Deployment',
        { replicas: 2 },
        {
          ...full,
          readyReplicas: 0,
          conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }],
        },
      ),
      'False',
      'ProgressDeadlineExceeded',
    ],
    [
      'refused pods',
      workload('Deployment', {}, { ...full, conditions: [{ type: 'ReplicaFailure', status: 'True' }] }),
      'False',
      'ReplicaFailure',
    ],
    ['a complete StatefulSet', workload('StatefulSet', { replicas: 2 }, { ...full, ...revisions }), 'True', 'Ready'],
    [
      'two revisions',
      workload('StatefulSet', { replicas: 2 }, { ...full, currentRevision: 'q', updateRevision: 'r' }),
      'Unknown',
      'RolloutInProgress',
    ],
    ['a complete DaemonSet', workload('DaemonSet', {}, everywhere), 'True', 'Ready'],
    [
      'no node wants it',
      workload('DaemonSet', {}, { ...everywhere, desiredNumberScheduled: 0 }),
      'Unknown',
      'NothingDesired',
    ],
    [
      'one node lags',
      workload('DaemonSet', {}, { ...everywhere, updatedNumberScheduled: 2 }),
      'Unknown',
      'RolloutInProgress',
    ],
    ['a Job that runs', workload('Job', {}, {}), 'Unknown', 'JobRunning'],
    [
      'a Job that is complete',
      workload('Job', {}, { conditions: [{ type: 'Complete', status: 'True' }] }),
      'True',
      'Ready',
    ],
    [
      'a Job that failed',
      workload('Job', {}, { conditions: [{ type: 'Failed', status: 'True' }] }),
      'False',
      'JobFailed',
    ],
    ['a complete ReplicaSet', workload('ReplicaSet', { replicas: 2 }, full), 'True', 'Ready'],
    [
      'a ReplicaSet that is short',
      workload('ReplicaSet', { replicas: 2 }, { ...full, availableReplicas: 1 }),
      'Unknown',
      'RolloutInProgress',
    ],
    [
      'a Pod that runs and says so',
      workload('Pod', {}, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }),
      'True',
      'Ready',
    ],
    ['a Pod that ended well', workload('Pod', {}, { phase: 'Succeeded' }), 'True', 'Ready'],
    ['a Pod that runs and is not ready', workload('Pod', {}, { phase: 'Running' }), 'Unknown', 'PodNotReady'],
    ['a Pod without status', workload('Pod', {}, {}), 'Unknown', 'PodNotReady'],
    ['a Pod that failed', workload('Pod', {}, { phase: 'Failed', reason: 'Evicted' }), 'False', 'PodFailed'],
    ['a bound claim', workload('PersistentVolumeClaim', {}, { phase: 'Bound' }), 'True', 'Ready'],
    ['a pending claim', workload('PersistentVolumeClaim', {}, { phase: 'Pending' }), 'Unknown', 'VolumeClaimNotBound'],
    ['a lost claim', workload('PersistentVolumeClaim', {}, { phase: 'Lost' }), 'False', 'ClaimLost'],
  ];
  for (const [what, object, state, reason] of cases) {
    const found = readinessOf(object);
    assert.equal([found.state, found.reason], [state, reason], what);
  }
  const going = workload('Deployment', { replicas: 2 }, full);
  const deleted = { ...going, metadata: { ...going.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  assert.is(readinessOf(deleted).reason, 'Terminating');
});

test('any shortfall keeps a Deployment from being ready', () => {
  const number = fc.integer({ min: 0, max: 4 });
  fc.assert(
    fc.property(
      fc.record({ wanted: number, updated: number, ready: number, available: number, all: number, seen: number }),
      (n) => {
        const status = {
          observedGeneration: n.seen,
          replicas: n.all,
          updatedReplicas: n.updated,
          readyReplicas: n.ready,
          availableReplicas: n.available,
        };
        const complete =
          n.seen >= 2 &&
          n.wanted > 0 &&
          [n.updated, n.ready, n.available].every((has) => has >= n.wanted) &&
          n.all <= n.wanted;
        assert.is(readinessOf(workload('Deployment', { replicas: n.wanted }, status)).state === 'True', complete);
      },
    ),
  );
});

test('a condition counts only for the generation that it is about', () => {
  const of = (status: JsonObject): KubeObject => ({
    apiVersion: 'x/v1',
    kind: 'X',
    metadata: { name: 'x', generation: 3 },
    status,
  });
  const ready = { type: 'Ready', status: 'True', reason: 'Fine' };
  assert.is(conditionReadiness(of({ observedGeneration: 3, conditions: [ready] }), 'Ready').state, 'True');
  assert.is(conditionReadiness(of({ observedGeneration: 2, conditions: [ready] }), 'Ready').state, 'Unknown');
  assert.is(conditionReadiness(of({ conditions: [{ ...ready, observedGeneration: 2 }] }), 'Ready').state, 'Unknown');
  assert.is(conditionReadiness(of({ conditions: [{ ...ready, status: 'False' }] }), 'Ready').state, 'False');
  assert.is(conditionReadiness(of({}), 'Ready').state, 'Unknown');
});

test('a DaemonSet whose pods nobody but a person replaces says so', () => {
  const lagging = { ...everywhere, updatedNumberScheduled: 2 };
  const told = (type: string): string =>
    readinessOf(workload('DaemonSet', { updateStrategy: { type } }, lagging)).message;
  assert.is(told('RollingUpdate'), '2 of 3 nodes have the updated pod');
  assert.is(
    told('OnDelete'),
    '2 of 3 nodes have the updated pod; the others get it when somebody deletes theirs (OnDelete)',
  );
});

test('gates name the object that keeps them shut; one that nobody observes never opens', () => {
  const server = item({ apiVersion: 'apps/v1', kind: 'Deployment', name: 'server' });
  const settings = item({ name: 'settings' });
  const scope = (live: KubeObject[]): GateScope => ({
    phase: 'one',
    items: [server, settings],
    live: new Map(live.map((object) => [server.id, object])),
    now: 0,
  });
  assert.is(commonGate(gate('WorkloadsReady'), scope([workload('Deployment', { replicas: 2 }, full)])).state, 'True');
  const missing = commonGate(gate('WorkloadsReady'), scope([]));
  assert.equal([missing.state, missing.object], ['Unknown', 'Deployment.apps demo/server']);
  const others = ['b', 'c'].map((name) => item({ apiVersion: 'apps/v1', kind: 'Deployment', name }));
  for (const [count, words] of [' exist', '; 1 more is not ready', '; 2 more are not ready'].entries()) {
    const all = { ...scope([]), items: [server, ...others.slice(0, count)] };
    assert.ok(commonGate(gate('WorkloadsReady'), all).message.endsWith(words), words);
  }
  assert.equal(
    observedItems(gate('WorkloadsReady'), [server, settings]).map(({ id }) => id),
    [server.id],
  );
  assert.equal(
    [commonGate(gate('NetworkReady'), scope([])).state, commonGate(gate('NetworkReady'), scope([])).reason],
    ['Unknown', 'NoEvidence'],
  );
  assert.is(commonGate(gate('Condition'), scope([])).state, 'False');
  const target = { apiVersion: 'x/v1', kind: 'X', name: 'x' };
  assert.is(commonGate(gate('Condition', { target }), scope([])).reason, 'NotFound');
  const text = gateMessage(gate('WorkloadsReady', { limit: '1h' }), missing, 61_000);
  assert.is(text, 'WorkloadsReady(one) NotFound: Deployment.apps demo/server: it does not exist; for 1m1s, limit 1h');
});

test('a gate is waited for, then slow, then too late', () => {
  const of = gate('WorkloadsReady', { softLimit: '1m', limit: '2m' });
  assert.equal(
    [0, 59_999, 60_000, 119_999, 120_000].map((ms) => patience(of, ms).kind),
    ['waiting', 'waiting', 'slow', 'slow', 'expired'],
  );
  assert.is(patience(gate('WorkloadsReady', { softLimit: '1m' }), 1e12).kind, 'slow');
});

test('objects without our marks, webhooks that could lock us out, and CRDs that drop what is stored are found', () => {
  const it = item();
  assert.equal(lintMarks([it], release), []);
  assert.is(lintMarks([it], 'manifests-other').length, 1);
  const bare = item({
    body: { metadata: { name: 'a', namespace: 'demo', annotations: { [annotations.id]: '/ConfigMap/demo/b' } } },
  });
  assert.match(lintMarks([bare], release)[0]?.message ?? '', 'keelson.dev/id');

  const hook = (more: JsonObject) =>
    item({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      body: { webhooks: [{ name: 'w', rules: [{ apiGroups: ['apps'] }], ...more }] },
    });
  const notIn = (values: string[]) => ({
    namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values }] },
  });
  const found = (more: JsonObject) => lintWebhooks([hook(more)], 'keelson-system').length;
  assert.is(found({}), 1);
  assert.is(found({ failurePolicy: 'Fail', ...notIn(['kube-system']) }), 1);
  assert.is(found({ failurePolicy: 'Fail', ...notIn(['kube-system', 'keelson-system']) }), 0);
  assert.is(found({ failurePolicy: 'Ignore' }), 0);
  assert.is(found({ rules: [{ apiGroups: ['kubeovn.io'] }] }), 0);

  const crd = item({
    kind: 'CustomResourceDefinition',
    body: { spec: { scope: 'Cluster', versions: [{ name: 'v2' }] } },
  });
  const live: KubeObject = {
    apiVersion: 'v1',
    kind: 'CustomResourceDefinition',
    metadata: {},
    spec: { scope: 'Namespaced' },
    status: { storedVersions: ['v1', 'v2'] },
  };
  assert.equal(
    lintDefinition(crd, live).map(({ reason }) => reason),
    ['StoredVersionDropped', 'ImmutableField'],
  );
});

test('releases that are depended on must be ready in their present generation', () => {
  const of = (generation: number, status: JsonObject): KubeObject => ({
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    metadata: { name: 'n', generation },
    status,
  });
  const ready = { observedGeneration: 1, conditions: [{ type: 'Ready', status: 'True' }] };
  assert.equal(
    checkDependencies([{ name: 'n' }], () => of(1, ready)),
    [],
  );
  assert.is(checkDependencies([{ name: 'n' }], () => of(2, ready))[0]?.reason, 'DependencyNotReady');
  assert.is(checkDependencies([{ name: 'n' }], () => undefined)[0]?.reason, 'DependencyNotReady');
});

test('retries: terminal wins unless the picture is not whole; waits only together', () => {
  const all = (...reasons: string[]) => retryOfAll(reasons.map((reason) => ({ reason, message: '' })));
  assert.is(all('ObjectInvalid', 'FieldConflict'), 'terminal');
  assert.is(all('ObjectInvalid', 'ApiUnavailable'), 'retry');
  assert.is(all('DependencyNotReady', 'SpecPayloadSkew'), 'wait');
  assert.is(all('DependencyNotReady', 'FieldConflict'), 'retry');
  const outcome = problemOutcome(
    [
      { reason: 'DependencyNotReady', message: 'a' },
      { reason: 'ObjectInvalid', message: 'b' },
    ],
    'terminal',
  );
  assert.equal([outcome.kind, outcome.reason, outcome.message], ['terminal', 'MultipleErrors', 'b; and 1 more']);
});

test('copies: the newest are kept, and what is needed is never dropped', () => {
  const chunk = (d: string, created: string) => ({
    metadata: { name: d, annotations: { [annotations.payload]: d } },
    uid: d,
    created,
  });
  const chunks = [
    chunk('a', '2026-01-01'),
    chunk('b', '2026-01-02'),
    chunk('b', '2026-01-02'),
    chunk('c', '2026-01-03'),
    chunk('d', '2026-01-04'),
  ];
  assert.equal([...surplus(chunks, new Set(['a']), 2)].sort(), ['b', 'c']);
  assert.equal([...surplus(chunks, new Set(), 3)].sort(), ['a']);
  assert.equal([...surplus(chunks, new Set(['a', 'b', 'c']), 1)].sort(), ['d']);
});

test('every kind that a phase waits for has a rule', () => {
  for (const [apiVersion, kind] of [
    ['v1', 'Pod'],
    ['apps/v1', 'DaemonSet'],
    ['apps/v1', 'Deployment'],
    ['apps/v1', 'ReplicaSet'],
    ['apps/v1', 'StatefulSet'],
    ['batch/v1', 'Job'],
  ] as const)
    assert.ok(isWorkload({ apiVersion, kind }) && hasReadiness({ apiVersion, kind }), `${apiVersion} ${kind}`);
});

test.run();
