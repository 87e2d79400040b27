import { X509Certificate } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { keyUsages, sameNames, urisOf } from '../../constructs/api/evidence/identity.ts';
import type { KeyPair } from '../pki/certificates.ts';
import { isUnreached } from './way.ts';

/** TLS over a stream that is open already, and who is at its other end. */

/** `known`: an authority vouches for it. `new`: only its own key does. `stale`: by somebody unknown, or no longer valid. */
export type Peer =
  | { readonly type: 'known'; readonly socket: TLSSocket; readonly certificate: X509Certificate }
  | { readonly type: 'new'; readonly socket: TLSSocket; readonly certificate: X509Certificate }
  | { readonly type: 'stale'; readonly socket: TLSSocket; readonly why: string };

export type Handshake =
  | { readonly type: 'peer'; readonly peer: Peer }
  | { readonly type: 'untrusted'; readonly message: string }
  /** There was nobody to shake hands with. */
  | { readonly type: 'unreachable'; readonly message: string }
  /** The stream ended before hands were shaken. */
  | { readonly type: 'letGo'; readonly message: string }
  | { readonly type: 'hung' };

export interface Secrets {
  /** PEM of all that are believed. */
  readonly authorities: string;
  readonly identity: KeyPair;
}

/** Codes of a certificate that vouches for nothing but itself. */
const ownWord = new Set(['DEPTH_ZERO_SELF_SIGNED_CERT']);

/**
 * Shakes hands. Every certificate is let through here and judged below: what may be asked of a peer depends on who
 * vouches for it. The signal's end means that the peer does not answer.
 */
export function shakeHands(
  stream: Duplex,
  { authorities, identity }: Secrets,
  signal: AbortSignal,
): Promise<Handshake> {
  // A stream may have ended before anybody listened for that.
  if (stream.destroyed) return Promise.resolve(failed(stream.errored));
  return new Promise((resolve) => {
    const options: ConnectionOptions = {
      socket: stream,
      ca: authorities,
      cert: identity.certificate,
      key: identity.key,
      minVersion: 'TLSv1.3',
      // An authority that was brought along need not be a root.
      allowPartialTrustChain: true,
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    };
    const socket = connect(options);
    const end = (answer: Handshake): void => {
      signal.removeEventListener('abort', aborted);
      if (answer.type !== 'peer') {
        socket.destroy();
        stream.destroy();
      }
      resolve(answer);
    };
    const aborted = (): void => end({ type: 'hung' });
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) return aborted();
    socket.on('error', (error) => end(failed(error)));
    // A stream that ends without an error ends TLS without one as well.
    socket.once('close', () => end(failed(null)));
    socket.once('secureConnect', () => end(peerOf(socket)));
  });
}

const letGoCodes: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);
const letGoText = 'the peer closed the connection without an answer';

function failed(error: NodeJS.ErrnoException | null): Handshake {
  if (error === null || letGoCodes.has(error.code)) return { type: 'letGo', message: letGoText };
  return isUnreached(error)
    ? { type: 'unreachable', message: error.message }
    : { type: 'untrusted', message: refusalBehind(error) };
}

function peerOf(socket: TLSSocket): Handshake {
  const { raw } = socket.getPeerCertificate();
  if (raw === undefined) return { type: 'untrusted', message: 'the peer shows no certificate' };
  const certificate = new X509Certificate(raw);
  const error = socket.authorizationError as unknown;
  const code = typeof error === 'string' ? error : ((error as NodeJS.ErrnoException | null)?.code ?? String(error));
  if (socket.authorized) {
    const server = sameNames(certificate.keyUsage ?? [], [keyUsages.server]) && !certificate.ca;
    return server
      ? { type: 'peer', peer: { type: 'known', socket, certificate } }
      : { type: 'untrusted', message: 'the certificate of the peer is not one of a probe' };
  }
  if (ownWord.has(code)) return { type: 'peer', peer: { type: 'new', socket, certificate } };
  return { type: 'peer', peer: { type: 'stale', socket, why: code } };
}

/** What an error says of a peer that let go; nothing that it sent is repeated. */
export function refusalBehind(error: NodeJS.ErrnoException): string {
  const code = error.code ?? '';
  if (/ALERT_UNKNOWN_CA|CERTIFICATE_UNKNOWN|BAD_CERTIFICATE/.test(code))
    return 'the peer does not believe the executor';
  if (/ALERT_CERTIFICATE_EXPIRED/.test(code))
    return "the peer takes the executor's certificate for expired: look at its clock";
  if (letGoCodes.has(code)) return letGoText;
  return code === '' ? 'the connection failed' : code;
}

/** Names in a certificate. */
export const namesOf = (certificate: X509Certificate): string[] => urisOf(certificate.subjectAltName);
