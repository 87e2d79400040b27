import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TiedDirectory {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * A temporary directory that goes with this process, also after a kill -9: a shell of its own session waits for the end
 * of a pipe that only this process holds, and removes the directory then.
 */
export async function tiedDirectory(prefix: string): Promise<TiedDirectory> {
  const path = await mkdtemp(join(tmpdir(), prefix));
  // Programs that write into it die with this process too; a second round catches a file written in between.
  const script = 'cat >/dev/null; for i in 1 2 3 4 5; do rm -rf -- "$0" && exit 0; sleep 1; done';
  const janitor: ChildProcess = spawn('/bin/sh', ['-c', script, path], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  });
  janitor.unref();
  const { stdin } = janitor;
  if (stdin !== null && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  return {
    path,
    async remove() {
      const gone = new Promise<void>((resolve) => janitor.once('exit', () => resolve()));
      janitor.ref();
      stdin?.end();
      if (janitor.exitCode === null) await gone;
      await rm(path, { recursive: true, force: true });
    },
  };
}
