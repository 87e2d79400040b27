import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApiServer } from '../../apiserver/server.ts';
import { writeKubeconfig } from '../../apiserver/shared.ts';
import type { FaultRule, RequestRecord } from '../../faults/plan.ts';
import { type FaultProxy, startFaultProxy } from '../../faults/proxy.ts';
import { kill9, spawnTied } from '../../tools/process.ts';

/** A line that the executor said, on the monotonic clock of this process. */
export interface Line {
  readonly at: number;
  readonly message: string;
}

/** An executor as a process, with the timings of every day, behind a proxy that sees all its requests. */
export interface Observed {
  readonly name: string;
  readonly log: readonly RequestRecord[];
  readonly lines: readonly Line[];
  readonly violations: readonly string[];
  /** The most memory that it ever had, in MiB. */
  peakMiB(): Promise<number>;
  /** From now on requests meet this, until they are healed. */
  fault(rule: Omit<FaultRule, 'times'>): void;
  heal(): void;
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  alive(): boolean;
  /** When it first said these words after `since`. */
  saidAt(words: string, since: number): number | undefined;
  end(): Promise<void>;
}

export interface ObservedInput {
  readonly server: ApiServer;
  /** The bundled program. */
  readonly program: string;
  readonly folder: string;
  readonly name: string;
  readonly namespace: string;
}

const always = 1e9;

export async function startObserved(input: ObservedInput): Promise<Observed> {
  const { server, program, folder, name, namespace } = input;
  const proxy: FaultProxy = await startFaultProxy(server);
  const kubeconfig = await writeKubeconfig(join(folder, `${namespace}-${name}.kubeconfig`), server, { url: proxy.url });
  const args = ['executor', '--kubeconfig', kubeconfig, '--namespace', namespace, '--metrics-port', '0'];
  const child = spawnTied(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, POD_NAME: name },
  });
  const lines: Line[] = [];
  hear(child, (message) => lines.push({ at: performance.now(), message }));
  return {
    name,
    log: proxy.plan.log,
    lines,
    violations: proxy.plan.violations,
    peakMiB: () => peakMiB(child.pid ?? -1),
    fault: (rule) => void proxy.plan.inject({ ...rule, times: always }),
    heal: () => proxy.plan.clear(),
    signal: (word) => void child.kill(word),
    alive: () => child.exitCode === null && child.signalCode === null,
    saidAt: (words, since) => lines.find(({ at, message }) => at >= since && message.includes(words))?.at,
    async end() {
      child.kill('SIGCONT');
      await kill9(child);
      await proxy.stop({ forgive: true });
    },
  };
}

function hear(child: ChildProcess, say: (line: string) => void): void {
  let rest = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    const parts = (rest + chunk.toString('utf8')).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) say(part);
  });
}

/** As the kernel counts the pages that a process had in memory. */
async function peakMiB(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(text)?.[1] ?? Number.NaN) / 1024;
}
