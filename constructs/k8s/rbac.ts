import type { Construct } from 'constructs';
import { networkNamespace, roleName, trustSecret } from '../api/constants.ts';
import { kubeOVNInstallationKind } from '../api/kinds/kubeovn-installation.ts';
import type { Requirement } from '../api/payload.ts';
import { groupKindOf } from '../api/plan.ts';
import { isObject, type JsonObject } from '../lib/json.ts';
import { groupOf, identityOf } from '../lib/names.ts';
import { type Account, AccountBinding, rbacGroup, rbacVersion } from './binding.ts';
import { builtinKind, crdKind, guessResource } from './kinds.ts';
import { ManifestObject } from './manifest.ts';
import { ownLabels } from './system.ts';

/**
 * Rights of the executor. What it does for itself is fixed; what it may do with objects follows from the objects that
 * the payloads name, so that a cluster without a network payload grants nothing of a network.
 */

export interface Rights {
  /** Namespace of the executor. */
  readonly namespace: string;
  /** All objects of all payloads. */
  readonly objects: readonly JsonObject[];
  readonly requires: readonly Requirement[];
  /** `group/Kind` of further kinds that the cluster's settings allow. */
  readonly extraKinds: readonly string[];
  /** `group/Kind` of kinds whose last object has left the payloads: it may still have to be pruned. */
  readonly departedKinds: readonly string[];
  /** Whether payloads are fetched from artifacts of Flux. */
  readonly artifacts: boolean;
}

interface Rule extends JsonObject {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

const read = ['get', 'list', 'watch'];
const write = ['create', 'patch', 'delete'];

const rule = (group: string, resources: string[], verbs: string[], names?: string[]): Rule => ({
  apiGroups: [group],
  resources,
  verbs,
  ...(names === undefined ? {} : { resourceNames: names }),
});

/** The resource of a kind: of Kubernetes itself, of a definition among the objects, or by the usual rule. */
function resourceFinder(objects: readonly JsonObject[]): (groupKind: string) => string {
  const defined = new Map<string, string>();
  for (const object of objects) {
    const { spec } = object;
    if (groupKindOf(identityOf(object)) !== crdKind || !isObject(spec) || !isObject(spec.names)) continue;
    defined.set(`${spec.group}/${spec.names.kind}`, String(spec.names.plural));
  }
  return (groupKind) => {
    const slash = groupKind.indexOf('/');
    const [group, kind] = [groupKind.slice(0, slash), groupKind.slice(slash + 1)];
    const known = builtinKind({ apiVersion: group === '' ? 'v1' : `${group}/v1`, kind })?.resource;
    return defined.get(groupKind) ?? known ?? guessResource(kind);
  };
}

const sorted = (values: Iterable<string>): string[] => [...new Set(values)].sort();

/** Kinds by group, as one rule per group. */
function kindRules(kinds: Iterable<string>, verbs: string[], resource: (kind: string) => string): Rule[] {
  const byGroup = new Map<string, string[]>();
  for (const kind of sorted(kinds)) {
    const group = kind.slice(0, kind.indexOf('/'));
    byGroup.set(group, [...(byGroup.get(group) ?? []), resource(kind)]);
  }
  return [...byGroup].map(([group, resources]) => rule(group, sorted(resources), verbs));
}

function objectRules(rights: Rights): Rule[] {
  const resource = resourceFinder(rights.objects);
  const held = new Set([...rights.objects.map((o) => groupKindOf(identityOf(o))), ...rights.extraKinds]);
  const departed = rights.departedKinds.filter((kind) => !held.has(kind));
  return [...kindRules(held, [...read, ...write], resource), ...kindRules(departed, [...read, 'delete'], resource)];
}

/**
 * Roles may only be written by someone who holds all that they grant, or who may escalate. The right to escalate and to
 * bind is given for the very names that the payloads hold, and for no other.
 */
function escalationRules(
  objects: readonly JsonObject[],
  resource: 'clusterroles' | 'roles',
  namespace?: string,
): Rule[] {
  const kind = resource === 'roles' ? 'Role' : 'ClusterRole';
  const here = objects.map((object) => ({ object, identity: identityOf(object) }));
  const rbac = here.filter(({ identity }) => groupOf(identity.apiVersion) === rbacGroup);
  const written = rbac.filter(({ identity }) => identity.kind === kind && identity.namespace === namespace);
  const bound = rbac
    .filter(({ identity }) =>
      resource === 'roles'
        ? identity.kind === 'RoleBinding' && identity.namespace === namespace
        : identity.kind === 'RoleBinding' || identity.kind === 'ClusterRoleBinding',
    )
    .map(({ object }) => (isObject(object.roleRef) ? object.roleRef : {}))
    .filter((ref) => ref.kind === kind)
    .map((ref) => String(ref.name));
  const names = sorted(written.map(({ identity }) => identity.name));
  return [
    ...(names.length === 0 ? [] : [rule(rbacGroup, [resource], ['escalate'], names)]),
    ...(bound.length === 0 ? [] : [rule(rbacGroup, [resource], ['bind'], sorted(bound))]),
  ];
}

/** Kinds of ours that the role reconciles: it watches them, writes their status and holds their finalizer. */
const reconciled = [kubeOVNInstallationKind];

/**
 * What the executor reads and writes for itself, in any cluster. That holds for the kinds it reconciles even where no spec
 * of them is left in Git: an object that is still there must be able to go.
 */
function ownClusterRules(): Rule[] {
  const specs = reconciled.flatMap(({ group, plural }) => [
    rule(group, [plural], ['get', 'list', 'watch', 'patch']),
    rule(group, [`${plural}/status`], ['get', 'patch']),
    // Owner references that block the owner's deletion need this right.
    rule(group, [`${plural}/finalizers`], ['update']),
  ]);
  return [
    rule('', ['namespaces', 'nodes', 'pods'], read),
    rule('', ['events'], ['create', 'patch']),
    rule('events.k8s.io', ['events'], ['create', 'patch']),
    rule('apps', ['replicasets', 'controllerrevisions'], read),
    rule('apiextensions.k8s.io', ['customresourcedefinitions'], read),
    rule('admissionregistration.k8s.io', ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'], read),
    rule('authorization.k8s.io', ['selfsubjectaccessreviews'], ['create']),
    ...specs,
  ];
}

/** The sources of Flux, and the Service behind which their artifacts are: its address is looked up, as there may be no DNS. */
const artifactRules = (): Rule[] => [
  rule('source.toolkit.fluxcd.io', ['buckets', 'externalartifacts', 'gitrepositories', 'ocirepositories'], read),
  rule('', ['services'], ['get'], ['source-controller']),
];

function ownRules(): Rule[] {
  return [
    rule('keelson.dev', ['releases'], [...read, 'patch']),
    rule('keelson.dev', ['releases/status'], ['get', 'patch']),
    rule('', ['configmaps'], [...read, ...write]),
    rule('', ['secrets'], ['get'], [trustSecret]),
    rule('coordination.k8s.io', ['leases'], [...read, 'create', 'update', 'delete']),
  ];
}

/** A role, and the binding that gives it to the account. */
function grant(scope: Construct, account: Account, namespace: string | undefined, rules: Rule[]): void {
  const { name } = account;
  new ManifestObject(scope, {
    apiVersion: rbacVersion,
    kind: namespace === undefined ? 'ClusterRole' : 'Role',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), labels: ownLabels },
    rules,
  });
  new AccountBinding(scope, account, namespace);
}

