import { isObject } from '../../constructs/lib/json.ts';
import type { HttpClient } from '../http/types.ts';
import type { Credential } from './credentials.ts';
import { failed, httpFailure, type RegistryOutcome } from './types.ts';

/** What a registry asks for in `WWW-Authenticate`. */
export type Challenge =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service?: string; readonly scope?: string };

function parameters(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const match of text.matchAll(/([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)) {
    const [, name, quoted, bare] = match;
    if (name !== undefined) found.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? bare ?? '');
  }
  return found;
}

/** The challenge of a `WWW-Authenticate` header; Bearer wins where both are offered. */
export function parseChallenge(header: string | undefined): Challenge | undefined {
  const bearer = /(?:^|,)\s*bearer\s+(.*)$/i.exec(header ?? '');
  if (bearer !== null) {
    const values = parameters(bearer[1] ?? '');
    const [realm, service, scope] = ['realm', 'service', 'scope'].map((name) => values.get(name));
    if (realm === undefined) return undefined;
    return {
      scheme: 'bearer',
      realm,
      ...(service === undefined ? {} : { service }),
      ...(scope === undefined ? {} : { scope }),
    };
  }
  return /(?:^|,)\s*basic\b/i.test(header ?? '') ? { scheme: 'basic' } : undefined;
}

/** The value of an Authorization header for a user name and password. */
export function basicHeader(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

/** Asks the token service that the challenge names; anonymous without a credential. */
export async function fetchToken(
  http: HttpClient,
  challenge: Extract<Challenge, { scheme: 'bearer' }>,
  scope: string,
  credential: Credential | undefined,
  signal?: AbortSignal,
): Promise<RegistryOutcome<string>> {
  if (credential?.kind === 'registryToken') return { ok: true, value: credential.token };
  const query: [string, string][] = [
    ...(challenge.service === undefined ? [] : ([['service', challenge.service]] as [string, string][])),
    ['scope', challenge.scope ?? scope],
  ];
  const common = { maxBytes: 256 * 1024, ...(signal === undefined ? {} : { signal }) };
  const outcome =
    credential?.kind === 'identityToken'
      ? await http.request({
          ...common,
          url: challenge.realm,
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams([
            ['grant_type', 'refresh_token'],
            ['refresh_token', credential.token],
            ['client_id', 'keelson'],
            ...query,
          ]).toString(),
        })
      : await http.request({
          ...common,
          url: `${challenge.realm}${challenge.realm.includes('?') ? '&' : '?'}${new URLSearchParams(query)}`,
          headers:
            credential === undefined ? {} : { authorization: basicHeader(credential.username, credential.password) },
        });
  if (!outcome.ok) return { ok: false, failure: httpFailure(outcome.failure) };
  const { reply } = outcome;
  if (reply.status !== 200)
    return failed(
      'denied',
      `the token service ${reply.url} answered ${reply.status}`,
      'check the credential of this registry',
    );
  let answer: unknown;
  try {
    answer = JSON.parse(Buffer.from(reply.body).toString('utf8'));
  } catch {
    answer = undefined;
  }
  const token = isObject(answer) ? (answer.token ?? answer.access_token) : undefined;
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    return failed('denied', `the token service ${reply.url} gave no token`);
  return { ok: true, value: token };
}
