import type { Construct } from 'constructs';
import { addressesGroup } from '../api/addresses.ts';
import {
  annotations,
  evidenceSecret,
  evidenceTrust,
  networkNamespace,
  neverPrunedKinds,
  roleName,
  trustSecret,
} from '../api/constants.ts';
import { kubeOVNInstallationKind } from '../api/kinds/kubeovn-installation.ts';
import { metallbGroup, metallbKinds } from '../api/metallb.ts';
import type { Requirement } from '../api/payload.ts';
import { groupKindOf } from '../api/plan.ts';
import { preflightJobs } from '../api/preflight.ts';
import type { DepartedObject } from '../api/tree.ts';
import { isObject, type JsonObject } from '../lib/json.ts';
import { groupOf, identityOf, type ObjectIdentity, parseObjectId } from '../lib/names.ts';
import { type Account, AccountBinding, rbacGroup, rbacVersion } from './binding.ts';
import { builtinKind, crdKind, guessResource } from './kinds.ts';
import { ManifestObject } from './manifest.ts';
import { ownLabels } from './system.ts';

/**
 * Rights of the executor. What it does for itself is fixed; what it may write are the very objects that the payloads name, or
 * named before. Every write of an object is an apply-PATCH to its name, so that rights can be bound to names, creation included.
 */

export interface Rights {
  /** Namespace of the executor. */
  readonly namespace: string;
  /** All objects of all payloads. */
  readonly objects: readonly JsonObject[];
  readonly requires: readonly Requirement[];
  /** Objects that earlier payloads named: until the newest one is accepted they are kept, then removed or let go. */
  readonly departed: readonly DepartedObject[];
  /** Objects outside of the payloads that gates wait for. */
  readonly gated: readonly ObjectIdentity[];
  /** Whether payloads are fetched from artifacts of Flux. */
  readonly artifacts: boolean;
  /** Whether probes run beside the daemons of the network. */
  readonly probes: boolean;
  /** Whether there is a ledger of addresses. */
  readonly ledger: boolean;
}

