import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import type { Gate, PayloadContent } from '../../constructs/api/payload.ts';
import { releaseStatus } from '../../constructs/api/release.ts';
import { canonicalJson, type JsonObject } from '../../constructs/lib/json.ts';
import type { LedgerStore } from '../../executor/apply/ledger-store.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { GateScope } from '../../executor/release/domain.ts';
import { Doubts } from '../../executor/release/doubts.ts';
import { edgeOf } from '../../executor/release/edge.ts';
import { commonGate, gateMessage, observedItems, patience } from '../../executor/release/gates.ts';
import { Journal } from '../../executor/release/journal.ts';
import { lintDefinition, lintMarks, lintWebhooks } from '../../executor/release/lint.ts';
import { problemOutcome } from '../../executor/release/outcomes.ts';
import { checkDependencies } from '../../executor/release/preconditions.ts';
import { conditionReadiness, readinessOf } from '../../executor/release/readiness.ts';
import { retryOfAll } from '../../executor/release/retry.ts';
import { problemText, statusOf } from '../../executor/release/status.ts';
import {
  desiredDigest,
  overriddenIds,
  type ReleaseView,
  readRelease,
  workIdentity,
} from '../../executor/release/view.ts';
import { surplus } from '../../executor/source/retained.ts';
import { digest, entry, item, ledgerOf, release } from './executor-support.ts';

