import { sha256Digest } from '../lib/digest.ts';
import type { Problem } from '../lib/problems.ts';
import { type ReleaseConfigMap, releaseMetadata } from './configmap.ts';
import { annotations, configMapNames, limits } from './constants.ts';
import type { Shaped } from './shape.ts';

/** Archives in ConfigMaps: the inbox that couriers fill, and the retained copies that the executor runs from. */

export interface ChunkConfigMap extends ReleaseConfigMap {
  readonly immutable?: true;
  readonly binaryData: Readonly<Record<string, string>>;
}

/** Key of the one member of `binaryData`. */
export const chunkKey = 'payload';

/**
 * ConfigMaps that carry an archive, in order. Each holds at most 128 KiB before base64, well below the limit that
 * client-side apply puts on an object.
 * @param holds `payload` for the inbox, `retained` for the executor's own immutable copy.
 */
export function chunkPayload(
  holds: 'payload' | 'retained',
  target: { release: string; digest: string; namespace: string },
  archive: Uint8Array,
): ChunkConfigMap[] {
  const count = Math.max(1, Math.ceil(archive.byteLength / limits.chunkBytes));
  const archiveDigest = sha256Digest(archive);
  return Array.from({ length: count }, (_, n) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      ...releaseMetadata(holds, target, configMapNames[holds](target.release, target.digest, n)),
      annotations: {
        [annotations.payload]: target.digest,
        [annotations.chunk]: `${n}/${count}`,
        [annotations.archive]: archiveDigest,
      },
    },
    ...(holds === 'retained' ? { immutable: true as const } : {}),
    binaryData: {
      [chunkKey]: Buffer.from(archive.subarray(n * limits.chunkBytes, (n + 1) * limits.chunkBytes)).toString('base64'),
    },
  }));
}

/** What is read of a ConfigMap from the API server. */
export interface ReadConfigMap {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> | undefined };
  readonly binaryData?: Readonly<Record<string, string>> | undefined;
}

/**
 * Joins the chunks of one payload. Chunks of other payloads among the input are ignored.
 * A chunk that has not come yet is reason `PayloadIncomplete`, which waits; everything else is `PayloadIntegrity`.
 */
export function joinChunks(digest: string, configMaps: readonly ReadConfigMap[]): Shaped<Uint8Array> {
  const chunks = configMaps.filter((c) => c.metadata.annotations?.[annotations.payload] === digest);
  const archives = new Set(chunks.map((c) => c.metadata.annotations?.[annotations.archive]));
  const counts = new Set(chunks.map((c) => c.metadata.annotations?.[annotations.chunk]?.split('/')[1]));
  if (chunks.length === 0) return incomplete(`no chunk of payload ${digest} has come yet`);
  if (archives.size > 1 || counts.size > 1) return incomplete('chunks of two versions of the payload are mixed');
  const count = Number([...counts][0]);
  if (!Number.isInteger(count) || count < 1 || count * limits.chunkBytes > limits.archiveBytes + limits.chunkBytes)
    return broken('the number of chunks is not valid', chunks[0]?.metadata.name);
  const parts: Uint8Array[] = [];
  for (let n = 0; n < count; n++) {
    const found = chunks.filter((c) => c.metadata.annotations?.[annotations.chunk] === `${n}/${count}`);
    const [chunk] = found;
    if (chunk === undefined) return incomplete(`chunk ${n} of ${count} has not come yet`);
    if (found.length > 1) return broken(`chunk ${n} of ${count} occurs twice`, found[1]?.metadata.name);
    const bytes = Buffer.from(chunk.binaryData?.[chunkKey] ?? '', 'base64');
    if (bytes.byteLength > limits.chunkBytes) return broken('the chunk is too large', chunk.metadata.name);
    parts.push(bytes);
  }
  const archive = Buffer.concat(parts);
  if (sha256Digest(archive) !== [...archives][0]) return broken('the chunks do not have the sha256 that they state');
  return { ok: true, value: archive };
}

const problem = (reason: string, message: string, object?: string): { ok: false; problems: Problem[] } => ({
  ok: false,
  problems: [{ reason, message, ...(object === undefined ? {} : { object: `ConfigMap ${object}` }) }],
});
const incomplete = (message: string) => problem('PayloadIncomplete', message);
const broken = (message: string, object?: string) => problem('PayloadIntegrity', message, object);
