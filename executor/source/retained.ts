/** The executor's own copies of payloads: written once at acceptance, never by a courier, and the only ones it runs from. */
import { annotations, managers } from '../../constructs/api/constants.ts';
import { type ChunkConfigMap, chunkPayload } from '../../constructs/api/payload-chunks.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import { assemble, type ChunkRead, readChunks } from './chunks.ts';
import type { Fetched, PayloadSource, SourceRevision, WantedPayload } from './source.ts';

export interface RetainedStore extends PayloadSource {
  /** Stores the archive; what is stored already is left as it is. Answers what went wrong. */
  save(wanted: WantedPayload & Partial<SourceRevision>, archive: Uint8Array, signal: AbortSignal): Promise<Problem[]>;
  /** Deletes the oldest copies beyond `retain`, and never one of `keep`. Answers the digests that were dropped. */
  drop(release: string, keep: ReadonlySet<string>, retain: number, signal: AbortSignal): Promise<string[]>;
}

const withRevision = (chunk: ChunkConfigMap, revision: string): ChunkConfigMap => ({
  ...chunk,
  metadata: { ...chunk.metadata, annotations: { ...chunk.metadata.annotations, [annotations.revision]: revision } },
});

const digestOf = (chunk: ChunkRead): string => chunk.metadata.annotations?.[annotations.payload] ?? '';

/** Digests of stored payloads that may go: all but `keep` and the newest `retain`. Pure. */
export function surplus(chunks: readonly ChunkRead[], keep: ReadonlySet<string>, retain: number): Set<string> {
  const newest = new Map<string, string>();
  for (const chunk of chunks) {
    const digest = digestOf(chunk);
    const known = newest.get(digest);
    if (known === undefined || chunk.created > known) newest.set(digest, chunk.created);
  }
  const byAge = [...newest].sort(([da, a], [db, b]) => (a === b ? (da < db ? -1 : 1) : a < b ? 1 : -1));
  const kept = new Set([...byAge.map(([digest]) => digest).filter((digest) => keep.has(digest))]);
  for (const [digest] of byAge) if (kept.size < retain) kept.add(digest);
  return new Set(byAge.map(([digest]) => digest).filter((digest) => !kept.has(digest)));
}

/** The store in the ConfigMaps of one namespace. */
export function retainedStore(client: KubeClient, namespace: string): RetainedStore {
  const read = (release: string, signal: AbortSignal) =>
    readChunks(client, { namespace, release, holds: 'retained' }, signal);

  async function fetch({ release, digest }: WantedPayload, signal: AbortSignal): Promise<Fetched> {
    return assemble(digest, await read(release, signal));
  }

  async function save(
    { release, digest, revision }: WantedPayload & Partial<SourceRevision>,
    archive: Uint8Array,
    signal: AbortSignal,
  ): Promise<Problem[]> {
    const problems: Problem[] = [];
    for (const plain of chunkPayload('retained', { release, digest, namespace }, archive)) {
      const chunk = revision === undefined ? plain : withRevision(plain, revision);
      const outcome = await client.apply(chunk as unknown as KubeObject, { fieldManager: managers.objects, signal });
      if (outcome.type !== 'created' && outcome.type !== 'configured' && outcome.type !== 'unchanged')
        problems.push({
          reason: outcome.type === 'unavailable' ? 'ApiUnavailable' : 'RetainedCopyFailed',
          message: outcome.message,
          object: `ConfigMap ${namespace}/${chunk.metadata.name}`,
        });
    }
    return problems;
  }

  async function drop(
    release: string,
    keep: ReadonlySet<string>,
    retain: number,
    signal: AbortSignal,
  ): Promise<string[]> {
    const chunks = await read(release, signal);
    if (chunks.type === 'unavailable') return [];
    const going = surplus(chunks.configMaps, keep, retain);
    for (const chunk of chunks.configMaps.filter((c) => going.has(digestOf(c))))
      await client.delete(
        { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: chunk.metadata.name },
        { uid: chunk.uid, propagation: 'Background', signal },
      );
    return [...going];
  }

  return { fetch, save, drop };
}
