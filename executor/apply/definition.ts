/** Whether the objects of a kind that is not served can be counted as gone: only when the definition itself is. */
import { isObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';

const crd = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' } as const;

/**
 * Undefined when no CustomResourceDefinition of this kind exists, by uncached reads. Otherwise why its objects can not be
 * looked at now: the kind is discovered anew next time.
 */
export async function definitionGone(
  client: KubeClient,
  group: string,
  kind: string,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  const unread = (message: string): Problem => ({
    reason: 'ApiUnavailable',
    message: `whether kind ${kind} of group ${group} still has a definition is not known: ${message}`,
  });
  const listed = await client.list(crd, { signal, metadataOnly: true });
  if (listed.type !== 'listed') return unread(listed.message);
  for (const { metadata } of listed.items) {
    const { name = '' } = metadata;
    if (!name.endsWith(`.${group}`)) continue;
    const found = await client.get({ ...crd, name }, { signal });
    if (found.type === 'absent') continue;
    if (found.type !== 'found') return unread(found.message);
    const { names } = found.object.spec ?? {};
    if (!isObject(names) || names.kind !== kind) continue;
    client.forget();
    return {
      reason: 'KindAbsent',
      message: `kind ${kind} of group ${group} is not served, but its definition ${name} exists: what it had may come back`,
      object: `CustomResourceDefinition ${name}`,
      remedy: 'see why it is not Established; objects of it are counted as gone only when the definition is',
    };
  }
  return undefined;
}
