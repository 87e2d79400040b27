import { limits } from '../../constructs/api/constants.ts';
import { type PayloadObject, payloadObjectId } from '../../constructs/api/payload.ts';
import { readIndex } from '../../constructs/api/payload-codec.ts';
import { type DepartedObject, readTreeIndex, type Tree, treeFile } from '../../constructs/api/tree.ts';
import { isObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';

/** The role that a binding gives, as the tree has it; whoever touches the binding must be allowed to give it. */
function bindsOf(tree: Tree, folder: string, entry: PayloadObject): { binds?: string } {
  const path = `${folder}/${entry.yaml}`;
  const bytes = /^(Cluster)?RoleBinding$/.test(entry.kind) ? tree.get(path) : undefined;
  if (bytes === undefined) return {};
  const binding = parseYaml(Buffer.from(bytes).toString('utf8'), path).documents[0]?.value;
  const ref = isObject(binding) && isObject(binding.roleRef) ? binding.roleRef : {};
  return typeof ref.kind === 'string' && typeof ref.name === 'string' ? { binds: `${ref.kind}/${ref.name}` } : {};
}

/** Objects that a payload of the tree names; none when its index can not be read. */
function namedIn(tree: Tree, folder: string, index: Uint8Array): DepartedObject[] {
  const read = readIndex(index);
  if (!read.ok) return [];
  const entries = read.value.content.phases.flatMap(({ objects }) => objects).filter(({ absent }) => !absent);
  return entries.map((entry) => ({ id: payloadObjectId(entry), ...bindsOf(tree, folder, entry) }));
}

/** What the tree says that left before it. */
function leftBefore(tree: Tree): readonly DepartedObject[] {
  const bytes = tree.get(treeFile);
  const read = bytes === undefined ? undefined : readTreeIndex(bytes);
  return read?.ok === true ? read.value.departed : [];
}

/**
 * Objects that earlier payloads of this tree named and the new ones do not, in the order in which they left. Until the new
 * payload is accepted, perhaps days later after an approval, the old one is enforced, and then its objects are removed or let go: so
 * the list only grows, and the oldest leave it when it is full. A tree without a predecessor starts with none.
 */
export function departedObjects(previous: Tree | undefined, current: ReadonlySet<string>): DepartedObject[] {
  if (previous === undefined) return [];
  const named = [...previous].flatMap(([path, bytes]) => {
    const folder = /^(payload\/[^/]+)\/index\.json$/.exec(path)?.[1];
    return folder === undefined ? [] : namedIn(previous, folder, bytes);
  });
  const all = [...leftBefore(previous), ...named.sort((a, b) => (a.id < b.id ? -1 : 1))];
  const departed = new Map(all.map((object) => [object.id, object]));
  return [...departed.values()].filter(({ id }) => !current.has(id)).slice(-limits.objects);
}
