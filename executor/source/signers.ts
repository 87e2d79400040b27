/** Who signed what the cluster's Releases ask for. */
import { apiVersion } from '../../constructs/api/constants.ts';
import { decodePayload } from '../../constructs/api/payload-codec.ts';
import type { ReleaseSpec } from '../../constructs/api/release.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { assemble, readChunks } from './chunks.ts';

export interface SignedRelease {
  readonly release: string;
  readonly digest: string;
  /** Undefined: the payload is unsigned, or nowhere in the cluster. */
  readonly keyId: string | undefined;
}

/** Key ids of the payloads that Releases ask for: as delivered, or as retained where there is no inbox. */
export async function readSigners(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<{ readonly releases: SignedRelease[] } | { readonly problem: Problem }> {
  const listed = await client.list({ apiVersion, kind: 'Release', namespace }, { signal });
  // Before the first bootstrap there are no Releases, and no kind of them.
  if (listed.type === 'kindAbsent') return { releases: [] };
  if (listed.type !== 'listed') return { problem: { reason: 'ReadFailed', message: listed.message } };
  const releases: SignedRelease[] = [];
  for (const { metadata, spec } of listed.items) {
    const { digest } = (spec as unknown as ReleaseSpec).payload;
    const release = metadata.name ?? '';
    const keyId =
      (await keyOf(client, namespace, { release, digest, holds: 'payload' }, signal)) ??
      (await keyOf(client, namespace, { release, digest, holds: 'retained' }, signal));
    releases.push({ release, digest, keyId });
  }
  return { releases };
}

async function keyOf(
  client: KubeClient,
  namespace: string,
  { release, digest, holds }: { release: string; digest: string; holds: 'payload' | 'retained' },
  signal: AbortSignal,
): Promise<string | undefined> {
  const got = assemble(digest, await readChunks(client, { namespace, release, holds }, signal));
  if (got.type !== 'archive') return undefined;
  const decoded = await decodePayload(got.archive);
  return decoded.ok ? decoded.value.index.signature?.keyId : undefined;
}
