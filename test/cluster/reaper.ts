import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../constructs/lib/clock.ts';
import { withLock } from '../tools/lock.ts';
import { destroyCluster } from './destroy.ts';
import { plainEnvironment } from './run.ts';
import { clusterLock } from './state.ts';

/** What the owner of a cluster writes to its reaper when there is nothing left for it to do. */
const releaseWord = 'released';

export interface Reaper {
  /** Ends the reaper without removing anything, and waits for its end. */
  release(): Promise<void>;
}

/**
 * Removes the cluster in `directory` when the process that holds the other end of standard input is gone without having
 * released it: also after a kill -9, when nothing of that process can run any more.
 */
async function reap(directory: string): Promise<void> {
  let said = '';
  process.stdin.setEncoding('utf8');
  for await (const text of process.stdin) said += String(text);
  if (said.includes(releaseWord)) return;
  try {
    await withLock(clusterLock(directory), {}, () => destroyCluster(directory, systemClock));
  } catch (error) {
    // Nobody listens any more: the reason waits beside the state for the next `up` or `down`.
    appendFileSync(
      join(directory, 'reaper.log'),
      `${error instanceof Error ? (error.stack ?? error.message) : error}\n`,
    );
    process.exitCode = 1;
  }
}

/** Starts the reaper of a cluster that this process owns. */
export function startReaper(directory: string): Reaper {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), directory], {
    detached: true,
    cwd: '/',
    env: { PATH: plainEnvironment.PATH ?? '', HOME: '/' },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const { stdin } = child;
  if (stdin === null) throw new Error('the reaper could not be started');
  stdin.on('error', () => undefined);
  child.unref();
  (stdin as Socket).unref();
  return {
    async release() {
      const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      child.ref();
      stdin.end(releaseWord);
      if (child.exitCode === null && child.signalCode === null) await gone;
    },
  };
}

if (import.meta.main) {
  const [directory] = process.argv.slice(2);
  if (directory === undefined) throw new Error('usage: reaper.ts DIRECTORY');
  await reap(directory);
}
