import { groupOf } from '../lib/names.ts';

/** A kind that every Kubernetes serves: its resource name and whether its objects live in namespaces. */
export interface BuiltinKind {
  readonly group: string;
  readonly kind: string;
  readonly resource: string;
  readonly namespaced: boolean;
}

const namespaced: Readonly<Record<string, readonly string[]>> = {
  '': [
    'ConfigMap',
    'Endpoints',
    'Event',
    'LimitRange',
    'PersistentVolumeClaim',
    'Pod',
    'PodTemplate',
    'ReplicationController',
    'ResourceQuota',
    'Secret',
    'Service',
    'ServiceAccount',
  ],
  apps: ['ControllerRevision', 'DaemonSet', 'Deployment', 'ReplicaSet', 'StatefulSet'],
  autoscaling: ['HorizontalPodAutoscaler'],
  batch: ['CronJob', 'Job'],
  'coordination.k8s.io': ['Lease'],
  'discovery.k8s.io': ['EndpointSlice'],
  'events.k8s.io': ['Event'],
  'networking.k8s.io': ['Ingress', 'NetworkPolicy'],
  policy: ['PodDisruptionBudget'],
  'rbac.authorization.k8s.io': ['Role', 'RoleBinding'],
  'resource.k8s.io': ['ResourceClaim', 'ResourceClaimTemplate'],
  'storage.k8s.io': ['CSIStorageCapacity'],
};

const clusterScoped: Readonly<Record<string, readonly string[]>> = {
  '': ['Namespace', 'Node', 'PersistentVolume'],
  'admissionregistration.k8s.io': [
    'MutatingAdmissionPolicy',
    'MutatingAdmissionPolicyBinding',
    'MutatingWebhookConfiguration',
    'ValidatingAdmissionPolicy',
    'ValidatingAdmissionPolicyBinding',
    'ValidatingWebhookConfiguration',
  ],
  'apiextensions.k8s.io': ['CustomResourceDefinition'],
  'apiregistration.k8s.io': ['APIService'],
  'certificates.k8s.io': ['CertificateSigningRequest', 'ClusterTrustBundle'],
  'flowcontrol.apiserver.k8s.io': ['FlowSchema', 'PriorityLevelConfiguration'],
  'networking.k8s.io': ['IngressClass', 'IPAddress', 'ServiceCIDR'],
  'node.k8s.io': ['RuntimeClass'],
  'rbac.authorization.k8s.io': ['ClusterRole', 'ClusterRoleBinding'],
  'resource.k8s.io': ['DeviceClass', 'ResourceSlice'],
  'scheduling.k8s.io': ['PriorityClass'],
  'storage.k8s.io': ['CSIDriver', 'CSINode', 'StorageClass', 'VolumeAttachment', 'VolumeAttributesClass'],
};

/** Plural names that the rule of {@link guessResource} does not give. */
const irregular: Readonly<Record<string, string>> = { Endpoints: 'endpoints' };

/**
 * The resource name of a kind by the rule that Kubernetes itself guesses with; right for nearly all kinds, also of
 * custom resources, but a CRD at hand knows better.
 */
export function guessResource(kind: string): string {
  const lower = kind.toLowerCase();
  if (irregular[kind] !== undefined) return irregular[kind];
  if (/(s|x|z|ch|sh)$/.test(lower)) return `${lower}es`;
  if (/[^aeiou]y$/.test(lower)) return `${lower.slice(0, -1)}ies`;
  return `${lower}s`;
}

const table: ReadonlyMap<string, BuiltinKind> = new Map(
  [[namespaced, true] as const, [clusterScoped, false] as const].flatMap(([groups, scope]) =>
    Object.entries(groups).flatMap(([group, kinds]) =>
      kinds.map(
        (kind) => [`${group}/${kind}`, { group, kind, resource: guessResource(kind), namespaced: scope }] as const,
      ),
    ),
  ),
);

/** What is known of a kind of Kubernetes itself; undefined for custom resources. */
export function builtinKind(object: { apiVersion: string; kind: string }): BuiltinKind | undefined {
  return table.get(`${groupOf(object.apiVersion)}/${object.kind}`);
}

const workloads = new Set([
  '/Pod',
  'apps/DaemonSet',
  'apps/Deployment',
  'apps/ReplicaSet',
  'apps/StatefulSet',
  'batch/Job',
]);

/** True for kinds that run pods and tell when they are ready or done. */
export function isWorkload(object: { apiVersion: string; kind: string }): boolean {
  return workloads.has(`${groupOf(object.apiVersion)}/${object.kind}`);
}

export const crdKind = 'apiextensions.k8s.io/CustomResourceDefinition';
