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

/** Paths that the previous publisher wrote: those of its list, and the list itself. */
export function publishedPaths(list: Uint8Array | undefined): { paths: Set<string>; problems: Problem[] } {
  if (list === undefined) return { paths: new Set(), problems: [] };
  const read = readTreeIndex(list);
  if (!read.ok) return { paths: new Set(), problems: read.problems };
  return { paths: new Set([...read.value.files.map((file) => file.path), treeFile]), problems: [] };
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
