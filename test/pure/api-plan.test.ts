import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type PayloadContent, type PayloadObject, payloadObjectId } from '../../constructs/api/payload.ts';
import { makePlan, needsApproval, type Plan, type PlanActions, planActions } from '../../constructs/api/plan.ts';
import { onePhase, plainEntry } from './payload-support.ts';

const prune = { enabled: true, maxPercent: 10, maxCount: 20 };

const object = (name: string, sha = 'a', more: Partial<PayloadObject> = {}): PayloadObject => ({
  ...plainEntry(name, { dir: '10-x', file: 'objects/0000.json', sha256: sha.repeat(64) }),
  ...more,
});

const content = (objects: PayloadObject[], more: Partial<PayloadContent> = {}): PayloadContent =>
  onePhase('x', objects, more);

const id = (name: string, kind = 'ConfigMap'): string => `/${kind}/demo/${name}`;

const many = (count: number, from = 0): PayloadObject[] =>
  Array.from({ length: count }, (_, n) => object(`o${n + from}`));

/** One object before and after, and the list that it must end up in. */
const cases: [string, PayloadObject | undefined, PayloadObject | undefined, keyof PlanActions | undefined][] = [
  ['new', undefined, object('a'), 'created'],
  ['the same', object('a'), object('a'), 'unchanged'],
  ['changed', object('a'), object('a', 'b'), 'configured'],
  ['changed and marked recreate', object('a'), object('a', 'b', { recreate: true }), 'replaced'],
  ['unchanged and marked recreate', object('a'), object('a', 'a', { recreate: true }), 'unchanged'],
  ['changed and marked createOnly', object('a'), object('a', 'b', { createOnly: true }), 'unchanged'],
  ['gone', object('a'), undefined, 'pruned'],
  ['gone and kept', object('a', 'a', { keep: true }), undefined, 'left'],
  ['gone and a claim', object('a', 'a', { kind: 'PersistentVolumeClaim' }), undefined, 'left'],
  ['becomes a tombstone', object('a'), object('a', 'a', { absent: true }), 'absent'],
  ['a tombstone from the start', undefined, object('a', 'a', { absent: true }), 'absent'],
  ['stays a tombstone', object('a', 'a', { absent: true }), object('a', 'a', { absent: true }), 'unchanged'],
  ['a tombstone that goes', object('a', 'a', { absent: true }), undefined, undefined],
  ['returns after a tombstone', object('a', 'a', { absent: true }), object('a'), 'created'],
];

for (const [what, before, after, expected] of cases)
  test(`an object that is ${what} is ${expected ?? 'in no list'}`, () => {
    // A neighbour keeps both payloads from being empty.
    const list = (one: PayloadObject | undefined): PayloadObject[] => [
      object('neighbour'),
      ...(one === undefined ? [] : [one]),
    ];
    const actions = planActions(content(list(before)), content(list(after)), prune);
    const found = Object.entries(actions).filter(([, ids]) => ids.some((one: string) => one.endsWith('/a')));
    assert.equal(
      found.map(([action]) => action),
      expected === undefined ? [] : [expected],
    );
  });

test('with pruning off, what leaves the payload is left', () => {
  const actions = planActions(content(many(3)), content(many(2)), { enabled: false });
  assert.equal([actions.pruned, actions.left], [[], [id('o2')]]);
});

const plan = (before: PayloadObject[] | undefined, after: PayloadObject[], policy = prune): Plan =>
  makePlan(before === undefined ? undefined : content(before), content(after), { prune: policy });

test('classes of plain manifests', () => {
  assert.is(plan(undefined, many(3)).changeClass, 'additive');
  assert.is(plan(many(3), many(3)).changeClass, 'none');
  assert.is(plan(many(3), many(4)).changeClass, 'additive');
  assert.is(plan(many(3), [object('o0', 'b'), ...many(2, 1)]).changeClass, 'free');
  assert.is(plan(many(3), many(2)).changeClass, 'free');
  const gated = content(many(3));
  const other = { ...gated, requires: [{ kind: 'Secret' as const, namespace: 'demo', name: 's', keys: ['k'] }] };
  assert.is(makePlan(gated, other, { prune }).changeClass, 'policy');
  assert.is(makePlan(gated, other, { prune, classify: () => 'blocked' }).changeClass, 'blocked');
});

