/** Whether what happened to one Release is news for those that depend on it. Pure. */
import { isObject } from '../../constructs/lib/json.ts';
import type { StoreChange } from '../kube/store.ts';
import type { KubeObject } from '../kube/types.ts';
import { conditionReadiness } from './readiness.ts';

/** Names that a Release says it depends on. */
function dependenciesOf(release: KubeObject): string[] {
  const list = isObject(release.spec) && Array.isArray(release.spec.dependsOn) ? release.spec.dependsOn : [];
  return list.filter(isObject).map((entry) => String(entry.name));
}

/**
 * Names of the Releases that may go on, now that this one changed: those that depend on it, when it came, went, or its
 * readiness moved. Mere progress wakes nobody: two Releases that fail would else wake each other for ever.
 */
export function dependentsToWake(change: StoreChange, releases: Iterable<KubeObject>): string[] {
  if (change.type === 'modified') {
    const [before, after] = [change.previous, change.object].map(
      (release) => conditionReadiness(release, 'Ready').state,
    );
    if (before === after) return [];
  }
  const name = change.object.metadata.name ?? '';
  return [...releases]
    .filter((release) => release.metadata.name !== name && dependenciesOf(release).includes(name))
    .map((release) => release.metadata.name ?? '');
}
