/** What the kernel knows of processes and of the machine. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** Ticks of a second in /proc/<pid>/stat; fixed for all Linux systems of today. */
const ticksPerSecond = 100;

/** Fields of /proc/<pid>/stat behind the name, which may hold spaces. */
function statFields(pid: number | 'self'): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** CPU seconds, user and system, that a process has used. */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid);
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** CPU seconds of the children of this process that have ended. */
export function endedChildrenCpuSeconds(): number {
  const fields = statFields('self');
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond;
}

/** The most memory that a process ever had resident, in MiB; undefined when it is gone. */
export function peakMiB(pid: number): number | undefined {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? undefined : Number(kib) / 1024;
  } catch {
    return undefined;
  }
}

/** The child of this process that runs a program of this name. @throws when there is none. */
export function childOf(parent: number, program: string): number {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const [, ppid] = statFields(Number(entry));
      const [command] = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\u0000');
      if (Number(ppid) === parent && command?.endsWith(`/${program}`) === true) return Number(entry);
    } catch {
      // It ended while it was looked at.
    }
  }
  throw new Error(`no child process runs ${program}`);
}

function busyTicks(): { readonly busy: number; readonly all: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  const all = ticks.reduce((sum, n) => sum + n, 0);
  return { all, busy: all - (ticks[3] ?? 0) - (ticks[4] ?? 0) };
}

/** How much of the machine was at work for a moment, from 0 to 1: by others, when asked before a run. */
export async function busyShare(ms = 500): Promise<number> {
  const before = busyTicks();
  await delay(ms);
  const after = busyTicks();
  return after.all === before.all ? 0 : (after.busy - before.busy) / (after.all - before.all);
}

export interface MachineFacts {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  readonly loadAverage: readonly number[];
}

export function machineFacts(): MachineFacts {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    // The build of a kernel tells more of whose machine it is than of what was measured.
    kernel: /^[\d.]+/.exec(release())?.[0] ?? '',
    node: process.versions.node,
    loadAverage: loadavg().map((load) => Math.round(load * 100) / 100),
  };
}
