import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, labels } from '../../constructs/api/constants.ts';
import type { LedgerEntry } from '../../constructs/api/ledger.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { isWithin, parseFieldPath, pointerOf, without } from '../../executor/apply/fieldpath.ts';
import type { Item } from '../../executor/apply/items.ts';
import { type Need, type NeedInput, needOf } from '../../executor/apply/need.ts';
import { afterLook, verdictOf } from '../../executor/apply/ownership.ts';
import type { ApplyOutcome } from '../../executor/kube/outcome.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';
import { entry, item, ledgerOf, liveMeta, release, sha } from './executor-support.ts';

const needInput = (input: Partial<NeedInput> = {}): NeedInput => ({
  release,
  ledger: new Map(),
  live: new Map(),
  overridden: new Set(),
  ...input,
});

test('what an object needs, case by case', () => {
  const it = item();
  const live = (more: Partial<ObjectMeta> = {}) => new Map([[it.id, liveMeta(it, more)]]);
  const cases: [string, Need, Item, Partial<NeedInput>][] = [
    ['never seen', { need: 'write', why: 'new' }, it, {}],
    ['in place', { need: 'none', uid: 'uid-1' }, it, { ledger: ledgerOf(entry(it)), live: live() }],
    [
      'changed',
      { need: 'write', why: 'changed', uid: 'uid-1' },
      it,
      { ledger: ledgerOf(entry(it, { sha256: sha('b') })), live: live() },
    ],
    ['gone', { need: 'write', why: 'vanished', formerUID: 'uid-1' }, it, { ledger: ledgerOf(entry(it)) }],
    [
      'another took its name',
      { need: 'write', why: 'replaced', formerUID: 'uid-1' },
      it,
      { ledger: ledgerOf(entry(it)), live: live({ uid: 'uid-2' }) },
    ],
    [
      'it was being replaced, and something of ours has its name',
      { need: 'write', why: 'unfinished', formerUID: 'uid-1' },
      item({ recreate: true }),
      { ledger: ledgerOf(entry(it, { state: 'intended' })), live: live({ uid: 'uid-2' }) },
    ],
    [
      'it was being replaced, and another took its name',
      { need: 'write', why: 'replaced', formerUID: 'uid-1' },
      item({ recreate: true }),
      { ledger: ledgerOf(entry(it, { state: 'intended' })), live: live({ uid: 'uid-2', annotations: {} }) },
    ],
    [
      'nothing was to be replaced',
      { need: 'write', why: 'replaced', formerUID: 'uid-1' },
      it,
      { ledger: ledgerOf(entry(it, { state: 'intended' })), live: live({ uid: 'uid-2' }) },
    ],
    [
      'its adoption has begun',
      { need: 'adopt', uid: 'uid-1' },
      it,
      { ledger: ledgerOf(entry(it, { state: 'adopting' })) },
    ],
    ['intended, nothing there', { need: 'write', why: 'unfinished' }, it, { ledger: ledgerOf(entryWithoutUID(it)) }],
    [
      'intended, written, not recorded',
      { need: 'write', why: 'unfinished', uid: 'uid-1' },
      it,
      { ledger: ledgerOf(entryWithoutUID(it)), live: live() },
    ],
    [
      'intended, but a copy without our id is there',
      { need: 'write', why: 'unfinished' },
      it,
      { ledger: ledgerOf(entryWithoutUID(it)), live: live({ annotations: {} }) },
    ],
    ['overridden', { need: 'unmanaged' }, it, { overridden: new Set([it.id]), live: live() }],
    [
      'override lifted',
      { need: 'write', why: 'resumed', uid: 'uid-1' },
      it,
      { ledger: ledgerOf(entry(it, { state: 'unmanaged' })), live: live() },
    ],
    [
      'prune taken back',
      { need: 'write', why: 'resumed', uid: 'uid-1' },
      it,
      { ledger: ledgerOf(entry(it, { state: 'pruning' })), live: live() },
    ],
    [
      'held',
      { need: 'held', uid: 'uid-1', by: 'me' },
      it,
      { ledger: ledgerOf(entry(it, { sha256: sha('b') })), live: live({ annotations: { [annotations.hold]: 'me' } }) },
    ],
    [
      'being deleted',
      { need: 'terminating', uid: 'uid-1', finalizers: ['x/y'], since: '2026-01-01T00:00:00Z' },
      it,
      { ledger: ledgerOf(entry(it)), live: live({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x/y'] }) },
    ],
    [
      'tombstone of ours',
      { need: 'remove', uid: 'uid-1', finalizers: [] },
      item({ absent: true }),
      { ledger: ledgerOf(entry(it)), live: live() },
    ],
    ['tombstone of what the ledger does not own', { need: 'gone' }, item({ absent: true }), { live: live() }],
    [
      'tombstone of what somebody else had made',
      { need: 'gone' },
      item({ absent: true }),
      { ledger: ledgerOf(entry(it, { state: 'unmanaged' })), live: live({ annotations: {} }) },
    ],
    [
      'tombstone of ours that was taken out of management',
      { need: 'remove', uid: 'uid-1', finalizers: [] },
      item({ absent: true }),
      { ledger: ledgerOf(entry(it, { state: 'unmanaged' })), live: live() },
    ],
    [
      'create-only no more, made by somebody else',
      { need: 'write', why: 'resumed' },
      it,
      { ledger: ledgerOf(entry(it, { state: 'unmanaged' })) },
    ],
    [
      'the same, under a label like ours',
      { need: 'write', why: 'resumed' },
      it,
      { ledger: ledgerOf(entry(it, { state: 'unmanaged' })), live: live({ annotations: {} }) },
    ],
    [
      'create-only, made by somebody else',
      { need: 'unmanaged' },
      item({ createOnly: true }),
      { ledger: ledgerOf(entry(it, { state: 'unmanaged' })), live: live({ labels: {} }) },
    ],
    [
      'create-only, changed since',
      { need: 'none', uid: 'uid-1' },
      item({ createOnly: true }),
      { ledger: ledgerOf(entry(it, { sha256: sha('b') })), live: live() },
    ],
  ];
  for (const [what, wanted, of, input] of cases) assert.equal(needOf(of, needInput(input)), wanted, what);
});

const entryWithoutUID = (of: Item): LedgerEntry => {
  const { uid: _uid, ...rest } = entry(of, { state: 'intended' });
  return rest;
};

const answer = (object: Partial<KubeObject['metadata']>): ApplyOutcome => ({
  type: 'configured',
  object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: object },
  warnings: [],
  retried: false,
});

test('only what is new or proven ours may be written', () => {
  const it = item();
  const fresh: Need = { need: 'write', why: 'new' };
  const known: Need = { need: 'write', why: 'changed', uid: 'uid-1' };
  assert.equal(verdictOf(it, it.object, fresh, { type: 'created', object: it.object, warnings: [], retried: false }), {
    verdict: 'new',
  });
  assert.equal(verdictOf(it, it.object, known, answer({ uid: 'uid-1', resourceVersion: '7' })), {
    verdict: 'ours',
    uid: 'uid-1',
    version: '7',
  });
  assert.equal(verdictOf(it, it.object, fresh, answer({ uid: 'uid-9' })), { verdict: 'look', uid: 'uid-9' });
  assert.is(verdictOf(item({ createOnly: true }), it.object, fresh, answer({ uid: 'uid-9' })).verdict, 'leave');
  const owned = verdictOf(
    it,
    it.object,
    known,
    answer({
      uid: 'uid-1',
      ownerReferences: [{ controller: true, uid: 'o', kind: 'App', name: 'x', apiVersion: 'v1' }],
    }),
  );
  assert.is(owned.verdict === 'refused' && owned.problem.reason, 'OwnedByAnother');
  const own = {
    ...it.object,
    metadata: {
      ...it.object.metadata,
      ownerReferences: [{ controller: true, uid: 'o', kind: 'App', name: 'x', apiVersion: 'v1' }],
    },
  };
  assert.is(
    verdictOf(
      it,
      own,
      known,
      answer({
        uid: 'uid-1',
        ownerReferences: [{ controller: true, uid: 'o', kind: 'App', name: 'x', apiVersion: 'v1' }],
      }),
    ).verdict,
    'ours',
  );
});

test('an object that the ledger only intended is ours when marks and manager say so, and no other', () => {
  const it = item();
  const unfinished: Need = { need: 'write', why: 'unfinished' };
  const applied = { manager: 'keelson', operation: 'Apply' as const };
  const live = (metadata: Partial<ObjectMeta>): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...liveMeta(it), ...metadata },
  });
  assert.is(afterLook(it, unfinished, release, live({ managedFields: [applied] })).verdict, 'ours');
  const refusedOnes: [Need, Partial<ObjectMeta>][] = [
    [{ need: 'write', why: 'new' }, { managedFields: [applied] }],
    [unfinished, { managedFields: [{ manager: 'kubectl', operation: 'Update' }] }],
    [unfinished, { managedFields: [applied], annotations: { [annotations.id]: '/ConfigMap/demo/other' } }],
    [unfinished, { managedFields: [applied], labels: { [labels.release]: 'other' } }],
    [{ need: 'write', why: 'replaced', formerUID: 'uid-0' }, { managedFields: [applied] }],
  ];
  for (const [need, metadata] of refusedOnes)
    assert.is(afterLook(it, need, release, live(metadata)).verdict, 'refused', JSON.stringify([need, metadata]));
  assert.is(afterLook(it, unfinished, release, undefined).verdict, 'new');
});

