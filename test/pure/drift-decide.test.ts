import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { Answers, boundIntents } from '../../executor/apply/drift/bound.ts';
import { compare } from '../../executor/apply/drift/compare.ts';
import { decide } from '../../executor/apply/drift/decide.ts';
import { type FightPolicy, Fights, wholeObject } from '../../executor/apply/drift/fights.ts';
import { Pauses } from '../../executor/apply/drift/pauses.ts';
import { DriftState, type Followed } from '../../executor/apply/drift/state.ts';
import { sweepOrder, sweepPause } from '../../executor/apply/drift/sweep.ts';
import type { Item } from '../../executor/apply/items.ts';
import type { LedgerStore } from '../../executor/apply/ledger-store.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../executor/kube/types.ts';
import { entry, item, ledgerOf, liveMeta, release } from './executor-support.ts';
import { VirtualClock } from './virtualClock.ts';

const map = (more: Parameters<typeof item>[0] = {}): Item => item({ body: { data: { a: '1', b: '2' } }, ...more });

const held = (manager: string, operation: 'Apply' | 'Update', ...keys: string[]): ManagedFieldsEntry => ({
  manager,
  operation,
  fieldsV1: { 'f:data': Object.fromEntries(keys.map((key) => [`f:${key}`, {}])) },
});

const live = (of: Item, data: JsonObject, ...entries: ManagedFieldsEntry[]): KubeObject => ({
  ...of.object,
  metadata: { ...of.object.metadata, uid: 'uid-1', managedFields: entries },
  data,
});

const decided = (of: Item, object: KubeObject, more: Partial<Parameters<typeof decide>[0]> = {}) =>
  decide({
    item: of,
    intent: of.object,
    live: object,
    settled: undefined,
    returning: () => [],
    trying: false,
    ...more,
  });

test('an Update is set back, an Apply is a fight, what nobody holds is asked about, what may be given up is', () => {
  const of = map();
  const changed = (...entries: ManagedFieldsEntry[]): KubeObject => live(of, { a: 'x', b: '2' }, ...entries);
  assert.is(decided(of, live(of, { a: '1', b: '2', theirs: 'x' })).type, 'none');
  const update = decided(of, changed(held('kubectl', 'Update', 'a')));
  assert.equal(update.type === 'setBack' && [update.fields, update.managers], [['.data.a'], ['kubectl']]);
  // The entry stays in the version that it was written in; the path is what counts.
  const elsewhere = { ...held('kubectl', 'Update', 'a'), apiVersion: 'example.com/v1beta1' };
  const version = decided(of, changed(elsewhere));
  assert.equal(version.type === 'setBack' && [version.fields, version.managers], [['.data.a'], ['kubectl']]);
  const applied = decided(of, changed(held('team-b', 'Apply', 'a')));
  assert.equal(applied, {
    type: 'fight',
    fight: { id: of.id, why: 'apply', managers: ['team-b'], fields: ['.data.a'] },
  });
  const asked = decided(of, changed());
  assert.is(asked.type, 'ask');
  // The server's own answer explains it; one that does not makes it certain.
  const { hash } = asked.type === 'ask' ? asked : { hash: '' };
  assert.is(decided(of, changed(), { settled: hash }).type, 'none');
  assert.is(decided(of, changed(), { settled: 'other' }).type, 'setBack');
  const given = map({ conflict: 'yield', yieldFields: ['/data/a'] });
  assert.equal(decided(given, changed(held('hpa', 'Update', 'a'))), { type: 'yield', pointers: ['/data/a'] });
  const both = live(given, { a: 'x', b: 'x' }, held('hpa', 'Update', 'a'), held('kubectl', 'Update', 'b'));
  assert.equal(decided(given, both), { type: 'yield', pointers: ['/data/a'] }, 'the rest is decided on afterwards');
  assert.is(
    decided(map({ conflict: 'yield', yieldFields: ['/data/b'] }), changed(held('hpa', 'Update', 'a'))).type,
    'setBack',
  );
});

