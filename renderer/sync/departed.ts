import { limits } from '../../constructs/api/constants.ts';
import { payloadObjectId } from '../../constructs/api/payload.ts';
import { readIndex } from '../../constructs/api/payload-codec.ts';
import { readTreeIndex, type Tree, treeFile } from '../../constructs/api/tree.ts';

/**
 * Ids of objects that earlier payloads of this tree named and the new ones do not, in the order in which they left. Until
 * the new payload is accepted, perhaps days later after an approval, the old one is enforced, and then its objects are removed: so
 * the list only grows, and the oldest leave it when it is full. A tree without a predecessor starts with none.
 */
export function departedObjects(previous: Tree | undefined, current: ReadonlySet<string>): string[] {
  const before: string[] = [];
  const left: string[] = [];
  for (const [path, bytes] of previous ?? []) {
    if (path === treeFile) {
      const read = readTreeIndex(bytes);
      if (read.ok) before.push(...read.value.departed);
    } else if (/^payload\/[^/]+\/index\.json$/.test(path)) {
      const read = readIndex(bytes);
      if (read.ok)
        left.push(...read.value.content.phases.flatMap((p) => p.objects.filter((o) => !o.absent).map(payloadObjectId)));
    }
  }
  return [...new Set([...before, ...left.sort()])].filter((id) => !current.has(id)).slice(-limits.objects);
}
