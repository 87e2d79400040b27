import { type Digest, isDigest } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { formatReference, type Reference } from './reference.ts';
import type { RegistrySession } from './session.ts';
import { failed, imageTypes, indexTypes, maxManifestBytes, type RegistryOutcome } from './types.ts';

/** A manifest of any type as it stands in a registry or layout: its bytes decide, and are copied as they are. */
export interface RawManifest {
  readonly digest: Digest;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** What the bytes say; undefined when they are not a JSON object. */
  readonly content: JsonObject | undefined;
}

/** The type of a manifest that does not name it, as OCI allows: the lists in it tell. */
function typeByForm(content: JsonObject | undefined): string {
  const [index = '', image = ''] = [indexTypes[0], imageTypes[0]];
  return content?.manifests !== undefined ? index : content?.layers !== undefined ? image : '';
}

/** Reads the bytes of a manifest. @param announced media type that came along. */
export function rawManifest(bytes: Uint8Array, digest: Digest, announced: string): RawManifest {
  let content: unknown;
  try {
    content = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    content = undefined;
  }
  const known = isObject(content) ? content : undefined;
  const written = typeof known?.mediaType === 'string' ? known.mediaType : announced;
  const mediaType = written === '' ? typeByForm(known) : written;
  return { digest, mediaType, bytes, content: known };
}

/** The manifest that a tag or digest names, of whatever type; its digest is checked against the bytes. */
export async function pullManifest(
  session: RegistrySession,
  ref: Reference,
  mediaType: string | undefined,
  signal?: AbortSignal,
): Promise<RegistryOutcome<RawManifest>> {
  const what = formatReference(ref);
  const types = [...indexTypes, ...imageTypes, ...(mediaType === undefined ? [] : [mediaType])];
  const reply = await session.send(ref, {
    at: { path: `manifests/${ref.digest ?? ref.tag ?? 'latest'}` },
    headers: { accept: [...new Set(types), '*/*;q=0.1'].join(', ') },
    maxBytes: maxManifestBytes,
    // Where the bytes come from does not matter once their digest is known.
    redirects: ref.digest === undefined ? 'listed' : 'https',
    signal,
  });
  if (!reply.ok) return reply;
  const { status, digest, headers, body } = reply.value;
  if (status !== 200) return session.refusal(reply.value, what);
  const announced = headers.get('docker-content-digest');
  if (announced !== undefined && isDigest(announced) && announced !== digest)
    return failed('digestMismatch', `${what}: the registry announced ${announced}, the manifest is ${digest}`);
  if (ref.digest !== undefined && ref.digest !== digest)
    return failed('digestMismatch', `${what}: the manifest received is ${digest}`);
  return { ok: true, value: rawManifest(body, digest, headers.get('content-type')?.split(';')[0]?.trim() ?? '') };
}
