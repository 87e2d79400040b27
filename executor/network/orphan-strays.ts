/**
 * What an installation owns and its ledger does not name: an adoption that was cut off, a removal that kept it, or an
 * uninstall has taken it out. The garbage collector knows owners alone, so that it would take these along.
 */
import { labels } from '../../constructs/api/constants.ts';
import { objectsOf } from '../../constructs/lib/json.ts';
import { groupOf, objectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { eachLimited } from '../apply/concurrency.ts';
import { versionsOf } from '../apply/live.ts';
import { parseObject } from '../kube/classify.ts';
import type { KubeClient } from '../kube/client.ts';
import { readResourceList } from '../kube/discovery.ts';
import type { KindRef, ObjectRef } from '../kube/types.ts';
import { isOwnedBy } from './disown.ts';

interface Stray {
  readonly id: string;
  readonly ref: ObjectRef;
}

interface Asked {
  readonly client: KubeClient;
  readonly installationUID: string;
  /** Owners reach no further than their own namespace. */
  readonly installationNamespace: string;
  /** Ids that the ledger names. */
  readonly known: ReadonlySet<string>;
}

/** Versions of all groups, that which each prefers first, from an `APIGroupList`. Pure. */
export const groupVersions = (text: string): string[] => objectsOf(parseObject(text)?.groups).flatMap(versionsOf);

/** Kinds that live in namespaces and can be listed and written, from an `APIResourceList`. Pure. */
export const namespacedKinds = (apiVersion: string, text: string): KindRef[] =>
  [...readResourceList(apiVersion, parseObject(text) ?? {}).values()]
    .filter(({ namespaced, verbs }) => namespaced && verbs.includes('list') && verbs.includes('patch'))
    .map(({ kind }) => ({ apiVersion, kind }));

const untold = (what: string, message: string): Problem => ({
  reason: 'ApiUnavailable',
  message: `what the installation owns is not known without ${what}: ${message}`,
  object: what,
  remedy: 'the installation stays until this is answered; a broken APIService has to be mended or removed',
});

/** Every kind of which an installation could own objects, in one version each. */
async function kindsServed(client: KubeClient, signal: AbortSignal): Promise<KindRef[] | Problem> {
  const groups = await client.getPath('/apis', { signal });
  if (groups.type !== 'text')
    return untold('/apis', groups.type === 'absent' ? 'the API server serves none' : groups.message);
  const kinds = new Map<string, KindRef>();
  for (const apiVersion of ['v1', ...groupVersions(groups.text)]) {
    const path = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
    const answer = await client.getPath(path, { signal });
    // A group that is taken away meanwhile has no objects.
    if (answer.type === 'absent') continue;
    if (answer.type !== 'text') return untold(path, answer.message);
    for (const one of namespacedKinds(apiVersion, answer.text)) {
      const key = `${groupOf(apiVersion)}/${one.kind}`;
      if (!kinds.has(key)) kinds.set(key, one);
    }
  }
  return [...kinds.values()];
}

/**
 * Objects that carry the label of the installation, name it as their owner, and are not in the ledger. A kind that may not
 * be listed is passed over: this account delivers none of it, since every kind that it delivers it may list.
 */
export async function findStrays(
  { client, installationUID, installationNamespace, known }: Asked,
  signal: AbortSignal,
): Promise<{ readonly strays: readonly Stray[]; readonly problems: readonly Problem[] }> {
  const kinds = await kindsServed(client, signal);
  if (!Array.isArray(kinds)) return { strays: [], problems: [kinds] };
  const strays: Stray[] = [];
  const problems: Problem[] = [];
  await eachLimited(kinds, 8, async (kind) => {
    const labelSelector = `${labels.installationUID}=${installationUID}`;
    const selection = { ...kind, namespace: installationNamespace, labelSelector };
    const listed = await client.list(selection, { signal, metadataOnly: true });
    if (['kindAbsent', 'namespaceMissing', 'forbidden'].includes(listed.type)) return;
    if (listed.type !== 'listed') problems.push(untold(`${kind.apiVersion} ${kind.kind}`, listed.message));
    else
      for (const { metadata } of listed.items) {
        const ref = { ...kind, namespace: installationNamespace, name: metadata.name ?? '' };
        const id = objectId(ref);
        if (isOwnedBy(metadata, installationUID) && !known.has(id)) strays.push({ id, ref });
      }
  });
  return { strays: strays.sort((a, b) => (a.id < b.id ? -1 : 1)), problems };
}
