import { createPrivateKey, X509Certificate } from 'node:crypto';
import { annotations, evidenceSecret, labels, managedByValue, managers } from '../../constructs/api/constants.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, resourceVersionOf } from '../kube/types.ts';
import { signingAlgorithm } from './certificates.ts';
import type { Authority, FormerAuthority, Succession } from './rotation.ts';

/**
 * Secret `keelson-evidence-ca`: the authority that signs for the executor and its probes. One that does not carry the label
 * of Keelson was brought along (cert-manager's, or a person's): it is used, and never written.
 */

export type AuthorityRead =
  | { readonly type: 'own'; readonly succession: Succession; readonly asked?: string; readonly version: string }
  | { readonly type: 'provided'; readonly authority: Authority }
  | { readonly type: 'absent' }
  | { readonly type: 'invalid'; readonly message: string }
  | { readonly type: 'unavailable'; readonly message: string };

export type AuthorityWrite =
  | { readonly type: 'written' }
  /** Somebody else wrote meanwhile: read again. */
  | { readonly type: 'raced' }
  | { readonly type: 'failed'; readonly message: string };

const decode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : '', 'base64').toString('utf8');
const encode = (text: string): string => Buffer.from(text).toString('base64');

/** The first certificate of a PEM text, as text. */
const firstCertificate = (text: string): string =>
  /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/.exec(text)?.[0] ?? '';

/** What of an authority is no secret. @throws Error for what is no certificate of an authority. */
function former(pem: string): FormerAuthority {
  const certificate = firstCertificate(pem);
  const read = new X509Certificate(certificate);
  if (!read.ca) throw new Error('the certificate is not one of an authority');
  return {
    id: read.fingerprint256.replaceAll(':', '').toLowerCase(),
    certificate: `${certificate}\n`,
    from: read.validFromDate.getTime(),
    to: read.validToDate.getTime(),
  };
}

/** An authority from PEM texts. @throws Error that names what is wrong, and holds nothing of the key. */
export function readAuthority(certificate: string, key: string): Authority {
  let found: FormerAuthority;
  try {
    found = former(certificate);
  } catch {
    throw new Error('tls.crt is not the certificate of an authority');
  }
  try {
    const secret = createPrivateKey(key);
    if (signingAlgorithm(secret) === undefined) throw new Error('of another kind');
    if (!new X509Certificate(found.certificate).checkPrivateKey(secret)) throw new Error('another key');
  } catch {
    throw new Error('tls.key is not the key of tls.crt, on P-256 or P-384 or of RSA');
  }
  return { ...found, key };
}

/** The Secret as it is. Its texts appear in no message. */
export async function readAuthorities(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<AuthorityRead> {
  const got = await client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name: evidenceSecret }, { signal });
  if (got.type === 'absent') return { type: 'absent' };
  if (got.type !== 'found') return { type: 'unavailable', message: got.message };
  try {
    return interpret(got.object);
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it can not be read';
    return { type: 'invalid', message: `Secret ${namespace}/${evidenceSecret}: ${why}` };
  }
}

function interpret(object: KubeObject): AuthorityRead {
  const data = isObject(object.data) ? object.data : {};
  const text = (name: string): string => decode(data[name]);
  const current = readAuthority(text('tls.crt'), text('tls.key'));
  const { labels: marks, annotations: notes } = object.metadata;
  if (marks?.[labels.managedBy] !== managedByValue) return { type: 'provided', authority: current };
  const since = Number(text('since'));
  const succession: Succession = {
    current,
    ...(data['next.crt'] === undefined ? {} : { next: readAuthority(text('next.crt'), text('next.key')) }),
    ...(data['previous.crt'] === undefined
      ? {}
      : { previous: readAuthority(text('previous.crt'), text('previous.key')) }),
    ...(Number.isSafeInteger(since) && since > 0 ? { since } : {}),
    ...(data.answered === undefined ? {} : { answered: text('answered') }),
  };
  const asked = notes?.[annotations.rotate];
  return {
    type: 'own',
    succession,
    ...(asked === undefined ? {} : { asked }),
    version: resourceVersionOf(object),
  };
}

/**
 * Writes a succession over the version that it was decided on. Without one the Secret was absent: where somebody made it
 * meanwhile, the fields are theirs, and nothing is written.
 */
export async function writeAuthorities(
  client: KubeClient,
  namespace: string,
  { current, next, previous, since, answered }: Succession,
  version: string | undefined,
  signal: AbortSignal,
): Promise<AuthorityWrite> {
  const pair = (name: string, { certificate, key }: FormerAuthority): [string, string][] => [
    [`${name}.crt`, certificate],
    ...(key === undefined ? [] : [[`${name}.key`, key] as [string, string]]),
  ];
  const data = Object.fromEntries(
    [
      ...pair('tls', current),
      ...(next === undefined ? [] : pair('next', next)),
      ...(previous === undefined ? [] : pair('previous', previous)),
      ...(since === undefined ? [] : [['since', String(since)] as const]),
      ...(answered === undefined ? [] : [['answered', answered] as const]),
    ].map(([name, text]) => [name, encode(text)]),
  );
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: evidenceSecret, namespace, labels: { [labels.managedBy]: managedByValue } },
    type: 'Opaque',
    data,
  };
  const options = { fieldManager: managers.objects, signal };
  const outcome = await client.apply(
    secret,
    version === undefined ? options : { ...options, resourceVersion: version },
  );
  if (outcome.type === 'created') return { type: 'written' };
  if (outcome.type === 'configured' || outcome.type === 'unchanged')
    return version === undefined ? { type: 'raced' } : { type: 'written' };
  const elsewhere = outcome.type === 'conflict' && version === undefined;
  if (elsewhere || outcome.type === 'stale' || outcome.type === 'gone') return { type: 'raced' };
  return { type: 'failed', message: `Secret ${namespace}/${evidenceSecret} is not written: ${outcome.message}` };
}
