import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { createCgroup, removeCgroup } from './cgroups.ts';
import { logFile, recordedProcess, startDaemon } from './daemon.ts';
import { nodeCgroup } from './kubelet.ts';
import { bootName, bootNode, firstProcess, killNode, type NodePrograms } from './nodeBoot.ts';
import { nodeBin, rootOf } from './nodeFiles.ts';
import { childrenOf, identify, isAlive, killAll, type ProcessId } from './processes.ts';
import { type CommandOptions, mustRun, runCommand } from './run.ts';
import type { NodeRecord, StateFile } from './state.ts';
import type { ClusterNode, NodeService } from './types.ts';

export interface NodeContext {
  readonly file: StateFile;
  readonly record: NodeRecord;
  readonly programs: NodePrograms;
  readonly overlay: boolean;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

const services: readonly NodeService[] = ['containerd', 'kubelet', 'kube-proxy'];

function serviceArguments(service: NodeService, record: NodeRecord): string[] {
  switch (service) {
    case 'containerd':
      return ['containerd', '--config=/etc/containerd/config.toml'];
    case 'kubelet':
      return [
        join(nodeBin, 'kubelet'),
        '--config=/etc/keelson/kubelet.json',
        '--kubeconfig=/etc/keelson/kubelet.kubeconfig',
        `--hostname-override=${record.name}`,
        `--node-ip=${record.address}`,
        '--root-dir=/var/lib/kubelet',
        '--cert-dir=/var/lib/kubelet/pki',
      ];
    case 'kube-proxy':
      return [join(nodeBin, 'kube-proxy'), '--config=/etc/keelson/kube-proxy.json'];
  }
}

/** One node of a running cluster: what the harness and its users do with it. */
export class Node implements ClusterNode {
  readonly name: string;
  readonly ip: string;
  readonly podCIDR: string;
  readonly netns: string;
  readonly root: string;
  private readonly context: NodeContext;

  constructor(context: NodeContext) {
    this.context = context;
    this.name = context.record.name;
    this.ip = context.record.address;
    this.podCIDR = context.record.podCIDR;
    this.netns = context.record.netns;
    this.root = rootOf(context.record);
  }

  pid(): number | undefined {
    return this.first()?.pid;
  }

  pids(): Partial<Record<NodeService, number>> {
    const known = services.flatMap((service) => {
      const inner = this.service(service);
      return inner === undefined ? [] : [[service, inner.pid] as const];
    });
    return Object.fromEntries(known);
  }

  exec(argv: readonly string[], options?: CommandOptions) {
    return runCommand([...this.enter(), ...argv], options);
  }

  /** Powers the node on: namespaces, containerd, kubelet, kube-proxy. */
  async start(): Promise<void> {
    const { file, record, programs, overlay, clock, signal } = this.context;
    if (this.first() !== undefined) throw new Error(`${this.name} is already running`);
    createCgroup(nodeCgroup(file.current, record));
    await bootNode(file, record, programs, overlay, clock, signal);
    await this.startService('containerd');
    await this.startService('kubelet');
    await this.startService('kube-proxy');
  }

  async stop(): Promise<void> {
    const outer = recordedProcess(this.context.file, bootName(this.context.record));
    const wrappers = services.map((service) => this.wrapper(service)).filter((id) => id !== undefined);
    if (outer !== undefined) await killNode(outer, this.context.clock);
    await killAll(wrappers, this.context.clock);
    // As after any power-off; a kubelet that finds groups of containers long gone spends seconds on each.
    await removeCgroup(nodeCgroup(this.context.file.current, this.context.record), this.context.clock);
  }

  async startService(service: NodeService): Promise<void> {
    if (this.service(service) !== undefined) throw new Error(`${service} of ${this.name} is already running`);
    await startDaemon(this.context.file, {
      name: `${this.name}/${service}`,
      argv: [...this.enter(), ...serviceArguments(service, this.context.record)],
    });
    if (service === 'containerd') await this.waitForContainerd();
  }

  async stopService(service: NodeService): Promise<void> {
    const ids = [this.service(service), this.wrapper(service)].filter((id) => id !== undefined);
    await killAll(ids, this.context.clock);
  }

  private first(): ProcessId | undefined {
    const outer = recordedProcess(this.context.file, bootName(this.context.record));
    return outer === undefined ? undefined : firstProcess(outer);
  }

  /** nsenter stays outside as the parent of the daemon, which lives in the node's PID namespace. */
  private wrapper(service: NodeService): ProcessId | undefined {
    const id = recordedProcess(this.context.file, `${this.name}/${service}`);
    return id !== undefined && isAlive(id) ? id : undefined;
  }

  private service(service: NodeService): ProcessId | undefined {
    const outer = this.wrapper(service);
    return outer === undefined
      ? undefined
      : childrenOf(outer.pid)
          .map(identify)
          .find((id) => id !== undefined);
  }

  private enter(): string[] {
    const first = this.first();
    if (first === undefined) throw new Error(`${this.name} is not running`);
    return ['nsenter', '--target', String(first.pid), '--mount', '--uts', '--ipc', '--net', '--pid', '--'];
  }

  private async waitForContainerd(): Promise<void> {
    const { clock, signal, file } = this.context;
    await waitFor({
      what: `containerd of ${this.name} to answer`,
      limitMs: 30_000,
      intervalMs: 100,
      clock,
      ...(signal === undefined ? {} : { signal }),
      probe: async (saw) => {
        if (this.wrapper('containerd') === undefined) {
          const log = readFileSync(logFile(file.current.directory, `${this.name}/containerd`), 'utf8');
          throw new Error(`containerd of ${this.name} ended: ${log.slice(-1500)}`);
        }
        const answer = await this.exec(['ctr', 'version'], { limitMs: 5_000 });
        saw(answer.stderr.trim());
        return answer.code === 0 ? true : undefined;
      },
    });
  }
}

/** Fails early, with a remedy, where the machine can not hold nodes. */
export async function checkMachine(): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('the cluster needs root: it makes namespaces, mounts and links');
  await mustRun(['unshare', '--mount', '--pid', '--fork', 'true']);
}
