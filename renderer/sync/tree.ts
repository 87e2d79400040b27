import { groupKindOf } from '../../constructs/api/plan.ts';
import {
  type DepartedObject,
  type Tree,
  type TreeIndex,
  treeFile,
  type Unit,
  unitFolder,
} from '../../constructs/api/tree.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { identityOf, manifestFileName } from '../../constructs/lib/names.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';

export const unitFiles = (unit: Unit, objects: readonly JsonObject[]): Map<string, Uint8Array> =>
  objectFiles(unitFolder(unit), objects);

/** One file per object. @throws TypeError when two objects would share a file. */
export function objectFiles(folder: string, objects: readonly JsonObject[]): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const object of objects) {
    const path = `${folder}/${manifestFileName(identityOf(object))}`;
    if (files.has(path)) throw new TypeError(`two objects of kind ${groupKindOf(identityOf(object))} share ${path}`);
    files.set(path, Buffer.from(dumpYaml(object)));
  }
  return files;
}

/** Git must change no byte, neither line endings nor by a filter: digests are over bytes. */
const gitAttributes = '* -text -ident -filter -working-tree-encoding\n';

/** The whole tree of a cluster: the files given, `.gitattributes`, and the list of them all. */
export function makeTree(
  cluster: string,
  releases: readonly { name: string; digest: string }[],
  files: ReadonlyMap<string, Uint8Array>,
  departed: readonly DepartedObject[] = [],
): Tree {
  const all = new Map([...files, ['.gitattributes', Buffer.from(gitAttributes)] as const]);
  const sorted = [...all].sort(([a], [b]) => (a < b ? -1 : 1));
  const index: TreeIndex = {
    formatVersion: 1,
    cluster,
    releases: releases.map(({ name, digest }) => ({ name, digest })),
    departed: [...departed],
    files: sorted.map(([path, bytes]) => ({ path, sha256: sha256Digest(bytes).slice('sha256:'.length) })),
  };
  const list = Buffer.from(`${JSON.stringify(index, null, 2)}\n`);
  return new Map([...sorted, [treeFile, list] as const].sort(([a], [b]) => (a < b ? -1 : 1)));
}
