/** Which program this is, down to its bytes: what an earlier one found out may not hold for this one. */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { digestOf, sha256Digest } from '../constructs/lib/digest.ts';

/** Where rendering is decided, in a source tree. */
const sources = ['bin', 'constructs', 'gitops', 'renderer'];

async function programFiles(): Promise<string[]> {
  const here = fileURLToPath(import.meta.url);
  if (!here.endsWith('.ts')) {
    // A bundle: this file, and the parts beside it.
    const beside = (await readdir(dirname(here))).filter((name) => name.endsWith('.mjs'));
    return [...new Set([here, ...beside.map((name) => join(dirname(here), name))])];
  }
  const top = dirname(dirname(here));
  const found = await Promise.all(
    sources.map(async (folder) => {
      const entries = await readdir(join(top, folder), { recursive: true, withFileTypes: true });
      return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    }),
  );
  return [...found.flat(), join(top, 'package.json'), join(top, 'package-lock.json')];
}

/** Digest over the program's files and the runtime that carries it. */
export async function programIdentity(): Promise<string> {
  const files = (await programFiles()).sort();
  const digests = await Promise.all(files.map(async (file) => sha256Digest(await readFile(file))));
  return digestOf([process.versions.node, ...digests]);
}
