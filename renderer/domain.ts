import type { Domain, Gate, InstallationEntry, PayloadObject, Requirement } from '../constructs/api/payload.ts';
import type { Tree } from '../constructs/api/tree.ts';
import type { Digest } from '../constructs/lib/digest.ts';
import type { JsonObject } from '../constructs/lib/json.ts';
import type { Problem } from '../constructs/lib/problems.ts';
import type { LoadedCluster } from './load/load.ts';

/** An object of a release before it is pinned, labelled and given a file. */
export interface ReleaseObject
  extends Partial<Pick<PayloadObject, 'keep' | 'conflict' | 'recreate' | 'createOnly' | 'absent'>> {
  readonly object: JsonObject;
  /** Where it comes from, for problems: a file, or a template of a chart. */
  readonly origin: string;
  readonly line?: number;
  readonly yieldFields?: readonly string[];
  readonly bind?: PayloadObject['bind'];
}

export interface ReleasePhase {
  readonly name: string;
  /** `30-central` */
  readonly dir: string;
  readonly gates: readonly Gate[];
  readonly objects: readonly ReleaseObject[];
}

/** What a domain renders of its specs: one release. */
export interface DomainRelease {
  readonly name: string;
  readonly domain: Domain;
  /** Phases without objects and gates are left out by the payload. */
  readonly phases: readonly ReleasePhase[];
  /** The digest over the objects is filled in where it is missing: that of the whole release. */
  readonly installations: readonly (Omit<InstallationEntry, 'manifestDigest'> & { readonly manifestDigest?: string })[];
  readonly requires: readonly Requirement[];
  readonly spans: readonly { readonly from: string; readonly to: string }[];
  /** Charts that took part. */
  readonly charts: readonly Digest[];
  readonly helm?: string;
  readonly filteredHooks: readonly string[];
  /** Repositories that the charts are known to name in text (`registry/repository`). */
  readonly imageRepositories?: readonly string[];
}

export interface DomainOutput {
  readonly releases: readonly DomainRelease[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Warnings about the change from what was published before; they are told once. */
  readonly changes?: readonly Problem[];
}

/** Renders the specs of one domain. Pure but for the bytes it asks for, which are locked by digest. */
export interface DomainRenderer {
  readonly domain: Domain;
  /** `group/Kind` of the specs that it renders. */
  readonly kinds: readonly string[];
  /** @param previous what was published before, where that is known; nothing that is rendered hangs on it. */
  render(loaded: LoadedCluster, signal?: AbortSignal, previous?: Tree): Promise<DomainOutput>;
}

/** Kinds that may stand at the top of a cluster folder, given the domains that are there to render them. */
export const specKinds = (domains: readonly DomainRenderer[]): ReadonlySet<string> =>
  new Set(domains.flatMap((domain) => domain.kinds));
