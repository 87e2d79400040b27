import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The `*.test.ts` files below a folder, from the top, sorted; empty where there is no such folder. */
export function findTests(top: string, folder: string, substring = ''): string[] {
  if (!existsSync(join(top, folder))) return [];
  return readdirSync(join(top, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join(folder, path))
    .filter((path) => path.includes(substring))
    .sort();
}
