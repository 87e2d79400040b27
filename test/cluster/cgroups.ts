import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { mountPoints } from './mounts.ts';
import { identify, killAll, type ProcessId } from './processes.ts';

/** Mount points of the cgroup hierarchies: one per controller in version 1, one in version 2. */
export function cgroupHierarchies(): string[] {
  return mountPoints()
    .filter((mount) => mount.type === 'cgroup' || mount.type === 'cgroup2')
    .map((mount) => mount.point);
}

/**
 * Creates a cgroup in every hierarchy. In version 1 a set of processors starts empty and takes no process in: each level
 * gets its parent's.
 */
export function createCgroup(path: string): void {
  for (const top of cgroupHierarchies()) {
    let folder = top;
    for (const part of path.split('/').filter(Boolean)) {
      const parent = folder;
      folder = join(parent, part);
      mkdirSync(folder, { recursive: true });
      for (const file of ['cpuset.cpus', 'cpuset.mems']) {
        if (existsSync(join(parent, file)) && readFileSync(join(folder, file), 'utf8').trim() === '') {
          writeFileSync(join(folder, file), readFileSync(join(parent, file)));
        }
      }
    }
  }
}

/** Folders of a cgroup tree, the deepest first. */
function foldersOf(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const children = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [...children.flatMap((entry) => foldersOf(join(folder, entry.name))), folder];
}

function processesOf(folder: string): ProcessId[] {
  try {
    const pids = readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
    return pids.map(identify).filter((id) => id !== undefined);
  } catch {
    return [];
  }
}

/** Kills what still lives in the cgroup `name` of any hierarchy and removes it. */
export async function removeCgroup(name: string, clock: Clock): Promise<void> {
  const trees = (): string[] => cgroupHierarchies().flatMap((top) => foldersOf(join(top, name)));
  await killAll(trees().flatMap(processesOf), clock);
  await waitFor({
    what: `the cgroup ${name} to go`,
    limitMs: 10_000,
    intervalMs: 50,
    clock,
    probe: async (saw) => {
      for (const folder of trees()) {
        try {
          rmdirSync(folder);
        } catch (error) {
          const { code, message } = error as NodeJS.ErrnoException;
          if (code !== 'EBUSY' && code !== 'ENOENT' && code !== 'ENOTEMPTY') throw error;
          saw(message);
        }
      }
      return trees().length === 0 ? true : undefined;
    },
  });
}
