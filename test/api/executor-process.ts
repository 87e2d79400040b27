/** Executors as processes of their own, as pods run them; each behind a proxy that counts what it asks of the API server. */
import { join } from 'node:path';
import type { ApiServerHandle } from '../apiserver/server.ts';
import { writeKubeconfig } from '../apiserver/shared.ts';
import { type FaultProxy, startFaultProxy } from '../faults/proxy.ts';
import { kill9, spawnTied } from '../tools/process.ts';

export interface ExecutorProcess {
  readonly proxy: FaultProxy;
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  kill(): Promise<void>;
  said(words: string): boolean;
  end(): Promise<void>;
}

export interface ProcessInput {
  readonly server: ApiServerHandle;
  readonly namespace: string;
  /** What runs: the sources, or the bundle. */
  readonly program: string;
  /** A folder for its kubeconfig. */
  readonly folder: string;
  readonly flags?: readonly string[];
  /** Of Node itself. */
  readonly node?: readonly string[];
}

let count = 0;

/** Starts an executor whose Leases last three seconds. */
export async function startExecutorProcess(input: ProcessInput): Promise<ExecutorProcess> {
  const { server, namespace, program, folder, flags = [], node = [] } = input;
  const proxy = await startFaultProxy(server);
  count += 1;
  const kubeconfig = await writeKubeconfig(join(folder, `kubeconfig-${count}`), server, { url: proxy.url });
  const where = ['--kubeconfig', kubeconfig, '--namespace', namespace];
  const args = ['executor', ...where, '--metrics-port', '0', '--test-lease-duration', '3s', ...flags];
  const child = spawnTied(process.execPath, [...node, program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: folder,
  });
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
  });
  return {
    proxy,
    signal: (name) => void child.kill(name),
    kill: () => kill9(child),
    said: (words) => text.includes(words),
    async end() {
      await kill9(child);
      await proxy.stop();
    },
  };
}
