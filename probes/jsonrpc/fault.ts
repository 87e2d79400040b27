/** What can go wrong between this process and a daemon, as values: a caller that gets a fault has no answer to judge. */

/**
 * `timeout`: accepted, but no answer within the limit. `refused`: nobody listens, or the way is broken. `denied`: trust or
 * permission. `protocol`: the peer says what its protocol does not allow. `tooLarge`: beyond a limit of ours. `closed`: the
 * peer went away meanwhile. `aborted`: the caller gave up.
 */
export type FaultCode = 'timeout' | 'refused' | 'denied' | 'protocol' | 'tooLarge' | 'closed' | 'aborted';

export interface Fault {
  readonly type: 'fault';
  readonly code: FaultCode;
  readonly message: string;
}

/** What something answers that may fail on the way. */
export type Result<T> = { readonly type: 'ok'; readonly value: T } | Fault;

export const fault = (code: FaultCode, message: string): Fault => ({ type: 'fault', code, message });
export const ok = <T>(value: T): { readonly type: 'ok'; readonly value: T } => ({ type: 'ok', value });

const refused = new Set([
  'ENOENT',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'ENOTSOCK',
]);
const closed = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);
const permission = new Set(['EACCES', 'EPERM']);
// OpenSSL's words for a certificate that the other side, or ours, does not accept; verification errors of Node have no prefix.
const trust =
  /ALERT|CERT|ISSUER|SELF_SIGNED|UNABLE_TO_|_SIGNATURE|CRL|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED/;

/** The fault behind an error of a socket. */
export function socketFault(error: unknown, where: string): Fault {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const said = `${where}: ${message}`;
  if (refused.has(code)) return fault('refused', said);
  if (closed.has(code)) return fault('closed', said);
  // EAGAIN: a unix socket whose queue of callers is full, because the daemon takes none.
  if (code === 'ETIMEDOUT' || code === 'EAGAIN') return fault('timeout', said);
  if (permission.has(code) || trust.test(code)) return fault('denied', said);
  return fault('protocol', said);
}
