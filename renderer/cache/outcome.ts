/**
 * Whole renders that went well before. Rendering is a function of the files of a folder, of this program, and, where a tree
 * stands already, of that tree: the digests of all of them together name its outcome. What is kept is not the tree, only that
 * it came out as it stands, and what was told of it.
 */
import type { Tree } from '../../constructs/api/tree.ts';
import { type Digest, digestOf, sha256Digest } from '../../constructs/lib/digest.ts';
import { isObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { ClusterFiles } from '../load/source.ts';
import type { RenderCache } from './store.ts';

/** What people are told of a release. */
export interface ReleaseSummary {
  readonly name: string;
  readonly digest: string;
  readonly objects: number;
  readonly phases: number;
}

export interface KnownOutcome {
  readonly cluster: string;
  /** Where the tree goes below the folder of all trees. */
  readonly path: string;
  readonly releases: readonly ReleaseSummary[];
  readonly warnings: readonly Problem[];
}

export interface OutcomeCache {
  /** What rendering these files gives, whatever stands already. */
  read(source: ClusterFiles): Promise<KnownOutcome | undefined>;
  write(source: ClusterFiles, outcome: KnownOutcome): Promise<void>;
  /** Whether rendering these files over exactly this tree was seen to leave it as it stands. */
  leaves(source: ClusterFiles, standing: Tree): Promise<boolean>;
  writeLeaves(source: ClusterFiles, standing: Tree): Promise<void>;
}

const listDigest = (files: ReadonlyMap<string, Uint8Array>): Digest =>
  digestOf([...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, bytes]) => [path, sha256Digest(bytes)]));

/** Problems name files as the folder is called, so its name is part of the question. */
const filesOf = ({ folder, files }: ClusterFiles): JsonValue => ({ folder, files: listDigest(files) });

export function outcomeCache(cache: RenderCache): OutcomeCache {
  return {
    async read(source) {
      const found = await cache.read('outcome', filesOf(source));
      if (!isObject(found) || typeof found.cluster !== 'string' || typeof found.path !== 'string') return undefined;
      if (!Array.isArray(found.releases) || !Array.isArray(found.warnings)) return undefined;
      return found as unknown as KnownOutcome;
    },
    write: (source, outcome) => cache.write('outcome', filesOf(source), outcome as unknown as JsonValue),
    async leaves(source, standing) {
      return (await cache.read('outcome', [filesOf(source), listDigest(standing)])) === true;
    },
    writeLeaves: (source, standing) => cache.write('outcome', [filesOf(source), listDigest(standing)], true),
  };
}
