import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, labels } from '../../constructs/api/constants.ts';
import type { LedgerEntry, LedgerState } from '../../constructs/api/ledger.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { bindItem, bindsNothing } from '../../executor/apply/bind.ts';
import { eachLimited } from '../../executor/apply/concurrency.ts';
import type { Judged } from '../../executor/apply/dryrun.ts';
import { isWithin, parseFieldPath, pointerOf, without } from '../../executor/apply/fieldpath.ts';
import { intents } from '../../executor/apply/intents.ts';
import type { Item } from '../../executor/apply/items.ts';
import { type Need, type NeedInput, needOf } from '../../executor/apply/need.ts';
import { crdSchema, definesKind, strictSchema } from '../../executor/apply/offline.ts';
import { rankOf, removeOrder, writeOrder } from '../../executor/apply/order.ts';
import { afterLook, verdictOf } from '../../executor/apply/ownership.ts';
import { type PruneInput, prunePlan } from '../../executor/apply/prune-plan.ts';
import type { ApplyOutcome } from '../../executor/kube/outcome.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';
import { digest, entry, item, ledgerOf, liveMeta, release, sha } from './executor-support.ts';

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

const kinds: [string, string][] = [
  ['v1', 'Namespace'],
  ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
  ['v1', 'ServiceAccount'],
  ['rbac.authorization.k8s.io/v1', 'Role'],
  ['rbac.authorization.k8s.io/v1', 'RoleBinding'],
  ['v1', 'ConfigMap'],
  ['v1', 'Service'],
  ['v1', 'PersistentVolumeClaim'],
  ['apps/v1', 'Deployment'],
  ['example.com/v1', 'Widget'],
  ['admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration'],
];

test('kinds stand in the order in which they need each other', () => {
  const ranks = kinds.map(([apiVersion, kind]) => rankOf({ apiVersion, kind }));
  assert.equal(
    ranks,
    [...ranks].sort((a, b) => a - b),
  );
  assert.is(new Set(ranks).size, ranks.length);
});

const anyItem = fc
  .tuple(fc.constantFrom(...kinds), fc.stringMatching(/^[a-z]{1,3}$/), fc.integer({ min: 0, max: 3 }))
  .map(([[apiVersion, kind], name, phaseIndex]) =>
    item({ apiVersion, kind, name, phaseIndex, phase: `p${phaseIndex}` }),
  );
const anyItems = fc.uniqueArray(anyItem, { selector: ({ id }) => id, maxLength: 30 });

test('write order: a permutation, ranks ascending, equal ranks together, the same for any input order; removal is its reverse', () => {
  fc.assert(
    fc.property(anyItems, (items) => {
      const order = writeOrder(items);
      assert.equal(
        order
          .flat()
          .map(({ id }) => id)
          .sort(),
        items.map(({ id }) => id).sort(),
      );
      const ranks = order.map((batch) => new Set(batch.map(({ entry: e }) => rankOf(e))));
      assert.ok(ranks.every((set) => set.size === 1));
      const flat = ranks.map((set) => [...set][0] ?? 0);
      assert.equal(
        flat,
        [...new Set(flat)].sort((a, b) => a - b),
      );
      assert.equal(writeOrder([...items].reverse()), order);
      assert.equal(removeOrder(items), [...order].reverse());
    }),
  );
});

interface World {
  readonly input: PruneInput;
  readonly entries: readonly LedgerEntry[];
}

