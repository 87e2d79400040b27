import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Clock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';

/** A process and the tick it started at, so that a reused id is never taken for it. */
export interface ProcessId {
  readonly pid: number;
  readonly startTicks: string;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Fields of /proc/PID/stat after the command name, which may itself hold spaces and brackets. */
function statFields(pid: number): string[] | undefined {
  const text = read(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** The id of a living process; undefined when there is none. A zombie counts as gone. */
export function identify(pid: number): ProcessId | undefined {
  const fields = statFields(pid);
  const [state, startTicks] = [fields?.[0], fields?.[19]];
  if (startTicks === undefined || state === 'Z' || state === 'X') return undefined;
  return { pid, startTicks };
}

export function isAlive(id: ProcessId): boolean {
  return identify(id.pid)?.startTicks === id.startTicks;
}

/** Every process id of this machine. */
export function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number);
}

export function childrenOf(pid: number): number[] {
  const text = read(`/proc/${pid}/task/${pid}/children`);
  if (text !== undefined) return text.split(' ').filter(Boolean).map(Number);
  return allPids().filter((each) => statFields(each)?.[1] === String(pid));
}

/** Processes that carry `variable=value` in the environment they were started with. */
export function processesWithEnvironment(variable: string, value: string): ProcessId[] {
  const wanted = `${variable}=${value}`;
  return allPids()
    .filter((pid) => pid !== process.pid && (read(`/proc/${pid}/environ`) ?? '').split('\0').includes(wanted))
    .map(identify)
    .filter((id) => id !== undefined);
}

/** Processes in the same PID namespace as `pid`, itself included. */
export function namespaceMembers(pid: number): number[] {
  const of = (each: number): string | undefined => {
    try {
      return readlinkSync(`/proc/${each}/ns/pid`);
    } catch {
      return undefined;
    }
  };
  const wanted = of(pid);
  return wanted === undefined ? [] : allPids().filter((each) => of(each) === wanted);
}

function sendSignal(id: ProcessId, signal: NodeJS.Signals): void {
  if (!isAlive(id)) return;
  try {
    process.kill(id.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Kills the given processes and waits until none of them lives. */
export async function killAll(ids: readonly ProcessId[], clock: Clock, limitMs = 10_000): Promise<void> {
  for (const id of ids) sendSignal(id, 'SIGKILL');
  await untilGone(ids, clock, limitMs);
}

/** Waits until none of the processes lives. */
export async function untilGone(ids: readonly ProcessId[], clock: Clock, limitMs: number): Promise<void> {
  await waitFor({
    what: `the end of ${ids.length} processes`,
    limitMs,
    intervalMs: 20,
    clock,
    probe: async (saw) => {
      const left = ids.filter(isAlive);
      saw(`alive: ${left.map((id) => id.pid).join(', ')}`);
      return left.length === 0 ? true : undefined;
    },
  });
}
