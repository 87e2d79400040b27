import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, confirmKinds, labels } from '../../constructs/api/constants.ts';
import type { LedgerEntry, LedgerState } from '../../constructs/api/ledger.ts';
import {
  type PayloadContent,
  type PayloadIndex,
  payloadDigest,
  payloadObjectId,
} from '../../constructs/api/payload.ts';
import { decodePayload, encodePayload } from '../../constructs/api/payload-codec.ts';
import { makePlan } from '../../constructs/api/plan.ts';
import { groupKindOfId, type PruneInput, prunePlan } from '../../executor/apply/prune-plan.ts';
import type { ObjectMeta } from '../../executor/kube/types.ts';
import { entry, item, ledgerOf, liveMeta, release } from './executor-support.ts';
import { onePhase, plainEntry } from './payload-support.ts';

const policy = { enabled: true, maxPercent: 100, maxCount: 100 };

const inputOf = (entries: readonly LedgerEntry[], more: Partial<PruneInput> = {}): PruneInput => ({
  release,
  ledger: ledgerOf(...entries),
  wanted: new Set(),
  live: new Map(entries.map((of): [string, ObjectMeta] => [of.id, liveMeta(of)])),
  planned: new Set(),
  policy,
  approved: false,
  unbounded: false,
  ...more,
});

const many = (count: number, kind = 'ConfigMap'): LedgerEntry[] =>
  Array.from({ length: count }, (_, n) => entry(item({ name: `o${n}`, kind })));
const ids = (list: readonly { readonly id: string }[]): string[] => list.map(({ id }) => id);

test('a brake by number and one by share; what was planned and approved no longer counts', () => {
  const entries = many(30);
  const wanted = new Set(ids(entries.slice(5)));
  const bounds = (maxCount: number, maxPercent: number) => ({
    policy: { enabled: true, maxCount, maxPercent },
    wanted,
  });
  assert.is(prunePlan(inputOf(entries, bounds(5, 17))).remove.length, 5);
  assert.match(prunePlan(inputOf(entries, bounds(4, 17))).brake?.why ?? '', /5 objects .*maxCount is 4/);
  assert.match(prunePlan(inputOf(entries, bounds(5, 16))).brake?.why ?? '', /5 of 30 objects .*maxPercent is 16/);
  const planned = new Set(ids(entries.slice(0, 5)));
  assert.is(prunePlan(inputOf(entries, { ...bounds(4, 16), planned })).remove.length, 5, 'judged at acceptance');
  const four = new Set(ids(entries.slice(0, 4)));
  assert.ok(prunePlan(inputOf(entries, { ...bounds(4, 4), planned: four })).brake !== undefined);
  assert.is(prunePlan(inputOf(entries, { ...bounds(4, 4), planned: four, approved: true })).remove.length, 5);
});

test('an approved plan opens the brake for what it names, and for nothing else', () => {
  const entries = many(30);
  const planned = new Set(ids(entries.slice(0, 2)));
  const wanted = new Set(ids(entries.slice(12)));
  const input = inputOf(entries, {
    wanted,
    planned,
    approved: true,
    policy: { enabled: true, maxCount: 5, maxPercent: 100 },
  });
  const stopped = prunePlan(input);
  assert.equal([stopped.remove.length, stopped.left.length], [0, 12]);
  assert.match(stopped.brake?.why ?? '', /^10 objects/);
  // The exact removal can be approved by its own digest, and another one is not approved by it.
  const approvedDigest = stopped.brake?.digest;
  assert.is(prunePlan({ ...input, approvedDigest }).remove.length, 12);
  const other = prunePlan({ ...input, approvedDigest, wanted: new Set(ids(entries.slice(13))) });
  assert.is(other.remove.length, 0);
  assert.is(prunePlan({ ...input, unbounded: true }).remove.length, 12, 'mode never asks nobody');
});

test('kinds that hold something need a person, each of them', () => {
  for (const groupKind of confirmKinds.filter((kind) => !kind.startsWith('/PersistentVolume'))) {
    const [group = '', kind = ''] = groupKind.split('/');
    const apiVersion = group === '' ? 'v1' : `${group}/v1`;
    const one = entry(item({ name: 'x', kind, apiVersion }));
    const stopped = prunePlan(inputOf([one, ...many(40)], { wanted: new Set(ids(many(40))) }));
    assert.match(stopped.brake?.why ?? '', 'needs a person', groupKind);
    assert.is(prunePlan(inputOf([one], { planned: new Set([one.id]) })).remove.length, 1, groupKind);
  }
});

