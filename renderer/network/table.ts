/**
 * What is known of the objects of a Kube-OVN chart: which part of the network each belongs to, and so which phase
 * applies it. Names are those of the chart's releases 1.15 and 1.16.
 */
import { type ChartObject, groupKindOf } from './object.ts';

/** `definitions`: CRDs; `access`: accounts, RBAC, configuration; `central`: the databases; `dataPlane`: all the rest. */
export type Plane = 'definitions' | 'access' | 'central' | 'dataPlane';

/** Kinds that a Kube-OVN chart may render; any other kind is refused unless the cluster allows it by name. */
const kinds: Readonly<Record<string, Plane | 'byName'>> = {
  'apiextensions.k8s.io/CustomResourceDefinition': 'definitions',
  '/ServiceAccount': 'access',
  '/ConfigMap': 'access',
  '/Secret': 'access',
  'rbac.authorization.k8s.io/Role': 'access',
  'rbac.authorization.k8s.io/RoleBinding': 'access',
  'rbac.authorization.k8s.io/ClusterRole': 'access',
  'rbac.authorization.k8s.io/ClusterRoleBinding': 'access',
  '/PersistentVolumeClaim': 'byName',
  '/Service': 'byName',
  'apps/Deployment': 'byName',
  'apps/StatefulSet': 'byName',
  'apps/DaemonSet': 'byName',
};

const centralNames = new Set([
  '/Service//ovn-nb',
  '/Service//ovn-sb',
  '/Service//ovn-northd',
  '/Service//ovn-central',
  '/PersistentVolumeClaim//ovn-central-data',
  'apps/Deployment//ovn-central',
  'apps/StatefulSet//ovn-central',
]);

/** Workloads that `spec.dataPlane.nodeSelector` is merged into; the monitor stays beside central. */
const dataPlaneWorkloads = new Set([
  'apps/DaemonSet//ovs-ovn',
  'apps/DaemonSet//ovs-ovn-dpdk',
  'apps/DaemonSet//kube-ovn-cni',
  'apps/DaemonSet//kube-ovn-pinger',
  'apps/Deployment//kube-ovn-controller',
  'apps/Deployment//ovn-ic-controller',
]);

const nameKey = (object: ChartObject): string => `${groupKindOf(object)}//${object.name}`;

/** The part that an object belongs to, or undefined for a kind that no Kube-OVN chart renders. */
export function planeOf(object: ChartObject, extraKinds: readonly string[] = []): Plane | undefined {
  const kind = groupKindOf(object);
  const plane = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (plane === 'byName') return centralNames.has(nameKey(object)) ? 'central' : 'dataPlane';
  if (plane !== undefined) return plane;
  return extraKinds.includes(kind.replace(/^\//, '')) || extraKinds.includes(kind) ? 'dataPlane' : undefined;
}

/** True for the workload, Services and claim of OVN central. */
export const isCentral = (object: ChartObject): boolean => centralNames.has(nameKey(object));

/** True for the Deployment or StatefulSet ovn-central. */
export const isCentralWorkload = (object: ChartObject): boolean =>
  isCentral(object) && object.apiVersion.startsWith('apps/');

/** True for a workload that runs where the data plane runs: every DaemonSet, the controller and the IC controller. */
export const isDataPlaneWorkload = (object: ChartObject): boolean =>
  dataPlaneWorkloads.has(nameKey(object)) || object.kind === 'DaemonSet';

const clusterScoped = new Set([
  'apiextensions.k8s.io/CustomResourceDefinition',
  'rbac.authorization.k8s.io/ClusterRole',
  'rbac.authorization.k8s.io/ClusterRoleBinding',
]);

/** True for the cluster-scoped kinds among those a chart may render. */
export const isClusterScoped = (object: ChartObject): boolean => clusterScoped.has(groupKindOf(object));
