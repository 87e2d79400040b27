import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { identify, type ProcessId } from './processes.ts';
import { plainEnvironment } from './run.ts';
import { clusterVariable, type StateFile } from './state.ts';

export interface DaemonSpec {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The log file of a daemon; it is appended to over restarts. */
export function logFile(directory: string, name: string): string {
  return join(directory, 'logs', `${name}.log`);
}

/**
 * Starts a daemon that outlives this process, with its output in a log file. It is recorded before it exists, and
 * carries the cluster's id in its environment, so that even a start cut short by a kill can be found and ended.
 * @throws Error when the program can not be started.
 */
export async function startDaemon(file: StateFile, spec: DaemonSpec): Promise<ProcessId> {
  const { directory, id } = file.current;
  mkdirSync(dirname(logFile(directory, spec.name)), { recursive: true });
  file.recordProcess({ name: spec.name });
  const log = openSync(logFile(directory, spec.name), 'a', 0o600);
  const [command = '', ...args] = spec.argv;
  try {
    const child = spawn(command, args, {
      env: { ...plainEnvironment, ...spec.env, [clusterVariable]: id },
      cwd: directory,
      detached: true,
      stdio: ['ignore', log, log],
    });
    const process = await new Promise<ProcessId>((resolve, reject) => {
      child.once('error', reject);
      child.once('spawn', () => {
        const known = child.pid === undefined ? undefined : identify(child.pid);
        if (known === undefined) reject(new Error(`${spec.name} ended at once; see ${logFile(directory, spec.name)}`));
        else resolve(known);
      });
    });
    child.unref();
    file.recordProcess({ name: spec.name, process });
    return process;
  } finally {
    closeSync(log);
  }
}

/** The recorded id of a daemon, if it was started. */
export function recordedProcess(file: StateFile, name: string): ProcessId | undefined {
  return file.current.processes.find((entry) => entry.name === name)?.process;
}
