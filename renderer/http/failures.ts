import { isObject } from '../../constructs/lib/json.ts';
import { redact } from '../../constructs/lib/redact.ts';
import { safeUrl } from './address.ts';
import type { HttpFailure } from './types.ts';

/** Raised inside one exchange by our own limits; becomes an {@link HttpFailure} at its edge. */
export class LimitError extends Error {
  readonly kind: 'tooLarge' | 'timeout' | 'truncated';
  readonly remedy: string | undefined;
  /** True when another attempt within the same total limit may succeed. */
  readonly transient: boolean;

  constructor(kind: LimitError['kind'], message: string, transient: boolean, remedy?: string) {
    super(message);
    this.kind = kind;
    this.transient = transient;
    this.remedy = remedy;
  }
}

/** What took a body as it arrived has failed: its own error is the `cause`, and no matter of the connection. */
export class SinkError extends Error {
  constructor(cause: unknown) {
    super('what takes the body failed', { cause });
  }
}

const tlsCodes = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|EPROTO$)/;
const truncatedCodes = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'ABORT_ERR', 'EPIPE']);
const transientCodes = new Set([
  ...truncatedCodes,
  'ECONNREFUSED',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

function codeOf(error: unknown): string {
  return isObject(error) && typeof error.code === 'string' ? error.code : '';
}

/** What went wrong, in words of ours: the library's message repeats the whole URL, so only the part behind it is used. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return redact(message.replace(/^request to \S+ failed, reason: /, '')) || codeOf(error) || 'the connection failed';
}

/** The failure that an exception of one exchange means, and whether to try again. `reading`: the head had arrived. */
export function classifyError(
  error: unknown,
  url: URL,
  reading: boolean,
): { failure: HttpFailure; transient: boolean } {
  const at = safeUrl(url);
  if (error instanceof LimitError)
    return {
      failure: {
        kind: error.kind,
        url: at,
        message: error.message,
        ...(error.remedy === undefined ? {} : { remedy: error.remedy }),
      },
      transient: error.transient,
    };
  const code = codeOf(error);
  if (tlsCodes.test(code))
    return {
      failure: {
        kind: 'tls',
        url: at,
        message: `the certificate or TLS handshake was refused: ${reasonOf(error)}`,
        remedy: 'give the certificate authority of the host as caFile',
      },
      transient: false,
    };
  if (reading && truncatedCodes.has(code))
    return {
      failure: { kind: 'truncated', url: at, message: 'the connection ended before the whole body had arrived' },
      transient: true,
    };
  return { failure: { kind: 'network', url: at, message: reasonOf(error) }, transient: transientCodes.has(code) };
}
