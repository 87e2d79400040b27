import { addressAnnotations, addressesGroup } from '../../api/addresses.ts';
import type { Allowlist } from '../../api/addresses-settings.ts';
import { addressesOf } from '../../api/addresses-settings.ts';
import type { ClusterSpec } from '../../api/cluster.ts';
import { roleName } from '../../api/constants.ts';
import { metallbChoices, metallbProvisioner } from '../../api/metallb.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { NamedManifest } from '../manifest.ts';
import { administrators, isOneOf, list, policy } from '../policies.ts';

/** Policies of the API server about claims and Services. They need no webhook, and so can not be down. */

type Spec = Pick<ClusterSpec, 'executor' | 'allow' | 'addresses'>;

const text = (value: string): string => JSON.stringify(value);

const serviceAccount = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`;

/** Account of the role: its core, and its driver. */
const roleAccount = ({ executor }: Spec): string => serviceAccount(executor.namespace, roleName('addresses'));

const metallbAccount = (spec: Spec): string => {
  const { namespace, account } = addressesOf(spec).metallb;
  return serviceAccount(namespace, account);
};

const matching = (group: string, resources: string[], operations: string[]): JsonObject => ({
  resourceRules: [{ apiGroups: [group], apiVersions: ['*'], operations, resources }],
});

/** Who may, whatever is written: administrators, who is named, and controllers whose work it is. */
const allowed = (spec: Spec, users: readonly string[], groups: readonly string[] = []): JsonObject => ({
  name: 'allowed',
  expression: `${isOneOf(administrators(spec))} || request.userInfo.username in ${list(users)} || (has(request.userInfo.groups) && request.userInfo.groups.exists(group, group in ${list(groups)}))`,
});

const validation = (expression: string, message: string): JsonObject => ({
  expression: `variables.allowed || ${expression}`,
  reason: 'Forbidden',
  message,
  messageExpression: `request.userInfo.username + ${JSON.stringify(`: ${message}`)}`,
});

/** The value of an annotation, told apart from an absent one. */
const annotation = (object: string, key: string): string =>
  `(${object} != null && has(${object}.metadata.annotations) && ${key} in ${object}.metadata.annotations ? "=" + ${object}.metadata.annotations[${key}] : "")`;

const unchanged = (key: string): string => `${annotation('object', key)} == ${annotation('oldObject', key)}`;

const how = (setting: string): string =>
  `let an administrator name who may in spec.addresses.admission.${setting} of cluster.yaml`;

/** Who may ask for one particular address: anybody else could take one that is meant for another. */
function addressNames(spec: Spec, { allowedUsers, allowedGroups }: Allowlist): NamedManifest[] {
  const wanted = (object: string): string =>
    `(${object} != null && has(${object}.spec) && has(${object}.spec.addressName) ? string(${object}.spec.addressName) : "")`;
  return policy('keelson-address-names', {
    matchConstraints: matching(addressesGroup, ['ipaddressclaims'], ['CREATE', 'UPDATE']),
    variables: [
      allowed(spec, [roleAccount(spec), ...allowedUsers], allowedGroups),
      { name: 'wanted', expression: wanted('object') },
      { name: 'before', expression: wanted('oldObject') },
    ],
    validations: [
      validation(
        'variables.wanted == "" || variables.wanted == variables.before',
        `only who is named may ask for one particular address (spec.addressName); leave it out, or ${how('addressName')}`,
      ),
    ],
  });
}

const loadBalancerIP = (object: string): string =>
  `(${object} != null && has(${object}.spec.loadBalancerIP) ? ${object}.spec.loadBalancerIP : "")`;

/** Everything that the driver notes on Services; by that it knows what is its own to take off again. */
const marks = `${metallbProvisioner}/`;

/** Annotations by which somebody gets an address, or makes the driver take one away, are as they were. */
const choicesUnchanged = [
  `${list(metallbChoices)}.all(key, ${unchanged('key')})`,
  `[object, oldObject].all(each, each == null || !has(each.metadata.annotations) || each.metadata.annotations.all(key, !key.startsWith(${text(marks)}) || ${unchanged('key')}))`,
].join(' && ');

/** Who may choose addresses of MetalLB: anybody else could use what is reserved, or have a pin taken off that is not theirs. */
function pins(spec: Spec, { allowedUsers, allowedGroups }: Allowlist): NamedManifest[] {
  return policy('keelson-address-pins', {
    matchConstraints: matching('', ['services'], ['CREATE', 'UPDATE']),
    variables: [
      allowed(spec, [roleAccount(spec), metallbAccount(spec), ...allowedUsers], allowedGroups),
      { name: 'choices', expression: choicesUnchanged },
      { name: 'ip', expression: `${loadBalancerIP('object')} == ${loadBalancerIP('oldObject')}` },
    ],
    validations: [
      validation(
        'variables.choices',
        `only who is named may set, change or take away ${[...metallbChoices, `${marks}*`].join(', ')}; claim an address and annotate the Service with ${addressAnnotations.claim}, or ${how('pins')}`,
      ),
      validation(
        'variables.ip',
        `only who is named may set, change or take away spec.loadBalancerIP; claim an address and annotate the Service with ${addressAnnotations.claim}, or ${how('pins')}`,
      ),
    ],
  });
}

/** Who may write the provisioner on a claim, beside the core: by it a driver is chosen, and not by the class. */
function provisioners(spec: Spec, { allowedUsers, allowedGroups }: Allowlist): NamedManifest[] {
  return policy('keelson-address-provisioners', {
    matchConstraints: matching(addressesGroup, ['ipaddressclaims'], ['CREATE', 'UPDATE']),
    variables: [allowed(spec, [roleAccount(spec), ...allowedUsers], allowedGroups)],
    validations: [
      validation(
        unchanged(text(addressAnnotations.provisioner)),
        `only the core writes annotation ${addressAnnotations.provisioner}; leave it out, or ${how('provisioner')}`,
      ),
    ],
  });
}

/** What a cluster asks for; none of them is there by itself. */
export function addressPolicies(spec: Spec): NamedManifest[] {
  const { addressName, pins: pinning, provisioner } = addressesOf(spec).admission;
  return [
    ...(addressName.enabled ? addressNames(spec, addressName) : []),
    ...(pinning.enabled ? pins(spec, pinning) : []),
    ...(provisioner.enabled ? provisioners(spec, provisioner) : []),
  ];
}

/** Controllers of Kubernetes that take away what has lost its owner, or goes with its namespace. */
const cleaners: readonly string[] = [
  serviceAccount('kube-system', 'generic-garbage-collector'),
  serviceAccount('kube-system', 'namespace-controller'),
  'system:kube-controller-manager',
];

/**
 * Nobody but the driver makes, turns or takes away Services among the placeholders: whoever could, could hold addresses that no
 * ledger knows, or let them go. Endpoints would make a placeholder announce its address. What others note on a Service there,
 * as MetalLB does, is their business.
 */
export function placeholderPolicy(spec: Spec): NamedManifest[] {
  const { placeholderNamespace } = addressesOf(spec).metallb;
  const same = (path: string): string =>
    `(has(object.${path}) == has(oldObject.${path}) && (!has(object.${path}) || object.${path} == oldObject.${path}))`;
  const note = [same('spec'), same('metadata.labels'), same('metadata.ownerReferences'), choicesUnchanged];
  return policy('keelson-address-placeholders', {
    matchConstraints: {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': placeholderNamespace } },
      resourceRules: [
        {
          apiGroups: [''],
          apiVersions: ['*'],
          operations: ['CREATE', 'UPDATE', 'DELETE'],
          resources: ['services', 'endpoints'],
        },
        {
          apiGroups: ['discovery.k8s.io'],
          apiVersions: ['*'],
          operations: ['CREATE', 'UPDATE'],
          resources: ['endpointslices'],
        },
      ],
    },
    variables: [
      allowed(spec, [roleAccount(spec)]),
      {
        name: 'cleaner',
        expression: `request.operation == 'DELETE' && request.userInfo.username in ${list(cleaners)}`,
      },
      {
        name: 'noted',
        expression: `request.operation == 'UPDATE' && request.resource.resource == 'services' && ${note.join(' && ')}`,
      },
    ],
    validations: [
      validation(
        'variables.cleaner || variables.noted',
        `only the driver writes placeholders; namespace ${placeholderNamespace} is for them alone: use another one`,
      ),
    ],
  });
}
