import { groupKindOf } from '../../constructs/api/plan.ts';
import { type ObjectIdentity, objectId } from '../../constructs/lib/names.ts';

/**
 * The order of objects within a phase: what others need comes first, what can refuse others comes last. A phase is
 * applied side by side, so nothing may hang on this order; it makes the index read well and a serial writer work.
 */
const early = [
  '/Namespace',
  'apiextensions.k8s.io/CustomResourceDefinition',
  'scheduling.k8s.io/PriorityClass',
  '/ServiceAccount',
  'rbac.authorization.k8s.io/ClusterRole',
  'rbac.authorization.k8s.io/ClusterRoleBinding',
  'rbac.authorization.k8s.io/Role',
  'rbac.authorization.k8s.io/RoleBinding',
  '/ConfigMap',
  '/Secret',
  'storage.k8s.io/StorageClass',
  '/PersistentVolume',
  '/PersistentVolumeClaim',
  '/Service',
];
const late = [
  'apps/DaemonSet',
  'apps/StatefulSet',
  'apps/Deployment',
  '/Pod',
  'batch/Job',
  'batch/CronJob',
  'apiregistration.k8s.io/APIService',
  'admissionregistration.k8s.io/MutatingWebhookConfiguration',
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration',
];

function rank(identity: ObjectIdentity): number {
  const kind = groupKindOf(identity);
  const first = early.indexOf(kind);
  if (first >= 0) return first;
  const last = late.indexOf(kind);
  return last >= 0 ? early.length + 1 + last : early.length;
}

/** Compares two objects of one phase: by kind, then by id. Total, so the order of the input never shows. */
export function compareObjects(a: ObjectIdentity, b: ObjectIdentity): number {
  const [idA, idB] = [objectId(a), objectId(b)];
  return rank(a) - rank(b) || (idA < idB ? -1 : idA > idB ? 1 : 0);
}