test('what was to be kept is kept, whatever its live annotations say by now', () => {
  const kept = entry(item({ name: 'kept' }), { keep: true });
  const claim = entry(item({ name: 'claim', kind: 'PersistentVolumeClaim' }));
  const plan = prunePlan(inputOf([kept, claim], { unbounded: true }));
  assert.equal([plan.remove, ids(plan.dropped).sort()], [[], [kept.id, claim.id].sort()]);
});

test('what another release wants is handed over; what was only to be adopted is let go', () => {
  const [one, two] = [entry(item({ name: 'one' })), entry(item({ name: 'two' }), { state: 'adopting' })];
  const plan = prunePlan(inputOf([one, two], { heirs: new Map([[one.id, 'manifests-other']]), unbounded: true }));
  assert.equal(plan.remove, []);
  assert.equal(plan.dropped, [
    { id: one.id, why: 'claimed' },
    { id: two.id, why: 'notAdopted' },
  ]);
});

test('without a recorded UID only the marks of the object itself prove it ours; a copy of them does not', () => {
  const { uid: _uid, ...unseen } = entry(item({ name: 'a' }), { state: 'intended' });
  assert.equal(ids(prunePlan(inputOf([unseen])).remove), [unseen.id]);
  const copy = liveMeta(unseen, { annotations: { [annotations.id]: '/ConfigMap/demo/original' } });
  const plan = prunePlan(inputOf([unseen], { live: new Map([[unseen.id, copy]]) }));
  assert.equal([plan.remove, ids(plan.vanished)], [[], [unseen.id]]);
});

test('what an override takes out of management stays, and in the ledger; what is gone under it is none', () => {
  const [one, two] = many(2) as [LedgerEntry, LedgerEntry];
  const overridden = new Set([one.id]);
  for (const state of ['applied', 'pruning', 'intended'] as const) {
    const planned = new Set([one.id, two.id]);
    const plan = prunePlan(inputOf([{ ...one, state }, two], { overridden, planned, unbounded: true }));
    assert.equal(plan.left, [{ id: one.id, why: 'unmanaged' }], state);
    assert.equal([ids(plan.remove), plan.dropped], [[two.id], []]);
  }
  assert.equal(ids(prunePlan(inputOf([one], { overridden, live: new Map() })).vanished), [one.id]);
});

const kinds: [string, string][] = [
  ['v1', 'Namespace'],
  ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
  ['v1', 'ConfigMap'],
  ['v1', 'PersistentVolumeClaim'],
  ['example.com/v1', 'Widget'],
];
const lives = [
  'ours',
  'other',
  'none',
  'kept',
  'disabled',
  'claimed',
  'held',
  'quiesced',
  'copied',
  'unlabelled',
] as const;

const anyObject = fc.record({
  kind: fc.constantFrom(...kinds),
  name: fc.stringMatching(/^[a-z]{1,2}$/),
  state: fc.constantFrom<LedgerState>('intended', 'applied', 'pruning', 'unmanaged', 'adopting'),
  seen: fc.boolean(),
  keep: fc.boolean(),
  live: fc.constantFrom(...lives),
  wanted: fc.boolean(),
  planned: fc.boolean(),
  heir: fc.boolean(),
  overridden: fc.boolean(),
});

type One = typeof anyObject extends fc.Arbitrary<infer T> ? T : never;

function metaOf(of: LedgerEntry, live: One['live']): ObjectMeta | undefined {
  const notes = (more: Record<string, string>) => liveMeta(of, { annotations: { [annotations.id]: of.id, ...more } });
  switch (live) {
    case 'ours':
      return liveMeta(of);
    case 'other':
      return liveMeta(of, { uid: 'uid-2' });
    case 'none':
      return undefined;
    case 'kept':
      return notes({ 'helm.sh/resource-policy': 'keep' });
    case 'disabled':
      return notes({ [annotations.prune]: 'disabled' });
    case 'claimed':
      return liveMeta(of, { labels: { [labels.release]: 'another' } });
    case 'held':
      return notes({ [annotations.hold]: 'x' });
    case 'quiesced':
      return notes({ [annotations.quiesce]: 'x' });
    case 'copied':
      return liveMeta(of, { annotations: { [annotations.id]: '/ConfigMap/demo/original' } });
    case 'unlabelled':
      return liveMeta(of, { labels: {} });
  }
}

