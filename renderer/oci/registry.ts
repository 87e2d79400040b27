import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { isDigest } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { redact } from '../../constructs/lib/redact.ts';
import { isLoopbackLiteral, splitHostPort } from '../http/address.ts';
import type { HttpClient, HttpReply } from '../http/types.ts';
import { basicHeader, type Challenge, fetchToken, parseChallenge } from './auth.ts';
import type { CredentialStore } from './credentials.ts';
import { mirrorHosts, mirrorReference } from './mirrors.ts';
import { formatReference, type Reference, referenceName, registryHost } from './reference.ts';
import { failed, httpFailure, type Manifest, type RegistryFailure, type RegistryOutcome } from './types.ts';

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
}

const indexTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
const imageTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];
const maxManifestBytes = 4 * 1024 * 1024;

/** The first error that a registry's JSON answer names. `secrets` may be quoted there, in any company. */
function registryMessage(reply: HttpReply, secrets: ReadonlySet<string>): string {
  try {
    const body: unknown = JSON.parse(Buffer.from(reply.body).toString('utf8'));
    const first = isObject(body) && Array.isArray(body.errors) ? body.errors[0] : undefined;
    if (isObject(first))
      return redact(`${String(first.code ?? '')} ${String(first.message ?? '')}`.trim(), [...secrets]).slice(0, 200);
  } catch {
    // Not every answer comes from the registry itself.
  }
  return '';
}

function statusFailure(
  reply: HttpReply,
  what: string,
  secrets: ReadonlySet<string>,
): { ok: false; failure: RegistryFailure } {
  const said = registryMessage(reply, secrets);
  const message = `${what}: ${reply.url} answered ${reply.status}${said === '' ? '' : ` (${said})`}`;
  if (reply.status === 404) return failed('notFound', message, 'check the repository and the tag or digest');
  if (reply.status === 401 || reply.status === 403)
    return failed('denied', message, 'log in to this registry with docker login or helm registry login');
  return failed('unavailable', message);
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
  const { http } = options;
  const rules = options.registries ?? [];
  const authorizations = new Map<string, string>();
  const secrets = new Set<string>();

  /** Plain http is for loopback registries; a certificate authority given for one says that it speaks TLS. */
  function baseUrl(registry: string): string {
    const host = registryHost(registry);
    const withTls = rules.some((rule) => rule.caFile !== undefined && mirrorHosts([rule])[0] === registry);
    return `${isLoopbackLiteral(splitHostPort(host).host) && !withTls ? 'http' : 'https'}://${host}`;
  }

  async function authorize(
    challenge: Challenge,
    ref: Reference,
    signal?: AbortSignal,
  ): Promise<RegistryOutcome<string>> {
    const stored = await options.credentials.get(ref.registry, signal);
    if (stored.kind === 'failed') return failed('denied', `the credential for ${ref.registry}: ${stored.message}`);
    const credential = stored.kind === 'found' ? stored.credential : undefined;
    if (credential !== undefined) secrets.add(credential.kind === 'password' ? credential.password : credential.token);
    if (challenge.scheme === 'basic') {
      if (credential?.kind !== 'password')
        return failed(
          'denied',
          `${ref.registry} asks for a user name and password`,
          'log in with docker login or helm registry login',
        );
      return { ok: true, value: basicHeader(credential.username, credential.password) };
    }
    const token = await fetchToken(http, challenge, `repository:${ref.repository}:pull`, credential, signal);
    return token.ok ? { ok: true, value: `Bearer ${token.value}` } : token;
  }

  async function get(
    ref: Reference,
    path: string,
    more: { headers?: Record<string, string>; maxBytes: number; signal?: AbortSignal | undefined },
  ): Promise<RegistryOutcome<HttpReply>> {
    const scope = referenceName(ref);
    const send = (authorization: string | undefined) =>
      http.request({
        url: `${baseUrl(ref.registry)}/v2/${ref.repository}/${path}`,
        headers: { ...more.headers, ...(authorization === undefined ? {} : { authorization }) },
        maxBytes: more.maxBytes,
        ...(more.signal === undefined ? {} : { signal: more.signal }),
      });
    let outcome = await send(authorizations.get(scope));
    const challenge =
      outcome.ok && outcome.reply.status === 401
        ? parseChallenge(outcome.reply.headers.get('www-authenticate'))
        : undefined;
    if (challenge !== undefined) {
      const authorization = await authorize(challenge, ref, more.signal);
      if (!authorization.ok) return authorization;
      authorizations.set(scope, authorization.value);
      secrets.add(authorization.value.replace(/^[A-Za-z]+ /, ''));
      outcome = await send(authorization.value);
    }
    if (!outcome.ok) return { ok: false, failure: httpFailure(outcome.failure) };
    if (outcome.reply.status !== 200) return statusFailure(outcome.reply, formatReference(ref), secrets);
    return { ok: true, value: outcome.reply };
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