test('what came back too often is a fight, unless its pause is over', () => {
  const of = map();
  const object = live(of, { a: 'x', b: '2' }, held('kubectl', 'Update', 'a'));
  const fought = decided(of, object, { returning: (fields) => fields });
  assert.equal(fought, {
    type: 'fight',
    fight: { id: of.id, why: 'returns', managers: ['kubectl'], fields: ['.data.a'] },
  });
  assert.is(decided(of, object, { returning: (fields) => fields, trying: true }).type, 'setBack');
});

const policy: FightPolicy = {
  repairs: 3,
  windowMs: 3_600_000,
  backoff: { initialMs: 60_000, factor: 2, maxMs: 3_600_000, jitter: 0 },
};

test('three repairs of a field within an hour are made; other fields, and repairs long ago, do not count', () => {
  const fights = new Fights(policy, () => 0.5);
  for (const at of [0, 1_000, 2_000]) {
    assert.equal(fights.returning('x', ['.a'], at), []);
    fights.repaired('x', ['.a'], at);
  }
  assert.equal(fights.returning('x', ['.a', '.b'], 3_000), ['.a']);
  assert.equal(fights.returning('y', ['.a'], 3_000), []);
  assert.equal(fights.returning('x', ['.a'], 3_600_000), [], 'the first of them is an hour ago');
});

test('the pauses of a fight grow; what is told is told once', () => {
  const fights = new Fights(policy, () => 0.5);
  const fight = { id: 'x', why: 'returns', managers: ['kubectl'], fields: ['.a'] } as const;
  assert.is(fights.begin(fight, 0), true);
  assert.ok(fights.pausing('x', 59_999) && !fights.pausing('x', 60_000));
  assert.is(fights.next(0), 60_000);
  assert.is(fights.begin(fight, 60_000), false, 'the same again');
  assert.is(fights.next(60_000), 180_000);
  assert.is(fights.begin({ ...fight, fields: ['.b'] }, 180_000), true);
  assert.equal(fights.due(420_000), ['x']);
  fights.end('x');
  assert.equal(fights.all, []);
  fights.begin(fight, 0);
  assert.is(fights.next(0), 60_000, 'a new fight begins with a short pause');
  assert.equal(fights.all, [fight]);
});

test('a sweep begins elsewhere each round, visits every place once, and not when others do', () => {
  const places = ['a', 'b', 'c'];
  assert.equal(
    [0, 1, 2, 3].map((round) => sweepOrder(places, round).join('')),
    ['abc', 'bca', 'cab', 'abc'],
  );
  assert.equal(sweepOrder([], 5), []);
  assert.equal(
    [0, 0.5, 0.999].map((r) => Math.round(sweepPause({ everyMs: 600_000, jitter: 0.1 }, () => r) / 1000)),
    [540, 600, 660],
  );
});

test('of a claim for storage only marks are compared, and a tombstone is compared with nothing', () => {
  const claim = item({
    kind: 'PersistentVolumeClaim',
    body: { spec: { resources: { requests: { storage: '1Gi' } } } },
  });
  const gone = item({ name: 'gone', absent: true });
  const intents = boundIntents([claim, gone], () => ({ value: undefined }));
  assert.equal([...intents.keys()], [claim.id]);
  const bound = intents.get(claim.id);
  if (bound === undefined) throw new Error('nothing bound');
  const answers = new Answers();
  const grown = { ...claim.object, spec: { resources: { requests: { storage: '2Gi' } } } };
  assert.ok(compare(answers.compared(bound), grown).same, 'it only ever grows');
  assert.not.ok(compare(answers.compared(bound), { ...grown, metadata: { name: 'a' } }).same, 'a lost mark shows');
  assert.equal(answers.intent(bound), claim.object, 'what is sent is the whole of it');
});

interface StateBed {
  readonly state: DriftState;
  readonly clock: VirtualClock;
  readonly of: Item;
  seen: KubeObject | undefined | 'unknown';
  readonly follow: (more?: Partial<Followed>) => boolean;
}

