import type { JsonObject } from '../../lib/json.ts';

/** The dashboard, as Grafana imports it: what is ready, what was seen, what waits, what the executor does. */

interface Panel {
  readonly title: string;
  readonly description: string;
  readonly type: 'stat' | 'timeseries' | 'state-timeline';
  readonly unit: 'none' | 's' | 'percentunit' | 'reqps';
  readonly width: number;
  readonly queries: readonly { readonly expr: string; readonly legend: string }[];
  /** Words for values, where numbers stand for words. */
  readonly words?: Readonly<Record<string, { readonly text: string; readonly color: string }>>;
}

const conditionWords = {
  '1': { text: 'True', color: 'green' },
  '0': { text: 'False', color: 'red' },
  '-1': { text: 'Unknown', color: 'orange' },
} as const;

export const panels: readonly Panel[] = [
  {
    title: 'Ready',
    description: 'Whether each network was seen to work in the last round.',
    type: 'stat',
    unit: 'none',
    width: 6,
    queries: [
      {
        expr: 'max by (namespace, name) (kubeovn_operator_installation_condition{condition="Ready"})',
        legend: '{{namespace}}/{{name}}',
      },
    ],
    words: conditionWords,
  },
  {
    title: 'Conditions',
    description: 'Degraded is well when it is False.',
    type: 'state-timeline',
    unit: 'none',
    width: 18,
    queries: [
      { expr: 'max by (name, condition) (kubeovn_operator_installation_condition)', legend: '{{name}} {{condition}}' },
    ],
    words: conditionWords,
  },
  {
    title: 'Age of evidence',
    description: 'Beyond its limit a round counts no more.',
    type: 'timeseries',
    unit: 's',
    width: 12,
    queries: [
      { expr: 'max by (namespace, name) (keelson_evidence_age_seconds)', legend: '{{name}}' },
      { expr: 'max by (namespace, name) (keelson_evidence_limit_seconds)', legend: '{{name}} limit' },
      { expr: 'max by (namespace, name) (keelson_evidence_round_duration_seconds)', legend: '{{name}} round' },
    ],
  },
  {
    title: 'Nodes that are not well',
    description: 'By part, and by whether they were seen not to work or not seen.',
    type: 'timeseries',
    unit: 'none',
    width: 12,
    queries: [
      {
        expr: 'sum by (name, part, state) (keelson_observed_nodes{state!="well"}) > 0',
        legend: '{{name}} {{part}} {{state}}',
      },
    ],
  },
  {
    title: 'Gates',
    description: 'Open, shut, or not known.',
    type: 'state-timeline',
    unit: 'none',
    width: 12,
    queries: [{ expr: 'max by (release, phase, gate) (keelson_gate_state)', legend: '{{release}} {{phase}} {{gate}}' }],
    words: {
      '1': { text: 'open', color: 'green' },
      '0': { text: 'shut', color: 'red' },
      '-1': { text: 'not known', color: 'orange' },
    },
  },
  {
    title: 'Objects in place',
    description: 'Share of the objects of each payload.',
    type: 'timeseries',
    unit: 'percentunit',
    width: 12,
    queries: [
      {
        expr: 'sum by (release) (keelson_release_objects{what="done"}) / sum by (release) (keelson_release_objects{what="total"})',
        legend: '{{release}}',
      },
    ],
  },
  {
    title: 'Drift set back',
    description: 'Objects that were set back or created again, by the hour, and fights.',
    type: 'timeseries',
    unit: 'none',
    width: 12,
    queries: [
      { expr: 'sum by (release) (increase(keelson_drift_repairs_total[1h]))', legend: '{{release}}' },
      { expr: 'sum by (release) (keelson_drift_fights) > 0', legend: '{{release}} fights' },
    ],
  },
  {
    title: 'Requests to the API server',
    description: 'Rate by status, and the slowest of twenty.',
    type: 'timeseries',
    unit: 'reqps',
    width: 12,
    queries: [
      { expr: 'sum by (status) (rate(keelson_api_requests_total[5m]))', legend: '{{status}}' },
      {
        expr: 'histogram_quantile(0.95, sum by (le) (rate(keelson_api_request_duration_seconds_bucket[5m])))',
        legend: 'p95 in seconds',
      },
    ],
  },
];

const source = { type: 'prometheus', uid: '$datasource' };
const height = 8;

function panelJson(
  { title, description, type, unit, queries, words }: Panel,
  id: number,
  grid: JsonObject,
): JsonObject {
  const mappings = words === undefined ? [] : [{ type: 'value', options: words as unknown as JsonObject }];
  return {
    id,
    title,
    description,
    type,
    gridPos: grid,
    datasource: source,
    fieldConfig: { defaults: { unit, mappings: mappings as JsonObject[] }, overrides: [] },
    targets: queries.map(({ expr, legend }, n) => ({
      refId: String.fromCharCode(65 + n),
      datasource: source,
      expr,
      legendFormat: legend,
    })),
  };
}

/** The dashboard as JSON. */
export function dashboard(): JsonObject {
  let [x, y] = [0, 0];
  const placed = panels.map((panel, n) => {
    if (x + panel.width > 24) [x, y] = [0, y + height];
    const grid = { x, y, w: panel.width, h: height };
    x += panel.width;
    return panelJson(panel, n + 1, grid);
  });
  return {
    uid: 'keelson',
    title: 'Keelson',
    tags: ['keelson'],
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: { list: [{ name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' }] },
    panels: placed,
  };
}
