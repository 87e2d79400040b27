import type { Digest } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { HttpFailure } from '../http/types.ts';

/** Why a registry did not give what was asked. Messages hold no secrets. */
export interface RegistryFailure {
  readonly kind: 'notFound' | 'denied' | 'refused' | 'unavailable' | 'tooLarge' | 'invalid' | 'digestMismatch';
  readonly message: string;
  readonly remedy?: string;
}

/** An outcome that failed. */
export interface RegistryRefusal {
  readonly ok: false;
  readonly failure: RegistryFailure;
}

export type RegistryOutcome<T> = { readonly ok: true; readonly value: T } | RegistryRefusal;

/** An outcome that failed. */
export function failed(kind: RegistryFailure['kind'], message: string, remedy?: string): RegistryRefusal {
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

/** Media types of lists of manifests. */
export const indexTypes: readonly string[] = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];

/** Media types of manifests of one image or artifact. */
export const imageTypes: readonly string[] = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];

/** Largest manifest or index, in bytes. */
export const maxManifestBytes = 4 * 1024 * 1024;

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
