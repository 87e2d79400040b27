/** Which process answers: tells a daemon that was restarted between two looks from one that went on. */

import type { DaemonIdentity } from '../../constructs/api/evidence/fields.ts';
import { readFile, stat } from '../../constructs/lib/files.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';

export interface DaemonPlace {
  /** What faults call it. */
  readonly daemon: string;
  readonly socket: string;
  /** Process id as the daemon counts, where a file tells it. */
  readonly pid?: number | undefined;
  /** The program's name, as the kernel keeps it. */
  readonly program: string;
  /** Where processes are seen. */
  readonly procDirectory?: string;
}

/** Ticks of the kernel's clock for user space: a hundred a second on every platform of Node. */
const nanosecondsPerTick = 10_000_000n;

/** When a process began, in ticks since the boot; undefined when no process of that program and id is seen from here. */
async function startTicks(proc: string, pid: number, program: string): Promise<string | undefined> {
  const text = await readFile(`${proc}/${pid}/stat`, 'latin1').catch(() => '');
  // The second field is the program's name in parentheses, which may hold anything.
  const [name, rest] = [
    text.slice(text.indexOf('(') + 1, text.lastIndexOf(')')),
    text.slice(text.lastIndexOf(')') + 2),
  ];
  const ticks = rest.split(' ')[19];
  return name === program && ticks !== undefined && /^[0-9]+$/.test(ticks) ? ticks : undefined;
}

/**
 * The socket's inode and the start of the process. A sidecar often has process ids of its own and sees no other processes:
 * then the time at which the daemon bound its socket stands for its start, counted in ticks as well.
 */
export async function identify(place: DaemonPlace): Promise<Result<DaemonIdentity>> {
  const { daemon, socket, pid, program, procDirectory = '/proc' } = place;
  try {
    const { ino, mtimeNs } = await stat(socket, { bigint: true });
    const started = pid === undefined ? undefined : await startTicks(procDirectory, pid, program);
    return ok({ socketInode: String(ino), startTicks: started ?? String(mtimeNs / nanosecondsPerTick) });
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    const absent = code === 'ENOENT' || code === 'ENOTDIR';
    return fault(absent ? 'refused' : 'denied', `${daemon}: no socket ${socket} (${code})`);
  }
}
