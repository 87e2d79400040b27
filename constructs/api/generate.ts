/**
 * Writes the generated files: CRDs and reference pages. With `--check` it writes nothing and exits with 1 when a file
 * differs.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generatedFiles, generatedFolders, staleFiles } from './generated-files.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const wanted = generatedFiles();
const read = (path: string): string | undefined =>
  existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : undefined;
const present = generatedFolders.flatMap((folder) =>
  existsSync(join(root, folder)) ? readdirSync(join(root, folder)).map((name) => `${folder}/${name}`) : [],
);
const stale = staleFiles(wanted, read, present);

if (process.argv.includes('--check')) {
  for (const path of stale) console.error(`${path} is not current`);
  if (stale.length > 0) console.error('run: npm run generate');
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
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
