import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import type { PayloadContent } from '../../constructs/api/payload.ts';
import { releaseStatus } from '../../constructs/api/release.ts';
import { isDigest } from '../../constructs/lib/digest.ts';
import { canonicalJson, getAt, type JsonObject } from '../../constructs/lib/json.ts';
import type { LedgerStore } from '../../executor/apply/ledger-store.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { dependentsToWake } from '../../executor/release/dependents.ts';
import { Doubts } from '../../executor/release/doubts.ts';
import { edgeOf } from '../../executor/release/edge.ts';
import { Journal } from '../../executor/release/journal.ts';
import { problemText, statusOf } from '../../executor/release/status.ts';
import {
  desiredDigest,
  overriddenIds,
  type ReleaseView,
  readRelease,
  workIdentity,
} from '../../executor/release/view.ts';
import { digest, entry, gate, item, ledgerOf, release } from './executor-support.ts';

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
    releaseObject({ annotations: { [annotations.quiesce]: 'x' } }),
    ...[annotations.pin, annotations.hold, annotations.quiesce, annotations.uninstall].map((mark) =>
      releaseObject({ annotations: { [mark]: '' } }),
    ),
    releaseObject({ uid: 'v' }),
  ];
  for (const object of same) assert.is(workIdentity(viewOf(object)), base);
  const identities = others.map((object) => workIdentity(viewOf(object)));
  assert.is(new Set([base, ...identities]).size, others.length + 1);
  assert.is(desiredDigest(viewOf(releaseObject({ annotations: { [annotations.pin]: digest('2') } }))), digest('2'));
  const mistyped = desiredDigest(viewOf(releaseObject({ annotations: { [annotations.pin]: 'latest' } })));
  assert.ok(isDigest(mistyped) && mistyped !== digest('1'), 'a pin that is none lets nothing else in');
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

test('a payload that was accepted before is told as accepted when it is asked for again', () => {
  const { journal } = journalAt();
  const asks = (n: string): void =>
    journal.adopt(viewOf(releaseObject({}, { payload: { digest: digest(n) }, source: { configMaps: {} } })));
  asks('1');
  journal.loaded(loadedOf(content(1)));
  asks('2');
  journal.refused('DryRun', [{ reason: 'FieldConflict', message: 'held' }]);
  journal.working();
  assert.is(journal.record.accepted.status, 'False', 'what runs on is not what is asked for');
  asks('1');
  journal.working();
  assert.is(journal.record.accepted.status, 'True');
});

test('a refusal is never told without all of its reasons', () => {
  const { journal } = journalAt();
  const problems = ['get', 'patch'].map((verb) => ({ reason: 'AccessMissing', message: `may not ${verb}` }));
  journal.adopt(viewOf(releaseObject()));
  journal.step('Preconditions');
  journal.refused('Preconditions', problems);
  assert.equal(journal.record.problems, problems, 'before the attempt has ended');
  journal.failed(problems, 'retry', 1000);
  for (const step of ['Fetch', 'Verify', 'Preconditions'] as const) {
    journal.adopt(viewOf(releaseObject()));
    journal.step(step);
    assert.is(journal.record.accepted.status, 'False');
    assert.equal(journal.record.problems, problems, step);
  }
  journal.step('DryRun');
  assert.equal(journal.record.problems, []);
  assert.is(journal.record.accepted.status, 'Unknown', 'what it was refused for has passed');
});

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
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const standing = (ready: { status: string; reason: string }) => ({
    observedGeneration: 4,
    actual: digest('1'),
    conditions: [{ type: 'Ready', message: '', lastTransitionTime, ...ready }],
    history: [{ digest: digest('1'), state: 'Completed', startedAt: lastTransitionTime }],
  });
  const status = standing({ status: 'True', reason: 'Completed' });
  for (const each of [status, standing({ status: 'Unknown', reason: 'GatesBypassed' })]) {
    const told = journalAt();
    told.journal.adopt(viewOf(releaseObject({}, {}, each)));
    told.journal.loaded(loadedOf(content(1)));
    told.journal.working();
    assert.equal(told.edges, []);
    told.journal.finished({ type: 'completed', counts: {} as never, left: [], open: true }, undefined);
    assert.is(told.edges.length, 1);
  }
  const behind = journalAt();
  behind.journal.adopt(viewOf(releaseObject({ generation: 5 }, {}, status)));
  assert.is(behind.edges.length, 1, 'a changed spec is told at once');
});

