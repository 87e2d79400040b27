import '../../constructs/lib/reflect.ts';
import { createPublicKey } from 'node:crypto';
import { Pkcs10CertificateRequest, SubjectAlternativeNameExtension } from '@peculiar/x509';
import { enrolmentLimits } from '../../constructs/api/enrolment.ts';
import { type PodIdentity, podURIs, sameNames } from '../../constructs/api/evidence/identity.ts';
import { plainHost } from '../observe/endpoint.ts';

/** Certificate requests of pods: what they say, and whether it may be granted. */

/** A request whose signature was checked: whoever sent it has the key. */
export interface SignedRequest {
  /** DER (SPKI). */
  readonly publicKey: Uint8Array;
  readonly uris: readonly string[];
  readonly addresses: readonly string[];
}

export type RequestReading =
  | { readonly type: 'read'; readonly request: SignedRequest }
  | { readonly type: 'refused'; readonly why: string };

const refused = (why: string): RequestReading => ({ type: 'refused', why });

/** Reads a PKCS#10 request in PEM. What a request asks for beyond names and addresses is left out of the certificate. */
export async function readRequest(pem: string): Promise<RequestReading> {
  if (pem.length > enrolmentLimits.request) return refused('the request is too large');
  try {
    const request = new Pkcs10CertificateRequest(pem);
    const publicKey = new Uint8Array(request.publicKey.rawData);
    const key = createPublicKey({ key: Buffer.from(publicKey), type: 'spki', format: 'der' });
    if (key.asymmetricKeyType !== 'ec' || key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
      return refused('the key of the request is not on P-256');
    if (!(await request.verify())) return refused('the request was not signed by its key');
    const names = Array.from(request.extensions)
      .filter((one) => one instanceof SubjectAlternativeNameExtension)
      .flatMap((one) => Array.from(one.names.items));
    const of = (type: string): string[] => names.filter((name) => name.type === type).map((name) => name.value);
    if (names.some(({ type }) => type !== 'url' && type !== 'ip'))
      return refused('the request asks for names that are neither URIs nor addresses');
    return { type: 'read', request: { publicKey, uris: of('url'), addresses: of('ip') } };
  } catch {
    return refused('the request can not be read');
  }
}

/** What the API server says of whoever sent a token. */
export interface TokenPod {
  readonly namespace: string;
  readonly pod: string;
  readonly podUID: string;
  /** Node that the token was made on; not told by API servers before 1.30. */
  readonly node?: string;
}

/** The pod that was dialled, as the API server has it. */
export interface DialledPod extends PodIdentity {
  /** Addresses of the pod. */
  readonly addresses: readonly string[];
}

/**
 * Why a request is not granted; undefined when it is. All of it has to name the very pod that was dialled: the token, the
 * names and the addresses in the request, the address that answered. A key taken from another pod or node fails here,
 * whichever of them it can offer.
 */
export function refusalOf(
  request: Pick<SignedRequest, 'uris' | 'addresses'>,
  token: TokenPod,
  dialled: DialledPod,
  address: string,
): string | undefined {
  const who = `pod ${dialled.namespace}/${dialled.pod}`;
  if (token.namespace !== dialled.namespace || token.pod !== dialled.pod || token.podUID !== dialled.podUID)
    return `the token is one of pod ${token.namespace}/${token.pod} (${token.podUID}), dialled was ${who} (${dialled.podUID})`;
  if (token.node !== undefined && token.node !== dialled.node)
    return `the token was made on node ${token.node}, ${who} runs on ${dialled.node}`;
  if (!sameNames(request.uris, podURIs(dialled))) return `the request asks for names that are not those of ${who}`;
  const own = new Set(dialled.addresses.map(plainHost));
  const foreign = request.addresses.find((asked) => !own.has(plainHost(asked)));
  if (foreign !== undefined) return `the request asks for the address ${foreign}, which ${who} does not have`;
  if (!own.has(plainHost(address))) return `${address} was dialled, which ${who} does not have`;
  return undefined;
}
