import { resolve } from 'node:path';
import type { Cluster } from '../constructs/api/cluster.ts';
import { readTreeIndex, type Tree, treeFile } from '../constructs/api/tree.ts';
import { sha256Hex } from '../constructs/lib/digest.ts';
import { type Problem, ProblemError, refuseProblems } from '../constructs/lib/problems.ts';
import { readTreeFolder } from '../gitops/publish/folder.ts';
import { clusterFolder, readFolder } from './clusters.ts';
import type { CommonOptions, Invocation } from './invocation.ts';
import { clusterOf, placeOf, readPublished } from './published.ts';

export interface TreeOptions extends CommonOptions {
  readonly from?: string;
  readonly revision?: string;
}

export interface ChosenTree {
  readonly cluster: Cluster;
  readonly tree: Tree;
  /** How people name it: a commit or a folder. */
  readonly name: string;
}

/**
 * The rendered tree that a command works on: a folder, or what is published. It is whole: every file is the one that
 * its list names. @throws ProblemError
 */
export async function chooseTree(invocation: Invocation, options: TreeOptions): Promise<ChosenTree> {
  const folder = await clusterFolder(invocation, options);
  const source = await readFolder(folder);
  if (options.from !== undefined) {
    const cluster = clusterOf(invocation, folder, source);
    return checked({ cluster, tree: await readTreeFolder(resolve(invocation.cwd, options.from)), name: options.from });
  }
  const place = await placeOf(invocation, folder, source);
  const { commit, tree } = await readPublished(place, options.revision);
  return checked({ cluster: place.cluster, tree, name: commit ?? `branch ${place.target.branch}` });
}

function checked(chosen: ChosenTree): ChosenTree {
  const list = chosen.tree.get(treeFile);
  if (list === undefined)
    throw new ProblemError([
      {
        reason: 'TreeMissing',
        message: `${chosen.name} holds no rendered tree of cluster ${chosen.cluster.metadata.name}`,
        remedy: 'publish first, or name the folder of a rendered tree with --from',
      },
    ]);
  const index = readTreeIndex(list);
  if (!index.ok) throw new ProblemError(index.problems);
  const problems: Problem[] = [];
  const say = (file: string, message: string): void => {
    problems.push({ reason: 'TreeInvalid', message, file, remedy: 'restore the file, or publish again' });
  };
  if (index.value.cluster !== chosen.cluster.metadata.name)
    say(treeFile, `the tree belongs to cluster ${index.value.cluster}, not to ${chosen.cluster.metadata.name}`);
  const files = new Map([[treeFile, list as Uint8Array]]);
  for (const { path, sha256 } of index.value.files) {
    const bytes = chosen.tree.get(path);
    if (bytes === undefined) say(path, 'the file is missing');
    else if (sha256Hex(bytes) !== sha256) say(path, 'the file is not the one that was rendered');
    else files.set(path, bytes);
  }
  refuseProblems(problems);
  // Other files may stand beside a tree; they are no part of it.
  return { ...chosen, tree: files };
}
