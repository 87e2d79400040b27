/** The executor's own copies of payloads: written once at acceptance, never by a courier, and the only ones it runs from. */
import { annotations, configMapNames, managers } from '../../constructs/api/constants.ts';
import { type ChunkConfigMap, chunkKey, chunkPayload } from '../../constructs/api/payload-chunks.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { eachLimited } from '../apply/concurrency.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import { assemble, type ChunkRead, readChunks } from './chunks.ts';
import type { Fetched, PayloadSource, SourceRevision, WantedPayload } from './source.ts';

export interface RetainedStore extends PayloadSource {
  /** Stores the archive; what is stored already is left as it is, and what is damaged is replaced. Answers what went wrong. */
  save(wanted: WantedPayload & Partial<SourceRevision>, archive: Uint8Array, signal: AbortSignal): Promise<Problem[]>;
  /** Deletes the oldest copies beyond `retain`, and never one of `keep`. Answers the digests that were dropped. */
  drop(release: string, keep: ReadonlySet<string>, retain: number, signal: AbortSignal): Promise<string[]>;
}

/** How many chunks are stored at once. */
const sideBySide = 4;

const withRevision = (chunk: ChunkConfigMap, revision: string): ChunkConfigMap => ({
  ...chunk,
  metadata: { ...chunk.metadata, annotations: { ...chunk.metadata.annotations, [annotations.revision]: revision } },
});

const digestOf = (chunk: ChunkRead): string => chunk.metadata.annotations?.[annotations.payload] ?? '';

/** Whether a chunk is a part of a payload's copy, by its mark or by its name: either may have been taken off. */
const belongs = (chunk: ChunkRead, release: string, digest: string): boolean =>
  digestOf(chunk) === digest ||
  chunk.metadata.name.startsWith(configMapNames.retained(release, digest, 0).replace(/0$/, ''));

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

  /** Nothing kept is `incomplete`; a copy of which only a part is good is `broken`. */
  async function fetch({ release, digest }: WantedPayload, signal: AbortSignal): Promise<Fetched> {
    const chunks = await read(release, signal);
    const found = assemble(digest, chunks);
    if (found.type === 'archive' || chunks.type === 'unavailable') return found;
    const [first] = chunks.configMaps.filter((chunk) => belongs(chunk, release, digest));
    if (first === undefined) return found;
    const [why] = 'problems' in found ? found.problems : [found.problem];
    return {
      type: 'broken',
      problems: [
        {
          reason: 'RetainedCopyDamaged',
          message: `the retained copy of payload ${digest} can not be used: ${why?.message ?? 'it is not whole'}`,
          object: `ConfigMap ${namespace}/${first.metadata.name}`,
          remedy: 'deliver that payload again: the copy is made anew from the inbox',
        },
      ],
    };
  }

  /** Copies are immutable: one that differs from what is to be stored can only go. */
  async function clear(chunks: readonly ChunkRead[], signal: AbortSignal): Promise<Problem[]> {
    const problems: Problem[] = [];
    for (const { metadata, uid } of chunks) {
      const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: metadata.name };
      const outcome = await client.delete(ref, { uid, propagation: 'Background', signal });
      if (outcome.type !== 'deleted' && outcome.type !== 'absent')
        problems.push({
          reason: 'RetainedCopyFailed',
          message: `the damaged copy does not go: ${outcome.type}`,
          object: `ConfigMap ${namespace}/${metadata.name}`,
        });
    }
    return problems;
  }

  async function save(
    { release, digest, revision }: WantedPayload & Partial<SourceRevision>,
    archive: Uint8Array,
    signal: AbortSignal,
  ): Promise<Problem[]> {
    const wanted = chunkPayload('retained', { release, digest, namespace }, archive);
    const standing = await read(release, signal);
    if (standing.type === 'unavailable') return [standing.problem];
    const content = new Map(wanted.map(({ metadata, binaryData }) => [metadata.name, binaryData[chunkKey]]));
    const damaged = standing.configMaps
      .filter((chunk) => belongs(chunk, release, digest))
      .filter(({ metadata, binaryData }) => content.get(metadata.name) !== (binaryData?.[chunkKey] ?? ''));
    const problems = await clear(damaged, signal);
    await eachLimited(wanted, sideBySide, async (plain) => {
      const chunk = revision === undefined ? plain : withRevision(plain, revision);
      const outcome = await client.apply(chunk as unknown as KubeObject, {
        fieldManager: managers.objects,
        metadataOnly: true,
        signal,
      });
      if (outcome.type !== 'created' && outcome.type !== 'configured' && outcome.type !== 'unchanged')
        problems.push({
          reason: outcome.type === 'unavailable' ? 'ApiUnavailable' : 'RetainedCopyFailed',
          message: outcome.message,
          object: `ConfigMap ${namespace}/${chunk.metadata.name}`,
        });
    });
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
