/** What somebody should be told of, by the metrics of the executor. Every alert names what it is about by its labels. */

export interface Alert {
  readonly name: string;
  readonly expr: string;
  /** How long it must hold, as Prometheus writes it. */
  readonly for: string;
  readonly severity: 'critical' | 'warning' | 'info';
  readonly summary: string;
  readonly description: string;
}

const installation = '{{ $labels.namespace }}/{{ $labels.name }}';
const release = '{{ $labels.release }}';

export const alerts: readonly Alert[] = [
  {
    name: 'KeelsonNobodyLeads',
    expr: 'absent(keelson_leader) or sum(keelson_leader) == 0',
    for: '5m',
    severity: 'critical',
    summary: 'No executor leads',
    description: 'Nothing is applied, repaired or observed. What runs goes on running.',
  },
  {
    name: 'KeelsonNetworkNotReady',
    expr: 'kubeovn_operator_installation_condition{condition="Ready"} == 0',
    for: '2m',
    severity: 'critical',
    summary: `Network ${installation} was seen not to work`,
    description: 'keelson status names the part, the member or the node.',
  },
  {
    name: 'KeelsonNetworkUnverified',
    expr: 'kubeovn_operator_installation_condition{condition="Ready"} == -1',
    for: '30m',
    severity: 'warning',
    summary: `Nobody knows whether network ${installation} works`,
    description: 'A rollout waits, or evidence is missing; keelson evidence tells who does not answer.',
  },
  {
    name: 'KeelsonNetworkDegraded',
    expr: 'kubeovn_operator_installation_condition{condition="Degraded"} == 1',
    for: '5m',
    severity: 'warning',
    summary: `Network ${installation} has lost something that was asked for`,
    description: 'It may well work, with less in reserve.',
  },
  {
    name: 'KeelsonEvidenceStale',
    expr: 'keelson_evidence_age_seconds > keelson_evidence_limit_seconds',
    for: '2m',
    severity: 'warning',
    summary: `The last look at network ${installation} is too old to count`,
    description: 'Conditions of the network are Unknown until a round of observation is complete.',
  },
  {
    name: 'KeelsonNodesBroken',
    expr: 'keelson_observed_nodes{state="broken"} > 0',
    for: '5m',
    severity: 'warning',
    summary: `{{ $value }} nodes of ${installation}: {{ $labels.part }} does not work`,
    description: 'The status page and keelson evidence name them.',
  },
  {
    name: 'KeelsonGateShut',
    expr: 'keelson_gate_state == 0',
    for: '10m',
    severity: 'warning',
    summary: `Release ${release} stands before gate {{ $labels.gate }} of phase {{ $labels.phase }}`,
    description: 'Something was seen that keeps the next phase from beginning.',
  },
  {
    name: 'KeelsonReleaseFails',
    expr: 'keelson_release_state{state="Error"} == 1',
    for: '10m',
    severity: 'warning',
    summary: `Release ${release} fails and is tried again`,
    description: 'keelson status names object and reason.',
  },
  {
    name: 'KeelsonReleaseStalled',
    expr: 'keelson_release_flag{flag="stalled"} == 1',
    for: '1m',
    severity: 'critical',
    summary: `Release ${release} needs another specification`,
    description: 'No retry can help.',
  },
  {
    name: 'KeelsonRulesBroken',
    expr: 'keelson_release_flag{flag=~"pinned|held|unverified|bypassed"} == 1',
    for: '1h',
    severity: 'info',
    summary: `Release ${release} is still {{ $labels.flag }}`,
    description: 'Somebody broke the rules on purpose. It is told until that is taken back.',
  },
  {
    name: 'KeelsonDriftFight',
    expr: 'keelson_drift_fights > 0',
    for: '10m',
    severity: 'warning',
    summary: `Somebody keeps changing back {{ $value }} objects of Release ${release}`,
    description: 'keelson status names manager and field.',
  },
];

/** Rules as Prometheus reads them. */
export const alertRules = () => ({
  groups: [
    {
      name: 'keelson',
      rules: alerts.map(({ name, expr, for: lasting, severity, summary, description }) => ({
        alert: name,
        expr,
        for: lasting,
        labels: { severity },
        annotations: { summary, description },
      })),
    },
  ],
});
