/** A small set of rendered objects in the form of a Kube-OVN chart, for tests of what is made of it. */
import type { Inventory } from '../../constructs/api/inventory.ts';
import {
  type InstallationSpec,
  type InstallationSpecInput,
  installationSpec,
} from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { type ChartObject, toChartObject } from '../../renderer/network/object.ts';

export const namespace = 'kube-system';

const defaults: InstallationSpecInput = {
  mode: 'full',
  version: '1.16.13',
  chart: { source: 'https://charts.example.com/kube-ovn.tgz', digest: `sha256:${'a'.repeat(64)}` },
};

export const specOf = (changes: Partial<InstallationSpecInput> = {}): InstallationSpec =>
  installationSpec.parse({ ...defaults, ...changes });

/** Nodes n1, n2, ... with addresses 10.0.0.1, ..., the first `central` of them labelled as control plane. */
export function inventoryOf(count: number, central = count, labels: Record<string, string> = {}): Inventory {
  return {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Inventory',
    metadata: { name: 'test' },
    spec: {
      clusterUID: '00000000-0000-4000-8000-000000000000',
      kubernetesVersion: '1.34.2',
      serviceCIDRs: ['10.96.0.0/12'],
      nodes: Array.from({ length: count }, (_, index) => ({
        name: `n${index + 1}`,
        uid: `00000000-0000-4000-8000-00000000000${index + 1}`,
        internalIPs: [`10.0.0.${index + 1}`],
        labels: { ...labels, ...(index < central ? { 'node-role.kubernetes.io/control-plane': '' } : {}) },
        unschedulable: false,
      })),
    },
  };
}

export const object = (body: JsonObject): ChartObject => {
  const read = toChartObject(body);
  if (read === undefined) throw new Error('a fixture without identity');
  return read;
};

export const named = (
  apiVersion: string,
  kind: string,
  name: string,
  more: JsonObject = {},
  place: string | null = namespace,
): ChartObject =>
  object({ apiVersion, kind, metadata: { name, ...(place === null ? {} : { namespace: place }) }, ...more });

const env = (variables: Record<string, string>) => Object.entries(variables).map(([name, value]) => ({ name, value }));

export const workload = (
  kind: string,
  name: string,
  variables: Record<string, string>,
  spec: JsonObject = {},
): ChartObject =>
  named('apps/v1', kind, name, {
    spec: {
      ...spec,
      template: {
        spec: {
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          containers: [{ name: 'main', image: 'docker.io/kubeovn/kube-ovn:v1', env: env(variables) }],
          volumes: [{ name: 'kube-ovn-tls', secret: { secretName: 'kube-ovn-tls', optional: true } }],
        },
      },
    },
  });

const ips = '10.0.0.1,10.0.0.2,10.0.0.3';

/** What a full render holds, in short. */
export const fullObjects = (): ChartObject[] => [
  named('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'subnets.kubeovn.io', {}, null),
  named('v1', 'ServiceAccount', 'ovn'),
  named(
    'rbac.authorization.k8s.io/v1',
    'ClusterRole',
    'system:ovn',
    { rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['kube-ovn-tls'], verbs: ['update'] }] },
    null,
  ),
  named('v1', 'ConfigMap', 'ovn-vpc-nat-config'),
  named('v1', 'Service', 'ovn-nb'),
  named('v1', 'PersistentVolumeClaim', 'ovn-central-data'),
  workload('Deployment', 'ovn-central', { NODE_IPS: ips }, { replicas: 3 }),
  workload('Deployment', 'kube-ovn-controller', { OVN_DB_IPS: ips }),
  workload('Deployment', 'kube-ovn-monitor', {}),
  workload('DaemonSet', 'ovs-ovn', { OVN_DB_IPS: ips }, { updateStrategy: { type: 'RollingUpdate' } }),
  workload('DaemonSet', 'kube-ovn-cni', {}),
  workload('DaemonSet', 'kube-ovn-pinger', {}),
];

/** What a render against a central elsewhere holds, in short. */
export const dataPlaneObjects = (scheme: 'tcp' | 'ssl'): ChartObject[] => [
  named('v1', 'ServiceAccount', 'ovn'),
  workload('Deployment', 'kube-ovn-controller', {
    OVN_NB_ADDR: `${scheme}:10.9.0.1:6641`,
    OVN_SB_ADDR: `${scheme}:10.9.0.1:6642`,
  }),
  workload(
    'DaemonSet',
    'ovs-ovn',
    { OVN_SB_ADDR: `${scheme}:10.9.0.1:6642` },
    { updateStrategy: { type: 'RollingUpdate' } },
  ),
];