test('an object changes hands once the release that its label names has let it go, and not before', () => {
  const it = item();
  const applied = { manager: 'keelson', operation: 'Apply' as const };
  const live = (metadata: Partial<ObjectMeta>): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...liveMeta(it), managedFields: [applied], ...metadata },
  });
  const fresh: Need = { need: 'write', why: 'new' };
  const theirs = { labels: { [labels.release]: 'manifests-other' } };
  const verdict = (
    metadata: Partial<ObjectMeta>,
    hold: Parameters<typeof afterLook>[4],
    need: Need = fresh,
  ): string => {
    const found = afterLook(it, need, release, live(metadata), hold);
    return found.verdict === 'refused' ? `${found.verdict} ${found.problem.reason}` : found.verdict;
  };
  assert.is(verdict(theirs, 'free'), 'ours');
  assert.is(verdict(theirs, 'held'), 'refused OwnedByAnother');
  assert.is(verdict(theirs, 'unknown'), 'refused AlreadyExists');
  assert.is(verdict(theirs, undefined), 'refused AlreadyExists');
  assert.is(verdict({}, 'free'), 'ours', 'what we let go ourselves');
  assert.is(verdict({}, 'held'), 'refused AlreadyExists');
  const replaced: Need = { need: 'write', why: 'replaced', formerUID: 'uid-0' };
  assert.is(verdict({}, 'free', replaced), 'refused ObjectReplaced');
  const copied = { ...theirs, annotations: { [annotations.id]: '/ConfigMap/demo/original' } };
  assert.is(verdict(copied, 'free'), 'refused AlreadyExists', "a copy is nobody's to give");
  assert.is(verdict({ ...theirs, managedFields: [] }, 'free'), 'refused AlreadyExists');
});

