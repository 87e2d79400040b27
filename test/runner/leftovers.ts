import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const graceMs = 3000;

/**
 * Programs that a test file started and that still run: those whose environment carries its mark. They get a moment to
 * end by themselves; what is left then is killed by its id and named in the answer.
 */
export async function endLeftovers(mark: string): Promise<string[]> {
  const deadline = performance.now() + graceMs;
  let running = marked(mark);
  while (running.length > 0 && performance.now() < deadline) {
    await delay(50);
    running = marked(mark);
  }
  for (const { pid } of running) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended between the look and the kill.
    }
  }
  const killed = performance.now() + graceMs;
  while (marked(mark).length > 0 && performance.now() < killed) await delay(20);
  return running.map(({ pid, command }) => `${command} (${pid})`);
}

function marked(mark: string): { pid: number; command: string }[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^[0-9]+$/.test(entry)) return [];
    try {
      if (!readFileSync(`/proc/${entry}/environ`, 'utf8').includes(mark)) return [];
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0').slice(0, 3).join(' ').trim();
      return command === '' ? [] : [{ pid: Number(entry), command }];
    } catch {
      return [];
    }
  });
}
