/** The payloads that a cluster enforces, from the executor's own copies. */
import { apiVersion } from '../../constructs/api/constants.ts';
import { joinChunks } from '../../constructs/api/payload-chunks.ts';
import { decodePayload, type Payload } from '../../constructs/api/payload-codec.ts';
import type { KubeClient } from '../kube/client.ts';
import { readChunks } from '../source/chunks.ts';

/** Accepted payloads by release; a release without an accepted payload is missing, and so is one whose copy is gone. */
export async function acceptedPayloads(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<Map<string, Payload>> {
  const payloads = new Map<string, Payload>();
  const releases = await client.list({ apiVersion, kind: 'Release', namespace }, { signal });
  if (releases.type !== 'listed') return payloads;
  for (const release of releases.items) {
    const name = release.metadata.name ?? '';
    const actual = release.status?.actual;
    if (typeof actual !== 'string') continue;
    const chunks = await readChunks(client, { namespace, release: name, holds: 'retained' }, signal);
    const archive = chunks.type === 'read' ? joinChunks(actual, chunks.configMaps) : undefined;
    const payload = archive?.ok === true ? await decodePayload(archive.value) : undefined;
    if (payload?.ok === true) payloads.set(name, payload.value);
  }
  return payloads;
}