/**
 * Namespaces that are there before any payload. A Role can not be delivered into a namespace that a payload is still to
 * create; what is needed there is granted by name through the ClusterRole.
 */
const standing = (rights: Rights): string[] => [rights.namespace, networkNamespace, 'default', 'kube-public'];

/** Account, roles and bindings of the executor. */
export function executorRBAC(scope: Construct, rights: Rights): void {
  const account = { name: roleName('executor'), namespace: rights.namespace };
  const namespaces = namespacesOf(rights);
  const early = namespaces.filter((namespace) => standing(rights).includes(namespace));
  const later = namespaces.filter((namespace) => !early.includes(namespace));
  new ManifestObject(scope, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { ...account, labels: ownLabels },
  });
  grant(scope, account, undefined, [
    ...ownClusterRules(),
    ...(rights.artifacts ? artifactRules() : []),
    ...objectRules(rights),
    ...escalationRules(rights.objects, 'clusterroles'),
    ...later.flatMap((namespace) => payloadRules(rights, namespace)),
  ]);
  for (const namespace of early) {
    const own = namespace === rights.namespace ? ownRules() : [];
    const rules = [...own, ...payloadRules(rights, namespace)];
    if (rules.length > 0) grant(scope, account, namespace, rules);
  }
}

function namespacesOf(rights: Rights): string[] {
  return sorted([
    rights.namespace,
    ...rights.requires.map((need) => need.namespace),
    ...rights.objects.map((object) => identityOf(object).namespace ?? ''),
  ]).filter((namespace) => namespace !== '');
}

function payloadRules(rights: Rights, namespace: string): Rule[] {
  const secrets = sorted(rights.requires.filter((need) => need.namespace === namespace).map((need) => need.name));
  return [
    ...(secrets.length === 0 ? [] : [rule('', ['secrets'], ['get'], secrets)]),
    ...escalationRules(rights.objects, 'roles', namespace),
  ];
}
