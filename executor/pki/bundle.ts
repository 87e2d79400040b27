import { evidenceTrust, labels, managedByValue, managers } from '../../constructs/api/constants.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../kube/client.ts';
import type { FormerAuthority } from './rotation.ts';

/**
 * Whom executor and probes believe. Probes read it from ConfigMap `keelson-evidence-trust` in their namespace; the executor
 * takes nothing from there, since more people may write in that namespace than in its own.
 */

/** Somebody who is believed, and until when where it is a former one. */
export interface Believed {
  readonly id: string;
  readonly certificate: string;
  readonly until?: number;
}

/**
 * Whom to believe from now on. An authority that vanished without its succession, as one that was brought along does when it
 * is replaced, is believed until what it signed has expired.
 * @param wanted those of the Secret, the one that signs first.
 * @param dismissed ids of those whose succession is over.
 */
export function believe(
  before: readonly Believed[],
  wanted: readonly Pick<FormerAuthority, 'id' | 'certificate'>[],
  dismissed: ReadonlySet<string>,
  now: number,
  retireMs: number,
): Believed[] {
  const held = new Set(wanted.map(({ id }) => id));
  const former = before
    .filter(({ id }) => !held.has(id) && !dismissed.has(id))
    .map((one) => ({ ...one, until: one.until ?? now + retireMs }))
    .filter(({ until }) => until > now);
  return [...wanted.map(({ id, certificate }) => ({ id, certificate })), ...former];
}

/** Tells probes whom to believe; nothing is written when they know. @returns what went wrong. */
export async function publishBundle(
  client: KubeClient,
  namespace: string,
  authorities: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: evidenceTrust.name };
  const got = await client.get(ref, { signal });
  if (got.type !== 'found' && got.type !== 'absent') return got.message;
  const data = got.type === 'found' && isObject(got.object.data) ? got.object.data : {};
  if (data[evidenceTrust.key] === authorities) return undefined;
  const outcome = await client.apply(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: evidenceTrust.name, namespace, labels: { [labels.managedBy]: managedByValue } },
      data: { [evidenceTrust.key]: authorities },
    },
    { fieldManager: managers.objects, signal },
  );
  // Where there is no namespace, there is nobody to be told.
  if (outcome.type === 'namespaceMissing') return undefined;
  const written = outcome.type === 'created' || outcome.type === 'configured' || outcome.type === 'unchanged';
  return written ? undefined : outcome.message;
}
