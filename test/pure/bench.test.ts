import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { isObject } from '../../constructs/lib/json.ts';
import type { AdminClient } from '../apiserver/client.ts';
import { holds } from '../bench/check.ts';
import { corpusId } from '../bench/contenders/kubectl.ts';
import type { Contender } from '../bench/contenders/types.ts';
import { corpus, halfOf } from '../bench/corpus.ts';
import { describeEvidence, evidenceProblems } from '../bench/evidence/report.ts';
import type { EvidenceResults, RoundFigures } from '../bench/evidence/rounds.ts';
import type { Measured } from '../bench/measure.ts';
import { readOptions } from '../bench/options.ts';
import { machineFacts } from '../bench/proc.ts';
import { describe } from '../bench/report.ts';
import { readRequests, requestsBetween, sumOf } from '../bench/requests.ts';
import { summarise } from '../bench/results.ts';
import type { CheckedRun } from '../bench/run.ts';
import { withResults } from '../bench/save.ts';
import { percentile, ratioOf, spread } from '../bench/statistics.ts';
import { drawResults } from '../bench/svg.ts';

const kindsOf = (count: number): Record<string, number> => {
  const kinds: Record<string, number> = {};
  for (const { object } of corpus(count, 1)) kinds[String(object.kind)] = (kinds[String(object.kind)] ?? 0) + 1;
  return kinds;
};

test('the corpus is the same for the same seed, has the shares it promises, and no object twice', () => {
  assert.equal(corpus(300, 5), corpus(300, 5));
  assert.not.equal(corpus(300, 5), corpus(300, 6));
  assert.equal(kindsOf(1_000), {
    CustomResourceDefinition: 50,
    ClusterRole: 20,
    ClusterRoleBinding: 20,
    Role: 30,
    RoleBinding: 30,
    ConfigMap: 500,
    Secret: 100,
    Service: 50,
    Deployment: 100,
    DaemonSet: 50,
    Setting: 50,
  });
  for (const count of [20, 137, 1_000, 3_000]) {
    const objects = corpus(count, 1);
    assert.is(objects.length, count);
    assert.is(new Set(objects.map(corpusId)).size, count);
  }
});

test('half of the objects go, and no definition', () => {
  const objects = corpus(1_000, 1);
  const kept = halfOf(objects);
  const definitions = (of: typeof objects): number => of.filter(({ phase }) => phase === 'definitions').length;
  assert.is(definitions(kept), definitions(objects));
  assert.is(kept.length, 50 + 950 / 2);
});

test('medians, ranges, ratios', () => {
  assert.equal(spread([3, 1, 2]), { median: 2, min: 1, max: 3, runs: 3 });
  assert.equal(spread([4, 1, 2, 3]), { median: 2.5, min: 1, max: 4, runs: 4 });
  assert.throws(() => spread([]));
  assert.equal(ratioOf([4, 6, 9], [2, 3, 3]), { median: 2, min: 2, max: 3, runs: 3 });
  assert.is(percentile([5, 1, 4, 2, 3], 0.5), 3);
  assert.is(percentile([5, 1, 4, 2, 3], 0.95), 5);
  assert.is(percentile([], 0.95), 0);
});

test('a live object holds what was wanted when it says all of it', () => {
  const wanted = { spec: { ports: [{ port: 80 }], selector: { a: 'b' } } };
  assert.ok(holds({ spec: { ports: [{ port: 80, nodePort: 1 }], selector: { a: 'b' }, more: 1 } }, wanted));
  assert.not(holds({ spec: { ports: [{ port: 81 }], selector: { a: 'b' } } }, wanted));
  assert.not(holds({ spec: { ports: [{ port: 80 }, { port: 81 }], selector: { a: 'b' } } }, wanted));
  assert.not(holds(undefined, wanted));
});

test('requests are counted by verb and answer, without what the API server asks itself', async () => {
  const line = (labels: string, value: number): string => `apiserver_request_total{${labels}} ${value}`;
  const texts = [
    [line('code="201",dry_run="All",resource="configmaps",verb="APPLY"', 2)],
    [
      '# HELP apiserver_request_total x',
      line('code="201",dry_run="All",resource="configmaps",verb="APPLY"', 7),
      line('code="201",dry_run="",resource="configmaps",verb="APPLY"', 3),
      line('code="201",dry_run="",resource="secrets",verb="APPLY"', 1),
      line('code="0",dry_run="",resource="secrets",verb="WATCH"', 9),
      line('code="200",dry_run="",resource="leases",verb="PUT"', 9),
      line('code="201",dry_run="",resource="apiservices",verb="POST"', 9),
      line('code="200",dry_run="",resource="",verb="GET"', 9),
      'apiserver_request_duration_seconds_count{verb="GET"} 4',
    ],
  ].map((lines) => lines.join('\n'));
  const admin = { expect: () => Promise.resolve({ body: texts.shift() }) } as unknown as AdminClient;
  const between = requestsBetween(await readRequests(admin), await readRequests(admin));
  assert.equal(between, { 'APPLY 201': 4, 'APPLY 201 (dry run)': 5 });
  assert.is(sumOf(between), 9);
  assert.is(
    sumOf(between, (key) => !key.includes('dry run')),
    4,
  );
});

