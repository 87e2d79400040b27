import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** A folder that exists for one piece of work of one process. */
export interface ScratchFolder {
  readonly path: string;
  dispose(): Promise<void>;
}

/** When a process began, in ticks since the machine did; undefined when there is no such process, or no way to know. */
async function startOf(pid: number | 'self'): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The second field is the program's name, which may hold anything.
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19];
}

/** Where process ids mean the same: this machine, and this PID namespace of it. */
async function idSpace(): Promise<string> {
  const space = await readlink('/proc/self/ns/pid').catch(() => '');
  return createHash('sha256').update(`${hostname()}\n${space}`).digest('hex').slice(0, 12);
}

/**
 * Makes a folder below `parent` whose name tells whose it is, and removes those of the same prefix whose process is gone:
 * one that was killed could not do it. Folders of other machines that share the place are let alone.
 */
export async function scratchFolder(parent: string, prefix: string): Promise<ScratchFolder> {
  const [space, start] = await Promise.all([idSpace(), startOf('self')]);
  // Without a start time a process id that was given again could not be told from its predecessor.
  if (start !== undefined) await removeStale(parent, `${prefix}${space}-`);
  const path = await mkdtemp(join(parent, `${prefix}${space}-${process.pid}-${start ?? 0}-`));
  return { path, dispose: () => rm(path, { recursive: true, force: true }) };
}

async function removeStale(parent: string, prefix: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue;
    const [, pid, start] = /^([0-9]+)-([0-9]+)-/.exec(name.slice(prefix.length)) ?? [];
    if (pid === undefined || (await startOf(Number(pid))) === start) continue;
    // Somebody else's folder may not be ours to remove.
    await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined);
  }
}
