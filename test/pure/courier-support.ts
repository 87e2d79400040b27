import type { Tree } from '../../constructs/api/tree.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { type Copy, renderFolder } from './render-support.ts';

/** Lines of `spec.delivery` in place of the ones that the plain cluster has. */
export function deliverBy(copy: Copy, lines: readonly string[]): void {
  const text = copy.read('cluster.yaml');
  const start = text.indexOf('    repository:');
  const end = text.indexOf('    author:');
  copy.write(
    'cluster.yaml',
    `${text.slice(0, start)}${lines.map((line) => `    ${line}\n`).join('')}${text.slice(end)}`,
  );
}

export async function treeOf(copy: Copy, previous?: Tree): Promise<Tree> {
  const outcome = await renderFolder(copy.folder, previous === undefined ? {} : { previous });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems, null, 1));
  return outcome.rendered.tree;
}

export async function problemsOf(copy: Copy): Promise<readonly Problem[]> {
  const outcome = await renderFolder(copy.folder);
  return outcome.ok ? [] : outcome.problems;
}

/** Objects below a folder of a tree, by their path in it. */
export function objectsIn(tree: Tree, folder: string): Map<string, JsonObject> {
  const found = new Map<string, JsonObject>();
  for (const [path, bytes] of tree) {
    if (!path.startsWith(`${folder}/`)) continue;
    const value = parseYaml(Buffer.from(bytes).toString(), path).documents[0]?.value;
    if (isObject(value)) found.set(path.slice(folder.length + 1), value);
  }
  return found;
}

/** The member of an object that a path of keys leads to. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (found, key) => (typeof found === 'object' && found !== null ? (found as Record<string, unknown>)[key] : undefined),
    value,
  );
}