const measured = (seconds: number, perObject = 2): Measured => ({
  storedSeconds: seconds,
  doneSeconds: seconds,
  requests: { 'APPLY 201': perObject * 1_000, 'PUT 200': 500 },
  client: { cpuSeconds: 1, peakMiB: 100 },
  server: { apiserverCpuSeconds: 1, etcdCpuSeconds: 1 },
  busyBefore: 0,
});

const contender = (name: Contender['name'], title: string): Contender => ({
  name,
  title,
  open: () => Promise.reject(new Error('not run')),
});

const runsOf = (...seconds: number[]): CheckedRun[] =>
  seconds.map((value) => ({ cold: measured(value), again: measured(1, 0), problems: [] }));

const contenders = [
  contender('keelson', 'Keelson'),
  contender('keelsonWithoutDryRun', 'Keelson, no dry run'),
  contender('kubectl', 'kubectl <apply>'),
  contender('kustomizeController', 'kustomize-controller'),
];

test('results hold the ratios of medians, and say of each target whether it is met', () => {
  const runs = new Map([
    ['keelson', runsOf(4, 5, 3)],
    ['keelsonWithoutDryRun', runsOf(2, 2, 3)],
    ['kubectl', runsOf(4, 4, 4)],
    ['kustomizeController', runsOf(7, 8, 9)],
  ] as const);
  const results = summarise(readOptions(['--runs', '3']), contenders, { runs, many: new Map() }, machineFacts());
  assert.equal(results.ratios, {
    kustomizeController: 4,
    kubectl: 2,
    withDryRun: { kustomizeController: 2, kubectl: 1 },
  });
  assert.equal(
    results.targets.map(({ met }) => met),
    [true, true, true, true, true, true],
  );
  assert.is(results.contenders.keelson?.cold?.requestsPerObject.median, 2);
  const text = describe(results);
  assert.match(text, '| Keelson | 4.00 (3.00-5.00) |');
  const picture = drawResults(results);
  assert.match(picture, 'kubectl &lt;apply&gt;');
  assert.is((picture.match(/<rect /g) ?? []).length, 5);
});

test('a target that is missed by less than is told is missed all the same', () => {
  const runs = new Map([
    ['keelsonWithoutDryRun', runsOf(2.597)],
    ['kubectl', runsOf(3.892)],
  ] as const);
  const ours = contenders.filter(({ name }) => name === 'keelsonWithoutDryRun' || name === 'kubectl');
  const { ratios, targets } = summarise(readOptions(['--runs', '1']), ours, { runs, many: new Map() }, machineFacts());
  assert.is(ratios.kubectl, 1.5);
  assert.equal(targets, [
    { what: 'as fast as kubectl, without dry run', wanted: 'at least 1.5x', seen: '1.49x', met: false },
  ]);
});

test('results go between their marks, and nowhere else', () => {
  const document = 'before\n<!-- results: begin -->\nold\n<!-- results: end -->\nafter\n';
  const wanted = 'before\n<!-- results: begin -->\n\nnew\n\n<!-- results: end -->\nafter\n';
  assert.is(withResults(document, 'new\n'), wanted);
  assert.is(withResults(wanted, 'new'), wanted);
  assert.throws(() => withResults('no marks', 'new'), /no place/);
});

test('every object of the corpus has a name and, where its kind has one, a namespace that is there before', () => {
  for (const { object } of corpus(200, 1)) {
    assert.ok(isObject(object.metadata) && typeof object.metadata.name === 'string');
    assert.ok(object.metadata.namespace === undefined || /^bench-[0-3]$/.test(String(object.metadata.namespace)));
  }
});

test('rounds of evidence: what is not as wanted is told, and nothing else', () => {
  const figures: RoundFigures = {
    seconds: 40,
    well: 93,
    unknown: 7,
    residentMiB: 150,
    cpuSeconds: 5,
    requests: { 'PATCH 200': 1, 'GET 200': 20 },
    portForwards: 4,
  };
  const enrolling = { ...figures, residentMiB: 120, requests: { 'POST 201': 93, 'PATCH 200': 2 } };
  const results: EvidenceResults = {
    machine: machineFacts(),
    busyBefore: 0,
    nodes: 100,
    hanging: 5,
    refusing: 2,
    atOnce: 16,
    peakMiB: 160,
    rounds: [enrolling, figures, figures],
    asked: { least: 3, most: 4 },
  };
  assert.equal(evidenceProblems(results), []);
  assert.match(describeEvidence(results), /^100 nodes at 50 ms, 5 hang, 2 refuse; 16 at a time/);
  const bad = { ...figures, seconds: 61, well: 92, residentMiB: 190, requests: { 'PUT 200': 93 } };
  assert.equal(evidenceProblems({ ...results, rounds: [enrolling, figures, bad], asked: { least: 2, most: 4 } }), [
    'round 3 took 61.0 s',
    'round 3 saw 92 well and 7 unknown',
    'round 3 wrote 93 times',
    'memory grew by 40 MiB',
    'a server was asked 2 times, another 4 times',
  ]);
});

test.run();