const anyWorld: fc.Arbitrary<World> = fc
  .record({
    items: anyItems,
    wantedShare: fc.integer({ min: 0, max: 3 }),
    states: fc.array(fc.constantFrom<LedgerState>('intended', 'applied', 'pruning', 'unmanaged'), {
      minLength: 30,
      maxLength: 30,
    }),
    lives: fc.array(fc.constantFrom('ours', 'other', 'none', 'kept', 'claimed', 'held'), {
      minLength: 30,
      maxLength: 30,
    }),
    approved: fc.boolean(),
    enabled: fc.boolean(),
    maxCount: fc.integer({ min: 0, max: 10 }),
    maxPercent: fc.integer({ min: 0, max: 100 }),
    plannedShare: fc.integer({ min: 1, max: 3 }),
  })
  .map(({ items, wantedShare, states, lives, approved, enabled, maxCount, maxPercent, plannedShare }) => {
    const entries = items.map((of, n) => entry(of, { state: states[n] ?? 'applied' }));
    const live = new Map<string, ObjectMeta>();
    items.forEach((of, n) => {
      const how = lives[n];
      if (how === 'ours') live.set(of.id, liveMeta(of));
      if (how === 'other') live.set(of.id, liveMeta(of, { uid: 'uid-2' }));
      if (how === 'kept')
        live.set(of.id, liveMeta(of, { annotations: { [annotations.id]: of.id, 'helm.sh/resource-policy': 'keep' } }));
      if (how === 'claimed') live.set(of.id, liveMeta(of, { labels: { [labels.release]: 'another' } }));
      if (how === 'held') live.set(of.id, liveMeta(of, { annotations: { [annotations.hold]: 'x' } }));
    });
    const ids = items.map(({ id }) => id);
    return {
      entries,
      input: {
        release,
        ledger: ledgerOf(...entries),
        wanted: new Set(ids.filter((_, n) => n % 4 < wantedShare)),
        live,
        planned: new Set(ids.filter((_, n) => n % plannedShare === 0)),
        policy: { enabled, maxPercent, maxCount },
        approved,
      },
    };
  });

test('prune: only live objects of ours that nobody wants, keeps, claims or holds; each id has exactly one fate; bounds hold', () => {
  fc.assert(
    fc.property(anyWorld, ({ input, entries }) => {
      const plan = prunePlan(input);
      const fates = [...plan.remove, ...plan.vanished, ...plan.left, ...plan.dropped].map(({ id }) => id);
      assert.equal(
        fates.sort(),
        entries
          .map(({ id }) => id)
          .filter((id) => !input.wanted.has(id))
          .sort(),
      );
      for (const { id, uid, entry: e } of plan.remove) {
        const live = input.live.get(id);
        assert.is(uid, live?.uid);
        assert.is(uid, e.uid, 'the very object that the ledger owns');
        assert.is(live?.labels?.[labels.release], release);
        assert.is.not(e.state, 'unmanaged');
        assert.ok(input.policy.enabled);
        assert.not.ok(id.startsWith('/PersistentVolumeClaim/'));
        assert.not.ok(
          live?.annotations?.['helm.sh/resource-policy'] === 'keep' ||
            live?.annotations?.[annotations.hold] !== undefined,
        );
      }
      if (plan.brake !== undefined) assert.is(plan.remove.length, 0, 'a brake stops all of it');
      const unplanned = plan.remove.filter(({ id, entry: e }) => !input.planned.has(id) && e.state !== 'pruning');
      if (!input.approved && unplanned.length > 0) {
        const managed = entries.filter(({ state }) => state !== 'unmanaged').length;
        assert.ok(plan.remove.length <= input.policy.maxCount);
        assert.ok(plan.remove.length * 100 <= managed * input.policy.maxPercent);
        assert.not.ok(
          unplanned.some(({ id }) => id.startsWith('/Namespace/') || id.includes('CustomResourceDefinition')),
        );
      }
    }),
    { numRuns: 500 },
  );
});

