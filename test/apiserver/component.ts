import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kill9, spawnTied } from '../tools/process.ts';

/** A running program of the test control plane. */
export interface Component {
  readonly name: string;
  readonly pid: number;
  /** The file that takes its output; appended to over restarts. */
  readonly logFile: string;
  /** @throws with the end of the log when the program has ended. */
  alive(): void;
  /** Kills it by its id and waits until it is gone. */
  kill(): Promise<void>;
}

/**
 * Starts a program of the control plane: tied to this process (it dies with it), its output in a file, without keeping
 * this process alive.
 */
export function startComponent(name: string, program: string, args: readonly string[], directory: string): Component {
  const logFile = join(directory, `${name}.log`);
  const log = openSync(logFile, 'a', 0o600);
  const child: ChildProcess = spawnTied(program, args, { stdio: ['ignore', log, log], cwd: directory });
  closeSync(log);
  child.unref();
  let failure: string | undefined;
  child.once('error', (error) => {
    failure = error.message;
  });
  child.once('exit', (code, signal) => {
    failure = `ended (${signal ?? code})`;
  });
  if (child.pid === undefined) throw new Error(`${name} could not be started from ${program}`);
  return {
    name,
    pid: child.pid,
    logFile,
    alive() {
      if (failure !== undefined) throw new Error(`${name} ${failure}; the end of its log:\n${tail(logFile)}`);
    },
    kill: () => {
      child.ref();
      return kill9(child);
    },
  };
}

function tail(file: string): string {
  return readFileSync(file, 'utf8').split('\n').slice(-25).join('\n');
}
