import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { isDigest, sha256Hex } from '../lib/digest.ts';
import type { Problem } from '../lib/problems.ts';
import type { Signature } from './payload.ts';

/**
 * Signatures of payloads: ed25519 over a content digest. The signed text carries a purpose, so that a signature can
 * not be used for anything else.
 */

const purpose = 'keelson.dev/payload/v1';

const message = (digest: string): Buffer => {
  if (!isDigest(digest)) throw new TypeError(`'${digest}' is not a sha256 digest`);
  return Buffer.from(`${purpose}\n${digest}\n`);
};

/** Public keys whose signatures are accepted, by key id. */
export type TrustSet = ReadonlyMap<string, KeyObject>;

/** The id of a key: the first sixteen hex digits of the sha256 over its SPKI encoding. */
export const keyIdOf = (publicKey: KeyObject): string =>
  sha256Hex(publicKey.export({ type: 'spki', format: 'der' })).slice(0, 16);

export interface KeyPair {
  readonly keyId: string;
  /** PKCS#8 PEM; a secret. */
  readonly privateKey: string;
  /** SPKI PEM. */
  readonly publicKey: string;
}

/** A new signing key. */
export function generateKeyPair(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    keyId: keyIdOf(publicKey),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/**
 * Signs a content digest.
 * @param privateKey PKCS#8 PEM of an ed25519 key.
 * @throws TypeError when the key is of another type, or the digest is not one.
 */
export function signDigest(digest: string, privateKey: string): Signature {
  const key = createPrivateKey(privateKey);
  if (key.asymmetricKeyType !== 'ed25519') throw new TypeError('the signing key is not an ed25519 key');
  return { keyId: keyIdOf(createPublicKey(key)), ed25519: sign(null, message(digest), key).toString('base64') };
}

export type SignatureVerdict =
  | { readonly kind: 'valid'; readonly keyId: string }
  | { readonly kind: 'unsigned' }
  | { readonly kind: 'unknownKey'; readonly keyId: string; readonly trusted: readonly string[] }
  | { readonly kind: 'invalid'; readonly keyId: string };

/** Whether one of the trusted keys signed this digest. */
export function verifySignature(digest: string, signature: Signature | undefined, trust: TrustSet): SignatureVerdict {
  if (signature === undefined) return { kind: 'unsigned' };
  const { keyId } = signature;
  const key = trust.get(keyId);
  if (key === undefined) return { kind: 'unknownKey', keyId, trusted: [...trust.keys()].sort() };
  const bytes = Buffer.from(signature.ed25519, 'base64');
  return verify(null, message(digest), key, bytes) ? { kind: 'valid', keyId } : { kind: 'invalid', keyId };
}

/**
 * The trust set of the data of a trust Secret: every value one SPKI PEM, under any name. A key that can not be read is
 * a problem and does not keep the others from being used.
 */
export function readTrust(data: Readonly<Record<string, string>>): { trust: TrustSet; problems: Problem[] } {
  const trust = new Map<string, KeyObject>();
  const problems: Problem[] = [];
  for (const [name, pem] of Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const key = readPublicKey(pem);
    if (key === undefined)
      problems.push({
        reason: 'TrustKeyInvalid',
        message: 'the value is not the PEM of an ed25519 public key',
        path: name,
        remedy: 'put the public key there that `keelson keys init` wrote',
      });
    else trust.set(keyIdOf(key), key);
  }
  return { trust, problems };
}

function readPublicKey(pem: string): KeyObject | undefined {
  // A private key would also yield a public one, but it has no business in a trust set.
  if (!pem.includes('BEGIN PUBLIC KEY')) return undefined;
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}
