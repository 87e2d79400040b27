import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { planRelease } from '../../bin/planning.ts';
import { type InstallationEntry, payloadContent } from '../../constructs/api/payload.ts';
import { makePlan, needsApproval, type Plan, type PlanActions } from '../../constructs/api/plan.ts';
import { releaseSpec } from '../../constructs/api/release.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { networkDomain } from '../../executor/network/domain.ts';
import type { RenderedPayload } from '../../executor/network/injected.ts';
import { approvalProblem, approvedPlan, changesOf, differenceText } from '../../executor/release/approval.ts';
import type { DomainTarget } from '../../executor/release/domain.ts';
import { manifestsDomain } from '../../executor/release/manifests-domain.ts';
import type { DomainRelease, ReleaseObject } from '../../renderer/domain.ts';
import { buildPayload } from '../../renderer/payload/build.ts';
import { digest } from './executor-support.ts';

/** Payloads as the renderer builds them, random pairs of which CI and executor plan for themselves. */

const kinds = [
  ['v1', 'ConfigMap'],
  ['v1', 'PersistentVolumeClaim'],
  ['apps/v1', 'DaemonSet'],
  ['batch/v1', 'Job'],
] as const;

/** Pods of a workload, with a sidecar of Keelson's or without. */
const pods = (probe: number) => ({
  template: {
    spec: {
      containers: [
        { name: 'main', image: 'x' },
        ...(probe === 0
          ? []
          : [
              {
                name: 'keelson-probe',
                image: `probe:${probe}`,
                args: ['probe', 'chassis'],
                securityContext: { allowPrivilegeEscalation: false },
              },
            ]),
      ],
    },
  },
});

const objectOf: fc.Arbitrary<ReleaseObject> = fc
  .record({
    probe: fc.nat(2),
    kind: fc.constantFrom(...kinds),
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    value: fc.nat(2),
    flags: fc.record({
      keep: fc.boolean(),
      recreate: fc.boolean(),
      createOnly: fc.boolean(),
      absent: fc.constantFrom(false, false, false, true),
    }),
  })
  .map(({ kind: [apiVersion, kind], name, value, flags, probe }) => ({
    object: {
      apiVersion,
      kind,
      metadata: { name, namespace: 'demo' },
      ...(kind === 'DaemonSet' ? { spec: pods(probe) } : { data: { value: String(value) } }),
    },
    origin: 'test',
    ...flags,
  }));

const objects = fc.uniqueArray(objectOf, {
  minLength: 1,
  maxLength: 12,
  selector: ({ object }) => `${object.kind} ${(object.metadata as { name: string }).name}`,
});

const installation: fc.Arbitrary<Omit<InstallationEntry, 'manifestDigest'>> = fc
  .record({ spec: fc.nat(2), base: fc.nat(1), version: fc.constantFrom('1.16.2', '1.16.13', '1.15.24') })
  .map(({ spec, base, version }) => ({
    apiVersion: 'network.keelson.dev/v1alpha1',
    kind: 'KubeOVNInstallation',
    namespace: 'kube-system',
    name: 'main',
    specDigest: digest(String(spec)),
    baseDigest: digest(String(base)),
    version,
    nodes: [],
  }));

interface Built extends RenderedPayload {
  readonly objects: ReadonlyMap<string, JsonObject>;
}

const context = {
  cluster: 'test',
  keelson: '0.0.0',
  inputs: { specs: digest('1'), lock: digest('2'), inventory: digest('3') },
};

function payloadOf(
  release: Pick<DomainRelease, 'name' | 'domain' | 'installations'>,
  all: readonly ReleaseObject[],
): Built {
  const built = buildPayload(
    {
      ...release,
      phases: [
        { name: 'one', dir: '10-one', gates: [], objects: all.filter((_, n) => n % 2 === 0) },
        { name: 'two', dir: '20-two', gates: [], objects: all.filter((_, n) => n % 2 === 1) },
      ],
      requires: [],
      spans: [],
      charts: [],
      filteredHooks: [],
    },
    context,
  );
  if (built.payload === undefined) throw new Error(JSON.stringify(built.problems));
  const { content, objects } = built.payload;
  return { content, objects, object: (id) => objects.get(id) };
}

const settings = fc.record({
  prune: fc.record({ enabled: fc.boolean(), maxPercent: fc.nat(100), maxCount: fc.nat(5) }),
  approval: fc.record({ mode: fc.constantFrom('never' as const, 'destructive' as const, 'always' as const) }),
});

const withProbe = <T>([all, entry]: readonly [ReleaseObject[], T], probe: number): [ReleaseObject[], T] => [
  all.map((one) => (one.object.kind === 'DaemonSet' ? { ...one, object: { ...one.object, spec: pods(probe) } } : one)),
  entry,
];

