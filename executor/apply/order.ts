/** In which order the objects of one phase are written: what others need comes first, what can refuse others last. */
import { groupKindOf } from '../../constructs/api/plan.ts';

interface Ranked {
  readonly id: string;
  readonly entry: { readonly apiVersion: string; readonly kind: string };
}

/** Ranks of kinds, as `group/Kind`. A kind that is not listed is a custom resource, or treated as one. */
const ranks: readonly (readonly string[])[] = [
  ['/Namespace'],
  ['apiextensions.k8s.io/CustomResourceDefinition'],
  [
    'scheduling.k8s.io/PriorityClass',
    'storage.k8s.io/StorageClass',
    'storage.k8s.io/CSIDriver',
    'node.k8s.io/RuntimeClass',
  ],
  ['/ServiceAccount'],
  ['rbac.authorization.k8s.io/ClusterRole', 'rbac.authorization.k8s.io/Role'],
  ['rbac.authorization.k8s.io/ClusterRoleBinding', 'rbac.authorization.k8s.io/RoleBinding'],
  ['/ConfigMap', '/Secret', '/LimitRange', '/ResourceQuota', 'networking.k8s.io/NetworkPolicy'],
  ['/Service', 'discovery.k8s.io/EndpointSlice', '/Endpoints'],
  ['/PersistentVolume', '/PersistentVolumeClaim'],
  ['policy/PodDisruptionBudget'],
  [
    'apps/Deployment',
    'apps/DaemonSet',
    'apps/StatefulSet',
    'apps/ReplicaSet',
    'batch/Job',
    'batch/CronJob',
    '/Pod',
    '/ReplicationController',
    'autoscaling/HorizontalPodAutoscaler',
  ],
];

/** Kinds that change what the API server accepts or serves: after everything that may have to be written without them. */
const lastRanks: readonly (readonly string[])[] = [
  ['apiregistration.k8s.io/APIService'],
  ['admissionregistration.k8s.io/ValidatingAdmissionPolicy', 'admissionregistration.k8s.io/MutatingAdmissionPolicy'],
  [
    'admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding',
    'admissionregistration.k8s.io/MutatingAdmissionPolicyBinding',
    'admissionregistration.k8s.io/ValidatingWebhookConfiguration',
    'admissionregistration.k8s.io/MutatingWebhookConfiguration',
  ],
];

const customRank = ranks.length;
const rankByKind: ReadonlyMap<string, number> = new Map([
  ...ranks.flatMap((kinds, rank) => kinds.map((kind): [string, number] => [kind, rank])),
  ...lastRanks.flatMap((kinds, n) => kinds.map((kind): [string, number] => [kind, customRank + 1 + n])),
]);

/** Rank of a kind; lower is written earlier. */
export function rankOf(object: { readonly apiVersion: string; readonly kind: string }): number {
  return rankByKind.get(groupKindOf(object)) ?? customRank;
}

/**
 * The objects of one phase in batches: batches are written one after the other, the objects of a batch side by side.
 * Inside a batch objects stand in the order of their ids.
 */
export function writeOrder<T extends Ranked>(items: readonly T[]): T[][] {
  const batches = new Map<number, T[]>();
  for (const item of items) {
    const rank = rankOf(item.entry);
    const batch = batches.get(rank);
    if (batch === undefined) batches.set(rank, [item]);
    else batch.push(item);
  }
  return [...batches]
    .sort(([a], [b]) => a - b)
    .map(([, batch]) => batch.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)));
}

/** The same backwards, for removal. */
export function removeOrder<T extends Ranked>(items: readonly T[]): T[][] {
  return writeOrder(items).reverse();
}
