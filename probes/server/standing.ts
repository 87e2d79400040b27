import { X509Certificate } from 'node:crypto';
import {
  executorURI,
  keyUsages,
  type PodIdentity,
  podURIs,
  sameNames,
  urisOf,
} from '../../constructs/api/evidence/identity.ts';

/** What a probe may answer and to whom: pure decisions about certificates. */

/**
 * `closed`: it does not know whom to trust, and answers nobody. `unenrolled`: it has no certificate that is valid now,
 * and only asks for one. `open`: it answers questions.
 */
export type Standing = 'closed' | 'unenrolled' | 'open';

export interface Material {
  /** PEM of the authorities that the executor's certificate may come from; empty when there are none. */
  readonly authorities: string;
  readonly certificate?: X509Certificate;
}

export function standing({ authorities, certificate }: Material, now: number): Standing {
  if (!authorities.includes('-----BEGIN CERTIFICATE-----')) return 'closed';
  return certificate !== undefined && now < certificate.validToDate.getTime() ? 'open' : 'unenrolled';
}

/**
 * Whether a peer is the executor. That an authority signed its certificate was checked before; a certificate of another
 * probe comes from the same authority, and is refused here.
 */
export function isExecutor(certificate: X509Certificate, now: number): boolean {
  return (
    now >= certificate.validFromDate.getTime() &&
    now < certificate.validToDate.getTime() &&
    !certificate.ca &&
    sameNames(certificate.keyUsage ?? [], [keyUsages.client]) &&
    sameNames(urisOf(certificate.subjectAltName), [executorURI])
  );
}

export type Judgement =
  | { readonly type: 'taken'; readonly certificate: X509Certificate }
  | { readonly type: 'refused'; readonly why: string };

/**
 * Looks at a certificate that the executor hands over. Whether it is valid now is left to the executor, whose clock
 * judges it later as well.
 */
export function judgeGrant(pem: string, publicKey: Buffer, identity: PodIdentity): Judgement {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch {
    return { type: 'refused', why: 'it can not be read' };
  }
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' });
  if (!key.equals(publicKey)) return { type: 'refused', why: 'it is for another key' };
  if (!sameNames(urisOf(certificate.subjectAltName), podURIs(identity)))
    return { type: 'refused', why: 'it is for another pod' };
  return { type: 'taken', certificate };
}
