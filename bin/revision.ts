import { ProblemError } from '../constructs/lib/problems.ts';
import { listCommitted, readCommitted } from '../gitops/git/files.ts';
import { openGit } from '../gitops/git/git.ts';
import { specRepository } from '../gitops/git/specs.ts';
import { isIgnored } from '../renderer/load/folder.ts';
import type { ClusterFiles } from '../renderer/load/source.ts';
import type { ClusterFolder } from './clusters.ts';
import type { Invocation } from './invocation.ts';
import { gitOptions } from './published.ts';

/** The files of a cluster folder as a commit of its repository holds them. @throws ProblemError */
export async function filesAt(invocation: Invocation, folder: ClusterFolder, revision: string): Promise<ClusterFiles> {
  const specs = await specRepository(folder.path, gitOptions(invocation));
  const shown = `${revision}:${folder.shown}`;
  if (specs === undefined)
    throw new ProblemError([
      {
        reason: 'NotARepository',
        message: 'the folder is in no git repository',
        file: folder.shown,
        remedy: 'leave --from and --to out',
      },
    ]);
  const git = openGit(specs.root, gitOptions(invocation));
  const committed = await listCommitted(git, revision, specs.folder);
  const problems = committed.others.map((path) => ({
    reason: 'FileRefused',
    message: 'links are not followed',
    file: `${shown}/${path}`,
    remedy: 'put the file itself into the cluster folder',
  }));
  if (problems.length > 0) throw new ProblemError(problems);
  const files = committed.files.filter(({ path }) => !path.split('/').some(isIgnored));
  return { folder: shown, files: await readCommitted(git, files) };
}
