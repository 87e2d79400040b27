import { relative } from 'node:path';
import { type Git, GitError, type GitOptions, openGit } from './git.ts';

/** The specs of a cluster as their repository sees them. */
export interface SpecRepository {
  /** Top folder of the repository. */
  readonly root: string;
  /** The cluster folder below it. */
  readonly folder: string;
  /** The commit that is checked out; undefined before the first one. */
  readonly commit: string | undefined;
  /** The branch that is checked out; undefined when there is none. */
  readonly branch: string | undefined;
  /** Files of the cluster folder that differ from the commit; Git tells none that it is told to ignore. */
  readonly dirty: readonly string[];
  /** Files of the cluster folder whose changes Git would tell, by their paths in it. */
  readonly tracked: ReadonlySet<string>;
  readonly origin: string | undefined;
}

const orUndefined = async (work: Promise<string>): Promise<string | undefined> => {
  try {
    return (await work).trim() || undefined;
  } catch (error) {
    if (error instanceof GitError) return undefined;
    throw error;
  }
};

/**
 * The top folder of the repository; undefined when there is none. A repository that git refuses to read (its owner is
 * another, it is damaged) is one all the same: taken for none, changes that nobody committed would be published.
 */
async function topOf(here: Git): Promise<string | undefined> {
  try {
    return (await here.run('rev-parse', '--show-toplevel')).trim() || undefined;
  } catch (error) {
    if (error instanceof GitError && /^fatal: not a git repository/m.test(error.message)) return undefined;
    throw error;
  }
}

/**
 * What is known of the repository around a cluster folder; undefined when it is in none.
 * @throws GitError when there is one and git does not read it.
 */
export async function specRepository(folder: string, options: GitOptions): Promise<SpecRepository | undefined> {
  const here = openGit(folder, options);
  const root = await topOf(here);
  if (root === undefined) return undefined;
  const status = await here.run('status', '--porcelain', '-z', '--untracked-files=all', '--', '.');
  const listed = await here.run('ls-files', '-v', '-z', '--', '.');
  return {
    root,
    folder: (await here.run('rev-parse', '--show-prefix')).trim().replace(/\/$/, '') || relative(root, folder),
    commit: await orUndefined(here.run('rev-parse', '--verify', '--quiet', 'HEAD^{commit}')),
    branch: await orUndefined(here.run('symbolic-ref', '--quiet', '--short', 'HEAD')),
    dirty: status.split('\u0000').flatMap((line) => (line.length > 3 ? [line.slice(3)] : [])),
    // A file that Git was told to take for unchanged has another letter.
    tracked: new Set(listed.split('\u0000').flatMap((line) => (line.startsWith('H ') ? [line.slice(2)] : []))),
    origin: await orUndefined(here.run('config', '--get', 'remote.origin.url')),
  };
}

export type Relation = 'same' | 'older' | 'newer' | 'unrelated' | 'unknown';

/**
 * How `theirs` stands to `ours` in the history of the specs. A commit that is not at hand is looked for where the specs
 * come from; `git` receives what is fetched, so it should be a scratch repository.
 */
export async function relationOf(git: Git, specs: SpecRepository, ours: string, theirs: string): Promise<Relation> {
  if (ours === theirs) return 'same';
  // Everything that the two places have; either may lack the commit that the other publisher started from.
  for (const place of [specs.root, specs.origin]) {
    if (place === undefined) continue;
    const refs = ['+refs/heads/*:refs/specs/heads/*', '+refs/remotes/*:refs/specs/remotes/*', '+HEAD:refs/specs/head'];
    await orUndefined(git.run('fetch', '--quiet', '--no-tags', place, ...refs));
    const related = await compare(git, ours, theirs);
    if (related !== 'unknown') return related;
  }
  return 'unknown';
}

async function compare(git: Git, ours: string, theirs: string): Promise<Relation> {
  for (const commit of [ours, theirs]) {
    const found = await orUndefined(git.run('rev-parse', '--verify', '--quiet', `${commit}^{commit}`));
    if (found === undefined) return 'unknown';
  }
  if (await git.test('merge-base', '--is-ancestor', theirs, ours)) return 'older';
  if (await git.test('merge-base', '--is-ancestor', ours, theirs)) return 'newer';
  return 'unrelated';
}

/**
 * The newest commit of the branch that `ours` is on, when it comes after `ours` and changes the folder of the cluster:
 * whoever publishes that one decides. Undefined when there is none, and when the place the specs come from can not be
 * asked. Fetched objects stay in the repository of the specs, where the credentials for its origin are; no reference moves.
 */
export async function newerSpecs(
  specs: SpecRepository,
  ours: string,
  options: GitOptions,
): Promise<string | undefined> {
  if (specs.origin === undefined) return undefined;
  const git = openGit(specs.root, options);
  const wanted = specs.branch === undefined ? 'HEAD' : `refs/heads/${specs.branch}`;
  const listed = await orUndefined(git.run('ls-remote', '--', specs.origin, wanted));
  const newest = /^([0-9a-f]{40,64})\t/m.exec(listed ?? '')?.[1];
  if (newest === undefined || newest === ours) return undefined;
  await orUndefined(git.run('fetch', '--quiet', '--no-tags', '--no-write-fetch-head', specs.origin, wanted));
  if ((await compare(git, newest, ours)) !== 'older') return undefined;
  const same = await git.test('diff', '--quiet', ours, newest, '--', `:(top,literal)${specs.folder}`);
  return same ? undefined : newest;
}