const workload = (kind: string, spec: JsonObject, status: JsonObject, generation = 2): KubeObject => ({
  apiVersion: kind === 'Job' ? 'batch/v1' : kind === 'PersistentVolumeClaim' ? 'v1' : 'apps/v1',
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
    ['a bound claim', workload('PersistentVolumeClaim', {}, { phase: 'Bound' }), 'True', 'Ready'],
    ['a pending claim', workload('PersistentVolumeClaim', {}, { phase: 'Pending' }), 'Unknown', 'ClaimNotBound'],
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

const gate = (type: string, more: Partial<Gate> = {}): Gate => ({ type, scope: 'one', softLimit: '10m', ...more });

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

const releaseObject = (
  more: Partial<KubeObject['metadata']> = {},
  spec: JsonObject = {},
  status?: JsonObject,
): KubeObject => ({
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: { name: release, uid: 'u', generation: 4, ...more },
  spec: { payload: { digest: digest('1') }, source: { configMaps: {} }, ...spec },
  ...(status === undefined ? {} : { status }),
});

const viewOf = (object: KubeObject): ReleaseView => {
  const read = readRelease(object);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.view;
};

test('what makes work other work: everything of the spec, pin and hold; nothing of status or labels', () => {
  const base = workIdentity(viewOf(releaseObject()));
  const same = [
    releaseObject({ labels: { a: 'b' }, resourceVersion: '9', generation: 5 }),
    releaseObject({}, {}, { observedGeneration: 4 }),
  ];
  const others = [
    releaseObject({}, { payload: { digest: digest('2') } }),
    releaseObject({}, { paused: true }),
    releaseObject({}, { suspendPhases: ['x'] }),
    releaseObject({}, { overrides: [{ group: '', kind: 'ConfigMap', name: 'a' }] }),
    releaseObject({}, { approval: { planDigest: digest('3') } }),
    releaseObject({}, { prune: { enabled: false } }),
    releaseObject({}, { dependsOn: [{ name: 'x' }] }),
    releaseObject({ annotations: { [annotations.pin]: digest('2') } }),
    releaseObject({ annotations: { [annotations.hold]: 'x' } }),
    releaseObject({ uid: 'v' }),
  ];
  for (const object of same) assert.is(workIdentity(viewOf(object)), base);
  const identities = others.map((object) => workIdentity(viewOf(object)));
  assert.is(new Set([base, ...identities]).size, others.length + 1);
  assert.is(desiredDigest(viewOf(releaseObject({ annotations: { [annotations.pin]: digest('2') } }))), digest('2'));
  assert.not.ok(readRelease(releaseObject({ annotations: { [annotations.pin]: 'latest' } })).ok);
  assert.equal(
    [
      ...overriddenIds({
        overrides: [
          { group: 'apps', kind: 'Deployment', namespace: 'n', name: 'd' },
          { group: '', kind: 'Node', name: 'x' },
        ],
      }),
    ],
    ['apps/Deployment/n/d', '/Node//x'],
  );
});

interface Told {
  readonly journal: Journal;
  readonly edges: string[];
  at: number;
}

const journalAt = (): Told => {
  const told: { edges: string[]; at: number } = { edges: [], at: Date.parse('2026-01-01T00:00:00Z') };
  const clock = { now: () => told.at, monotonic: () => told.at, sleep: () => Promise.resolve() };
  const journal = new Journal(clock, (record) => told.edges.push(edgeOf(record)));
  return Object.assign(told, { journal });
};

const content = (objects: number, phases = 1): PayloadContent => ({
  cluster: 'c',
  release: { name: release, domain: 'manifests' },
  manifestDigest: digest('5'),
  installations: [],
  requires: [],
  spans: [],
  phases: Array.from({ length: phases }, (_, p) => ({
    name: `p${p}`,
    dir: `10-p${p}`,
    gates: Array.from({ length: 16 }, (_g, g) => gate(`Gate${'A'.repeat(g + 1)}`, { scope: `p${p}` })),
    objects: Array.from({ length: objects }, (_o, n) => item({ name: `o-${p}-${n}` }).entry),
  })),
});

const loadedOf = (of: PayloadContent) =>
  ({
    payload: {
      index: { formatVersion: 1, digest: digest('1'), content: of, provenance: {} as never },
      objects: new Map(),
    },
    archive: new Uint8Array(),
    items: [],
    fromRetained: false,
  }) as const;

test('a failure stays told while the same work is tried again, until it gets beyond its place', () => {
  const { journal } = journalAt();
  journal.adopt(viewOf(releaseObject()));
  journal.step('Fetch');
  journal.step('Preconditions');
  journal.refused('Preconditions', [{ reason: 'AccessMissing', message: 'may not' }]);
  journal.failed([{ reason: 'AccessMissing', message: 'may not' }], 'retry', 1000);
  assert.is(journal.record.outcome.kind, 'retrying');
  journal.adopt(viewOf(releaseObject()));
  journal.step('Fetch');
  journal.step('Verify');
  journal.step('Preconditions');
  assert.is(journal.record.outcome.kind, 'retrying', 'the retry has not got beyond it');
  assert.is(journal.record.problems.length, 1);
  journal.step('DryRun');
  assert.is(journal.record.outcome.kind, 'applying');
  assert.equal(journal.record.problems, []);
});

test('a newer digest starts without memories of the older one', () => {
  const { journal } = journalAt();
  journal.adopt(viewOf(releaseObject()));
  journal.failed([{ reason: 'AccessMissing', message: 'may not' }], 'retry', 1000);
  journal.adopt(viewOf(releaseObject({ generation: 5 }, { payload: { digest: digest('2') } })));
  assert.is(journal.record.outcome.kind, 'applying');
  assert.equal(journal.record.problems, []);
});

test('a process that resumes tells nothing before it has looked', () => {
  const told = journalAt();
  const status = {
    observedGeneration: 4,
    actual: digest('1'),
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Completed', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
    history: [{ digest: digest('1'), state: 'Completed', startedAt: '2026-01-01T00:00:00Z' }],
  };
  told.journal.adopt(viewOf(releaseObject({}, {}, status)));
  told.journal.loaded(loadedOf(content(1)));
  told.journal.working();
  assert.equal(told.edges, []);
  told.journal.finished({ type: 'completed', counts: {} as never, left: [], open: true }, undefined);
  assert.is(told.edges.length, 1);
  const behind = journalAt();
  behind.journal.adopt(viewOf(releaseObject({ generation: 5 }, {}, status)));
  assert.is(behind.edges.length, 1, 'a changed spec is told at once');
});

test('a status has room for everything: at most 32 KiB, by its own schema, nothing secret', () => {
  const { journal } = journalAt();
  journal.adopt(viewOf(releaseObject()));
  journal.loaded(loadedOf(content(100, 60)));
  journal.begun(digest('1'));
  const { record } = journal;
  const long = 'x'.repeat(3000);
  for (const phase of record.progress?.phases ?? [])
    record.progress?.gates(
      phase.name,
      (content(1).phases[0]?.gates ?? []).map((g) => ({
        gate: { ...g, scope: phase.name },
        verdict: { state: 'Unknown', reason: 'NotObserved', message: long },
      })),
    );
  record.history = Array.from({ length: 100 }, (_, n) => ({
    digest: digest(String(n % 10)),
    state: 'Completed',
    startedAt: '2026-01-01T00:00:00Z',
    acceptedRisks: long.slice(0, 1000),
  }));
  const secret = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJlY2FuYXJ5';
  journal.failed(
    Array.from({ length: 50 }, (_, n) => ({
      reason: 'FieldConflict',
      message: `${long} Bearer ${secret}`,
      object: `ConfigMap demo/${n}`,
    })),
    'retry',
    1000,
  );
  const status = statusOf(record, [], 1_800_000_000_000);
  const bytes = Buffer.byteLength(canonicalJson(status));
  assert.ok(bytes <= 32 * 1024, `${bytes} bytes`);
  const read = releaseStatus.safeParse(status);
  assert.ok(read.success, read.success ? '' : JSON.stringify(read.error.issues.slice(0, 3)));
  assert.ok((status.failures as JsonObject[]).length >= 3);
  assert.is(status.failureCount, 50);
  assert.not.ok(JSON.stringify(status).includes(secret));
  assert.not.ok(problemText({ reason: 'X', message: `Bearer ${secret}` }).includes(secret));
});

test('mere seconds change nothing of a status', () => {
  const told = journalAt();
  told.journal.adopt(viewOf(releaseObject()));
  told.journal.loaded(loadedOf(content(1)));
  told.journal.begun(digest('1'));
  told.journal.record.progress?.gates('p0', [
    {
      gate: gate('WorkloadsReady', { scope: 'p0' }),
      verdict: { state: 'Unknown', reason: 'NotObserved', message: 'm' },
    },
  ]);
  const at = (ms: number) => {
    told.at += ms;
    told.journal.record.progress?.gates('p0', [
      {
        gate: gate('WorkloadsReady', { scope: 'p0' }),
        verdict: { state: 'Unknown', reason: 'NotObserved', message: 'm' },
      },
    ]);
    return canonicalJson(statusOf(told.journal.record, [], told.at).phases ?? null);
  };
  const first = at(1_000);
  assert.is(at(1_000), first);
  assert.is.not(at(60_000), first);
});

test('writes that were cut off are written once more, when they can no longer arrive', () => {
  let now = 0;
  const doubts = new Doubts({ now: () => now, monotonic: () => now, sleep: () => Promise.resolve() }, 100);
  const [one, two] = [item({ name: 'one' }), item({ name: 'two' })];
  const ledger = ledgerOf(entry(one), entry(two));
  const store = { ledger, put: (e: ReturnType<typeof entry>) => ledger.set(e.id, e) } as unknown as LedgerStore;
  assert.is(doubts.next(), Number.POSITIVE_INFINITY);
  doubts.add(one.id);
  now = 60;
  assert.is(doubts.next(), 40);
  doubts.settle(store);
  assert.is(ledger.get(one.id)?.state, 'applied');
  now = 100;
  doubts.settle(store);
  assert.equal([ledger.get(one.id)?.state, ledger.get(two.id)?.state], ['intended', 'applied']);
  assert.is(doubts.next(), Number.POSITIVE_INFINITY);
});

test.run();
