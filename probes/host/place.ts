import { posix } from 'node:path';
import { lstat, readlink } from '../../constructs/lib/files.ts';
import { fault, type Result } from '../jsonrpc/fault.ts';

/**
 * Where a path of the host is inside this pod. The host's top folders are mounted below a root of their own, so that a link
 * on the host must not be followed by the kernel: it would lead into the pod, where nothing is, and nothing would look empty.
 */
export interface Place {
  /** Nearest folder or file that exists, as this process reaches it. */
  readonly file: string;
  /** Whether it is the path itself. */
  readonly exists: boolean;
}

const mostLinks = 40;

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

/** Finds a path of the host below `root`. A path through a folder that is not mounted is a fault, never an absence. */
export async function placeOf(root: string, path: string): Promise<Result<Place>> {
  const todo = posix.normalize(path).split('/').filter(Boolean);
  let at: string[] = [];
  let links = 0;
  for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
    const next = posix.join(root, ...at, part);
    const found = await lstat(next).catch((error: unknown) => {
      if (isAbsent(error)) return undefined;
      throw error;
    });
    if (found === undefined && at.length === 0)
      return fault('denied', `${path} is, or leads to, /${part}, which this pod does not see`);
    if (found === undefined) return { type: 'ok', value: { file: posix.join(root, ...at), exists: false } };
    if (!found.isSymbolicLink()) {
      at.push(part);
      continue;
    }
    links += 1;
    if (links > mostLinks) return fault('protocol', `${path} leads through more than ${mostLinks} links`);
    const target = posix.resolve('/', ...at, await readlink(next));
    todo.unshift(...target.split('/').filter(Boolean));
    at = [];
  }
  return { type: 'ok', value: { file: posix.join(root, ...at), exists: true } };
}
