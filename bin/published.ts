import type { Cluster } from '../constructs/api/cluster.ts';
import type { Tree } from '../constructs/api/tree.ts';
import { ProblemError } from '../constructs/lib/problems.ts';
import { resolveCommit } from '../gitops/git/files.ts';
import type { GitOptions } from '../gitops/git/git.ts';
import { type SpecRepository, specRepository } from '../gitops/git/specs.ts';
import { openScratch } from '../gitops/publish/scratch.ts';
import { resolveTarget, type Target } from '../gitops/publish/target.ts';
import type { ParseDocuments } from '../renderer/cache/documents.ts';
import { specKinds } from '../renderer/domain.ts';
import { loadCluster } from '../renderer/load/load.ts';
import type { ClusterFiles } from '../renderer/load/source.ts';
import type { ClusterFolder } from './clusters.ts';
import type { Invocation } from './invocation.ts';
import { domains } from './supply.ts';

/** Where the specs of a cluster come from and where its tree goes. */
export interface Place {
  readonly cluster: Cluster;
  readonly specs: SpecRepository | undefined;
  readonly target: Target;
  readonly git: GitOptions;
}

export const gitOptions = (invocation: Invocation): GitOptions => ({ env: invocation.env, signal: invocation.signal });

/** The settings of a cluster. @throws ProblemError when anything in the folder is wrong. */
export function clusterOf(
  invocation: Invocation,
  folder: ClusterFolder,
  source: ClusterFiles,
  parse?: ParseDocuments,
): Cluster {
  const read = loadCluster(source, specKinds(domains(invocation, folder.path)), parse);
  if (read.ok) return read.loaded.cluster;
  throw new ProblemError(read.problems);
}

/** @throws ProblemError when the target does not exist. */
export async function placeOf(invocation: Invocation, folder: ClusterFolder, source: ClusterFiles): Promise<Place> {
  const cluster = clusterOf(invocation, folder, source);
  const git = gitOptions(invocation);
  const specs = await specRepository(folder.path, git);
  const resolved = await resolveTarget(cluster, specs, folder.path, git);
  if (!resolved.ok) throw new ProblemError(resolved.problems);
  return { cluster, specs, target: resolved.target, git };
}

export interface Published {
  /** Undefined while nothing was ever published there. */
  readonly commit: string | undefined;
  readonly tree: Tree;
}

/** The tree that was published last, or that of a commit of the target branch. */
export async function readPublished(place: Place, revision?: string): Promise<Published> {
  const scratch = await openScratch(place.target, place.git);
  try {
    const head = await scratch.refresh();
    if (revision === undefined || head === undefined) return { commit: head, tree: await scratch.standing(head) };
    const commit = await resolveCommit(scratch.git, revision);
    await scratch.git.run('checkout', '--quiet', '--force', '--detach', commit);
    return { commit, tree: await scratch.standing(commit) };
  } finally {
    await scratch.dispose();
  }
}
