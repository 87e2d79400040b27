import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { staleFiles } from './generated-files.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Paths from the root of the project of all files below a folder; none when it does not exist. */
function filesBelow(folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

/**
 * Brings files up to date, given by path from the root; others in the folders are removed. With `--check` on the command
 * line nothing is written, and the exit status is 1 when a file differs.
 */
export function generate(wanted: ReadonlyMap<string, string>, folders: readonly string[]): void {
  const read = (path: string): string | undefined =>
    existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : undefined;
  const stale = staleFiles(wanted, read, folders.flatMap(filesBelow));
  if (process.argv.includes('--check')) {
    for (const path of stale) console.error(`${path} is not current`);
    if (stale.length > 0) {
      console.error('run: npm run generate');
      process.exitCode = 1;
    }
    return;
  }
  for (const path of stale) {
    const text = wanted.get(path);
    if (text === undefined) rmSync(join(root, path));
    else {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    console.log(path);
  }
}
