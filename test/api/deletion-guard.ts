/** The policies of a cluster, as its system objects have them, on an API server. */
import { systemNamespace } from '../../constructs/api/constants.ts';
import { synthesize } from '../../constructs/k8s/manifest.ts';
import { admissionPolicies } from '../../constructs/k8s/policies.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { AdminClient } from '../apiserver/client.ts';

const group = '/apis/admissionregistration.k8s.io/v1';

/** Applies them; what it answers takes them away again. They are in force a moment later. */
export async function guardDeletions(
  admin: AdminClient,
  principals: { readonly courier: string; readonly admins: readonly string[] },
  namespaces: readonly string[],
): Promise<() => Promise<void>> {
  const spec = {
    executor: { namespace: systemNamespace },
    allow: { principals },
    delivery: { courier: 'flux' },
    deletionGuard: true,
  };
  const paths: string[] = [];
  for (const body of synthesize((scope) => void admissionPolicies(scope, spec as never, namespaces))) {
    const plural =
      body.kind === 'ValidatingAdmissionPolicy' ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings';
    const path = `${group}/${plural}/${(body.metadata as JsonObject).name}`;
    await admin.expect('PATCH', path, { type: 'application/apply-patch+yaml', query: { fieldManager: 'test' }, body });
    paths.push(path);
  }
  return async () => {
    for (const path of paths.reverse()) await admin.expect('DELETE', path);
  };
}
