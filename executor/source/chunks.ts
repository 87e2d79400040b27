/** Reads the ConfigMaps that hold archives of one release, whichever of the two kinds of copies they are. */
import { annotations, labels } from '../../constructs/api/constants.ts';
import { joinChunks } from '../../constructs/api/payload-chunks.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Fetched, SourceRevision } from './source.ts';

export type ChunksRead =
  | { readonly type: 'read'; readonly configMaps: readonly ChunkRead[] }
  | { readonly type: 'unavailable'; readonly problem: Problem };

/** A ConfigMap as the payload format reads it, and what deleting it takes. */
export interface ChunkRead {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly binaryData?: Readonly<Record<string, string>>;
  readonly uid: string;
  /** RFC 3339. */
  readonly created: string;
}

function asChunk(object: KubeObject): ChunkRead {
  const { name, uid, annotations, creationTimestamp } = object.metadata;
  const { binaryData } = object as { binaryData?: Readonly<Record<string, string>> };
  return {
    metadata: { name: name ?? '', ...(annotations === undefined ? {} : { annotations }) },
    ...(binaryData === undefined ? {} : { binaryData }),
    uid: uid ?? '',
    created: typeof creationTimestamp === 'string' ? creationTimestamp : '',
  };
}

/** Lists the chunks of one release. */
export async function readChunks(
  client: KubeClient,
  target: { readonly namespace: string; readonly release: string; readonly holds: 'payload' | 'retained' },
  signal: AbortSignal,
): Promise<ChunksRead> {
  const listed = await client.list(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      namespace: target.namespace,
      labelSelector: `${labels.holds}=${target.holds},${labels.release}=${target.release}`,
    },
    { signal },
  );
  if (listed.type === 'listed') return { type: 'read', configMaps: listed.items.map(asChunk) };
  return { type: 'unavailable', problem: { reason: 'ApiUnavailable', message: listed.message } };
}

/** Which revision of a source a copy was made from, where it says so. */
function revisionOf(digest: string, chunks: readonly ChunkRead[]): Partial<SourceRevision> {
  const notes = chunks.map(({ metadata }) => metadata.annotations ?? {});
  const revision = notes.find((each) => each[annotations.payload] === digest)?.[annotations.revision];
  return revision === undefined ? {} : { revision };
}

/** The archive of a payload out of the chunks of its release. */
export function assemble(digest: string, chunks: ChunksRead): Fetched {
  if (chunks.type === 'unavailable') return chunks;
  const joined = joinChunks(digest, chunks.configMaps);
  if (joined.ok) return { type: 'archive', archive: joined.value, ...revisionOf(digest, chunks.configMaps) };
  const [first] = joined.problems;
  if (first?.reason === 'PayloadIncomplete') return { type: 'incomplete', problem: first };
  return { type: 'broken', problems: joined.problems };
}
