import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Tree } from '../../constructs/api/tree.ts';
import { makeFolder } from '../../constructs/lib/makefolder.ts';
import { type Problem, refuseProblems } from '../../constructs/lib/problems.ts';
import { scratchFolder } from '../../constructs/lib/scratchfolder.ts';
import { listCommitted } from '../git/files.ts';
import { type Git, type GitOptions, openGit } from '../git/git.ts';
import type { Changes } from './changes.ts';
import type { Target } from './target.ts';

/** A clone of the target branch that exists for one publication. What a killed one left goes with the next. */
export interface Scratch {
  readonly git: Git;
  /** Fetches the branch and checks it out; undefined while the target has no such branch. */
  refresh(): Promise<string | undefined>;
  /** What stands in the folder of the cluster. */
  standing(head: string | undefined): Promise<Tree>;
  /**
   * Writes the changes of a tree into the work tree and the index.
   * @throws ProblemError when a link, a nested repository or a file stands where the tree has something else: nothing is written.
   */
  stage(changes: Changes, tree: Tree): Promise<void>;
  dispose(): Promise<void>;
}

const remoteRef = 'refs/remotes/origin/published';

export async function openScratch(target: Target, options: GitOptions): Promise<Scratch> {
  const { path: directory, dispose } = await scratchFolder(tmpdir(), 'keelson-publish-');
  const git = openGit(directory, options);
  try {
    await git.run('init', '--quiet', '--initial-branch=published');
    await git.run('remote', 'add', '--', 'origin', target.url);
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    git,
    async refresh() {
      const found = await git.run('ls-remote', '--heads', 'origin', `refs/heads/${target.branch}`);
      if (found.trim() === '') return undefined;
      await git.run('fetch', '--quiet', '--no-tags', 'origin', `+refs/heads/${target.branch}:${remoteRef}`);
      await git.run('checkout', '--quiet', '--force', '-B', 'published', remoteRef);
      return (await git.run('rev-parse', 'HEAD')).trim();
    },
    async standing(head) {
      if (head === undefined) return new Map();
      const { files } = await listCommitted(git, head, target.path);
      const read = files.map(async ({ path }) => [path, await readFile(join(directory, target.path, path))] as const);
      return new Map((await Promise.all(read)).sort(([a], [b]) => (a < b ? -1 : 1)));
    },
    async stage(changes, tree) {
      refuseProblems(await inTheWay(git, target.path, changes, tree));
      const folder = join(directory, target.path);
      for (const path of changes.removed) await rm(join(folder, path), { force: true });
      for (const path of [...changes.added, ...changes.changed]) {
        await makeFolder(dirname(join(folder, path)));
        await writeFile(join(folder, path), tree.get(path) ?? '', { mode: 0o644 });
      }
      const touched = [...changes.added, ...changes.changed, ...changes.removed];
      await addAll(
        git,
        touched.map((path) => `${target.path}/${path}`),
      );
      await verifyIndex(git, target.path, tree);
    },
    dispose,
  };
}

/** Modes of what Git keeps beside plain files. */
const [linkMode, repositoryMode] = ['120000', '160000'];

/**
 * What was committed where the tree has a folder, or as a link where it has a file. Whoever may push to the repository
 * must not choose where on this machine the publisher writes.
 */
async function inTheWay(git: Git, folder: string, changes: Changes, tree: Tree): Promise<Problem[]> {
  const files = new Set([...tree.keys()].map((path) => `${folder}/${path}`));
  const folders = new Set([...files].flatMap(foldersAbove));
  const going = new Set(changes.removed.map((path) => `${folder}/${path}`));
  const text = await git.run('ls-files', '--stage', '-z');
  return text.split('\u0000').flatMap((line): Problem[] => {
    const [, mode, path = ''] = /^([0-7]{6}) [0-9a-f]+ 0\t(.+)$/s.exec(line) ?? [];
    if (mode === undefined || going.has(path)) return [];
    const plain = mode !== linkMode && mode !== repositoryMode;
    if (!folders.has(path) && (plain || !files.has(path))) return [];
    const what = mode === linkMode ? 'a link' : plain ? 'a file' : 'a nested repository';
    return [
      {
        reason: 'ForeignFile',
        message: `${what} stands where the tree has a ${folders.has(path) ? 'folder' : 'file'}`,
        file: path,
        remedy: 'remove it from the rendered repository, or publish to another folder (spec.delivery.path)',
      },
    ];
  });
}

function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === '.' ? [] : [above, ...foldersAbove(above)];
}

/** Paths are given in parts: a command line has a limit. */
async function addAll(git: Git, paths: readonly string[]): Promise<void> {
  for (let at = 0; at < paths.length; at += 200)
    await git.run('add', '--all', '--force', '--', ...paths.slice(at, at + 200).map((path) => `:(literal,top)${path}`));
}

/** What will be committed must be the very bytes of the tree, whatever attributes and filters the repository sets. */
async function verifyIndex(git: Git, folder: string, tree: Tree): Promise<void> {
  const text = await git.run('ls-files', '--stage', '-z', '--', `:(literal,top)${folder}`);
  const staged = new Map<string, string>();
  for (const line of text.split('\u0000')) {
    const match = /^[0-7]{6} ([0-9a-f]+) 0\t(.+)$/s.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined) staged.set(match[2].slice(folder.length + 1), match[1]);
  }
  for (const [path, bytes] of tree) {
    const found = staged.get(path) ?? '';
    const hash = createHash(found.length === 64 ? 'sha256' : 'sha1');
    const wanted = hash.update(`blob ${bytes.byteLength}\u0000`).update(bytes).digest('hex');
    if (found !== wanted) throw new Error(`git would not store the bytes of ${path} as they are`);
  }
}