const anyInput = fc
  .record({
    objects: fc.uniqueArray(anyObject, { selector: ({ kind, name }) => `${kind[1]}/${name}`, maxLength: 24 }),
    enabled: fc.boolean(),
    approved: fc.boolean(),
    unbounded: fc.boolean(),
    maxCount: fc.integer({ min: 0, max: 12 }),
    maxPercent: fc.integer({ min: 0, max: 100 }),
  })
  .map(({ objects, enabled, maxCount, maxPercent, ...more }): PruneInput => {
    const rows = objects.map((one) => {
      const [apiVersion, kind] = one.kind;
      const { uid, ...rest } = entry(item({ apiVersion, kind, name: one.name }), { state: one.state });
      const of: LedgerEntry = { ...rest, ...(one.seen ? { uid: uid ?? '' } : {}), ...(one.keep ? { keep: true } : {}) };
      return { one, of, live: metaOf(of, one.live) };
    });
    const where = (test: (one: One) => boolean) => rows.filter(({ one }) => test(one)).map(({ of }) => of.id);
    return {
      release,
      ledger: ledgerOf(...rows.map(({ of }) => of)),
      wanted: new Set(where(({ wanted }) => wanted)),
      live: new Map(rows.flatMap(({ of, live }) => (live === undefined ? [] : [[of.id, live]]))),
      planned: new Set(where(({ planned }) => planned)),
      overridden: new Set(where(({ overridden }) => overridden)),
      heirs: new Map(where(({ heir }) => heir).map((id) => [id, 'manifests-other'])),
      policy: { enabled, maxCount, maxPercent },
      ...more,
    };
  });

test('the planner never names what is wanted, unmanaged, kept, held, handed over, half adopted, or another object', () => {
  fc.assert(
    fc.property(anyInput, (input) => {
      const plan = prunePlan(input);
      for (const { id, uid, entry: of } of plan.remove) {
        const live = input.live.get(id);
        assert.not.ok(input.wanted.has(id));
        assert.not.ok(of.state === 'unmanaged' || of.state === 'adopting' || of.keep === true);
        assert.ok(uid !== undefined && uid === live?.uid && (of.uid ?? uid) === uid);
        if (of.uid === undefined) assert.is(live?.annotations?.[annotations.id], id);
        assert.ok([release, undefined].includes(live?.labels?.[labels.release]));
        assert.not.ok(input.heirs?.has(id) || input.overridden?.has(id));
        assert.not.ok(groupKindOfId(id) === '/PersistentVolumeClaim');
        const notes = live?.annotations ?? {};
        assert.equal(
          ['helm.sh/resource-policy', annotations.prune, annotations.hold, annotations.quiesce].map(
            (name) => notes[name],
          ),
          [undefined, undefined, undefined, undefined],
        );
        assert.ok(input.policy.enabled);
      }
      const fates = [...plan.remove, ...plan.vanished, ...plan.left, ...plan.dropped].map(({ id }) => id).sort();
      assert.equal(fates, [...input.ledger.keys()].filter((id) => !input.wanted.has(id)).sort());
      const unplanned = plan.remove.filter(({ id, entry: of }) => !input.planned.has(id) && of.state !== 'pruning');
      if (!input.unbounded && unplanned.length > 0) {
        assert.not.ok(unplanned.some(({ id }) => confirmKinds.includes(groupKindOfId(id))));
        assert.ok((input.approved ? unplanned : plan.remove).length <= input.policy.maxCount);
      }
      if (plan.brake !== undefined)
        assert.is(prunePlan({ ...input, approvedDigest: plan.brake.digest }).brake, undefined);
    }),
    { numRuns: 1_000 },
  );
});

const sha = (c: string): string => `sha256:${c.repeat(64)}`;

test('an empty payload is refused before any planner sees it; what planners prune is what the new payload lacks', async () => {
  const empty = onePhase('x', []);
  const index: PayloadIndex = {
    formatVersion: 1,
    digest: payloadDigest(empty),
    content: empty,
    provenance: {
      keelson: '0.0.0',
      inputs: { specs: sha('1'), lock: sha('2'), inventory: sha('3'), charts: [] },
      filteredHooks: [],
    },
  };
  const read = await decodePayload(await encodePayload({ index, objects: new Map() }));
  assert.match(read.ok ? '' : read.problems.map(({ message }) => message).join(), 'holds no object');
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,3}$/), { maxLength: 12 });
  const content = (list: readonly string[]): PayloadContent =>
    onePhase(
      'x',
      list.map((name) => plainEntry(name, { dir: '10-x', file: 'objects/0000.json', sha256: 'a'.repeat(64) })),
    );
  const idsOf = ({ phases }: PayloadContent): string[] => phases.flatMap(({ objects }) => objects.map(payloadObjectId));
  fc.assert(
    fc.property(names, names, (old, next) => {
      const plan = makePlan(content(old), content(next), { prune: { enabled: true, maxCount: 0, maxPercent: 0 } });
      const kept = new Set(idsOf(content(next)));
      assert.equal(
        [...plan.actions.pruned],
        idsOf(content(old))
          .filter((id) => !kept.has(id))
          .sort(),
      );
      // However little is removed, a brake of nothing makes a person look.
      assert.is(plan.destructive, plan.actions.pruned.length > 0);
    }),
  );
});

test.run();
