import { lstat, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Tree, treeFile } from '../../constructs/api/tree.ts';
import { makeFolder } from '../../constructs/lib/makefolder.ts';
import { type Problem, refuseProblems } from '../../constructs/lib/problems.ts';
import { fileTrouble, replaceFile } from '../../constructs/lib/replacefile.ts';
import { type Changes, compareTrees, publishedPaths } from './changes.ts';

/** What stands in a folder on disk; empty when there is none. */
export async function readTreeFolder(folder: string): Promise<Tree> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw new Error(`folder ${folder} can not be read: ${fileTrouble(error)}`);
    },
  );
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = await Promise.all(
    files.map(async (file) => [file.slice(folder.length + 1), await readFile(file)] as const),
  );
  return new Map(read.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The difference from a folder on disk to the tree of a cluster. */
export function compareFolder(
  standing: Tree,
  next: Tree,
  cluster: string,
): { changes: Changes; problems: readonly Problem[] } {
  const { paths, problems } = publishedPaths(standing.get(treeFile), cluster);
  if (problems.length > 0) return { changes: { added: [], changed: [], removed: [] }, problems };
  return compareTrees(standing, paths, next);
}

/**
 * Writes a tree over a folder. Each file is whole at any moment, and the list comes last.
 * @throws ProblemError when a link stands where the tree has a folder: nothing is written.
 * @throws Error that names the file which could not be written; writing again goes on from there.
 */
export async function writeTreeFolder(folder: string, changes: Changes, next: Tree): Promise<void> {
  const written = [...changes.added, ...changes.changed].sort(
    (a, b) => Number(a === treeFile) - Number(b === treeFile),
  );
  refuseProblems(await linksAbove(folder, written));
  for (const path of written) {
    const file = join(folder, path);
    await makeFolderOf(file);
    await replaceFile(file, next.get(path) ?? '');
  }
  for (const path of changes.removed) {
    await rm(join(folder, path), { force: true });
    await removeEmpty(folder, dirname(path));
  }
}

/** Links in place of folders that files go to. What lies behind one is not read either, so it would never be as it should. */
async function linksAbove(folder: string, paths: readonly string[]): Promise<Problem[]> {
  const folders = [...new Set(paths.flatMap(above))].sort();
  const links = await Promise.all(folders.map((path) => isLink(join(folder, path))));
  return folders
    .filter((_, n) => links[n])
    .map((path) => ({
      reason: 'ForeignFile',
      message: 'a link stands where the tree has a folder',
      file: join(folder, path),
      remedy: 'remove it, or choose another folder',
    }));
}

function above(path: string): string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [folder, ...above(folder)];
}

const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isSymbolicLink(),
    () => false,
  );

async function makeFolderOf(file: string): Promise<void> {
  const folder = dirname(file);
  try {
    await makeFolder(folder);
  } catch (error) {
    throw new Error(`folder ${folder} can not be made: ${fileTrouble(error)}`);
  }
}

async function removeEmpty(folder: string, path: string): Promise<void> {
  for (let at = path; at !== '.' && at !== ''; at = dirname(at)) {
    try {
      await rmdir(join(folder, at));
    } catch {
      return;
    }
  }
}
