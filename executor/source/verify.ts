/** Whether an archive is the payload that a Release asks for, and who vouches for it. Pure but for decompression. */
import { trustSecret } from '../../constructs/api/constants.ts';
import { decodePayload, type Payload } from '../../constructs/api/payload-codec.ts';
import { type TrustSet, verifySignature } from '../../constructs/api/signature.ts';
import type { Problem } from '../../constructs/lib/problems.ts';

export interface VerifyPolicy {
  /** Public keys of Secret `keelson-trust`. */
  readonly trust: TrustSet;
  /** Accepts a payload that nobody trusted signed, and says so. */
  readonly allowUnsigned: boolean;
  /** It was accepted before and is enforced: that nobody trusted vouches for it now is told, and changes nothing. */
  readonly acceptedBefore: boolean;
}

/** `unverified` says why nobody vouches for an accepted payload. */
export type Verified =
  | { readonly ok: true; readonly payload: Payload; readonly signedBy?: string; readonly unverified?: string }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const refused = (problem: Problem): Verified => ({ ok: false, problems: [problem] });

/** Form, digests, listing and files; that it is the wanted payload of this release; the signature. */
export async function verifyArchive(
  archive: Uint8Array,
  wanted: { readonly release: string; readonly digest: string },
  policy: VerifyPolicy,
): Promise<Verified> {
  const decoded = await decodePayload(archive);
  if (!decoded.ok) return { ok: false, problems: decoded.problems };
  const payload = decoded.value;
  const { index } = payload;
  const problems: Problem[] = [];
  if (index.digest !== wanted.digest)
    problems.push({
      reason: 'PayloadIntegrity',
      message: `the archive holds payload ${index.digest}, the Release names ${wanted.digest}`,
    });
  if (index.content.release.name !== wanted.release)
    problems.push({
      reason: 'PayloadIntegrity',
      message: `the payload was rendered for Release ${index.content.release.name}, not for ${wanted.release}`,
    });
  if (problems.length > 0) return { ok: false, problems };
  return vouched(payload, policy);
}

function vouched(payload: Payload, { trust, allowUnsigned, acceptedBefore }: VerifyPolicy): Verified {
  const verdict = verifySignature(payload.index.digest, payload.index.signature, trust);
  switch (verdict.kind) {
    case 'valid':
      return { ok: true, payload, signedBy: verdict.keyId };
    case 'unsigned':
      if (allowUnsigned || acceptedBefore) return { ok: true, payload, unverified: 'the payload is not signed' };
      return refused({
        reason: 'SignatureMissing',
        message: 'the payload is not signed',
        remedy: 'publish it with a signing key whose public half is in Secret keelson-trust',
      });
    case 'unknownKey':
      if (allowUnsigned && trust.size === 0)
        return {
          ok: true,
          payload,
          unverified: `key ${verdict.keyId} signed it, and Secret ${trustSecret} holds no key`,
        };
      if (acceptedBefore)
        return {
          ok: true,
          payload,
          unverified: `key ${verdict.keyId} signed it, which is trusted no longer (trusted are ${verdict.trusted.join(', ') || 'none'}); it was accepted before`,
        };
      return refused({
        reason: 'SignatureUntrusted',
        message: `key ${verdict.keyId} signed it; trusted are ${verdict.trusted.join(', ') || 'none'}`,
        remedy: `put the public key into Secret ${trustSecret}, or sign with a key that is there`,
      });
    case 'invalid':
      return refused({
        reason: 'SignatureInvalid',
        message: `the signature by key ${verdict.keyId} does not fit the content`,
        remedy: 'publish the release again',
      });
  }
}