test('the ledger is told of every object before the first write, and of nothing that it says already', () => {
  const [kept, changed, fresh] = [item({ name: 'kept' }), item({ name: 'changed' }), item({ name: 'fresh' })];
  const needs = new Map<string, Need>([
    [kept.id, { need: 'none', uid: 'uid-1' }],
    [changed.id, { need: 'write', why: 'changed', uid: 'uid-1' }],
    [fresh.id, { need: 'write', why: 'vanished', formerUID: 'uid-0' }],
  ]);
  const judged = new Map<string, Judged>([
    [
      changed.id,
      {
        item: changed,
        intent: changed.object,
        partial: false,
        verdict: { verdict: 'ours', uid: 'uid-1', version: '1' },
      },
    ],
    [fresh.id, { item: fresh, intent: fresh.object, partial: false, verdict: { verdict: 'new' } }],
  ]);
  const payload = digest('2');
  const ledger = ledgerOf(entry(kept), entry(changed, { sha256: sha('b') }), entry(fresh, { uid: 'uid-0' }));
  const input = { payload, items: [kept, changed, fresh], needs, judged };
  const first = intents({ ...input, ledger });
  assert.equal(
    first.map(({ id, state, uid, payload: p }) => [id, state, uid, p]),
    [
      [kept.id, 'applied', 'uid-1', payload],
      [changed.id, 'intended', 'uid-1', payload],
      [fresh.id, 'intended', undefined, payload],
    ],
  );
  assert.equal(intents({ ...input, ledger: ledgerOf(...first) }), []);
});

test('bindings are put where the index says, and what is not known is told', () => {
  const it = item({
    bind: [
      { at: '/metadata/labels/keelson.dev~1installation-uid', what: 'installationUID' },
      { at: '/data/ips', what: 'heldNodeIPs' },
    ],
  });
  const bound = bindItem(it, (what) => ({ value: what === 'installationUID' ? 'u' : '10.0.0.1' }));
  assert.ok(bound.ok);
  if (bound.ok) {
    assert.is(bound.object.metadata.labels?.['keelson.dev/installation-uid'], 'u');
    assert.equal(bound.object.data, { ips: '10.0.0.1' });
  }
  assert.is(
    it.object.metadata.labels?.['keelson.dev/installation-uid'],
    undefined,
    'the rendered object stays as it is',
  );
  const missing = bindItem(it, bindsNothing);
  assert.equal(missing.ok ? [] : missing.problems.map(({ reason, path }) => [reason, path]), [
    ['BindingMissing', '/metadata/labels/keelson.dev~1installation-uid'],
    ['BindingMissing', '/data/ips'],
  ]);
});

test('schemas of Kubernetes become strict ones that an apply would agree with', () => {
  const crd: JsonObject = {
    spec: {
      group: 'x.io',
      names: { kind: 'Thing' },
      versions: [
        {
          name: 'v1',
          served: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: {
                  type: 'object',
                  properties: {
                    a: { 'x-kubernetes-int-or-string': true },
                    open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                    n: { type: 'string', nullable: true },
                  },
                },
              },
            },
          },
        },
      ],
    },
  };
  assert.ok(definesKind(crd, { apiVersion: 'x.io/v1', kind: 'Thing' }));
  assert.not.ok(definesKind(crd, { apiVersion: 'x.io/v2', kind: 'Thing' }));
  const strict = strictSchema(crdSchema(crd, 'x.io/v1') ?? {}, true) as JsonObject;
  assert.is(strict.additionalProperties, false);
  const spec = ((strict.properties as JsonObject).spec as JsonObject).properties as JsonObject;
  assert.equal(spec, { a: { type: ['integer', 'string'] }, open: { type: 'object' }, n: { type: ['string', 'null'] } });
});

test('at most so many at once, every started one awaited, the first failure passed on', async () => {
  let [now, most, ended] = [0, 0, 0];
  const work = async (n: number): Promise<void> => {
    now += 1;
    most = Math.max(most, now);
    await systemClock.sleep(2);
    now -= 1;
    ended += 1;
    if (n === 3) throw new Error('third');
  };
  try {
    await eachLimited([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 4, work);
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).message, 'third');
  }
  assert.is(most, 4);
  assert.is(now, 0);
  assert.ok(ended < 12, 'nothing new is begun after a failure');
});

test.run();
