/** The alert rules under Prometheus' own tool: they parse, and fire by what the executor tells, and by nothing else. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { alertRules } from '../../../constructs/k8s/monitoring/alerts.ts';
import { panels } from '../../../constructs/k8s/monitoring/dashboard.ts';

const run = promisify(execFile);
let folder: string;
const put = async (name: string, value: unknown): Promise<string> => {
  const path = join(folder, name);
  // Its YAML takes JSON.
  await writeFile(path, JSON.stringify(value));
  return path;
};

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keelson-rules-'));
});
test.after(() => rm(folder, { recursive: true, force: true }));

test('promtool reads every rule, and every query of the dashboard', async () => {
  const queries = panels.flatMap(({ queries: all }) => all.map(({ expr }) => expr));
  const recorded = { groups: [{ name: 'queries', rules: queries.map((expr, n) => ({ record: `q:${n}`, expr })) }] };
  const files = [await put('rules.yaml', alertRules()), await put('queries.yaml', recorded)];
  const { stdout } = await run('promtool', ['check', 'rules', ...files]);
  assert.match(stdout, `SUCCESS: ${alertRules().groups[0]?.rules.length} rules found`);
  assert.match(stdout, `SUCCESS: ${queries.length} rules found`);
});

test('alerts fire after their time by what they are about, and are quiet while all is well', async () => {
  const main = '{namespace="kube-system",name="main"}';
  const conditions = (ready: number, degraded: number) => [
    {
      series: `kubeovn_operator_installation_condition{namespace="kube-system",name="main",condition="Ready"}`,
      values: `${ready}x60`,
    },
    {
      series: `kubeovn_operator_installation_condition{namespace="kube-system",name="main",condition="Degraded"}`,
      values: `${degraded}x60`,
    },
  ];
  const steady = [
    { series: 'keelson_leader{pod="a"}', values: '1x60' },
    { series: 'keelson_leader{pod="b"}', values: '0x60' },
    { series: `keelson_evidence_limit_seconds${main}`, values: '60x60' },
  ];
  const quiet = (names: string[], at: string) =>
    names.map((alertname) => ({ eval_time: at, alertname, exp_alerts: [] }));
  const all = alertRules().groups[0]?.rules.map(({ alert }) => alert) ?? [];
  const labels = { severity: 'warning', namespace: 'kube-system', name: 'main' };
  const fires = (alertname: string, at: string, exp: object) => {
    const { summary, description } =
      alertRules().groups[0]?.rules.find(({ alert }) => alert === alertname)?.annotations ?? {};
    const told = (text = ''): string =>
      text.replaceAll('{{ $labels.namespace }}', 'kube-system').replaceAll('{{ $labels.name }}', 'main');
    return {
      eval_time: at,
      alertname,
      exp_alerts: [{ exp_labels: exp, exp_annotations: { summary: told(summary), description: told(description) } }],
    };
  };
  const rules = await put('rules.yaml', alertRules());
  const tests = await put('tests.yaml', {
    rule_files: [rules],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: [
          ...steady,
          ...conditions(1, 0),
          { series: `keelson_evidence_age_seconds${main}`, values: '12x60' },
        ],
        alert_rule_test: quiet(all, '59m'),
      },
      {
        interval: '1m',
        input_series: [
          ...steady,
          ...conditions(0, 1),
          { series: `keelson_evidence_age_seconds${main}`, values: '61x60' },
        ],
        alert_rule_test: [
          ...quiet(['KeelsonNetworkNotReady', 'KeelsonEvidenceStale'], '1m'),
          fires('KeelsonNetworkNotReady', '3m', { ...labels, severity: 'critical', condition: 'Ready' }),
          fires('KeelsonNetworkDegraded', '6m', { ...labels, condition: 'Degraded' }),
          fires('KeelsonEvidenceStale', '3m', labels),
        ],
      },
      {
        interval: '1m',
        input_series: conditions(-1, 0),
        alert_rule_test: [
          fires('KeelsonNobodyLeads', '6m', { severity: 'critical' }),
          fires('KeelsonNetworkUnverified', '31m', { ...labels, condition: 'Ready' }),
        ],
      },
    ],
  });
  const { stdout } = await run('promtool', ['test', 'rules', tests]).catch(
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`${error.stdout}\n${error.stderr}`);
    },
  );
  assert.match(stdout, 'SUCCESS');
});

test.run();
