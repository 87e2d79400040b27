import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessId } from './processes.ts';

/** The variable that every process of a cluster carries; its value is the cluster's id. */
export const clusterVariable = 'KEELSON_CLUSTER';

/** How pods get a network: not at all (no configuration exists), or by the bridge plugin with routes between nodes. */
export type CniMode = 'none' | 'bridge';

/** A daemon of the cluster. It is recorded without an id just before it is started. */
export interface RecordedProcess {
  readonly name: string;
  readonly process?: ProcessId;
}

export interface NodeRecord {
  readonly name: string;
  readonly address: string;
  /** Of its second interface, which carries tunnels only. */
  readonly tunnelAddress: string;
  readonly podCIDR: string;
  readonly link: string;
  readonly tunnelLink: string;
  readonly directory: string;
  /** File that holds the node's network namespace. */
  readonly netns: string;
}

/** What exists on the machine because of one cluster; written before each part comes into being. */
export interface ClusterState {
  readonly formatVersion: 2;
  readonly name: string;
  readonly id: string;
  readonly directory: string;
  readonly startedAt: string;
  /** While its owner lives the owner alone ends the cluster; `kept` clusters end by `down`. */
  readonly owner: ProcessId | 'kept';
  readonly phase: 'starting' | 'running' | 'stopping';
  readonly cni: CniMode;
  readonly bridge: { readonly name: string; readonly address: string; readonly prefixLength: number };
  /** Joins the nodes' second interfaces; the host has no address there. */
  readonly tunnelBridge: string;
  readonly podCIDR: string;
  readonly serviceCIDR: string;
  readonly cgroup: string;
  readonly ports: {
    readonly apiServer: number;
    readonly etcd: number;
    readonly registry: number;
    readonly dns: number;
  };
  readonly nodes: readonly NodeRecord[];
  readonly processes: readonly RecordedProcess[];
}

/** Where clusters are kept, from the environment of the entry point. */
export function clustersDirectory(env: Readonly<Record<string, string | undefined>>): string {
  const base = env.XDG_STATE_HOME ?? join(env.HOME ?? '/root', '.local', 'state');
  return join(base, 'keelson', 'clusters');
}

function stateFile(directory: string): string {
  return join(directory, 'state.json');
}

/** The recorded state of the cluster in `directory`; undefined when there is none. */
export function readState(directory: string): ClusterState | undefined {
  if (!existsSync(stateFile(directory))) return undefined;
  const state = JSON.parse(readFileSync(stateFile(directory), 'utf8')) as ClusterState;
  if (state.formatVersion !== 2) {
    throw new Error(
      `${stateFile(directory)}: format ${String(state.formatVersion)} is not known; remove that cluster with the version that made it`,
    );
  }
  return state;
}

export function listStates(root: string): ClusterState[] {
  if (!existsSync(root)) return [];
  return readdirSync(root)
    .sort()
    .map((name) => readState(join(root, name)))
    .filter((state) => state !== undefined);
}

function writeState(state: ClusterState): void {
  mkdirSync(state.directory, { recursive: true, mode: 0o700 });
  const file = stateFile(state.directory);
  writeFileSync(`${file}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The state file of a cluster that this process owns: every change is on disk before the call returns. */
export class StateFile {
  private state: ClusterState;

  constructor(state: ClusterState) {
    this.state = state;
    writeState(state);
  }

  get current(): ClusterState {
    return this.state;
  }

  update(change: Partial<ClusterState>): void {
    this.state = { ...this.state, ...change };
    writeState(this.state);
  }

  /** Records one daemon, replacing the entry of that name. */
  recordProcess(entry: RecordedProcess): void {
    this.update({ processes: [...this.state.processes.filter((each) => each.name !== entry.name), entry] });
  }
}

/** Name of the lock under which one process at a time starts or removes the cluster in `directory`. */
export function clusterLock(directory: string): string {
  return `cluster:${directory}`;
}
