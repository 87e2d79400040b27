import { ProblemError } from '../../constructs/lib/problems.ts';
import { type Git, GitError } from './git.ts';

/** A file of a commit. */
export interface CommittedFile {
  readonly path: string;
  readonly blob: string;
}

/** What stands below a folder in a commit: plain files, and the paths of what is something else. */
export interface CommittedFolder {
  readonly files: readonly CommittedFile[];
  /** Links and nested repositories. */
  readonly others: readonly string[];
}

/**
 * Lists a folder of a commit; paths are below the folder. A folder that is not there is empty.
 * @throws ProblemError when the revision is not known.
 */
export async function listCommitted(git: Git, revision: string, folder: string): Promise<CommittedFolder> {
  const commit = await resolveCommit(git, revision);
  const prefix = folder === '' || folder === '.' ? '' : `${folder}/`;
  const text = await git.run('ls-tree', '-r', '-z', '--full-tree', commit, ...(prefix === '' ? [] : ['--', prefix]));
  const files: CommittedFile[] = [];
  const others: string[] = [];
  for (const line of text.split('\u0000')) {
    const match = /^([0-7]{6}) (\w+) ([0-9a-f]+)\t(.+)$/s.exec(line);
    if (match === null) continue;
    const [, mode, type, blob = '', full = ''] = match;
    const path = full.slice(prefix.length);
    if (type === 'blob' && mode !== '120000') files.push({ path, blob });
    else others.push(path);
  }
  return { files, others };
}

/** The commit that a revision names. @throws ProblemError when there is none. */
export async function resolveCommit(git: Git, revision: string): Promise<string> {
  // A revision that begins with a dash would be read as an option.
  if (revision.startsWith('-')) throw unknownRevision(revision);
  try {
    return (await git.run('rev-parse', '--verify', '--quiet', `${revision}^{commit}`)).trim();
  } catch (error) {
    // Of what is no commit git says nothing at all.
    throw error instanceof GitError && error.exitCode === 1 ? unknownRevision(revision) : error;
  }
}

const unknownRevision = (revision: string): ProblemError =>
  new ProblemError([
    {
      reason: 'CommandInvalid',
      message: 'the revision names no commit',
      value: revision,
      remedy: 'name a commit, a branch or a tag of that repository, and fetch what a shallow clone lacks',
    },
  ]);

/** Contents of files of a commit, by path. */
export async function readCommitted(git: Git, files: readonly CommittedFile[]): Promise<Map<string, Uint8Array>> {
  const read = await Promise.all(files.map(async ({ path, blob }) => [path, await git.blob(blob)] as const));
  return new Map(read.sort(([a], [b]) => (a < b ? -1 : 1)));
}