test('a step is not Completed while a gate is shut, also when a pass went through everything', () => {
  const { journal } = journalAt();
  journal.adopt(viewOf(releaseObject()));
  journal.loaded(loadedOf(content(2)));
  journal.begun(digest('1'));
  const { record } = journal;
  const stepAt = (state: 'True' | 'Unknown', more: { bypassed?: true } = {}): unknown => {
    record.progress?.gates('p0', [
      { gate: gate('GateA', { scope: 'p0' }), verdict: { state, reason: 'NotObserved', message: 'm', ...more } },
    ]);
    journal.finished({ type: 'completed', counts: {} as never, left: [], open: state === 'True' }, undefined);
    return getAt(statusOf(record, [], 1_800_000_000_000), '/sync/step');
  };
  assert.is(stepAt('Unknown'), 'p0');
  assert.is(stepAt('Unknown', { bypassed: true }), 'Completed');
  assert.is(stepAt('True'), 'Completed');
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

test('a problem blocks since it was first told, not since the work last moved', () => {
  const told = journalAt();
  told.journal.adopt(viewOf(releaseObject()));
  told.journal.loaded(loadedOf(content(1)));
  told.journal.begun(digest('1'));
  told.at += 60_000;
  const arose = told.at;
  told.journal.failed([{ reason: 'FieldConflict', message: 'm' }], 'retry', 1_000);
  const first = statusOf(told.journal.record, [], told.at);
  const later = statusOf(told.journal.record, first.conditions as never, told.at + 30_000);
  for (const status of [first, later])
    assert.is(Date.parse(String(getAt(status, '/sync/blocker/since'))), Math.floor(arose / 1000) * 1000);
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

const named = (name: string, ready: string, dependsOn: string[] = []): KubeObject => ({
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: { name, generation: 1, uid: name },
  spec: { dependsOn: dependsOn.map((other) => ({ name: other })) },
  status: { observedGeneration: 1, conditions: [{ type: 'Ready', status: ready, observedGeneration: 1 }] },
});

test('a Release wakes those that depend on it when its readiness moves, and nobody by mere progress', () => {
  const all = [named('a', 'False'), named('b', 'False', ['a']), named('c', 'False')];
  const [a] = all;
  if (a === undefined) throw new Error('no release');
  const moved = { type: 'modified', previous: a, object: named('a', 'True') } as const;
  assert.equal(dependentsToWake(moved, all), ['b']);
  assert.equal(dependentsToWake({ type: 'modified', previous: a, object: named('a', 'False') }, all), []);
  assert.equal(dependentsToWake({ type: 'deleted', object: a }, all), ['b']);
  assert.equal(dependentsToWake({ type: 'added', object: named('c', 'False') }, all), []);
});

test('a Release that gives objects up wakes those that wait for one', () => {
  const holding = (count: number): KubeObject => {
    const release = named('a', 'False');
    return { ...release, status: { ...release.status, ledger: { count } } };
  };
  const waiting = named('b', 'Unknown');
  const accepted = { type: 'Accepted', status: 'False', reason: 'OwnedByAnother', observedGeneration: 1 };
  const all = [holding(3), { ...waiting, status: { conditions: [accepted] } }, named('c', 'False')];
  const now = (count: number) => ({ type: 'modified', previous: holding(3), object: holding(count) }) as const;
  assert.equal(dependentsToWake(now(2), all), ['b']);
  assert.equal(dependentsToWake(now(3), all), []);
  assert.equal(dependentsToWake(now(4), all), []);
});

test.run();
