import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { isObject } from '../../constructs/lib/json.ts';
import { redact } from '../../constructs/lib/redact.ts';
import { isLoopbackLiteral, splitHostPort } from '../http/address.ts';
import type { HttpClient, HttpReply, HttpRequest } from '../http/types.ts';
import { basicHeader, type Challenge, fetchToken, parseChallenge } from './auth.ts';
import type { CredentialStore } from './credentials.ts';
import { mirrorHosts } from './mirrors.ts';
import { type Reference, referenceName, registryHost } from './reference.ts';
import { failed, httpFailure, type RegistryOutcome, type RegistryRefusal } from './types.ts';

export interface SessionOptions {
  readonly http: HttpClient;
  readonly credentials: CredentialStore;
  /** Mirror rules of the cluster; here they say which registries speak TLS by a certificate of their own. */
  readonly registries?: readonly RegistryMirror[];
}

/** One request about a repository: below its path, or at a URL that the registry itself gave. */
export interface SessionRequest extends Omit<HttpRequest, 'url' | 'signal'> {
  readonly at: { readonly path: string } | { readonly url: string };
  /** What the request does, as token services name it. */
  readonly actions?: 'pull' | 'pull,push';
  readonly signal?: AbortSignal | undefined;
}

/** Speaks to registries as somebody; tokens live as long as it does. References are taken as they are. */
export interface RegistrySession {
  /** An answer of any status; a registry that asks who we are is told. */
  send(ref: Reference, request: SessionRequest): Promise<RegistryOutcome<HttpReply>>;
  /** The failure that an answer means, without secrets that it may quote. */
  refusal(reply: HttpReply, what: string): RegistryRefusal;
  /** `http(s)://host` of a registry. */
  baseUrl(registry: string): string;
}

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

/** A session bound to one HTTP client and one credential store. */
export function openSession(options: SessionOptions): RegistrySession {
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
    actions: string,
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
    const token = await fetchToken(http, challenge, `repository:${ref.repository}:${actions}`, credential, signal);
    return token.ok ? { ok: true, value: `Bearer ${token.value}` } : token;
  }

  return {
    baseUrl,
    async send(ref, request) {
      const { at, actions = 'pull', signal, headers, ...rest } = request;
      const base = baseUrl(ref.registry);
      const url = 'url' in at ? at.url : `${base}/v2/${ref.repository}/${at.path}`;
      const ours = new URL(url).host === new URL(base).host;
      const scope = `${referenceName(ref)} ${actions}`;
      const send = (authorization: string | undefined) =>
        http.request({
          ...rest,
          url,
          headers: { ...headers, ...(authorization === undefined || !ours ? {} : { authorization }) },
          ...(signal === undefined ? {} : { signal }),
        });
      const outcome = await send(authorizations.get(scope));
      if (!outcome.ok) return { ok: false, failure: httpFailure(outcome.failure) };
      const challenge =
        outcome.reply.status === 401 ? parseChallenge(outcome.reply.headers.get('www-authenticate')) : undefined;
      if (challenge === undefined) return { ok: true, value: outcome.reply };
      const authorization = await authorize(challenge, ref, actions, signal);
      if (!authorization.ok) return authorization;
      authorizations.set(scope, authorization.value);
      secrets.add(authorization.value.replace(/^[A-Za-z]+ /, ''));
      const again = await send(authorization.value);
      return again.ok ? { ok: true, value: again.reply } : { ok: false, failure: httpFailure(again.failure) };
    },
    refusal(reply, what) {
      const said = registryMessage(reply, secrets);
      const message = `${what}: ${reply.url} answered ${reply.status}${said === '' ? '' : ` (${said})`}`;
      if (reply.status === 404) return failed('notFound', message, 'check the repository and the tag or digest');
      if (reply.status === 401 || reply.status === 403)
        return failed('denied', message, 'log in to this registry with docker login or helm registry login');
      return failed('unavailable', message);
    },
  };
}
