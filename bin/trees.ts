import { resolve } from 'node:path';
import type { Cluster } from '../constructs/api/cluster.ts';
import { type Tree, treeFile } from '../constructs/api/tree.ts';
import { listedFiles } from '../constructs/api/tree-check.ts';
import { ProblemError, refuseProblems } from '../constructs/lib/problems.ts';
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
  return checked(await findTree(invocation, options));
}

/** The same as it stands, for those who tell what is wrong with it. @throws ProblemError when there is none. */
export async function readTree(invocation: Invocation, options: TreeOptions): Promise<ChosenTree> {
  const chosen = await findTree(invocation, options);
  present(chosen);
  return chosen;
}

async function findTree(invocation: Invocation, options: TreeOptions): Promise<ChosenTree> {
  const folder = await clusterFolder(invocation, options);
  const source = await readFolder(folder);
  if (options.from !== undefined) {
    const cluster = clusterOf(invocation, folder, source);
    return { cluster, tree: await readTreeFolder(resolve(invocation.cwd, options.from)), name: options.from };
  }
  const place = await placeOf(invocation, folder, source);
  const { commit, tree } = await readPublished(place, options.revision);
  return { cluster: place.cluster, tree, name: commit ?? `branch ${place.target.branch}` };
}

function checked(chosen: ChosenTree): ChosenTree {
  present(chosen);
  const { files, problems } = listedFiles(chosen.tree, chosen.cluster.metadata.name);
  refuseProblems(problems);
  return { ...chosen, tree: files };
}

/** @throws ProblemError when there is no rendered tree at all. */
function present({ cluster, tree, name }: ChosenTree): void {
  if (tree.has(treeFile)) return;
  throw new ProblemError([
    {
      reason: 'TreeMissing',
      message: `${name} holds no rendered tree of cluster ${cluster.metadata.name}`,
      remedy: 'publish first, or name the folder of a rendered tree with --from',
    },
  ]);
}
