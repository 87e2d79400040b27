import { readdir } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { ProblemError } from '../constructs/lib/problems.ts';
import { readClusterFolder } from '../renderer/load/folder.ts';
import type { ClusterFiles } from '../renderer/load/source.ts';
import type { CommonOptions, Invocation } from './invocation.ts';

/** A cluster folder that a command works on. */
export interface ClusterFolder {
  readonly path: string;
  /** As problems name it. */
  readonly shown: string;
}

/** The folders that `-c` names, or the only one under clusters/. @throws ProblemError */
export async function clusterFolders(invocation: Invocation, options: CommonOptions): Promise<ClusterFolder[]> {
  const named = options.cluster ?? [];
  // A folder that is named twice is meant once.
  if (named.length > 0)
    return [...new Map(named.map((name) => toFolder(invocation, name)).map((one) => [one.path, one])).values()];
  const entries = await readdir(resolve(invocation.cwd, 'clusters'), { withFileTypes: true }).catch(() => []);
  const found = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map((e) => e.name);
  const [only, ...more] = found.sort();
  if (only !== undefined && more.length === 0) return [toFolder(invocation, `clusters/${only}`)];
  throw new ProblemError([
    {
      reason: 'ClusterNotChosen',
      message: only === undefined ? 'there is no folder under clusters/' : `clusters/ holds ${found.join(', ')}`,
      remedy: 'name the folder of the cluster with -c clusters/NAME',
    },
  ]);
}

/** The one folder that a command works on. @throws ProblemError when several are named. */
export async function clusterFolder(invocation: Invocation, options: CommonOptions): Promise<ClusterFolder> {
  const [first, ...more] = await clusterFolders(invocation, options);
  if (first !== undefined && more.length === 0) return first;
  throw new ProblemError([
    { reason: 'ClusterNotChosen', message: 'this command works on one cluster', remedy: 'give -c once' },
  ]);
}

function toFolder(invocation: Invocation, name: string): ClusterFolder {
  const path = resolve(invocation.cwd, name);
  const below = relative(invocation.cwd, path);
  return { path, shown: below === '' ? '.' : below.startsWith('..') ? path : below };
}

/** The files of a folder. @throws ProblemError when a file must not be read. */
export async function readFolder(folder: ClusterFolder): Promise<ClusterFiles> {
  const { source, problems } = await readClusterFolder(folder.path, folder.shown);
  if (problems.length === 0) return source;
  throw new ProblemError(problems);
}
