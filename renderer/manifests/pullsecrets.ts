import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { getAt, isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { describeObject, identityOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DomainRelease, ReleaseObject } from '../domain.ts';
import { findImages } from '../images/find.ts';
import { pullSecretsOf } from '../oci/mirrors.ts';

const namesIn = (holder: unknown): string[] => {
  const list = isObject(holder) && Array.isArray(holder.imagePullSecrets) ? holder.imagePullSecrets : [];
  return list.flatMap((entry) => (isObject(entry) && typeof entry.name === 'string' ? [entry.name] : []));
};

/** The account of a pod, when it comes with the same release; others are not ours to look into. */
function accountOf(pod: JsonObject, object: JsonObject, objects: readonly JsonObject[]): JsonObject | undefined {
  const { namespace } = identityOf(object);
  return objects.find((candidate) => {
    const identity = identityOf(candidate);
    return (
      identity.kind === 'ServiceAccount' &&
      identity.namespace === namespace &&
      identity.name === (pod.serviceAccountName ?? 'default')
    );
  });
}

/**
 * Pods of plain manifests that pull through a mirror with a pull Secret and name it nowhere. Manifests are theirs who
 * write them: nothing is added, and whoever forgot is told before nodes are refused.
 * @param release with its images pinned.
 */
export function pullSecretWarnings(release: DomainRelease, rules: readonly RegistryMirror[]): Problem[] {
  if (release.domain !== 'manifests') return [];
  const sources: ReleaseObject[] = release.phases
    .flatMap((phase) => phase.objects)
    .filter(({ absent }) => absent !== true);
  const objects = sources.map(({ object }) => object);
  const warnings = new Map<string, Problem>();
  for (const { index, pointer, text, rule } of findImages(objects, { repositories: [], imageHosts: [] })) {
    const [source, object] = [sources[index], objects[index]];
    if (rule !== 'field' || source === undefined || object === undefined) continue;
    const at = pointer.split('/').slice(0, -3).join('/');
    const pod = getAt(object, at);
    if (!isObject(pod)) continue;
    const named = new Set([...namesIn(pod), ...namesIn(accountOf(pod, object, objects))]);
    for (const secret of pullSecretsOf(text, rules).filter((name) => !named.has(name)))
      warnings.set(`${index} ${secret}`, {
        reason: 'PullSecretUnnamed',
        message: `its images come from a mirror with pull Secret ${secret}, which neither it nor its ServiceAccount names`,
        file: source.origin,
        ...(source.line === undefined ? {} : { line: source.line }),
        object: describeObject(identityOf(object)),
        path: `${at.slice(1).replaceAll('/', '.')}.imagePullSecrets`,
        remedy: `add {name: ${secret}} there, or to its ServiceAccount`,
      });
  }
  return [...warnings.values()];
}
