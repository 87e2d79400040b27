import type { Stats } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Problem } from '../../constructs/lib/problems.ts';
import { fileTrouble } from '../../constructs/lib/replacefile.ts';
import type { ClusterFiles } from './source.ts';

/** Bounds of a cluster folder: more is a mistake, or an attack on the machine that renders. */
const bounds = { files: 10_000, fileBytes: 8 * 1024 * 1024, totalBytes: 64 * 1024 * 1024, depth: 4 };

const goodName = /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/;

/** Notes for people and files of editors are not input. */
export const isIgnored = (name: string): boolean => name.startsWith('.') || name.endsWith('.md') || name.endsWith('~');

interface Walk {
  readonly shown: string;
  readonly files: Map<string, Uint8Array>;
  readonly problems: Problem[];
  bytes: number;
}

/**
 * Reads a cluster folder. Only plain files count; links are refused, so that nothing outside the folder can become
 * part of what is rendered. The result does not depend on the order in which the system lists files.
 * @param folder the path to read.
 * @param shown the folder as problems name it.
 */
export async function readClusterFolder(
  folder: string,
  shown: string,
): Promise<{ source: ClusterFiles; problems: Problem[] }> {
  const walk: Walk = { shown, files: new Map(), problems: [], bytes: 0 };
  const stats = await lstat(folder).catch(() => undefined);
  if (stats === undefined || !stats.isDirectory())
    walk.problems.push({
      reason: 'FolderMissing',
      message: stats?.isSymbolicLink() === true ? 'the cluster folder is a link' : 'there is no such cluster folder',
      file: shown,
      remedy: 'name the folder of a cluster with -c clusters/NAME',
    });
  else await walkFolder(walk, folder, '', 0);
  const sorted = [...walk.files].sort(([a], [b]) => (a < b ? -1 : 1));
  return { source: { folder: shown, files: new Map(sorted) }, problems: walk.problems };
}

function refuse(walk: Walk, path: string, message: string, remedy: string): void {
  walk.problems.push({ reason: 'FileRefused', message, file: `${walk.shown}/${path}`, remedy });
}

/** What the system refuses is a problem of the folder like any other, told along with the rest. */
async function orRefuse<T>(walk: Walk, path: string, reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    refuse(walk, path, `it can not be read: ${fileTrouble(error)}`, 'let the account that runs keelson read it');
    return undefined;
  }
}

async function walkFolder(walk: Walk, folder: string, below: string, depth: number): Promise<void> {
  const names = (await orRefuse(walk, below === '' ? '.' : below, readdir(folder))) ?? [];
  for (const name of names.sort()) {
    if (isIgnored(name)) continue;
    const path = below === '' ? name : `${below}/${name}`;
    const stats = await orRefuse(walk, path, lstat(join(folder, name)));
    if (stats === undefined) continue;
    if (!stats.isDirectory() || !goodName.test(name)) await readPlain(walk, join(folder, name), path, stats);
    else if (depth < bounds.depth) await walkFolder(walk, join(folder, name), path, depth + 1);
    else refuse(walk, path, 'the folder lies too deep', 'use manifests/<name>/<NN-phase>/<file>.yaml');
  }
}

/** Reads what should be a plain file of a good name and size. */
async function readPlain(walk: Walk, file: string, path: string, stats: Stats): Promise<void> {
  const refused = (message: string, remedy: string): void => refuse(walk, path, message, remedy);
  if (stats.isSymbolicLink()) refused('links are not followed', 'put the file itself into the cluster folder');
  else if (!goodName.test(basename(path)))
    refused('the name holds unusual characters', 'use letters, digits, . _ + and -');
  else if (!stats.isFile()) refused('it is not a plain file', 'remove it from the cluster folder');
  else if (stats.size > bounds.fileBytes) refused(`the file is over ${bounds.fileBytes} bytes`, 'split it');
  else if (walk.files.size >= bounds.files) refused(`there are more than ${bounds.files} files`, 'split the cluster');
  else if (walk.bytes + stats.size > bounds.totalBytes)
    refused(`the files are over ${bounds.totalBytes} bytes in all`, 'split the cluster');
  else {
    const bytes = await orRefuse(walk, path, readFile(file));
    if (bytes === undefined) return;
    walk.bytes += stats.size;
    walk.files.set(path, bytes);
  }
}
