import type { Construct } from 'constructs';
import { argoOf, type ClusterSpec, fluxOf } from '../api/cluster.ts';
import {
  annotations,
  apiGroup,
  evidenceSecret,
  evidenceTrust,
  labels,
  roleName,
  trustSecret,
} from '../api/constants.ts';
import { kinds } from '../api/kinds/index.ts';
import type { JsonObject } from '../lib/json.ts';
import { keptByCouriers } from './couriers.ts';
import { ManifestObject, type NamedManifest } from './manifest.ts';
import { ownLabels } from './system.ts';

/** Admission policies of the API server (Kubernetes 1.30 and later); they need no webhook, and so can not be down. */

type Spec = Pick<ClusterSpec, 'executor' | 'allow' | 'deletionGuard' | 'delivery'>;

/** What the executor keeps for itself, as ConfigMaps say it. */
const executorRecords = ['retained', 'ledger', 'plan', 'report', 'uninstall', 'topology'];

const admission = 'admissionregistration.k8s.io/v1';

/** A CEL list of texts. */
export const list = (values: readonly string[]): string =>
  `[${values.map((value) => JSON.stringify(value)).join(', ')}]`;

/** A policy that refuses what its rules do not let through, and its binding; also when it can not be evaluated. */
export function policy(name: string, spec: JsonObject): NamedManifest[] {
  const metadata = { name, labels: ownLabels, annotations: keptByCouriers };
  return [
    {
      apiVersion: admission,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: { failurePolicy: 'Fail', ...spec },
    },
    {
      apiVersion: admission,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}

const deletes = (group: string, resources: string[]): JsonObject => ({
  apiGroups: [group],
  apiVersions: ['*'],
  operations: ['DELETE'],
  resources,
});

/** Kinds whose objects stand for running systems. */
const guarded: readonly (readonly [group: string, resources: string[]])[] = [
  [apiGroup, ['releases']],
  ['network.keelson.dev', ['kubeovninstallations']],
  ['storage.simplyblock.io', ['controlplanes', 'storageclusters']],
  ['local.sdn.cozystack.io', ['ipaddressclasses']],
];

/**
 * Refuses to delete what a system hangs on, unless the object carries its own UID as a confirmation: a copy of a
 * command, or of a manifest, does not delete the next one. Contents of a namespace whose deletion was confirmed may go: what
 * is guarded is in the namespace of the executor or in those of the specs, and these are guarded themselves.
 */
function deletionGuard(spec: Spec, namespaces: readonly string[]): NamedManifest[] {
  const groups = [...new Set([...guarded.map(([group]) => group), ...kinds.map((kind) => kind.group)])].sort();
  const key = annotations.confirmDelete;
  const spaces = [...new Set([spec.executor.namespace, ...namespaces])].sort();
  return policy('keelson-deletion-guard', {
    matchConstraints: {
      resourceRules: [
        ...guarded.map(([group, resources]) => deletes(group, resources)),
        deletes('apiextensions.k8s.io', ['customresourcedefinitions']),
        deletes('', ['namespaces']),
      ],
    },
    matchConditions: [
      {
        name: 'ours',
        expression: [
          `(request.resource.resource != 'customresourcedefinitions' || oldObject.spec.group in ${list(groups)})`,
          `(request.resource.resource != 'namespaces' || oldObject.metadata.name in ${list(spaces)})`,
        ].join(' && '),
      },
    ],
    variables: [
      {
        name: 'confirmed',
        expression: `has(oldObject.metadata.annotations) && '${key}' in oldObject.metadata.annotations && oldObject.metadata.annotations['${key}'] == string(oldObject.metadata.uid)`,
      },
      {
        name: 'namespaceGoes',
        expression: 'namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)',
      },
    ],
    validations: [
      {
        expression: 'variables.confirmed || variables.namespaceGoes',
        reason: 'Forbidden',
        messageExpression: `"deletion of " + request.resource.resource + " " + string(oldObject.metadata.name) + " is guarded: annotate it with ${key}=" + string(oldObject.metadata.uid) + " if it is meant"`,
        message: `deletion is guarded: annotate the object with ${key}=<its UID> if it is meant`,
      },
      {
        // The garbage collector takes what such an object owns before the executor can let go of it.
        expression:
          "request.resource.resource in ['customresourcedefinitions', 'namespaces'] || variables.namespaceGoes || !has(request.options) || !has(request.options.propagationPolicy) || request.options.propagationPolicy != 'Foreground'",
        reason: 'Forbidden',
        message:
          'deletion in the foreground takes along what the object owns: delete it with propagationPolicy Background (kubectl delete without --cascade=foreground)',
      },
    ],
  });
}

const writes = (group: string, resources: string[]): JsonObject => ({
  apiGroups: [group],
  apiVersions: ['*'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  resources,
});

const isAccount = (user: string | undefined): string =>
  user === undefined ? 'false' : `request.userInfo.username == ${JSON.stringify(user)}`;

/** Who always may: the group that no rule of RBAC holds back either. */
const masters = 'system:masters';

/** Account under which the courier writes; undefined when a person delivers. */
function courierAccount({ allow, delivery }: Spec): string | undefined {
  if (allow.principals?.courier !== undefined) return allow.principals.courier;
  switch (delivery.courier) {
    case 'flux':
      return `system:serviceaccount:${fluxOf(delivery).namespace}:kustomize-controller`;
    case 'argo':
      return `system:serviceaccount:${argoOf(delivery).namespace}:argocd-application-controller`;
    case 'none':
      return undefined;
  }
}

/** What is in a ConfigMap of ours is told by its name and by its label: readers go by either. */
const holding = (what: readonly string[]): string => {
  const prefixes = list(what.map((word) => `keelson-${word}-`));
  return `(${prefixes}.exists(prefix, variables.name.startsWith(prefix)) || variables.holds.exists(held, held in ${list(what)}))`;
};

/** Account of the executor. */
const executorAccount = ({ executor }: Spec): string =>
  `system:serviceaccount:${executor.namespace}:${roleName('executor')}`;

/** Whether who asks is among these: by name, or by a group. */
export const isOneOf = (principals: readonly string[]): string =>
  `request.userInfo.username in ${list(principals)} || (has(request.userInfo.groups) && request.userInfo.groups.exists(group, group in ${list(principals)}))`;

/** Who no policy binds. */
export const administrators = ({ allow }: Pick<Spec, 'allow'>): string[] => [
  masters,
  ...(allow.principals?.admins ?? []),
];

/** What an administrator does for somebody who is refused. */
const join = 'let an administrator add your user or group to spec.allow.principals.admins of cluster.yaml';

/** A rule of a policy that knows who asks. */
const who = (expression: string, rule: string, remedy: string): JsonObject => ({
  expression: `variables.namespaceGoes || ${expression}`,
  reason: 'Forbidden',
  message: `${rule}; ${remedy}`,
  messageExpression: `request.userInfo.username + " may not write " + request.resource.resource + " " + variables.name + ": " + ${JSON.stringify(`${rule}; ${remedy}`)}`,
});

/** What is written, by whom, and whether it goes with its namespace. */
const asked = (spec: Spec): JsonObject[] => [
  {
    name: 'name',
    expression: "string(request.operation == 'DELETE' ? oldObject.metadata.name : object.metadata.name)",
  },
  { name: 'executor', expression: `request.userInfo.username == '${executorAccount(spec)}'` },
  { name: 'admin', expression: isOneOf(administrators(spec)) },
  {
    name: 'namespaceGoes',
    expression:
      "request.operation == 'DELETE' && namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)",
  },
];

const labelled = `[object, oldObject].filter(each, each != null && has(each.metadata.labels) && '${labels.holds}' in each.metadata.labels)`;

/**
 * Who may write what decides over the cluster: Releases and inbox by the courier and administrators, the executor's own
 * records by the executor, the authority of evidence by the executor or who is named for it, trusted keys by administrators
 * alone. Whoever may do anything else in the cluster, or in this namespace, may not do that.
 */
function writers(spec: Spec): NamedManifest[] {
  const { namespace } = spec.executor;
  const courier = courierAccount(spec);
  const through = courier === undefined ? 'deliver as an administrator' : `deliver it through the courier (${courier})`;
  const authority = spec.allow.principals?.authority;
  return policy('keelson-writers', {
    matchConstraints: {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      resourceRules: [writes(apiGroup, ['releases', 'releases/status']), writes('', ['configmaps', 'secrets'])],
    },
    matchConditions: [
      {
        name: 'ours',
        expression: `request.resource.group == '${apiGroup}' || (request.operation == 'DELETE' ? oldObject : object).metadata.name.startsWith('keelson-') || ${labelled}.size() > 0`,
      },
    ],
    variables: [
      ...asked(spec),
      { name: 'holds', expression: `${labelled}.map(each, string(each.metadata.labels['${labels.holds}']))` },
      { name: 'courier', expression: isAccount(courier) },
      { name: 'authority', expression: isAccount(authority) },
      { name: 'resource', expression: 'request.resource.resource' },
      { name: 'status', expression: "has(request.subResource) && request.subResource == 'status'" },
    ],
    validations: [
      who(
        "variables.resource != 'releases' || !variables.status || variables.executor || variables.admin",
        'only the executor writes the status of a Release',
        'change its spec, through Git',
      ),
      who(
        "variables.resource != 'releases' || variables.status || variables.courier || variables.admin || (variables.executor && request.operation == 'UPDATE' && object.spec == oldObject.spec)",
        'only the courier and administrators write a Release',
        `${through}, or ${join}`,
      ),
      who(
        `variables.resource != 'configmaps' || !${holding(['payload'])} || variables.courier || variables.admin`,
        'only the courier and administrators deliver payloads',
        `${through}, or ${join}`,
      ),
      who(
        `variables.resource != 'configmaps' || !${holding(executorRecords)} || variables.executor || variables.admin`,
        'only the executor writes its retained payloads, ledger, plans, reports and records of topologies',
        `an administrator may restore them from a backup; ${join}`,
      ),
      who(
        `variables.resource != 'secrets' || variables.name != '${trustSecret}' || variables.admin`,
        'only administrators write the keys that are trusted',
        join,
      ),
      who(
        `variables.resource != 'secrets' || variables.name != '${evidenceSecret}' || variables.executor || variables.authority || variables.admin`,
        'only the executor writes the authority that probes prove themselves by',
        `name who brings another one in spec.allow.principals.authority of cluster.yaml, or ${join}`,
      ),
    ],
  });
}

/**
 * Who may tell probes whom to believe: whoever could would have their tokens, and their answers. The ConfigMap is beside the
 * probes, where more people write than beside the executor.
 */
function trustWriters(spec: Spec, namespaces: readonly string[]): NamedManifest[] {
  if (namespaces.length === 0) return [];
  return policy('keelson-evidence-trust', {
    matchConstraints: {
      namespaceSelector: {
        matchExpressions: [
          { key: 'kubernetes.io/metadata.name', operator: 'In', values: [...new Set(namespaces)].sort() },
        ],
      },
      resourceRules: [writes('', ['configmaps'])],
    },
    matchConditions: [
      {
        name: 'ours',
        expression: `(request.operation == 'DELETE' ? oldObject : object).metadata.name == '${evidenceTrust.name}'`,
      },
    ],
    variables: asked(spec),
    validations: [who('variables.executor || variables.admin', 'only the executor tells probes whom to believe', join)],
  });
}

/** The policies of a cluster whose specs are in these namespaces; further ones are guarded for what is in them. */
export function admissionPolicies(
  scope: Construct,
  spec: Spec,
  namespaces: readonly string[],
  further: readonly string[] = [],
): ManifestObject[] {
  const made = [
    ...(spec.deletionGuard ? deletionGuard(spec, [...namespaces, ...further]) : []),
    ...writers(spec),
    ...trustWriters(spec, namespaces),
  ];
  return made.map((manifest) => new ManifestObject(scope, manifest));
}
