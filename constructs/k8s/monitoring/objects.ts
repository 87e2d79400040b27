import type { Construct } from 'constructs';
import type { ClusterSpec } from '../../api/cluster.ts';
import type { JsonObject } from '../../lib/json.ts';
import { dumpYaml } from '../../lib/yaml.ts';
import { ManifestObject } from '../manifest.ts';
import { ownLabels } from '../system.ts';
import { alertRules } from './alerts.ts';
import { dashboard } from './dashboard.ts';

/**
 * Dashboard and alert rules, for those who ask for them. A ConfigMap needs no definition that a cluster may lack; a
 * PrometheusRule does, and with it missing a courier could apply nothing of the unit.
 */
export function monitoringObjects(scope: Construct, { executor }: Pick<ClusterSpec, 'executor'>): void {
  const { namespace, monitoring } = executor;
  if (monitoring === 'none') return;
  const configMap = (name: string, labels: JsonObject, data: JsonObject): void => {
    new ManifestObject(scope, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace, labels: { ...ownLabels, ...labels } },
      data,
    });
  };
  // The label by which the usual sidecar of Grafana finds dashboards.
  const found = { grafana_dashboard: '1' };
  configMap('keelson-dashboard', found, { 'keelson.json': `${JSON.stringify(dashboard(), null, 2)}\n` });
  const rules = alertRules() as unknown as JsonObject;
  if (monitoring === 'configMaps') {
    configMap('keelson-alerts', {}, { 'keelson.rules.yaml': dumpYaml(rules) });
    return;
  }
  new ManifestObject(scope, {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'keelson', namespace, labels: { ...ownLabels } },
    spec: rules,
  });
}
