import { groupKindOf } from '../../constructs/api/plan.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { manifestFileName, type ObjectIdentity } from '../../constructs/lib/names.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';

/** A rendered tree: contents by path below the folder of the cluster, sorted by path. */
export type Tree = ReadonlyMap<string, Uint8Array>;

/** Lists all files of a tree but itself; publishing removes no file that the previous list does not name. */
export const treeFile = '.keelson/tree.json';

export const units = ['10-system', '20-releases', '30-specs'] as const;
export type Unit = (typeof units)[number];

/** The folder of a unit in the tree. */
export const unitFolder = (unit: Unit): string => `sync/${unit}`;

const identityOf = (object: JsonObject): ObjectIdentity => {
  const metadata = isObject(object.metadata) ? object.metadata : {};
  return {
    apiVersion: String(object.apiVersion),
    kind: String(object.kind),
    name: String(metadata.name),
    ...(typeof metadata.namespace === 'string' ? { namespace: metadata.namespace } : {}),
  };
};

/** One file per object. @throws TypeError when two objects would share a file. */
export function unitFiles(unit: Unit, objects: readonly JsonObject[]): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const object of objects) {
    const path = `${unitFolder(unit)}/${manifestFileName(identityOf(object))}`;
    if (files.has(path)) throw new TypeError(`two objects of kind ${groupKindOf(identityOf(object))} share ${path}`);
    files.set(path, Buffer.from(dumpYaml(object)));
  }
  return files;
}

export interface TreeIndex {
  readonly formatVersion: 1;
  readonly cluster: string;
  readonly releases: readonly { readonly name: string; readonly digest: string }[];
  readonly files: readonly { readonly path: string; readonly sha256: string }[];
}

/** Git must not change line endings: digests are over bytes. */
const gitAttributes = '* -text\n';

/** The whole tree of a cluster: the files given, `.gitattributes`, and the list of them all. */
export function makeTree(
  cluster: string,
  releases: readonly { name: string; digest: string }[],
  files: ReadonlyMap<string, Uint8Array>,
): Tree {
  const all = new Map([...files, ['.gitattributes', Buffer.from(gitAttributes)] as const]);
  const sorted = [...all].sort(([a], [b]) => (a < b ? -1 : 1));
  const index: TreeIndex = {
    formatVersion: 1,
    cluster,
    releases: releases.map(({ name, digest }) => ({ name, digest })),
    files: sorted.map(([path, bytes]) => ({ path, sha256: sha256Digest(bytes).slice('sha256:'.length) })),
  };
  const list = Buffer.from(`${JSON.stringify(index, null, 2)}\n`);
  return new Map([...sorted, [treeFile, list] as const].sort(([a], [b]) => (a < b ? -1 : 1)));
}
