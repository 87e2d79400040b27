import { createPrivateKey, createPublicKey } from 'node:crypto';
import { payloadFormatVersion } from '../../constructs/api/constants.ts';
import type { PayloadIndex } from '../../constructs/api/payload.ts';
import { readIndex } from '../../constructs/api/payload-codec.ts';
import { keyIdOf, signDigest } from '../../constructs/api/signature.ts';
import { deepEqual, type JsonObject, sortedCopy } from '../../constructs/lib/json.ts';
import type { BuiltPayload } from './build.ts';

/** Signs payloads. It exists where publishing happens, and nowhere else. */
export interface Signer {
  readonly keyId: string;
  sign(digest: string): NonNullable<PayloadIndex['signature']>;
}

/** A signer from the PKCS#8 PEM of a private key. @throws TypeError when it is not an ed25519 key. */
export function signerOf(privateKey: string): Signer {
  const key = createPrivateKey(privateKey);
  if (key.asymmetricKeyType !== 'ed25519') throw new TypeError('the signing key is not an ed25519 key');
  return { keyId: keyIdOf(createPublicKey(key)), sign: (digest) => signDigest(digest, privateKey) };
}

export interface SignedIndex {
  readonly index: PayloadIndex;
  /** `index.json` of the rendered tree. */
  readonly bytes: Uint8Array;
  /** True when the file of the previous tree still stands. */
  readonly kept: boolean;
}

/**
 * The index of a payload. While the content stays what the previous tree holds, its file is kept byte for byte, so that
 * provenance and signatures tell when the content came about, and nothing is committed for nothing. A signer with
 * another key signs anew.
 * @param previous `index.json` of this release in the previous tree.
 */
export function signPayload(payload: BuiltPayload, signer?: Signer, previous?: Uint8Array): SignedIndex {
  const before = previous === undefined ? undefined : readIndex(previous);
  if (previous !== undefined && before?.ok === true && stillStands(before.value, payload, signer))
    return { index: before.value, bytes: previous, kept: true };
  const index: PayloadIndex = {
    formatVersion: payloadFormatVersion,
    digest: payload.digest,
    ...(signer === undefined ? {} : { signature: signer.sign(payload.digest) }),
    content: payload.content,
    provenance: payload.provenance,
  };
  return { index, bytes: indexBytes(index), kept: false };
}

function stillStands(before: PayloadIndex, payload: BuiltPayload, signer: Signer | undefined): boolean {
  if (before.digest !== payload.digest) return false;
  // Signing is deterministic: a signature that differs is of another key, or damaged.
  return (
    signer === undefined ||
    (before.signature !== undefined && deepEqual({ ...before.signature }, { ...signer.sign(payload.digest) }))
  );
}

/** Members sorted and one line each, so that a review shows what changed. */
function indexBytes(index: PayloadIndex): Uint8Array {
  return Buffer.from(`${JSON.stringify(sortedCopy(index as unknown as JsonObject), null, 2)}\n`);
}
