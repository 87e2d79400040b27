/** Other tools that look after an object too: by the marks that they put on it, and by what they write of it. Pure. */
import { managers } from '../../constructs/api/constants.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { isOurApply } from '../kube/managedfields.ts';
import type { KubeObject, ManagedFieldsEntry, ObjectMeta } from '../kube/types.ts';

const place = (namespace: string | undefined, name: string): string =>
  namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;

interface Tool {
  /** Who the marks say that the object belongs to. */
  readonly owner: (metadata: ObjectMeta) => string | undefined;
  /** Field managers under which the tool writes. */
  readonly managers: readonly string[];
}

const byLabels =
  (prefix: string, kind: string) =>
  ({ labels = {} }: ObjectMeta): string | undefined => {
    const name = labels[`${prefix}/name`];
    return name === undefined ? undefined : `${kind} ${place(labels[`${prefix}/namespace`], name)}`;
  };

const argoManagers = ['argocd-controller', 'argocd-application-controller'];

/** The label of Argo CD is one that charts use too; it counts only where Argo CD writes. */
function argoOwner({ annotations = {}, labels = {}, managedFields = [] }: ObjectMeta): string | undefined {
  const tracked = annotations['argocd.argoproj.io/tracking-id']?.split(':')[0];
  const writes = managedFields.some(({ manager }) => argoManagers.includes(manager ?? ''));
  const name = tracked ?? (writes ? labels['app.kubernetes.io/instance'] : undefined);
  return name === undefined ? undefined : `Application ${name} of Argo CD`;
}

function helmOwner({ annotations = {} }: ObjectMeta): string | undefined {
  const name = annotations['meta.helm.sh/release-name'];
  return name === undefined ? undefined : `Helm release ${place(annotations['meta.helm.sh/release-namespace'], name)}`;
}

const tools: readonly Tool[] = [
  { owner: byLabels('kustomize.toolkit.fluxcd.io', 'Kustomization'), managers: ['kustomize-controller'] },
  { owner: byLabels('helm.toolkit.fluxcd.io', 'HelmRelease'), managers: ['helm-controller'] },
  { owner: argoOwner, managers: argoManagers },
  { owner: helmOwner, managers: ['helm'] },
];

/** Who an object belongs to by the marks on it, whether or not they still look after it. */
export const markedOwners = (metadata: ObjectMeta): string[] => tools.flatMap(({ owner }) => owner(metadata) ?? []);

/** Whether two trees of fields have a field in common. */
function overlap(a: JsonObject, b: JsonObject): boolean {
  return Object.entries(a).some(([step, child]) => {
    const other = step === '.' ? undefined : b[step];
    if (!isObject(child) || !isObject(other)) return false;
    const whole = Object.keys(child).length === 0 || Object.keys(other).length === 0;
    return whole || overlap(child, other);
  });
}

/**
 * Whether an entry tells of somebody who still writes: it came after our last apply, or holds fields that we apply too. What an
 * adoption left to a tool, its own marks and what the payload does not name, is neither.
 */
function stillWrites(entry: ManagedFieldsEntry, { managedFields = [] }: ObjectMeta): boolean {
  const ours = managedFields.find(isOurApply);
  if (ours?.fieldsV1 === undefined || entry.fieldsV1 === undefined) return true;
  return Date.parse(entry.time ?? '') > Date.parse(ours.time ?? '') || overlap(entry.fieldsV1, ours.fieldsV1);
}

/** Who looks after an object now: marked as theirs, and fields of it are written by them. */
export function activeOwners(metadata: ObjectMeta): { readonly owner: string; readonly manager: string }[] {
  return tools.flatMap((tool) => {
    const owner = tool.owner(metadata);
    const entry = metadata.managedFields?.find(
      (one) => tool.managers.includes(one.manager ?? '') && stillWrites(one, metadata),
    );
    return owner === undefined || entry?.manager === undefined ? [] : [{ owner, manager: entry.manager }];
  });
}

/** How long ago a controller may have written the last time, and still count as running. */
const quietMs = 600_000;

/** A manager other than ours that lately wrote the status of an object which is ours to reconcile. */
export function foreignReconciler({ metadata }: KubeObject, now: number): string | undefined {
  return metadata.managedFields?.find(
    ({ manager, subresource, time }) =>
      subresource === 'status' && manager !== managers.status && now - Date.parse(time ?? '') < quietMs,
  )?.manager;
}
