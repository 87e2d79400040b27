import { Registry } from 'prom-client';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { synthesize } from '../../constructs/k8s/manifest.ts';
import { alertRules, alerts } from '../../constructs/k8s/monitoring/alerts.ts';
import { dashboard, panels } from '../../constructs/k8s/monitoring/dashboard.ts';
import { monitoringObjects } from '../../constructs/k8s/monitoring/objects.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { installationMetrics } from '../../executor/network/metrics.ts';
import { matrixOf } from '../../executor/observe/matrix.ts';
import { executorMetrics } from '../../executor/telemetry/metrics.ts';
import { observationMetrics } from '../../executor/telemetry/observation.ts';
import { chassisRound, chassisSample } from './observe-support.ts';
import { installationOf, knownOf, networkRelease, observedOf, readyCondition } from './page-support.ts';

const chassis = chassisRound(3, (n) =>
  n === 2 ? chassisSample(n, {}, { type: 'Broken', message: 'no pod' }) : undefined,
);
const observed = { ...observedOf({ chassis }), matrix: matrixOf({ chassis }) };
const joining = { gate: 'OVNDBReady(central)', reason: 'MemberJoining', message: 'n3 joins' };

function registryOf(
  known = knownOf(installationOf(observed, readyCondition), observed, [networkRelease(joining)]),
): Registry {
  const registry = new Registry();
  executorMetrics(registry);
  installationMetrics(registry);
  observationMetrics(registry, () => known, { ...systemClock, monotonic: () => 12_000 });
  return registry;
}

/** Metrics by name, with the labels that they have; a histogram is told by three names. */
async function offered(): Promise<Map<string, ReadonlySet<string>>> {
  const all = new Map<string, ReadonlySet<string>>();
  const registry = registryOf();
  for (const { name, type } of await registry.getMetricsAsJSON()) {
    const { labelNames } = registry.getSingleMetric(name) as unknown as { labelNames: string[] };
    if (String(type) !== 'histogram') all.set(name, new Set(labelNames));
    else
      for (const end of ['bucket', 'sum', 'count'])
        all.set(`${name}_${end}`, new Set([...labelNames, ...(end === 'bucket' ? ['le'] : [])]));
  }
  return all;
}

const expressions = [
  ...alerts.map(({ expr }) => expr),
  ...panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
];

test('every metric and every label of every expression is one that the executor tells', async () => {
  const metrics = await offered();
  for (const expr of expressions) {
    const names = expr.match(/\b(keelson|kubeovn)_[a-z_]+/g) ?? [];
    assert.ok(names.length > 0, expr);
    for (const name of names) assert.ok(metrics.has(name), `${name} in ${expr}`);
    const known = new Set(names.flatMap((name) => [...(metrics.get(name) ?? [])]));
    const matched = [...expr.matchAll(/([a-z_]+)(?:=|!=|=~|!~)"/g)].map(([, label]) => label ?? '');
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) =>
      (list ?? '').split(',').map((one) => one.trim()),
    );
    for (const label of [...matched, ...grouped]) assert.ok(known.has(label), `${label} in ${expr}`);
  }
});

test('texts of alerts and legends use labels that their expressions have', async () => {
  const metrics = await offered();
  const labelsOf = (expr: string): Set<string> =>
    new Set((expr.match(/\b(keelson|kubeovn)_[a-z_]+/g) ?? []).flatMap((name) => [...(metrics.get(name) ?? [])]));
  for (const { summary, description, expr, name } of alerts)
    for (const [, label] of `${summary} ${description}`.matchAll(/\$labels\.([a-z_]+)/g))
      assert.ok(labelsOf(expr).has(label ?? ''), `${name}: ${label}`);
  for (const { expr, legend } of panels.flatMap(({ queries }) => queries))
    for (const [, label] of legend.matchAll(/\{\{([a-z_]+)\}\}/g))
      assert.match(expr, new RegExp(`by \\([^)]*\\b${label}\\b`), legend);
});

test('metrics of what was observed: age, limit, nodes and gates; none while nobody leads here', async () => {
  const text = await registryOf().metrics();
  for (const line of [
    'keelson_evidence_age_seconds{namespace="kube-system",name="main"} 12',
    'keelson_evidence_limit_seconds{namespace="kube-system",name="main"} 60',
    'keelson_evidence_round_duration_seconds{namespace="kube-system",name="main"} 2.4',
    'keelson_observed_nodes{namespace="kube-system",name="main",part="chassis",state="broken"} 1',
    'keelson_observed_nodes{namespace="kube-system",name="main",part="chassis",state="well"} 2',
    'keelson_gate_state{release="network-main",phase="central",gate="WorkloadsReady"} 1',
    'keelson_gate_state{release="network-main",phase="central",gate="OVNDBReady"} -1',
  ])
    assert.ok(text.includes(`${line}\n`), `${line} in\n${text}`);
  const registry = new Registry();
  observationMetrics(registry, () => undefined, systemClock);
  assert.not.match(await registry.metrics(), /^keelson_/m);
});

test('objects: none unless asked for; rules as a file of Prometheus, or as an object of its operator', () => {
  const objects = (monitoring: 'none' | 'configMaps' | 'prometheusRule') =>
    synthesize((scope) => monitoringObjects(scope, { executor: { namespace: 'keelson-system', monitoring } } as never));
  assert.equal(objects('none'), []);
  const [board, rules] = objects('configMaps') as { kind: string; data: Record<string, string> }[];
  assert.equal(JSON.parse(board?.data['keelson.json'] ?? ''), dashboard());
  assert.equal(parseYaml(rules?.data['keelson.rules.yaml'] ?? '', 'rules').documents[0]?.value, alertRules() as never);
  assert.equal(
    objects('prometheusRule').map(({ kind }) => kind),
    ['ConfigMap', 'PrometheusRule'],
  );
});

test('dashboard: panels have ids and places of their own, within its width', () => {
  const { panels: placed } = dashboard() as unknown as {
    panels: { id: number; gridPos: { x: number; y: number; w: number; h: number } }[];
  };
  assert.is(new Set(placed.map(({ id }) => id)).size, panels.length);
  const taken = new Set<string>();
  for (const { gridPos } of placed) {
    assert.ok(gridPos.x + gridPos.w <= 24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      const place = `${x} ${gridPos.y}`;
      assert.not.ok(taken.has(place), place);
      taken.add(place);
    }
  }
});

test.run();