test('a plan is destructive by a replace, a kind to confirm, or a brake, and says which', () => {
  const risks = (p: Plan): string[] => p.risks.map((risk) => risk.kind);
  assert.equal(risks(plan(many(12), many(11))), []);
  assert.equal(risks(plan(many(10), many(9))), []);
  assert.equal(risks(plan(many(9), many(8))), ['brakePercent']);
  assert.equal(risks(plan(many(300), many(279))), ['brakeCount']);
  assert.equal(risks(plan(many(300), many(280))), []);
  assert.equal(risks(plan(many(30), many(9))), ['brakeCount', 'brakePercent']);
  const job = object('j', 'a', { apiVersion: 'batch/v1', kind: 'Job' });
  assert.equal(risks(plan([...many(3), job], [...many(3), { ...job, sha256: 'b'.repeat(64), recreate: true }])), [
    'replace',
  ]);
  const crd = object('x.example.org', 'a', { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' });
  assert.equal(risks(plan([...many(20), crd], many(20))), ['confirmKind']);
  assert.equal(risks(plan([...many(20), crd], [...many(20), { ...crd, absent: true }])), ['confirmKind']);
  assert.equal(plan([...many(20), crd], many(20)).risks[0]?.ids, [
    'apiextensions.k8s.io/CustomResourceDefinition/demo/x.example.org',
  ]);
});

test('approval: by mode, and always for what we inject ourselves', () => {
  const calm = { destructive: false, changeClass: 'free' as const };
  const harsh = { destructive: true, changeClass: 'free' as const };
  assert.equal(
    (['never', 'destructive', 'always'] as const).map((mode) => [
      needsApproval(calm, mode),
      needsApproval(harsh, mode),
    ]),
    [
      [false, false],
      [false, true],
      [true, true],
    ],
  );
  assert.is(needsApproval({ destructive: false, changeClass: 'none' }, 'always'), false);
  assert.is(needsApproval({ destructive: false, changeClass: 'keelson' }, 'never'), true);
});

const arbitrary = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'),
    sha: fc.constantFrom('a', 'b'),
    kind: fc.constantFrom('ConfigMap', 'PersistentVolumeClaim', 'Namespace'),
    recreate: fc.boolean(),
    createOnly: fc.boolean(),
    absent: fc.boolean(),
    keep: fc.boolean(),
  }),
  { selector: (one) => `${one.kind}/${one.name}`, minLength: 1, maxLength: 8 },
);
type Spec = { name: string; sha: string } & Partial<PayloadObject>;
const build = (specs: readonly Spec[]): PayloadObject[] =>
  specs.map(({ name, sha, ...more }) => object(name, sha, more));

test('every id of both payloads is in exactly one list, except tombstones that went; lists are sorted', () => {
  fc.assert(
    fc.property(arbitrary, arbitrary, fc.boolean(), (a, b, enabled) => {
      const [before, after] = [build(a), build(b)];
      const actions = planActions(content(before), content(after), { enabled });
      const all = Object.values(actions).flat().sort();
      const wanted = new Set([...before.filter((o) => !o.absent), ...after].map(payloadObjectId));
      assert.equal(all, [...wanted].sort());
      for (const list of Object.values(actions)) assert.equal([...list], [...list].sort());
    }),
  );
});

test('the digest is the same for the same plan, whatever the order of objects, and moves with what it says', () => {
  fc.assert(
    fc.property(arbitrary, arbitrary, (a, b) => {
      const [before, after] = [content(build(a)), content(build(b))];
      const first = makePlan(before, after, { prune });
      assert.is(makePlan(before, after, { prune }).digest, first.digest);
      assert.is.not(makePlan(before, after, { prune, classify: () => 'blocked' }).digest, first.digest);
      assert.is.not(makePlan(undefined, after, { prune }).digest, first.digest);
      const policy = makePlan(before, after, { prune: { ...prune, enabled: false } });
      assert.is(policy.digest === first.digest, first.actions.pruned.length === 0);
      // Gates and provenance are no part of what is approved.
      const regated = { ...after, spans: [{ from: 'x', to: 'x' }] };
      assert.is(
        makePlan(before, regated, { prune, classify: () => 'free' }).digest,
        makePlan(before, after, { prune, classify: () => 'free' }).digest,
      );
    }),
  );
});

test('planning back and forth mirrors what comes and goes', () => {
  fc.assert(
    fc.property(arbitrary, arbitrary, (a, b) => {
      const plain = (specs: typeof a): PayloadObject[] =>
        build(specs.map((s) => ({ ...s, absent: false, keep: false })));
      const [before, after] = [content(plain(a)), content(plain(b))];
      const there = planActions(before, after, prune);
      const back = planActions(after, before, prune);
      assert.equal([...back.pruned, ...back.left].sort(), [...there.created]);
      assert.equal([...there.pruned, ...there.left].sort(), [...back.created]);
    }),
  );
});

test.run();
