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
import { intents } from '../../executor/apply/intents.ts';
import type { Need } from '../../executor/apply/need.ts';
import { crdSchema, definesKind, strictSchema } from '../../executor/apply/offline.ts';
import { rankOf, removeOrder, writeOrder } from '../../executor/apply/order.ts';
import { type PruneInput, prunePlan } from '../../executor/apply/prune-plan.ts';
import type { ObjectMeta } from '../../executor/kube/types.ts';
import { digest, entry, item, ledgerOf, liveMeta, release, sha } from './executor-support.ts';

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
        unbounded: false,
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
