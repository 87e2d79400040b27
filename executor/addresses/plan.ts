/** What a planner answers: writes in their order, and what holds now that people should know. */
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';
import type { LedgerRef } from './api.ts';
import type { LedgerView, View } from './objects.ts';

export interface OwnerReference extends JsonObject {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
}

/** A change of metadata and spec; members that are absent stay. */
export interface LedgerPatch {
  /** The whole list. */
  readonly finalizers?: readonly string[];
  /** The whole list. */
  readonly ownerReferences?: readonly OwnerReference[];
  readonly labels?: Readonly<Record<string, string>>;
  /** null takes one away. */
  readonly annotations?: Readonly<Record<string, string | null>>;
  /** JSON merge patch of what a driver owns (RFC 7396): null removes. */
  readonly spec?: JsonObject;
  /** null takes the claimRef away. */
  readonly claimRef?: { readonly namespace?: string; readonly name?: string; readonly uid: string } | null;
}

/** Something that happened once, told after the write that made it happen. */
export interface LedgerEvent<About extends View = LedgerView> {
  readonly about: About;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

/**
 * What has to be true for a write, beyond what the version of its object guards: an object that is taken to be gone, or to
 * be there. It is read anew right before; a watch that is late must not cost a live claim its address.
 */
export type Confirmation =
  /** Under the name is the object with this UID; undefined: none. */
  | { readonly type: 'identity'; readonly ref: LedgerRef; readonly uid: string | undefined }
  /** The object is as the ledger knows it. */
  | { readonly type: 'version'; readonly ref: LedgerRef }
  | { readonly type: 'noAddressOfClass'; readonly className: string };

interface Write<About extends View> {
  readonly confirm?: readonly Confirmation[];
  readonly events?: readonly LedgerEvent<About>[];
  /** A Warning that holds while the write is refused, with the message of who refuses it. */
  readonly refused?: (message: string) => LedgerEvent<About>;
  /** While the write is under way, no other pass of this process plans with the target: it would only come too late. */
  readonly reserves?: true;
}

export type LedgerAction<About extends View = LedgerView> =
  | (Write<About> & { readonly type: 'patch'; readonly target: About; readonly patch: LedgerPatch })
  /** The whole new status. */
  | (Write<About> & { readonly type: 'status'; readonly target: About; readonly status: JsonObject })
  | (Write<About> & { readonly type: 'delete'; readonly target: About })
  /** An object that is not there. If one of its name is, it is read, and the pass plans again. */
  | (Write<About> & { readonly type: 'create'; readonly object: KubeObject });

export interface LedgerPlan<About extends View = LedgerView> {
  readonly actions: readonly LedgerAction<About>[];
  /** What holds now, Warnings mostly. Each is told when it begins to hold, and not again while it does. */
  readonly warnings: readonly LedgerEvent<About>[];
  /** Look again after so many milliseconds, though nothing changes. */
  readonly againMs?: number;
}

export const nothing: LedgerPlan<never> = { actions: [], warnings: [] };
