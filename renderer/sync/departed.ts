import { readIndex } from '../../constructs/api/payload-codec.ts';
import { groupKindOf } from '../../constructs/api/plan.ts';
import { readTreeIndex, type Tree, treeFile } from '../../constructs/api/tree.ts';

/**
 * Kinds, as `group/Kind`, that earlier payloads of this tree held and the new ones do not. When the last object of a
 * kind leaves the payloads, the executor must still be able to remove it, perhaps days later, after an approval; so the
 * list only grows. A tree without a predecessor starts with none.
 */
export function departedKinds(previous: Tree | undefined, current: ReadonlySet<string>): string[] {
  const kinds = new Set<string>();
  for (const [path, bytes] of previous ?? []) {
    if (path === treeFile) {
      const read = readTreeIndex(bytes);
      if (read.ok) for (const kind of read.value.departedKinds) kinds.add(kind);
    } else if (/^payload\/[^/]+\/index\.json$/.test(path)) {
      const read = readIndex(bytes);
      if (read.ok) for (const o of read.value.content.phases.flatMap((p) => p.objects)) kinds.add(groupKindOf(o));
    }
  }
  return [...kinds].filter((kind) => !current.has(kind)).sort();
}
