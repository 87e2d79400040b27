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

/** How many objects a Release has, as its status tells. */
function holdings(release: KubeObject | undefined): number {
  const ledger = isObject(release?.status) ? release.status.ledger : undefined;
  return isObject(ledger) && typeof ledger.count === 'number' ? ledger.count : 0;
}

/** Whether a Release waits for an object that another one has. */
function waitsForObject(release: KubeObject): boolean {
  const conditions = isObject(release.status) ? release.status.conditions : undefined;
  const all = Array.isArray(conditions) ? conditions.filter(isObject) : [];
  return all.some(({ type, reason }) => type === 'Accepted' && reason === 'OwnedByAnother');
}

/**
 * Names of the Releases that may go on, now that this one changed: those that depend on it, when it came, went, or its
 * readiness moved; those that wait for an object of another, when this one gave some up. Mere progress wakes nobody: two
 * Releases that fail would else wake each other for ever.
 */
export function dependentsToWake(change: StoreChange, releases: Iterable<KubeObject>): string[] {
  const name = change.object.metadata.name ?? '';
  const others = [...releases].filter((release) => release.metadata.name !== name);
  const nameOf = (release: KubeObject): string => release.metadata.name ?? '';
  const moved =
    change.type !== 'modified' ||
    conditionReadiness(change.previous, 'Ready').state !== conditionReadiness(change.object, 'Ready').state;
  const gaveUp = change.type === 'modified' && holdings(change.object) < holdings(change.previous);
  return others
    .filter((release) => (moved && dependenciesOf(release).includes(name)) || (gaveUp && waitsForObject(release)))
    .map(nameOf);
}