export interface Rule extends JsonObject {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

const read = ['get', 'list', 'watch'];
const write = ['create', 'patch', 'delete'];
/** Lists and watches know no names. */
const look = ['list', 'watch'];

export const rule = (group: string, resources: string[], verbs: string[], names?: string[]): Rule => ({
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

const webhookKinds: readonly string[] = [
  'admissionregistration.k8s.io/MutatingWebhookConfiguration',
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration',
];

const sorted = (values: Iterable<string>): string[] => [...new Set(values)].sort();

/** An object that may be written. */
interface Target {
  readonly groupKind: string;
  readonly namespace: string | undefined;
  readonly name: string;
  /** Nothing ever removes it. */
  readonly stays: boolean;
}

/** Objects of the payloads, and those that left them. */
function targetsOf({ objects, departed }: Pick<Rights, 'objects' | 'departed'>): Target[] {
  const present = objects.map((object): Target => {
    const identity = identityOf(object);
    const groupKind = groupKindOf(identity);
    const notes = isObject(object.metadata) && isObject(object.metadata.annotations) ? object.metadata.annotations : {};
    const stays = neverPrunedKinds.includes(groupKind) && notes[annotations.absent] !== 'true';
    return { groupKind, namespace: identity.namespace, name: identity.name, stays };
  });
  const former = departed.map(({ id }): Target => {
    const { group, kind, namespace, name } = parseObjectId(id);
    const groupKind = `${group}/${kind}`;
    return { groupKind, namespace, name, stays: neverPrunedKinds.includes(groupKind) };
  });
  return [...present, ...former];
}

/** Kinds by group, as one rule per group. */
function kindRules(kinds: Iterable<string>, verbs: string[], resource: (kind: string) => string): Rule[] {
  const byGroup = new Map<string, string[]>();
  for (const kind of sorted(kinds)) {
    const group = kind.slice(0, kind.indexOf('/'));
    byGroup.set(group, [...(byGroup.get(group) ?? []), resource(kind)]);
  }
  return [...byGroup].map(([group, resources]) => rule(group, sorted(resources), verbs));
}

/** What may be done with objects by their names, as one rule per kind. */
function namedRules(targets: readonly Target[], resource: (kind: string) => string): Rule[] {
  const rules = [false, true].flatMap((stays) => {
    const verbs = ['get', ...write].filter((verb) => !stays || verb !== 'delete');
    const some = targets.filter((target) => target.stays === stays);
    return sorted(some.map(({ groupKind }) => groupKind)).map((groupKind) => {
      const names = some.filter((target) => target.groupKind === groupKind).map(({ name }) => name);
      return rule(groupKind.slice(0, groupKind.indexOf('/')), [resource(groupKind)], verbs, sorted(names));
    });
  });
  return rules;
}

/** What may be looked at: of every kind, all objects, since what is live is found by its labels. */
function lookRules(targets: readonly Target[], resource: (kind: string) => string): Rule[] {
  const held = new Set(targets.map(({ groupKind }) => groupKind));
  // A webhook is written once something ready stands behind it.
  const hooks = [...held].some((kind) => webhookKinds.includes(kind));
  const endpoints = hooks ? [rule('discovery.k8s.io', ['endpointslices'], ['list'])] : [];
  return [...endpoints, ...kindRules(held, look, resource)];
}

/** An object of RBAC: of the payloads, or one that left them. */
interface RbacObject {
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  /** The role that a binding gives, as `Kind/name`. */
  readonly binds?: string | undefined;
}

function rbacOf({ objects, departed }: Rights): RbacObject[] {
  const present = objects.flatMap((object): RbacObject[] => {
    const { apiVersion, kind, namespace, name } = identityOf(object);
    const ref = isObject(object.roleRef) ? object.roleRef : undefined;
    const binds = ref === undefined ? undefined : `${String(ref.kind)}/${String(ref.name)}`;
    return groupOf(apiVersion) === rbacGroup ? [{ kind, namespace, name, binds }] : [];
  });
  const former = departed.flatMap(({ id, binds }): RbacObject[] => {
    const { group, ...identity } = parseObjectId(id);
    return group === rbacGroup ? [{ ...identity, binds }] : [];
  });
  return [...present, ...former];
}

/**
 * Roles may only be written by someone who holds all that they grant, or who may escalate. The right to escalate and to
 * bind is given for the very names that the payloads hold, and for no other.
 */
function escalationRules(rights: Rights, resource: 'clusterroles' | 'roles', namespace?: string): Rule[] {
  const kind = resource === 'roles' ? 'Role' : 'ClusterRole';
  const all = rbacOf(rights);
  const written = all.filter((object) => object.kind === kind && object.namespace === namespace);
  const bound = all
    .filter((object) =>
      resource === 'roles'
        ? object.kind === 'RoleBinding' && object.namespace === namespace
        : object.kind === 'RoleBinding' || object.kind === 'ClusterRoleBinding',
    )
    .flatMap(({ binds }) => (binds?.startsWith(`${kind}/`) === true ? [binds.slice(kind.length + 1)] : []));
  const names = sorted(written.map(({ name }) => name));
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
    rule(group, [`${plural}/status`], ['patch']),
  ]);
  return [
    rule('', ['namespaces'], ['get']),
    rule('', ['nodes'], ['list']),
    rule('events.k8s.io', ['events'], ['create']),
    // Whether a kind is gone for good, only its definition tells, whoever brought it.
    rule('apiextensions.k8s.io', ['customresourcedefinitions'], ['get', 'list']),
    rule('authorization.k8s.io', ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'], ['create']),
    ...specs,
  ];
}

const observedWorkloads: readonly string[] = ['ovn-central', 'ovs-ovn', 'ovs-ovn-dpdk'];

/** Namespaces with workloads of the network whose sidecars are asked for evidence: what asks, and what it needs, go by these. */
export const observedNamespaces = (rights: Pick<Rights, 'objects' | 'departed'>): string[] =>
  sorted(
    targetsOf(rights).flatMap(({ groupKind, namespace = '', name }) =>
      groupKind.startsWith('apps/') && observedWorkloads.includes(name) ? [namespace] : [],
    ),
  );

/** Whom to ask for evidence: pods are followed from their workloads by UID, and watched, so that a round asks nothing of the API. */
const evidenceRules = (): Rule[] => [
  rule('', ['persistentvolumeclaims', 'pods', 'services'], look),
  rule('discovery.k8s.io', ['endpointslices'], look),
  rule('apps', ['daemonsets', 'deployments', 'replicasets', 'statefulsets'], look),
];

/** Whether sidecars are asked what a node would take along: beside Open vSwitch they are. */
const asksDrains = (rights: Rights): boolean =>
  rights.probes &&
  targetsOf(rights).some(({ groupKind, name }) => groupKind === 'apps/DaemonSet' && name.startsWith('ovs-ovn'));

/** Probes prove themselves by tokens, which the API server reviews, and get certificates from an authority of the executor's. */
const authorityRules = {
  cluster: (): Rule[] => [rule('authentication.k8s.io', ['tokenreviews'], ['create'])],
  own: (): Rule[] => [rule('', ['secrets'], ['get', 'create', 'patch'], [evidenceSecret])],
  /** Beside the probes: whom they believe. */
  beside: (): Rule[] => [rule('', ['configmaps'], ['get', 'create', 'patch'], [evidenceTrust.name])],
  /** The way to them through a kubelet; not given for pods of every namespace there is. */
  forward: (): Rule[] => [rule('', ['pods/portforward'], ['get', 'create'])],
} as const;

/** Jobs that look at the nodes of OVN central before a first install, by their names; their pods are among the observed ones. */
const preflightRules = (): Rule[] => [
  rule('batch', ['jobs'], ['list']),
  rule('batch', ['jobs'], write, [...preflightJobs]),
];

/** Whether OVN central stands where no Role can be delivered before it: its pods, and the Jobs, are then found cluster-wide. */
const looksElsewhere = (rights: Rights): boolean =>
  rights.probes &&
  targetsOf(rights).some(
    ({ groupKind, namespace, name }) =>
      groupKind === 'apps/Deployment' && name === 'ovn-central' && namespace !== networkNamespace,
  );

/** The sources of Flux, and the Service behind which their artifacts are: its address is looked up, as there may be no DNS. */
const artifactRules = (): Rule[] => [
  rule('source.toolkit.fluxcd.io', ['buckets', 'externalartifacts', 'gitrepositories', 'ocirepositories'], read),
  rule('', ['services'], ['get'], ['source-controller']),
];

function ownRules(): Rule[] {
  return [
    rule('keelson.dev', ['releases'], read),
    rule('keelson.dev', ['releases/status'], ['patch']),
    rule('', ['configmaps'], [...read, ...write]),
    rule('', ['secrets'], ['get'], [trustSecret]),
    rule('coordination.k8s.io', ['leases'], ['get', 'create', 'update']),
  ];
}

/** What gates wait for in one namespace. */
const gatedRules = (gated: readonly ObjectIdentity[], resource: (kind: string) => string): Rule[] =>
  gated.map((target) => rule(groupOf(target.apiVersion), [resource(groupKindOf(target))], ['get'], [target.name]));

/** Addresses in use, and who gives which, are what a change of classes must leave as it is; the page follows the ledger. */
const ledgerRules = (): Rule[] => [
  rule(addressesGroup, ['ipaddressclaims', 'ipaddressclasses', 'ipaddresses'], look),
  rule(metallbGroup, [metallbKinds.IPAddressPool], ['list']),
];

/** A role, and the binding that gives it to the account. */
export function grant(scope: Construct, account: Account, namespace: string | undefined, rules: Rule[]): void {
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
  const targets = targetsOf(rights);
  const observed = observedNamespaces(rights);
  const probed = rights.probes && observed.length > 0;
  const watched = rights.probes ? observed : [];
  const resource = resourceFinder(rights.objects);
  const isEarly = ({ namespace }: Target): boolean => namespace !== undefined && early.includes(namespace);
  new ManifestObject(scope, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { ...account, labels: ownLabels },
  });
  grant(scope, account, undefined, [
    ...ownClusterRules(),
    ...(probed ? [rule('', ['nodes'], ['watch']), ...authorityRules.cluster()] : []),
    // The range of Services, which that of a network has to hold.
    ...(observed.length > 0 ? [rule('networking.k8s.io', ['servicecidrs'], ['get'], ['kubernetes'])] : []),
    ...(looksElsewhere(rights) || asksDrains(rights) ? [rule('', ['pods'], ['list'])] : []),
    // Pods and volumes of nodes that are being taken away, wherever their namespaces are.
    ...(asksDrains(rights) ? [rule('storage.k8s.io', ['volumeattachments'], ['list'])] : []),
    ...(looksElsewhere(rights) ? preflightRules() : []),
    ...(watched.some((namespace) => later.includes(namespace)) ? [...evidenceRules(), ...authorityRules.beside()] : []),
    ...(rights.artifacts ? artifactRules() : []),
    ...(rights.ledger ? ledgerRules() : []),
    ...gatedRules(
      rights.gated.filter(({ namespace }) => !early.includes(namespace ?? '')),
      resource,
    ),
    ...lookRules(targets, resource),
    ...namedRules(
      targets.filter((target) => !isEarly(target)),
      resource,
    ),
    ...escalationRules(rights, 'clusterroles'),
    ...later.flatMap((namespace) => payloadRules(rights, namespace)),
  ]);
  for (const namespace of early) {
    const own = namespace === rights.namespace ? [...ownRules(), ...(probed ? authorityRules.own() : [])] : [];
    const here = targets.filter((target) => target.namespace === namespace);
    const rules = [
      ...own,
      ...(watched.includes(namespace)
        ? [...evidenceRules(), ...authorityRules.beside(), ...authorityRules.forward(), ...preflightRules()]
        : []),
      ...gatedRules(
        rights.gated.filter((target) => target.namespace === namespace),
        resource,
      ),
      ...namedRules(here, resource),
      ...payloadRules(rights, namespace),
    ];
    if (rules.length > 0) grant(scope, account, namespace, rules);
  }
}

function namespacesOf(rights: Rights): string[] {
  return sorted([
    rights.namespace,
    ...rights.requires.map((need) => need.namespace),
    ...targetsOf(rights).map((target) => target.namespace ?? ''),
  ]).filter((namespace) => namespace !== '');
}

function payloadRules(rights: Rights, namespace: string): Rule[] {
  const secrets = sorted(rights.requires.filter((need) => need.namespace === namespace).map((need) => need.name));
  return [
    ...(secrets.length === 0 ? [] : [rule('', ['secrets'], ['get'], secrets)]),
    ...escalationRules(rights, 'roles', namespace),
  ];
}