function stateBed(of = map()): StateBed {
  const clock = new VirtualClock();
  const ledger = { ledger: ledgerOf(entry(of)) } as unknown as LedgerStore;
  const bed: StateBed = {
    clock,
    of,
    seen: 'unknown',
    state: new DriftState({
      clock,
      fights: new Fights(policy, () => 0.5),
      retries: new Pauses({ initialMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 }, () => 0.5),
      find: () => bed.seen,
    }),
    follow: (more = {}) =>
      bed.state.follow({
        release,
        items: [of],
        bind: () => ({ value: undefined }),
        ledger,
        overridden: new Set(),
        frozen: new Set(),
        narrow: new Set(),
        ...more,
      }),
  };
  return bed;
}

const shown = (of: Item, seen: JsonObject, more: Parameters<typeof liveMeta>[1] = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: liveMeta(of, { resourceVersion: '1', ...more }),
  seen,
});

test('suspicious is what differs unexplained, and what the ledger has and no watch shows; nothing while that is in doubt', () => {
  const bed = stateBed();
  const { state, of } = bed;
  assert.is(bed.follow(), true);
  assert.is(bed.follow(), false, 'the same again');
  const differs = { same: false, hash: 'h' };
  const cases: [StateBed['seen'], boolean][] = [
    ['unknown', false],
    [undefined, true],
    [shown(of, { same: true }), false],
    [shown(of, differs), true],
    [shown(of, differs, { uid: 'uid-2' }), true],
    [shown(of, differs, { annotations: { 'keelson.dev/id': of.id, 'keelson.dev/hold': 'x' } }), false],
    [shown(of, differs, { annotations: { 'keelson.dev/id': of.id, 'keelson.dev/quiesce': 'x' } }), false],
    [shown(of, differs, { deletionTimestamp: '2026-01-01T00:00:00Z' }), false],
  ];
  for (const [seen, expected] of cases) {
    bed.seen = seen;
    assert.is(state.check(of.id), expected, JSON.stringify(seen));
  }
  bed.seen = shown(of, differs);
  for (const [more, expected] of [
    [{ overridden: new Set([of.id]) }, false],
    [{ frozen: new Set([of.phase]) }, false],
    [{}, true],
  ] as const) {
    bed.follow(more);
    assert.is(state.check(of.id), expected);
  }
  const once = stateBed(map({ createOnly: true }));
  once.follow();
  once.seen = shown(once.of, differs);
  assert.is(once.state.check(once.of.id), false);
});

test('a version that was looked at is not looked at again; a failure waits, and is told until it is over', async () => {
  const bed = stateBed();
  const { state, of, clock } = bed;
  bed.follow();
  bed.seen = shown(of, { same: false, hash: 'h' });
  state.examine();
  assert.equal(state.ready(), [of.id]);
  state.looked(of.id, ['1']);
  assert.equal(state.ready(), []);
  bed.seen = shown(of, { same: false, hash: 'i' }, { resourceVersion: '2' });
  state.check(of.id);
  assert.equal(state.ready(), [of.id]);
  state.failed(of.id, { reason: 'Forbidden', message: 'no' });
  assert.equal([state.ready(), state.told.problems.length, state.next()], [[], 1, 1_000]);
  await clock.advance(1_000);
  assert.equal(state.ready(), [of.id]);
  bed.seen = shown(of, { same: true }, { resourceVersion: '3' });
  state.check(of.id);
  assert.equal(state.told.problems, []);
});

test('an object that is fought over waits, and its fight ends by itself only when the value stays', async () => {
  const bed = stateBed();
  const { state, of, clock } = bed;
  bed.follow();
  bed.seen = shown(of, { same: false, hash: 'h' });
  state.check(of.id);
  const fight = { id: of.id, managers: ['b'], fields: [wholeObject] };
  state.fights.begin({ ...fight, why: 'returns' }, 0);
  assert.equal(state.ready(), []);
  bed.seen = shown(of, { same: true }, { resourceVersion: '3' });
  state.check(of.id);
  assert.is(state.told.fights.length, 1, 'it may come back');
  state.calm();
  assert.is(state.told.fights.length, 1);
  await clock.advance(60_000);
  state.calm();
  assert.equal(state.told.fights, []);
  state.fights.begin({ ...fight, why: 'apply' }, 0);
  state.check(of.id);
  assert.equal(state.told.fights, [], 'the other has given it up');
});

test.run();
