/** Opens the byte stream to a daemon. */
import { X509Certificate } from 'node:crypto';
import { connect, isIP, type Socket } from 'node:net';
import { type PeerCertificate, connect as secure, type TLSSocket } from 'node:tls';
import { type Clock, rest } from '../../constructs/lib/clock.ts';
import { type Address, formatAddress } from './address.ts';
import { fault, ok, type Result, socketFault } from './fault.ts';

/** What this side shows and what it trusts, PEM. */
export interface TlsIdentity {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** SHA-256 of the only certificate that is accepted, in hexadecimal digits; any of the authority without. */
  readonly pin?: string;
}

export interface DialOptions {
  readonly clock: Clock;
  readonly limitMs: number;
  readonly signal?: AbortSignal;
  /** Needed for `ssl:`. */
  readonly tls?: TlsIdentity;
}

/**
 * Servers of OVN carry one certificate for all of them, without names in it: who they are is said by the authority, and by
 * the pin where there is one. The chain is verified in any case.
 */
function checkIdentity(pin: string | undefined, peer: PeerCertificate): Error | undefined {
  if (pin === undefined) return undefined;
  const seen = new X509Certificate(peer.raw).fingerprint256.replaceAll(':', '').toLowerCase();
  if (seen === pin.replaceAll(':', '').toLowerCase()) return undefined;
  return Object.assign(new Error(`another certificate than the pinned one: ${seen}`), { code: 'CERT_NOT_PINNED' });
}

function open(address: Address, tls: TlsIdentity | undefined): Result<{ socket: Socket; event: string }> {
  if (address.type === 'unix') return ok({ socket: connect({ path: address.path }), event: 'connect' });
  const { host, port } = address;
  if (address.type === 'tcp') return ok({ socket: connect({ host, port }), event: 'connect' });
  if (tls === undefined)
    return fault('denied', `${formatAddress(address)}: no certificate to show and no authority to trust`);
  try {
    const socket: TLSSocket = secure({
      host,
      port,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ca: tls.ca,
      cert: tls.cert,
      key: tls.key,
      minVersion: 'TLSv1.2',
      rejectUnauthorized: true,
      checkServerIdentity: (_host, peer) => checkIdentity(tls.pin, peer),
    });
    return ok({ socket, event: 'secureConnect' });
  } catch {
    // The message of OpenSSL may quote what it could not read.
    return fault('denied', `${formatAddress(address)}: the certificate, its key or the authority cannot be read`);
  }
}

/**
 * Connects. A server that refuses the certificate shown may say so only with the first answer (TLS 1.3): that fault comes
 * from the connection.
 */
export async function dial(address: Address, options: DialOptions): Promise<Result<Socket>> {
  const { clock, limitMs, signal } = options;
  const where = formatAddress(address);
  if (signal?.aborted) return fault('aborted', `${where}: given up`);
  const opened = open(address, options.tls);
  if (opened.type !== 'ok') return opened;
  const { socket, event } = opened.value;
  const outcome = Promise.withResolvers<Result<Socket>>();
  const settled = new AbortController();
  const failed = (error: unknown): void => outcome.resolve(socketFault(error, where));
  const giveUp = (): void => outcome.resolve(fault('aborted', `${where}: given up`));
  socket.once(event, () => outcome.resolve(ok(socket)));
  // Stays: an error between here and whoever takes the socket must not go unheard.
  socket.on('error', failed);
  socket.once('close', () => outcome.resolve(fault('closed', `${where}: closed by the peer`)));
  signal?.addEventListener('abort', giveUp, { once: true });
  void rest(clock, limitMs, settled.signal).then(() =>
    outcome.resolve(fault('timeout', `${where}: no connection within ${limitMs} ms`)),
  );
  const result = await outcome.promise;
  settled.abort();
  signal?.removeEventListener('abort', giveUp);
  if (result.type !== 'ok') socket.destroy();
  return result;
}
