/** What a rendered tree no longer names: inbox chunks are removed, everything else is only told. */
import { labels, managedByValue } from '../../constructs/api/constants.ts';
import { kinds, refusedInGit } from '../../constructs/api/kinds/index.ts';
import { kindApiVersion } from '../../constructs/api/kinds/kind.ts';
import { groupOf, objectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject, type ObjectRef, refOf, uidOf } from '../kube/types.ts';
import type { Selection } from '../kube/verbs/list.ts';

export interface CleanUp {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly signal: AbortSignal;
  /** Ids of all objects that the tree names. */
  readonly named: ReadonlySet<string>;
}

/**
 * Deletes the inbox ConfigMaps that the tree no longer names, each by its UID: the executor runs from its own copy, so
 * nothing depends on them.
 */
export async function removeStaleInbox(input: CleanUp): Promise<{ removed: ObjectRef[]; problems: Problem[] }> {
  const { client, namespace, signal } = input;
  const listed = await client.list(
    { apiVersion: 'v1', kind: 'ConfigMap', namespace, labelSelector: `${labels.holds}=payload` },
    { signal, metadataOnly: true },
  );
  if (listed.type !== 'listed')
    return { removed: [], problems: [failed('the inbox can not be listed', listed.message)] };
  const removed: ObjectRef[] = [];
  const problems: Problem[] = [];
  for (const item of listed.items) {
    const ref: ObjectRef = { ...refOf(item), apiVersion: 'v1', kind: 'ConfigMap' };
    if (input.named.has(objectId(ref))) continue;
    const outcome = await client.delete(ref, { uid: uidOf(item), propagation: 'Background', signal });
    if (outcome.type === 'deleted' || outcome.type === 'terminating' || outcome.type === 'absent') removed.push(ref);
    else problems.push({ ...failed('it could not be removed', outcome.message), object: describeRef(ref) });
  }
  return { removed, problems };
}

const failed = (what: string, why: string): Problem => ({
  reason: 'ApplyFailed',
  message: `${what}: ${why}`,
  remedy: 'deliver again when the cause is gone',
});

/** Kinds around the payloads that carry our label without belonging to a payload. */
const systemKinds: readonly { readonly apiVersion: string; readonly kind: string; readonly namespaced: boolean }[] = [
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', namespaced: false },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', namespaced: false },
  { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy', namespaced: false },
  { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicyBinding', namespaced: false },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', namespaced: true },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', namespaced: true },
  { apiVersion: 'v1', kind: 'ServiceAccount', namespaced: true },
  { apiVersion: 'apps/v1', kind: 'Deployment', namespaced: true },
];

/** Objects of ours that the tree no longer names and that stay in the cluster; a person decides about them. */
export async function findLeftovers(input: CleanUp): Promise<ObjectRef[]> {
  const own = `${labels.managedBy}=${managedByValue},!${labels.release}`;
  const selections: Selection[] = [
    ...systemKinds.map(({ apiVersion, kind, namespaced }) => ({
      apiVersion,
      kind,
      labelSelector: own,
      ...(namespaced ? { namespace: input.namespace } : {}),
    })),
    ...kinds
      .map((kind) => ({ apiVersion: kindApiVersion(kind), kind: kind.kind }))
      .filter((selection) => !isPersonal(selection)),
  ];
  const found: ObjectRef[] = [];
  for (const selection of selections) {
    const listed = await input.client.list(selection, { signal: input.signal, metadataOnly: true });
    // Where a kind is not served, or may not be listed, there is nothing that could be told.
    const items: readonly KubeObject[] = listed.type === 'listed' ? listed.items : [];
    for (const item of items) {
      const ref: ObjectRef = { ...refOf(item), apiVersion: selection.apiVersion, kind: selection.kind };
      if (!input.named.has(objectId(ref))) found.push(ref);
    }
  }
  return found;
}

/** Objects by which couriers carry a tree. */
const courierKinds: readonly { readonly apiVersion: string; readonly kind: string }[] = [
  { apiVersion: 'source.toolkit.fluxcd.io/v1', kind: 'GitRepository' },
  { apiVersion: 'kustomize.toolkit.fluxcd.io/v1', kind: 'Kustomization' },
  { apiVersion: 'argoproj.io/v1alpha1', kind: 'Application' },
];

/** Courier objects of a cluster, in any namespace, that its tree does not name: a courier that was left still works. */
export async function findLeftCouriers(
  input: Omit<CleanUp, 'namespace'> & { readonly cluster: string },
): Promise<ObjectRef[]> {
  const labelSelector = `${labels.managedBy}=${managedByValue},${labels.cluster}=${input.cluster}`;
  const found: ObjectRef[] = [];
  for (const kind of courierKinds) {
    const listed = await input.client.list({ ...kind, labelSelector }, { signal: input.signal, metadataOnly: true });
    const items: readonly KubeObject[] = listed.type === 'listed' ? listed.items : [];
    const refs = items.map((item): ObjectRef => ({ ...refOf(item), ...kind }));
    found.push(...refs.filter((ref) => !input.named.has(objectId(ref))));
  }
  return found;
}

/** Kinds that people create with their own credentials never come from a tree. */
const isPersonal = ({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): boolean =>
  refusedInGit.includes(`${groupOf(apiVersion)}/${kind}`);
