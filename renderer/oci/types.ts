import type { Digest } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { HttpFailure } from '../http/types.ts';

/** Why a registry did not give what was asked. Messages hold no secrets. */
export interface RegistryFailure {
  readonly kind: 'notFound' | 'denied' | 'refused' | 'unavailable' | 'tooLarge' | 'invalid' | 'digestMismatch';
  readonly message: string;
  readonly remedy?: string;
}

export type RegistryOutcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: RegistryFailure };

/** An outcome that failed. */
export function failed(
  kind: RegistryFailure['kind'],
  message: string,
  remedy?: string,
): { ok: false; failure: RegistryFailure } {
  return { ok: false, failure: { kind, message, ...(remedy === undefined ? {} : { remedy }) } };
}

/** A manifest or index, identified by the digest of its bytes. */
export interface Manifest {
  readonly digest: Digest;
  readonly mediaType: string;
  readonly kind: 'index' | 'image';
  readonly content: JsonObject;
  readonly size: number;
}

/** The failure of a request that got no answer. */
export function httpFailure(failure: HttpFailure): RegistryFailure {
  const kind =
    failure.kind === 'refused' || failure.kind === 'redirect'
      ? 'refused'
      : failure.kind === 'tooLarge'
        ? 'tooLarge'
        : 'unavailable';
  const remedy = failure.remedy === undefined ? {} : { remedy: failure.remedy };
  return { kind, message: `${failure.url}: ${failure.message}`, ...remedy };
}
