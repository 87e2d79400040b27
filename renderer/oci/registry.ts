import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { isDigest } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { HttpClient, HttpReply } from '../http/types.ts';
import type { CredentialStore } from './credentials.ts';
import { mirrorReference, mirrorRuleFor } from './mirrors.ts';
import { formatReference, type Reference, referenceName } from './reference.ts';
import { openSession } from './session.ts';
import { failed, imageTypes, indexTypes, type Manifest, maxManifestBytes, type RegistryOutcome } from './types.ts';

export interface RegistryClientOptions {
  readonly http: HttpClient;
  readonly credentials: CredentialStore;
  /** Mirror rules of the cluster; they decide where every reference is really read from. */
  readonly registries?: readonly RegistryMirror[];
}

/** Reads manifests and blobs. References are given as specs write them; mirrors are applied inside. */
export interface RegistryClient {
  /** The manifest or index that a tag or digest names; its digest is checked against the bytes, the header and the reference. */
  manifest(ref: Reference, signal?: AbortSignal): Promise<RegistryOutcome<Manifest>>;
  /** A blob of a repository, at most `maxBytes`, its digest checked. */
  blob(ref: Reference, digest: string, maxBytes: number, signal?: AbortSignal): Promise<RegistryOutcome<Uint8Array>>;
  /** Whether a mirror rule covers the name. */
  isMirrored(ref: Reference): boolean;
}

function readManifest(reply: HttpReply, ref: Reference): RegistryOutcome<Manifest> {
  const what = formatReference(ref);
  const announced = reply.headers.get('docker-content-digest');
  if (announced !== undefined && isDigest(announced) && announced !== reply.digest)
    return failed('digestMismatch', `${what}: the registry announced ${announced}, the manifest is ${reply.digest}`);
  if (ref.digest !== undefined && ref.digest !== reply.digest)
    return failed('digestMismatch', `${what}: the manifest received is ${reply.digest}`);
  let content: unknown;
  try {
    content = JSON.parse(Buffer.from(reply.body).toString('utf8'));
  } catch {
    content = undefined;
  }
  if (!isObject(content)) return failed('invalid', `${what}: the manifest is not a JSON object`);
  const header = (reply.headers.get('content-type') ?? '').split(';')[0]?.trim() ?? '';
  const mediaType = typeof content.mediaType === 'string' ? content.mediaType : header;
  const kind = indexTypes.includes(mediaType) ? 'index' : imageTypes.includes(mediaType) ? 'image' : undefined;
  if (kind === undefined) return failed('invalid', `${what}: a manifest of type '${mediaType}' is not supported`);
  return { ok: true, value: { digest: reply.digest, mediaType, kind, content, size: reply.body.length } };
}

/** A client bound to one HTTP client and one credential store; tokens live as long as it does. */
export function createRegistryClient(options: RegistryClientOptions): RegistryClient {
  const rules = options.registries ?? [];
  const session = openSession(options);

  async function get(
    ref: Reference,
    path: string,
    more: { headers?: Record<string, string>; maxBytes: number; signal?: AbortSignal | undefined },
  ): Promise<RegistryOutcome<HttpReply>> {
    const reply = await session.send(ref, { at: { path }, ...more });
    if (!reply.ok || reply.value.status === 200) return reply;
    return session.refusal(reply.value, formatReference(ref));
  }

  function located(ref: Reference): RegistryOutcome<Reference> {
    const real = mirrorReference(ref, rules);
    if (real === undefined)
      return failed(
        'invalid',
        `${formatReference(ref)}: its mirror rule gives no valid repository`,
        'correct spec.registries',
      );
    return { ok: true, value: real };
  }

  return {
    isMirrored: (ref) => mirrorRuleFor(referenceName(ref), rules) !== undefined,

    async manifest(ref, signal) {
      const real = located(ref);
      if (!real.ok) return real;
      const selector = ref.digest ?? ref.tag;
      if (selector === undefined) return failed('invalid', `${formatReference(ref)} has neither tag nor digest`);
      const reply = await get(real.value, `manifests/${selector}`, {
        headers: { accept: [...indexTypes, ...imageTypes].join(', ') },
        maxBytes: maxManifestBytes,
        signal,
      });
      return reply.ok ? readManifest(reply.value, ref) : reply;
    },

    async blob(ref, digest, maxBytes, signal) {
      const real = located(ref);
      if (!real.ok) return real;
      if (!isDigest(digest)) return failed('invalid', `${formatReference(ref)}: '${digest}' is not a sha256 digest`);
      const reply = await get(real.value, `blobs/${digest}`, { maxBytes, signal });
      if (!reply.ok) return reply;
      if (reply.value.digest !== digest)
        return failed(
          'digestMismatch',
          `${referenceName(ref)}: the blob received is ${reply.value.digest}, not ${digest}`,
        );
      return { ok: true, value: reply.value.body };
    },
  };
}

/** The descriptors of a manifest's list (`layers`, `manifests`), malformed ones left out. */
export function descriptors(manifest: Manifest, field: 'layers' | 'manifests'): JsonObject[] {
  const list = manifest.content[field];
  return Array.isArray(list) ? list.filter(isObject) : [];
}
