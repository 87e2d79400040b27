/** What a planner answers: writes in their order, and what holds now that people should know. */
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { AddressView, ClaimView, LedgerView } from './objects.ts';

/** A change of metadata and spec; members that are absent stay. */
export interface LedgerPatch {
  readonly finalizers?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  /** null takes the claimRef away. */
  readonly claimRef?: { readonly namespace?: string; readonly name?: string; readonly uid: string } | null;
}

/** Something that happened once, told after the write that made it happen. */
export interface LedgerEvent {
  readonly about: LedgerView;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

/**
 * What has to be true for a write, beyond what the version of its object guards: a claim that is taken to be gone, or an
 * address. It is read anew right before; a watch that is late must not cost a live claim its address.
 */
export type Confirmation =
  | { readonly type: 'claim'; readonly namespace: string; readonly name: string; readonly uid: string | undefined }
  /** The address is as the ledger knows it. */
  | { readonly type: 'address'; readonly name: string }
  | { readonly type: 'noAddressOfClass'; readonly className: string };

interface Write {
  readonly confirm?: readonly Confirmation[];
  readonly events?: readonly LedgerEvent[];
  /** While the write is under way, no other pass of this process plans with the target: it would only come too late. */
  readonly reserves?: true;
}

export type LedgerAction =
  | (Write & { readonly type: 'patch'; readonly target: LedgerView; readonly patch: LedgerPatch })
  /** The whole new status. */
  | (Write & { readonly type: 'status'; readonly target: AddressView | ClaimView; readonly status: JsonObject })
  | (Write & { readonly type: 'delete'; readonly target: AddressView });

export interface LedgerPlan {
  readonly actions: readonly LedgerAction[];
  /** Warnings that hold now. Each is told when it begins to hold, and not again while it does. */
  readonly warnings: readonly LedgerEvent[];
  /** Look again after so many milliseconds, though nothing changes. */
  readonly againMs?: number;
}

export const nothing: LedgerPlan = { actions: [], warnings: [] };