test('a conflict is yielded only within the fields that the manifest gives up', () => {
  const body = {
    spec: {
      replicas: 2,
      template: {
        spec: {
          containers: [
            { name: 'a', image: 'x' },
            { name: 'b', image: 'y' },
          ],
        },
      },
    },
  };
  const conflict = (field: string): ApplyOutcome => ({
    type: 'conflict',
    managers: [{ manager: 'other', operation: 'Update', fields: [field] }],
    message: '',
  });
  const need: Need = { need: 'write', why: 'changed', uid: 'uid-1' };
  const yields = item({
    kind: 'Deployment',
    apiVersion: 'apps/v1',
    conflict: 'yield',
    yieldFields: ['/spec/replicas'],
    body,
  });
  assert.equal(verdictOf(yields, yields.object, need, conflict('.spec.replicas')), {
    verdict: 'yield',
    pointers: ['/spec/replicas'],
    managers: ['other'],
  });
  assert.is(
    verdictOf(yields, yields.object, need, conflict('.spec.template.spec.containers[name="b"].image')).verdict,
    'refused',
  );
  const fails = item({ kind: 'Deployment', apiVersion: 'apps/v1', body });
  const refused = verdictOf(fails, fails.object, need, conflict('.spec.replicas'));
  assert.match(refused.verdict === 'refused' ? refused.problem.message : '', 'other (Update) holds .spec.replicas');
});

test('an immutable field is replaced only with consent, and never for kinds that hold something', () => {
  const invalid: ApplyOutcome = {
    type: 'invalid',
    message: 'x',
    causes: [{ field: 'spec.selector', reason: 'FieldValueInvalid', message: 'field is immutable' }],
  };
  const need: Need = { need: 'write', why: 'changed', uid: 'uid-1' };
  const of = (kind: string, apiVersion: string, recreate: boolean) => item({ kind, apiVersion, recreate });
  const verdict = (it: Item) => verdictOf(it, it.object, need, invalid);
  assert.is(verdict(of('Job', 'batch/v1', true)).verdict, 'replace');
  for (const it of [
    of('Job', 'batch/v1', false),
    of('StatefulSet', 'apps/v1', true),
    of('PersistentVolumeClaim', 'v1', true),
  ]) {
    const found = verdict(it);
    assert.is(found.verdict === 'refused' && found.problem.reason, 'ImmutableField', it.entry.kind);
  }
});

test('field paths of the API server lead to the place in the object', () => {
  const object: JsonObject = {
    metadata: { annotations: { 'a.b/c.d': 'x', a: 'y' } },
    spec: {
      ports: [
        { port: 80, protocol: 'TCP', nodePort: 1 },
        { port: 80, protocol: 'UDP' },
      ],
      list: ['p', 'q'],
    },
  };
  assert.is(pointerOf(object, '.spec.ports[port=80,protocol="UDP"]'), '/spec/ports/1');
  assert.is(pointerOf(object, '.spec.ports[port=80,protocol="TCP"].nodePort'), '/spec/ports/0/nodePort');
  assert.is(pointerOf(object, '.metadata.annotations.a.b/c.d'), '/metadata/annotations/a.b~1c.d');
  assert.is(pointerOf(object, '.spec.list[="q"]'), '/spec/list/1');
  assert.is(pointerOf(object, '.spec.list[1]'), '/spec/list/1');
  assert.is(pointerOf(object, '.spec.nothing'), undefined);
  assert.is(pointerOf(object, 'spec'), undefined);
  assert.is(parseFieldPath(''), undefined);
  assert.ok(isWithin('/spec/ports/0', '/spec/ports'));
  assert.not.ok(isWithin('/spec/portsX', '/spec/ports'));
  assert.equal(without(object, ['/spec/ports/0', '/spec/ports/1', '/spec/list/0']), {
    ...object,
    spec: { ports: [], list: ['q'] },
  });
});

test.run();
