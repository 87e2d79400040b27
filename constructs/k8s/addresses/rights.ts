import type { Construct } from 'constructs';
import { addressesGroup, addressLeases } from '../../api/addresses.ts';
import type { AddressesSettings } from '../../api/addresses-settings.ts';
import { roleName } from '../../api/constants.ts';
import { metallbGroup, metallbKinds, poolName } from '../../api/metallb.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { Account } from '../binding.ts';
import { ManifestObject, synthesize } from '../manifest.ts';
import { grant, type Rule, rule } from '../rbac.ts';
import { ownLabels } from '../system.ts';

/**
 * Rights of role `addresses`: those of the core, which never makes an address and never sees a Service, and those of the
 * driver. Each is given only where its worker runs.
 */

const read = ['get', 'list', 'watch'];

const coreRules = (): Rule[] => [
  rule(addressesGroup, ['ipaddressclaims', 'ipaddressclasses'], [...read, 'patch']),
  rule(addressesGroup, ['ipaddresses'], [...read, 'patch', 'delete']),
  rule(addressesGroup, ['ipaddressclaims/status', 'ipaddresses/status'], ['patch']),
];

/** Services of tenants are read and marked; made and deleted are only placeholders. */
const driverRules = (): Rule[] => [
  rule(addressesGroup, ['ipaddressclaims'], read),
  rule(addressesGroup, ['ipaddressclasses'], ['list', 'watch']),
  rule(addressesGroup, ['ipaddresses'], [...read, 'create', 'patch', 'delete']),
  rule(addressesGroup, ['ipaddresses/status'], ['patch']),
  rule('', ['services'], [...read, 'patch']),
];

const placeholderRules = (): Rule[] => [rule('', ['services'], ['create', 'delete'])];

/** Pools and advertisements are changed by name: those of the classes that are in Git. A name that is new can not be asked for. */
const poolRules = (classes: readonly string[]): Rule[] => {
  const resources = Object.values(metallbKinds);
  const names = classes.map(poolName).sort();
  return [
    rule(metallbGroup, resources, ['list', 'watch', 'create']),
    ...(names.length === 0 ? [] : [rule(metallbGroup, resources, ['get', 'patch'], names)]),
  ];
};

const leaseRules = (workers: AddressesSettings['workers']): Rule[] => {
  const names = workers.map((worker) => (worker === 'core' ? addressLeases.core : addressLeases.driver)).sort();
  return [
    rule('coordination.k8s.io', ['leases'], ['create']),
    rule('coordination.k8s.io', ['leases'], ['get', 'update'], names),
  ];
};

const accountIn = (namespace: string): Account => ({ name: roleName('addresses'), namespace });

const has = ({ workers }: AddressesSettings, worker: 'core' | 'driver'): boolean => workers.includes(worker);

/** Account of the role, and what it may do in the whole cluster. */
export function addressesRBAC(scope: Construct, namespace: string, settings: AddressesSettings): void {
  const account = accountIn(namespace);
  new ManifestObject(scope, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { ...account, labels: ownLabels },
  });
  grant(scope, account, undefined, [
    rule('events.k8s.io', ['events'], ['create']),
    ...(has(settings, 'core') ? coreRules() : []),
    ...(has(settings, 'driver') ? driverRules() : []),
  ]);
  if (settings.leaseNamespace === undefined || settings.leaseNamespace === namespace)
    grant(scope, account, namespace, leaseRules(settings.workers));
}

/**
 * What it may do in namespaces of others, and in that of the placeholders. They are not there before everything else, so that
 * a courier could not deliver a Role into them: these are objects of the release.
 */
export function addressesGrants(
  namespace: string,
  settings: AddressesSettings,
  classes: readonly string[],
): JsonObject[] {
  const { leaseNamespace, metallb } = settings;
  const byNamespace = new Map<string, Rule[]>();
  const add = (where: string, rules: Rule[]): void => {
    byNamespace.set(where, [...(byNamespace.get(where) ?? []), ...rules]);
  };
  if (leaseNamespace !== undefined && leaseNamespace !== namespace) add(leaseNamespace, leaseRules(settings.workers));
  if (has(settings, 'driver')) {
    add(metallb.placeholderNamespace, placeholderRules());
    add(metallb.namespace, poolRules(classes));
  }
  return synthesize((scope) => {
    for (const [where, rules] of byNamespace) grant(scope, accountIn(namespace), where, rules);
  });
}
