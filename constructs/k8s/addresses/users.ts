import { ipAddressKind } from '../../api/kinds/ipaddress.ts';
import { ipAddressClaimKind } from '../../api/kinds/ipaddressclaim.ts';
import { ipAddressClassKind } from '../../api/kinds/ipaddressclass.ts';
import type { Kind } from '../../api/kinds/kind.ts';
import type { JsonObject } from '../../lib/json.ts';
import { rbacVersion } from '../binding.ts';
import { rule } from '../rbac.ts';
import { ownLabels } from '../system.ts';

/**
 * Roles for people, two for each kind. Who may edit in a namespace may edit claims there, and who may read may read them.
 * Addresses and classes are of the whole cluster: they are read by those who may read in all of it, and are edited by nobody
 * to whom an administrator did not bind the role.
 */

const verbs = {
  viewer: ['get', 'list', 'watch'],
  editor: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'],
} as const;

function role(kind: Kind, what: keyof typeof verbs, aggregated: readonly string[]): JsonObject {
  const into = aggregated.map((name) => [`rbac.authorization.k8s.io/aggregate-to-${name}`, 'true']);
  return {
    apiVersion: rbacVersion,
    kind: 'ClusterRole',
    metadata: { name: `keelson-${kind.singular}-${what}`, labels: { ...ownLabels, ...Object.fromEntries(into) } },
    rules: [rule(kind.group, [kind.plural], [...verbs[what]])],
  };
}

export const userRoles = (): JsonObject[] => [
  role(ipAddressClaimKind, 'editor', ['admin', 'edit']),
  role(ipAddressClaimKind, 'viewer', ['view']),
  ...[ipAddressKind, ipAddressClassKind].flatMap((kind) => [role(kind, 'editor', []), role(kind, 'viewer', ['view'])]),
];
