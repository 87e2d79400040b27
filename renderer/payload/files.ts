import type { PayloadIndex } from '../../constructs/api/payload.ts';
import { payloadObjectId } from '../../constructs/api/payload.ts';
import { type ChunkConfigMap, chunkPayload } from '../../constructs/api/payload-chunks.ts';
import { encodePayload, verifyFiles } from '../../constructs/api/payload-codec.ts';
import { refuseProblems } from '../../constructs/lib/problems.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';
import type { BuiltPayload } from './build.ts';
import type { SignedIndex } from './sign.ts';

/**
 * Files of a payload in the rendered tree, by path below `payload/<release>`: the index, and one YAML file per object.
 * They are read back before they are returned: what people review is what the executor gets.
 * @throws ProblemError when a file does not read back to the digest of its object.
 */
export function payloadFiles(payload: BuiltPayload, signed: SignedIndex): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>([['index.json', signed.bytes]]);
  for (const entry of signed.index.content.phases.flatMap((phase) => phase.objects)) {
    const object = payload.objects.get(payloadObjectId(entry));
    if (object !== undefined) files.set(entry.yaml, Buffer.from(dumpYaml(object)));
  }
  const read = verifyFiles(files, 'tree');
  if (!read.ok)
    refuseProblems(read.problems.map((p) => ({ ...p, file: `payload/${payload.release}/${p.file ?? ''}` })));
  return files;
}

/** The ConfigMaps by which a courier brings the payload into the cluster. */
export async function payloadChunks(
  payload: BuiltPayload,
  index: PayloadIndex,
  namespace: string,
): Promise<ChunkConfigMap[]> {
  const archive = await encodePayload({ index, objects: payload.objects });
  return chunkPayload('payload', { release: payload.release, digest: index.digest, namespace }, archive);
}
