import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SourceFile {
  /** Path from the top, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

const skippedFolders = new Set(['node_modules', '.git', 'dist', '.keelson-local']);

/** All text files of the tree but installed packages and build output, sorted by path. */
export function readTree(top: string, folder = ''): SourceFile[] {
  return readdirSync(join(top, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return skippedFolders.has(entry.name) ? [] : readTree(top, path);
      if (!entry.isFile() || entry.name.endsWith('.log')) return [];
      const bytes = readFileSync(join(top, path));
      return bytes.includes(0) ? [] : [{ path, text: bytes.toString('utf8') }];
    });
}
