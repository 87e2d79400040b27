import type { Clock } from '../../constructs/lib/clock.ts';
import { withLock } from '../tools/lock.ts';
import { adminKubeconfig } from './accounts.ts';
import { apiServerUrl, type ControlPlaneInput, startApiServer } from './controlPlane.ts';
import { recordedProcess, startDaemon } from './daemon.ts';
import { destroyCluster } from './destroy.ts';
import type { Node } from './node.ts';
import { writeCni } from './nodeFiles.ts';
import { killAll } from './processes.ts';
import type { ClusterPrograms } from './programs.ts';
import type { Reaper } from './reaper.ts';
import { registryRef, startRegistry, stopRegistry } from './registry.ts';
import { type CommandOptions, mustRun } from './run.ts';
import { type ClusterState, type CniMode, clusterLock, type StateFile } from './state.ts';
import type { Cluster } from './types.ts';

export interface RunningClusterParts {
  readonly file: StateFile;
  readonly nodes: readonly Node[];
  readonly programs: ClusterPrograms;
  readonly pauseImage: string;
  readonly control: ControlPlaneInput;
  readonly reaper: Reaper;
  readonly clock: Clock;
}

/** A cluster in the hands of the process that started it. */
export class RunningCluster implements Cluster {
  readonly name: string;
  readonly directory: string;
  readonly kubeconfig: string;
  readonly apiServer: string;
  readonly kubectlPath: string;
  readonly nodes: readonly Node[];
  readonly registry: Cluster['registry'];
  private readonly parts: RunningClusterParts;

  constructor(parts: RunningClusterParts) {
    const state = parts.file.current;
    this.parts = parts;
    this.name = state.name;
    this.directory = state.directory;
    this.kubeconfig = adminKubeconfig(state);
    this.apiServer = apiServerUrl(state);
    this.kubectlPath = parts.programs.kubectl;
    this.nodes = parts.nodes;
    this.registry = { hostRef: registryRef(state), pauseImage: parts.pauseImage };
  }

  state(): ClusterState {
    return this.parts.file.current;
  }

  node(name: string): Node {
    const node = this.nodes.find((each) => each.name === name);
    if (node === undefined)
      throw new Error(`${this.name} has no node ${name}; it has ${this.nodes.map((each) => each.name).join(', ')}`);
    return node;
  }

  kubectl(args: readonly string[], options: CommandOptions = {}): Promise<string> {
    return mustRun([this.kubectlPath, `--kubeconfig=${this.kubeconfig}`, ...args], { limitMs: 60_000, ...options });
  }

  stopNode(name: string): Promise<void> {
    return this.node(name).stop();
  }

  startNode(name: string): Promise<void> {
    return this.node(name).start();
  }

  async setCni(mode: CniMode): Promise<void> {
    this.parts.file.update({ cni: mode });
    for (const record of this.state().nodes) writeCni(record, this.state(), mode);
  }

  async stopApiServer(): Promise<void> {
    const id = recordedProcess(this.parts.file, 'kube-apiserver');
    await killAll(id === undefined ? [] : [id], this.parts.clock);
  }

  startApiServer(): Promise<void> {
    return startApiServer(this.parts.control);
  }

  stopRegistry(): Promise<void> {
    return stopRegistry(this.parts.file, this.parts.clock);
  }

  startRegistry(): Promise<void> {
    return startRegistry(this.parts.file, this.parts.clock);
  }

  async startProgram(name: string, argv: readonly string[]): Promise<void> {
    await startDaemon(this.parts.file, { name, argv });
  }

  async down(): Promise<void> {
    this.parts.file.update({ phase: 'stopping' });
    await withLock(clusterLock(this.directory), {}, () => destroyCluster(this.directory, this.parts.clock));
    await this.parts.reaper.release();
  }
}
