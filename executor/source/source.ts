/** Where payloads come from. The inbox of ConfigMaps is one source; an artifact of Flux can be another. */
import type { ReleaseSpec } from '../../constructs/api/release.ts';
import type { Problem } from '../../constructs/lib/problems.ts';

export interface WantedPayload {
  readonly release: string;
  /** Content digest. */
  readonly digest: string;
}

/** Which state of a source bytes came from, in the source's own words. */
export interface SourceRevision {
  readonly revision: string;
  /** Revision of what the source was made from. */
  readonly originRevision?: string;
}

/** `incomplete`: it has not come, or not all of it; that is waited for. Nothing about the bytes is verified yet. */
export type Fetched =
  | ({ readonly type: 'archive'; readonly archive: Uint8Array } & Partial<SourceRevision>)
  | { readonly type: 'incomplete'; readonly problem: Problem }
  | { readonly type: 'broken'; readonly problems: readonly Problem[] }
  | { readonly type: 'unavailable'; readonly problem: Problem };

export interface PayloadSource {
  /** Reads the bytes of a payload, uncached. Rejects only with the signal's reason. */
  fetch(wanted: WantedPayload, signal: AbortSignal): Promise<Fetched>;
}

/** The sources that a Release can name. */
export interface PayloadSources {
  /**
   * Reads the bytes of a payload from the source that the spec names.
   * @param told hears of a source's revision before anything of it is fetched.
   */
  fetch(
    wanted: WantedPayload & { readonly from: ReleaseSpec['source'] },
    signal: AbortSignal,
    told: (revision: SourceRevision) => void,
  ): Promise<Fetched>;
}
