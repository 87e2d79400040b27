import { readTreeIndex, type Tree, treeFile } from '../../constructs/api/tree.ts';
import type { Problem } from '../../constructs/lib/problems.ts';

/** What publishing would do to the folder of a cluster. */
export interface Changes {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

export const isEmpty = (changes: Changes): boolean =>
  changes.added.length + changes.changed.length + changes.removed.length === 0;

/** Paths that the previous publisher of `cluster` wrote: those of its list, and the list itself. */
export function publishedPaths(
  list: Uint8Array | undefined,
  cluster: string,
): { paths: Set<string>; problems: Problem[] } {
  if (list === undefined) return { paths: new Set(), problems: [] };
  const read = readTreeIndex(list);
  if (!read.ok) return { paths: new Set(), problems: read.problems };
  if (read.value.cluster !== cluster) return { paths: new Set(), problems: [taken(read.value.cluster, cluster)] };
  return { paths: new Set([...read.value.files.map((file) => file.path), treeFile]), problems: [] };
}

const taken = (owner: string, cluster: string): Problem => ({
  reason: 'TreeTaken',
  message: `the tree of cluster ${owner} stands here, and cluster ${cluster} would be written over it`,
  file: treeFile,
  remedy:
    'give each cluster a folder of its own (spec.delivery.path); if the cluster was renamed, or the old one is gone, remove the old tree first',
});

/** Clusters whose trees would go to one place: a problem for each that is not the first. */
export function sharedPlaces(trees: readonly { readonly cluster: string; readonly place: string }[]): Problem[] {
  const first = new Map<string, string>();
  return trees.flatMap(({ cluster, place }): Problem[] => {
    const owner = first.get(place);
    if (owner === undefined) first.set(place, cluster);
    if (owner === undefined) return [];
    return [
      {
        reason: 'TreeTaken',
        message: `clusters ${owner} and ${cluster} would be written over one another`,
        path: 'spec.delivery.path',
        value: place,
        remedy: 'give each cluster a folder of its own (spec.delivery.path), and another metadata.name',
      },
    ];
  });
}

/**
 * The difference from what stands in the folder to a tree. Files that nobody published are left alone; one that is in
 * the way is a problem, unless it already is what would be written.
 */
export function compareTrees(
  standing: Tree,
  published: ReadonlySet<string>,
  next: Tree,
): { changes: Changes; problems: Problem[] } {
  const problems: Problem[] = [];
  const added: string[] = [];
  const changed: string[] = [];
  for (const [path, bytes] of next) {
    const before = standing.get(path);
    if (before === undefined) added.push(path);
    else if (Buffer.compare(before, bytes) !== 0) {
      changed.push(path);
      if (!published.has(path))
        problems.push({
          reason: 'ForeignFile',
          message: 'the file was not published by keelson and differs from what would be written',
          file: path,
          remedy: 'move it away, or publish to another folder (spec.delivery.path)',
        });
    }
  }
  const removed = [...published].filter((path) => standing.has(path) && !next.has(path)).sort();
  return { changes: { added: added.sort(), changed: changed.sort(), removed }, problems };
}
