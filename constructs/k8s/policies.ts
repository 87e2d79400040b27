import type { Construct } from 'constructs';
import type { ClusterSpec } from '../api/cluster.ts';
import { annotations, apiGroup, roleName, trustSecret } from '../api/constants.ts';
import { kinds } from '../api/kinds/index.ts';
import type { JsonObject } from '../lib/json.ts';
import { keptByCouriers } from './couriers.ts';
import { ManifestObject, type NamedManifest } from './manifest.ts';
import { ownLabels } from './system.ts';

/** Admission policies of the API server (Kubernetes 1.30 and later); they need no webhook, and so can not be down. */

type Spec = Pick<ClusterSpec, 'executor' | 'allow' | 'deletionGuard'>;

const admission = 'admissionregistration.k8s.io/v1';

/** A CEL list of texts. */
const list = (values: readonly string[]): string => `[${values.map((value) => JSON.stringify(value)).join(', ')}]`;

function policy(name: string, spec: JsonObject): NamedManifest[] {
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
 * command, or of a manifest, does not delete the next one. Contents of a namespace whose deletion was confirmed may go.
 */
function deletionGuard(spec: Spec): NamedManifest[] {
  const groups = [...new Set([...guarded.map(([group]) => group), ...kinds.map((kind) => kind.group)])].sort();
  const key = annotations.confirmDelete;
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
          `(request.resource.resource != 'namespaces' || oldObject.metadata.name == '${spec.executor.namespace}')`,
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
    ],
  });
}

const writes = (group: string, resources: string[]): JsonObject => ({
  apiGroups: [group],
  apiVersions: ['*'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  resources,
});

/** Prefixes of ConfigMaps that only the executor writes. */
const executorOnly = ['keelson-retained-', 'keelson-ledger-', 'keelson-plan-', 'keelson-report-'];

/**
 * Who may write what decides over the cluster: Releases and inbox by the courier and administrators, the executor's own
 * records by the executor, trusted keys by administrators alone. Without `allow.principals` nobody is known who should
 * write the first, so only the executor's records are held.
 */
function writers(spec: Spec): NamedManifest[] {
  const { principals } = spec.allow;
  const admins = principals?.admins ?? ['system:masters'];
  const courier =
    principals === undefined ? 'true' : `request.userInfo.username == ${JSON.stringify(principals.courier)}`;
  const trust = principals === undefined ? 'true' : 'variables.admin';
  const starts = (prefixes: readonly string[]): string =>
    `${list(prefixes)}.exists(prefix, variables.name.startsWith(prefix))`;
  const who = (expression: string, message: string): JsonObject => ({
    expression: `variables.namespaceGoes || ${expression}`,
    reason: 'Forbidden',
    message,
  });
  return policy('keelson-writers', {
    matchConstraints: {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': spec.executor.namespace } },
      resourceRules: [writes(apiGroup, ['releases', 'releases/status']), writes('', ['configmaps', 'secrets'])],
    },
    matchConditions: [
      {
        name: 'ours',
        expression: `request.resource.group == '${apiGroup}' || (request.operation == 'DELETE' ? oldObject : object).metadata.name.startsWith('keelson-')`,
      },
    ],
    variables: [
      {
        name: 'name',
        expression: "string(request.operation == 'DELETE' ? oldObject.metadata.name : object.metadata.name)",
      },
      {
        name: 'executor',
        expression: `request.userInfo.username == 'system:serviceaccount:${spec.executor.namespace}:${roleName('executor')}'`,
      },
      {
        name: 'admin',
        expression: `request.userInfo.username in ${list(admins)} || (has(request.userInfo.groups) && request.userInfo.groups.exists(group, group in ${list(admins)}))`,
      },
      { name: 'courier', expression: courier },
      {
        name: 'namespaceGoes',
        expression:
          "request.operation == 'DELETE' && namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)",
      },
      { name: 'resource', expression: 'request.resource.resource' },
      { name: 'status', expression: "has(request.subResource) && request.subResource == 'status'" },
    ],
    validations: [
      who(
        "variables.resource != 'releases' || !variables.status || variables.executor || variables.admin",
        'only the executor writes the status of a Release',
      ),
      who(
        "variables.resource != 'releases' || variables.status || variables.courier || variables.admin || (variables.executor && request.operation == 'UPDATE' && object.spec == oldObject.spec)",
        'only the courier and administrators named in spec.allow.principals write a Release',
      ),
      who(
        "variables.resource != 'configmaps' || !variables.name.startsWith('keelson-payload-') || variables.courier || variables.admin",
        'only the courier and administrators named in spec.allow.principals deliver payloads',
      ),
      who(
        `variables.resource != 'configmaps' || !${starts(executorOnly)} || variables.executor || variables.admin`,
        'only the executor writes its retained payloads, ledger, plans and reports',
      ),
      who(
        `variables.resource != 'secrets' || variables.name != '${trustSecret}' || ${trust}`,
        'only administrators named in spec.allow.principals write the keys that are trusted',
      ),
    ],
  });
}

/** The policies of a cluster. */
export function admissionPolicies(scope: Construct, spec: Spec): ManifestObject[] {
  const made = [...(spec.deletionGuard ? deletionGuard(spec) : []), ...writers(spec)];
  return made.map((manifest) => new ManifestObject(scope, manifest));
}
