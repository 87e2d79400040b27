import type { Digest } from '../../constructs/lib/digest.ts';
import { type Reference, referenceName } from './reference.ts';
import type { RegistrySession } from './session.ts';
import type { RegistryOutcome } from './types.ts';

/** Whether a repository has a blob. */
export async function findBlob(
  session: RegistrySession,
  ref: Reference,
  digest: Digest,
  signal?: AbortSignal,
): Promise<RegistryOutcome<boolean>> {
  const reply = await session.send(ref, {
    at: { path: `blobs/${digest}` },
    method: 'HEAD',
    actions: 'pull,push',
    redirects: 'https',
    signal,
  });
  if (!reply.ok) return reply;
  if (reply.value.status === 200) return { ok: true, value: true };
  return reply.value.status === 404
    ? { ok: true, value: false }
    : session.refusal(reply.value, `${referenceName(ref)}@${digest}`);
}
