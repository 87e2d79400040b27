/** What is live of a release: one list per kind, by label, metadata alone or whole. */
import { labels } from '../../constructs/api/constants.ts';
import type { Ledger } from '../../constructs/api/ledger.ts';
import { type JsonObject, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import { groupOf, objectId, parseObjectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KindRef, type KubeObject, refOf } from '../kube/types.ts';
import { eachLimited } from './concurrency.ts';
import type { Item } from './items.ts';

/** A kind and the namespaces in which its objects are; the empty string stands for cluster scope. */
export interface KindInUse extends KindRef {
  readonly namespaces: ReadonlySet<string>;
}

export type LiveRead =
  | {
      readonly ok: true;
      readonly live: ReadonlyMap<string, KubeObject>;
      /** Kinds, as `apiVersion kind`, that may only be listed namespace by namespace. */
      readonly narrow: ReadonlySet<string>;
    }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Kinds of items, each once. */
export function kindsOf(items: readonly Pick<Item, 'entry'>[]): KindInUse[] {
  return kindsInUse(items.map(({ entry }) => entry));
}

/** Kinds of objects, each once, with the namespaces they are in. */
export function kindsInUse(objects: readonly (KindRef & { readonly namespace?: string | undefined })[]): KindInUse[] {
  const kinds = new Map<string, KindInUse & { namespaces: Set<string> }>();
  for (const entry of objects) {
    const key = `${entry.apiVersion} ${entry.kind}`;
    const known = kinds.get(key) ?? { apiVersion: entry.apiVersion, kind: entry.kind, namespaces: new Set<string>() };
    known.namespaces.add(entry.namespace ?? '');
    kinds.set(key, known);
  }
  return [...kinds.values()];
}

/** Kinds that only the ledger still names, as group, kind and namespaces. */
export function ledgerOnlyKinds(
  ledger: Ledger,
  known: readonly KindRef[],
): { group: string; kind: string; namespaces: Set<string> }[] {
  const covered = new Set(known.map((kind) => `${groupOf(kind.apiVersion)}/${kind.kind}`));
  const kinds = new Map<string, { group: string; kind: string; namespaces: Set<string> }>();
  for (const id of ledger.keys()) {
    const { group, kind, namespace } = parseObjectId(id);
    const key = `${group}/${kind}`;
    if (covered.has(key)) continue;
    const entry = kinds.get(key) ?? { group, kind, namespaces: new Set<string>() };
    entry.namespaces.add(namespace ?? '');
    kinds.set(key, entry);
  }
  return [...kinds.values()];
}

/**
 * The version under which a group serves a kind now, its preferred one first; undefined when it serves none, which says
 * nothing yet about whether the kind is gone.
 */
export async function servedKind(
  client: KubeClient,
  group: string,
  kind: string,
  signal: AbortSignal,
): Promise<{ readonly found: KindRef | undefined } | { readonly problem: Problem }> {
  if (group === '') return { found: { apiVersion: 'v1', kind } };
  const answer = await client.getPath(`/apis/${encodeURIComponent(group)}`, { signal });
  if (answer.type === 'absent') return { found: undefined };
  if (answer.type !== 'text') return { problem: { reason: 'ApiUnavailable', message: answer.message } };
  for (const apiVersion of versionsOf(objectOf(JSON.parse(answer.text)))) {
    const resource = await client.resource({ apiVersion, kind }, { signal });
    if (resource.type === 'resource') return { found: { apiVersion, kind } };
    if (resource.type !== 'kindAbsent') return { problem: { reason: 'ApiUnavailable', message: resource.message } };
  }
  return { found: undefined };
}

/** Versions of an `APIGroup`, the one that it prefers first. */
export function versionsOf({ preferredVersion, versions }: JsonObject): string[] {
  const all = [objectOf(preferredVersion), ...objectsOf(versions)].map(({ groupVersion }) => groupVersion);
  return [...new Set(all)].filter((version) => typeof version === 'string');
}

export interface LiveQuery {
  readonly release: string;
  readonly kinds: readonly KindInUse[];
  /** Whole objects rather than their metadata. */
  readonly whole?: boolean;
}

/**
 * The live objects of a release by id. A kind that is not served has none. Where a list over all namespaces is denied,
 * each namespace is listed.
 */
export async function readLive(client: KubeClient, query: LiveQuery, signal: AbortSignal): Promise<LiveRead> {
  const live = new Map<string, KubeObject>();
  const narrow = new Set<string>();
  const problems: Problem[] = [];
  await eachLimited(query.kinds, 8, async (kind) => {
    const outcome = await readKind(client, query, kind, signal);
    if ('problem' in outcome) problems.push(outcome.problem);
    else for (const object of outcome.objects) live.set(objectId(refOf(object)), object);
    if ('narrow' in outcome) narrow.add(`${kind.apiVersion} ${kind.kind}`);
  });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, live, narrow };
}

type KindRead = { readonly objects: readonly KubeObject[]; readonly narrow?: true } | { readonly problem: Problem };

async function readKind(client: KubeClient, query: LiveQuery, kind: KindInUse, signal: AbortSignal): Promise<KindRead> {
  const all = await readPlace(client, query, kind, undefined, signal);
  if (!('denied' in all)) return all;
  const objects: KubeObject[] = [];
  for (const namespace of kind.namespaces) {
    if (namespace === '') return { problem: { reason: 'Forbidden', message: all.denied } };
    const one = await readPlace(client, query, kind, namespace, signal);
    if ('denied' in one) return { problem: { reason: 'Forbidden', message: one.denied } };
    if ('problem' in one) return one;
    objects.push(...one.objects);
  }
  return { objects, narrow: true };
}

async function readPlace(
  client: KubeClient,
  query: LiveQuery,
  { apiVersion, kind }: KindRef,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<KindRead | { readonly denied: string }> {
  const listed = await client.list(
    {
      apiVersion,
      kind,
      labelSelector: `${labels.release}=${query.release}`,
      ...(namespace === undefined ? {} : { namespace }),
    },
    { signal, metadataOnly: query.whole !== true },
  );
  switch (listed.type) {
    case 'listed':
      return { objects: listed.items };
    case 'kindAbsent':
    case 'namespaceMissing':
      return { objects: [] };
    case 'forbidden':
      return { denied: listed.message };
    default:
      return { problem: { reason: 'ApiUnavailable', message: listed.message } };
  }
}
