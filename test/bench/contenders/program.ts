/** A long-running program under test: started, watched through its log, measured, stopped by its id. */
import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { kill9, spawnTied } from '../../tools/process.ts';
import { cpuSeconds, peakMiB } from '../proc.ts';
import type { Usage } from './types.ts';

export interface Program {
  readonly pid: number;
  /** Waits until its output holds the words. @throws with the end of the output when it ends first, or after the limit. */
  says(words: string, limitMs: number): Promise<void>;
  usage(): Usage;
  stop(): Promise<void>;
}

const stopLimitMs = 8_000;

export function startProgram(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Program {
  const child: ChildProcess = spawnTied(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  let text = '';
  const hear = (chunk: Buffer): void => {
    text = `${text}${chunk.toString('utf8')}`.slice(-200_000);
  };
  child.stdout?.on('data', hear);
  child.stderr?.on('data', hear);
  const pid = child.pid ?? -1;
  let counted = 0;
  return {
    pid,
    async says(words, limitMs) {
      const deadline = performance.now() + limitMs;
      while (!text.includes(words)) {
        const gone = child.exitCode !== null || child.signalCode !== null;
        if (gone || performance.now() > deadline)
          throw new Error(`${command} ${gone ? 'ended' : 'did not say'} '${words}': ${text.slice(-2_000)}`);
        await delay(20);
      }
    },
    usage() {
      const now = cpuSeconds(pid);
      const used = { cpuSeconds: now - counted, peakMiB: peakMiB(pid) ?? 0 };
      counted = now;
      return used;
    },
    async stop() {
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      // Whoever does not end by itself in time is ended.
      await Promise.race([ended, delay(stopLimitMs, undefined, { ref: false })]);
      await kill9(child);
    },
  };
}
