import '../../constructs/lib/reflect.ts';
import { createPrivateKey, type KeyObject, randomBytes, webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { executorURI, keyUsages, type PodIdentity, podURIs } from '../../constructs/api/evidence/identity.ts';

/** Makes keys and certificates: ECDSA on P-256, PEM in and out. An authority that was brought along may have other keys. */

/** A certificate with its key. */
export interface KeyPair {
  /** PEM; of an authority or of the executor. */
  readonly certificate: string;
  /** PEM, PKCS#8. */
  readonly key: string;
}

/** From when to when a certificate is valid: milliseconds since 1970. */
export interface Validity {
  readonly from: number;
  readonly to: number;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

type Keys = Awaited<ReturnType<typeof newKeys>>;
const newKeys = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ type: 'pkcs8', format: 'pem' })
    .toString();
}

/** A positive serial number of 20 octets or less that nobody had before. */
const serial = (): string => `40${randomBytes(15).toString('hex')}`;

const dates = ({ from, to }: Validity) => ({ notBefore: new Date(from), notAfter: new Date(to) });

/** A new authority that signs for itself. */
export async function makeAuthority(name: string, validity: Validity): Promise<KeyPair> {
  const keys: Keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    keys,
    signingAlgorithm: algorithm,
    serialNumber: serial(),
    name: `CN=${name}`,
    ...dates(validity),
    extensions: [
      // It signs for no other authority.
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) };
}

/** How a key signs; undefined for kinds of keys that are not used here. */
export function signingAlgorithm(key: KeyObject) {
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (key.asymmetricKeyType === 'rsa') return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } as const;
  if (curve === 'prime256v1') return algorithm;
  return curve === 'secp384r1' ? ({ name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' } as const) : undefined;
}

/** Which key signed: successive authorities may have one name, and a verifier takes the first of that name otherwise. */
function issuerKeyOf(issuer: X509Certificate): AuthorityKeyIdentifierExtension[] {
  const held = Array.from(issuer.extensions).find((one) => one instanceof SubjectKeyIdentifierExtension);
  return held === undefined ? [] : [new AuthorityKeyIdentifierExtension(held.keyId)];
}

interface Leaf {
  readonly authority: KeyPair;
  readonly publicKey: webcrypto.CryptoKey;
  readonly name: string;
  readonly usage: string;
  readonly names: readonly { readonly type: 'url' | 'ip'; readonly value: string }[];
  readonly validity: Validity;
}

/** @throws TypeError for an authority whose key can not sign here; it was looked at when it was read. */
async function sign({ authority, publicKey, name, usage, names, validity }: Leaf): Promise<string> {
  const issuer = new X509Certificate(authority.certificate);
  const key = createPrivateKey(authority.key);
  const by = signingAlgorithm(key);
  if (by === undefined) throw new TypeError('the key of the authority is of a kind that does not sign here');
  const der = key.export({ type: 'pkcs8', format: 'der' });
  const certificate = await X509CertificateGenerator.create({
    issuer: issuer.subjectName,
    subject: `CN=${name}`,
    serialNumber: serial(),
    publicKey,
    signingKey: await webcrypto.subtle.importKey('pkcs8', der, by, false, ['sign']),
    signingAlgorithm: by,
    // Nothing that was signed is valid longer than who signed it.
    ...dates({
      from: Math.max(validity.from, issuer.notBefore.getTime()),
      to: Math.min(validity.to, issuer.notAfter.getTime()),
    }),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([usage], true),
      new SubjectAlternativeNameExtension([...names], true),
      ...issuerKeyOf(issuer),
    ],
  });
  return certificate.toString('pem');
}

/** Public key in DER (SPKI). @throws when it is no key of P-256. */
const importPublicKey = (spki: Uint8Array): Promise<webcrypto.CryptoKey> =>
  webcrypto.subtle.importKey('spki', spki as Uint8Array<ArrayBuffer>, algorithm, true, ['verify']);

export interface PodLeaf {
  readonly authority: KeyPair;
  /** Public key of the pod in DER (SPKI), on P-256. */
  readonly publicKey: Uint8Array;
  readonly identity: PodIdentity;
  readonly addresses: readonly string[];
  readonly validity: Validity;
}

/** A certificate by which a pod proves who it is when it is dialled, and nothing else. */
export async function signPod({ authority, publicKey, identity, addresses, validity }: PodLeaf): Promise<string> {
  return sign({
    authority,
    publicKey: await importPublicKey(publicKey),
    name: 'keelson-probe',
    usage: keyUsages.server,
    names: [
      ...podURIs(identity).map((value) => ({ type: 'url' as const, value })),
      ...addresses.map((value) => ({ type: 'ip' as const, value })),
    ],
    validity,
  });
}

/** A key and a certificate by which the executor proves who it is when it dials. */
export async function makeExecutorPair(authority: KeyPair, validity: Validity): Promise<KeyPair> {
  const keys: Keys = await newKeys();
  const certificate = await sign({
    authority,
    publicKey: keys.publicKey,
    name: 'keelson-executor',
    usage: keyUsages.client,
    names: [{ type: 'url', value: executorURI }],
    validity,
  });
  return { certificate, key: await pemOf(keys.privateKey) };
}
