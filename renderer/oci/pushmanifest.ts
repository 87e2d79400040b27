import type { RawManifest } from './pullmanifest.ts';
import { type Reference, referenceName } from './reference.ts';
import type { RegistrySession } from './session.ts';
import type { RegistryOutcome } from './types.ts';

/**
 * Stores a manifest under its digest, or under a tag. Nothing is sent where the name already leads to these very bytes.
 * Everything that the manifest names must be there.
 */
export async function pushManifest(
  session: RegistrySession,
  ref: Reference,
  manifest: RawManifest,
  signal?: AbortSignal,
): Promise<RegistryOutcome<'present' | 'sent'>> {
  const selector = ref.tag ?? manifest.digest;
  const what = `${referenceName(ref)} ${selector}`;
  const common = { at: { path: `manifests/${selector}` }, actions: 'pull,push', signal } as const;
  const head = await session.send(ref, {
    ...common,
    method: 'HEAD',
    headers: { accept: `${manifest.mediaType}, */*` },
  });
  if (!head.ok) return head;
  if (head.value.status === 200) {
    // A digest can not lead to anything else; not every registry tells where a tag leads.
    const leadsTo = ref.tag === undefined ? manifest.digest : head.value.headers.get('docker-content-digest');
    if (leadsTo === manifest.digest) return { ok: true, value: 'present' };
  } else if (head.value.status !== 404) return session.refusal(head.value, what);
  const put = await session.send(ref, {
    ...common,
    method: 'PUT',
    headers: { 'content-type': manifest.mediaType },
    body: manifest.bytes,
  });
  if (!put.ok) return put;
  return put.value.status === 201 ? { ok: true, value: 'sent' } : session.refusal(put.value, what);
}
