import type { Digest } from '../../constructs/lib/digest.ts';
import type { Reference } from './reference.ts';
import type { RegistrySession } from './session.ts';

/**
 * Asks a registry to take a blob over from another of its repositories. False when it would rather have it sent: a
 * registry may always say so, and need not say why.
 */
export async function mountBlob(
  session: RegistrySession,
  ref: Reference,
  digest: Digest,
  from: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const query = new URLSearchParams([
    ['mount', digest],
    ['from', from],
  ]);
  const reply = await session.send(ref, {
    at: { path: `blobs/uploads/?${query}` },
    method: 'POST',
    actions: 'pull,push',
    signal,
  });
  if (!reply.ok || reply.value.status === 201) return reply.ok;
  const location = reply.value.headers.get('location');
  // A session that nobody uses would stay open for days.
  if (reply.value.status === 202 && location !== undefined)
    await session.send(ref, {
      at: { url: new URL(location, `${session.baseUrl(ref.registry)}/`).href },
      method: 'DELETE',
      actions: 'pull,push',
      retry: false,
      signal,
    });
  return false;
}
