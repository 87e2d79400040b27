import '../../constructs/lib/reflect.ts';
import { webcrypto } from 'node:crypto';
import {
  ExtendedKeyUsageExtension,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { keyUsages, type PodIdentity, podURIs } from '../../constructs/api/evidence/identity.ts';

/** A key, and what a probe shows of it before anybody has signed it. PEM throughout. */
export interface Offer {
  readonly key: string;
  readonly csr: string;
  /** Certificate that the key signed for itself: it says nothing but which key is behind the connection. */
  readonly selfSigned: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 86_400_000;

/**
 * Makes a key and asks for a certificate of the pod. It takes 10 MiB that the process never gives back, so a sidecar
 * lets a process of its own do it.
 */
export async function makeOffer(identity: PodIdentity, addresses: readonly string[], now: number): Promise<Offer> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const extensions = [
    new SubjectAlternativeNameExtension([
      ...podURIs(identity).map((value) => ({ type: 'url' as const, value })),
      ...addresses.map((value) => ({ type: 'ip' as const, value })),
    ]),
    new ExtendedKeyUsageExtension([keyUsages.server]),
  ];
  const shared = { keys, signingAlgorithm: algorithm, extensions };
  const csr = await Pkcs10CertificateRequestGenerator.create({ ...shared, name: 'CN=keelson-probe' });
  const selfSigned = await X509CertificateGenerator.createSelfSigned({
    ...shared,
    name: 'CN=keelson-probe',
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + 365 * dayMs),
  });
  const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  return {
    key: `-----BEGIN PRIVATE KEY-----\n${key.replace(/(.{64})(?=.)/g, '$1\n')}\n-----END PRIVATE KEY-----\n`,
    csr: csr.toString('pem'),
    selfSigned: selfSigned.toString('pem'),
  };
}
