/** Where payloads come from. The inbox of ConfigMaps is one source; an artifact of Flux can be another. */
import type { Problem } from '../../constructs/lib/problems.ts';

export interface WantedPayload {
  readonly release: string;
  /** Content digest. */
  readonly digest: string;
}

/** `incomplete`: it has not come, or not all of it; that is waited for. Nothing about the bytes is verified yet. */
export type Fetched =
  | { readonly type: 'archive'; readonly archive: Uint8Array }
  | { readonly type: 'incomplete'; readonly problem: Problem }
  | { readonly type: 'broken'; readonly problems: readonly Problem[] }
  | { readonly type: 'unavailable'; readonly problem: Problem };

export interface PayloadSource {
  /** Reads the bytes of a payload, uncached. Rejects only with the signal's reason. */
  fetch(wanted: WantedPayload, signal: AbortSignal): Promise<Fetched>;
}
