import { resolve } from 'node:path';
import type { Cluster } from '../../constructs/api/cluster.ts';
import { deliveryPath } from '../../constructs/api/cluster.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { GitError, type GitOptions, openGit } from '../git/git.ts';
import type { SpecRepository } from '../git/specs.ts';

/** Where a rendered tree goes. */
export interface Target {
  /** A URL, or the path of a local repository. */
  readonly url: string;
  readonly branch: string;
  /** Folder of the cluster in the repository. */
  readonly path: string;
  /** The branch is checked out in a local work tree: it is moved forward there, since nobody can push to it. */
  readonly checkedOut: boolean;
}

const isUrl = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//.test(text) || /^[^/]+@[^/:]+:/.test(text);

/**
 * The target that `spec.delivery` names. A relative path counts from the top of the repository of the specs; `.` is
 * that repository itself: its own work tree when the branch is the one that is checked out, its origin otherwise.
 */
export async function resolveTarget(
  cluster: Cluster,
  specs: SpecRepository | undefined,
  folder: string,
  options: GitOptions,
): Promise<{ ok: true; target: Target } | { ok: false; problems: Problem[] }> {
  const { repository, branch } = cluster.spec.delivery;
  const path = deliveryPath(cluster);
  if (isUrl(repository)) return { ok: true, target: { url: repository, branch, path, checkedOut: false } };
  const own = repository === '.' && specs !== undefined;
  if (own && specs.branch !== branch && specs.origin !== undefined)
    return { ok: true, target: { url: specs.origin, branch, path, checkedOut: false } };
  const place = resolve(specs?.root ?? resolve(folder, '../..'), repository);
  try {
    const git = openGit(place, options);
    const bare = (await git.run('rev-parse', '--is-bare-repository')).trim() === 'true';
    const current = bare ? '' : (await git.run('symbolic-ref', '--quiet', '--short', 'HEAD').catch(() => '')).trim();
    return { ok: true, target: { url: place, branch, path, checkedOut: !bare && current === branch } };
  } catch (error) {
    if (!(error instanceof GitError) && !isMissing(error)) throw error;
    return {
      ok: false,
      problems: [
        {
          reason: 'RepositoryMissing',
          message: 'there is no git repository at the path',
          file: `${folder}/cluster.yaml`,
          path: 'spec.delivery.repository',
          value: repository,
          remedy: 'make one with `git init --bare`, or write the URL of a repository',
        },
      ],
    };
  }
}

/** simple-git refuses a directory that is not there before it runs anything. */
const isMissing = (error: unknown): boolean => error instanceof Error && /does not exist/.test(error.message);