/** The plan as the executor makes it: of what it decoded, by the Release that was delivered, through the domain. */
function inCluster(
  previous: Built | undefined,
  { content, objects }: Built,
  given: { prune: object; approval: object },
): { plan: Plan; required: boolean } {
  const spec = releaseSpec.parse({ payload: { digest: digest('9') }, source: { configMaps: {} }, ...given });
  const decoded = payloadContent.parse(JSON.parse(JSON.stringify(content)));
  const target: DomainTarget = {
    release: content.release.name,
    namespace: 'keelson-system',
    releaseUID: 'u',
    spec,
    payloadDigest: digest('9'),
    content: decoded,
    objects,
    purpose: 'accept',
    ...(previous === undefined ? {} : { previous: { digest: digest('8'), completed: true, ...previous } }),
  };
  const classify = (_before: unknown, _after: unknown, actions: PlanActions) =>
    content.release.domain === 'network'
      ? networkDomain({ identity: 'x' }).classify(target, actions, { installation: undefined, nodes: [] }).changeClass
      : manifestsDomain.classify(target, actions, undefined).changeClass;
  const plan = makePlan(previous?.content, decoded, { prune: spec.prune, classify });
  return { plan, required: needsApproval(plan, spec.approval.mode) };
}

test('CI and executor come to the same plan, digest, class and need of approval', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(
      fc.constantFrom('manifests' as const, 'network' as const),
      fc.option(fc.tuple(objects, installation), { nil: undefined, freq: 6 }),
      fc.tuple(objects, installation),
      fc.option(fc.nat(2)),
      settings,
      (domain, before, other, moved, given) => {
        // Now and then nothing but the sidecars differs.
        const after = before === undefined || moved === null ? other : withProbe(before, moved);
        const name = `${domain}-demo`;
        const of = ([all, entry]: readonly [ReleaseObject[], Omit<InstallationEntry, 'manifestDigest'>]) =>
          payloadOf({ name, domain, installations: domain === 'network' ? [entry] : [] }, all);
        const previous = before === undefined ? undefined : of(before);
        const next = of(after);
        const inCI = planRelease(name, previous, next, { releases: { [name]: given } });
        const { plan, required } = inCluster(previous, next, given);
        assert.is(inCI.plan.digest, plan.digest);
        assert.equal(inCI.plan.actions, plan.actions);
        assert.is(inCI.plan.changeClass, plan.changeClass);
        assert.is(inCI.needsApproval, required);
        seen.add(plan.changeClass);
      },
    ),
    { numRuns: 400 },
  );
  assert.ok(seen.has('keelson') && seen.size >= 5, `only ${[...seen].join()}`);
});

test('another plan has another digest: by its start, its end, its objects', () => {
  fc.assert(
    fc.property(objects, objects, settings, (a, b, given) => {
      const of = (all: ReleaseObject[]) =>
        payloadOf({ name: 'manifests-demo', domain: 'manifests', installations: [] }, all);
      const [one, two] = [of(a), of(b)];
      fc.pre(one.content.manifestDigest !== two.content.manifestDigest);
      const digests = [
        [undefined, one],
        [undefined, two],
        [one, two],
        [two, one],
      ].map(([from, to]) => inCluster(from, to as Built, given).plan.digest);
      assert.is(new Set(digests).size, 4);
    }),
  );
});

const planOf = (actions: Partial<PlanActions>, n = '1'): Plan =>
  ({
    digest: digest(n),
    risks: [{ kind: 'replace', ids: [], message: 'one object may be deleted' }],
    actions: {
      adopted: [],
      created: [],
      configured: [],
      unchanged: ['/ConfigMap/demo/same'],
      replaced: [],
      pruned: [],
      absent: [],
      left: [],
      ...actions,
    },
  }) as unknown as Plan;

test('a stale approval is told with what differs', () => {
  const approved = planOf({ pruned: ['/ConfigMap/demo/a', '/ConfigMap/demo/b'] }, '1');
  const now = planOf({ pruned: ['/ConfigMap/demo/b'], created: ['/Service/demo/s'] }, '2');
  const stored = { planDigest: approved.digest, changes: { ...changesOf(approved) } };
  const known = approvedPlan(stored, approved.digest, now.digest);
  assert.is(
    differenceText(known?.changes ?? {}, changesOf(now)),
    'now created: /Service/demo/s; no longer touched: /ConfigMap/demo/a',
  );
  // The next try finds the newer plan stored, which remembers the approved one.
  const later = { planDigest: now.digest, changes: {}, approvedPlan: { ...known, changes: { ...known?.changes } } };
  assert.equal(approvedPlan(later as never, approved.digest, now.digest), known);
  assert.is(approvedPlan(stored, now.digest, now.digest), undefined, 'it is the plan of now');
  assert.is(approvedPlan(stored, digest('7'), now.digest), undefined, 'it was not made here');
  assert.match(
    approvalProblem('manifests-demo', { mode: 'destructive', planDigest: approved.digest }, now, known).message,
    /approved is sha256:1{64}, which differs: now created: \/Service\/demo\/s/,
  );
  assert.match(
    approvalProblem('manifests-demo', { mode: 'destructive', planDigest: digest('7') }, now, undefined).message,
    /a plan that was not made here/,
  );
  assert.match(differenceText(changesOf(now), changesOf(now)), /same objects change/);
});

test.run();
