/** The API server as an engine of the ledger needs it: a client in a cluster, a model in tests. */
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';
import type { View } from './objects.ts';
import type { LedgerPatch } from './plan.ts';

export interface LedgerRef {
  /** Absent: that of the ledger. */
  readonly apiVersion?: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/**
 * `stale`: the object is not as the write was decided on; nothing was written. `refused`: no retry helps before something
 * changes. `failed`: it may have happened, or not. `exists`: an object of that name is there, and none was made.
 */
export type LedgerWrite =
  | { readonly type: 'written'; readonly object: KubeObject }
  | { readonly type: 'removed' }
  | { readonly type: 'stale' }
  | { readonly type: 'gone' }
  | { readonly type: 'exists' }
  /** `invalid`: the object itself is wrong for this server, whoever sends it. */
  | { readonly type: 'refused'; readonly message: string; readonly invalid?: true }
  | { readonly type: 'failed'; readonly message: string };

export type LedgerRead =
  | { readonly type: 'found'; readonly object: KubeObject }
  | { readonly type: 'absent' }
  | { readonly type: 'failed'; readonly message: string };

/** Every write of an object is of the version that is given, and of no other. Reads come from no cache. */
export interface LedgerApi {
  create(object: KubeObject, signal: AbortSignal): Promise<LedgerWrite>;
  patch(target: KubeObject, patch: LedgerPatch, signal: AbortSignal): Promise<LedgerWrite>;
  status(target: KubeObject, status: JsonObject, signal: AbortSignal): Promise<LedgerWrite>;
  remove(target: KubeObject, signal: AbortSignal): Promise<LedgerWrite>;
  read(ref: LedgerRef, signal: AbortSignal): Promise<LedgerRead>;
  /** All addresses there are. */
  addresses(
    signal: AbortSignal,
  ): Promise<readonly KubeObject[] | { readonly type: 'failed'; readonly message: string }>;
}

export const refOfView = ({ object, kind, namespace, name }: View): LedgerRef => ({
  apiVersion: object.apiVersion,
  kind,
  ...(namespace === undefined ? {} : { namespace }),
  name,
});
