/** Client keys out of a Secret. They stay in memory for one look; nothing here puts a byte of them into a message. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isObject, type JsonValue } from '../../constructs/lib/json.ts';
import { type KubeObject, resourceVersionOf, uidOf } from '../kube/types.ts';
import type { PeerCertificate, SecretGeneration } from '../observe/hcp.ts';

/** PEM. */
export interface PeerKeys {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Names under which the keys may stand: those of Kubernetes, and those that Kube-OVN reads. */
const keySets: readonly PeerKeys[] = [
  { ca: 'ca.crt', cert: 'tls.crt', key: 'tls.key' },
  { ca: 'cacert', cert: 'cert', key: 'key' },
];

/** Which generation of a Secret this is. */
export const generationOf = (secret: KubeObject): SecretGeneration => ({
  name: secret.metadata.name ?? '',
  uid: uidOf(secret),
  resourceVersion: resourceVersionOf(secret),
});

const decoded = (value: JsonValue | undefined): string =>
  typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8') : '';

/** The keys of the first complete set; undefined where none is. */
export function keysOf(secret: KubeObject): PeerKeys | undefined {
  const data = isObject(secret.data) ? secret.data : {};
  for (const names of keySets) {
    const found = { ca: decoded(data[names.ca]), cert: decoded(data[names.cert]), key: decoded(data[names.key]) };
    if (found.ca !== '' && found.cert !== '' && found.key !== '') return found;
  }
  return undefined;
}

/** What a parser throws may quote what it could not read: only whether it did is told. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Whether the keys can be used now, on the executor's clock. */
export function judgeKeys(keys: PeerKeys | undefined, now: number): PeerCertificate {
  if (keys === undefined) return { type: 'keysMissing' };
  const invalid = (message: string): PeerCertificate => ({ type: 'invalid', message });
  const authority = readable(() => new X509Certificate(keys.ca));
  if (authority === undefined) return invalid('the authority is no certificate');
  const certificate = readable(() => new X509Certificate(keys.cert));
  if (certificate === undefined) return invalid('the certificate is none');
  const key = readable(() => createPrivateKey(keys.key));
  if (key === undefined) return invalid('the key can not be read');
  if (!certificate.checkPrivateKey(key)) return invalid('the key is not the one of the certificate');
  for (const one of [certificate, authority]) {
    const [notBefore, notAfter] = [one.validFromDate.getTime(), one.validToDate.getTime()];
    if (now < notBefore || now >= notAfter) return { type: 'outside', notBefore, notAfter };
  }
  return { type: 'valid' };
}
