import type { RunResult } from '../tools/process.ts';
import type { CommandOptions } from './run.ts';
import type { ClusterState, CniMode } from './state.ts';

/** Daemons of a node that can be stopped and started alone. */
export type NodeService = 'containerd' | 'kubelet' | 'kube-proxy';

export interface ClusterOptions {
  /** A DNS label, unique among the clusters below `directory`; `local` by default. */
  readonly name?: string;
  /** `none` by default: nodes stay NotReady and only pods on the host network with tolerations run. */
  readonly cni?: CniMode;
  /** Number of nodes, 1 to 9; 3 by default. Their names are node-1, node-2, ... */
  readonly nodes?: number;
  /** Folder that holds all clusters, from {@link clustersDirectory}. */
  readonly directory: string;
  /** True to let the cluster outlive this process; otherwise it is removed as soon as this process ends, however. */
  readonly keep?: boolean;
  /** False lets etcd skip fsync, which tests of logic want; true for benchmarks. False by default. */
  readonly fsync?: boolean;
  /** More flags of kube-apiserver, after the harness's own. */
  readonly apiServerFlags?: readonly string[];
  /** Takes one line of progress. */
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface ClusterNode {
  readonly name: string;
  /** Its address on the bridge: InternalIP of the Node object, and how the host reaches it. */
  readonly ip: string;
  readonly podCIDR: string;
  /** File of its network namespace, for `nsenter --net=`. It exists also while the node is stopped. */
  readonly netns: string;
  /** The node's root directory as the host sees it; /run, /proc, /sys and /usr of the node are not below it. */
  readonly root: string;
  /** Process id, on the host, of the node's first process; undefined while the node is stopped. */
  pid(): number | undefined;
  /** Process ids, on the host, of the daemons that run. */
  pids(): Readonly<Partial<Record<NodeService, number>>>;
  /** Runs a command inside all of the node's namespaces. */
  exec(argv: readonly string[], options?: CommandOptions): Promise<RunResult>;
  /** Kills one daemon with SIGKILL; nothing restarts it. */
  stopService(service: NodeService): Promise<void>;
  startService(service: NodeService): Promise<void>;
}

export interface Cluster {
  readonly name: string;
  readonly directory: string;
  /** Admin kubeconfig (group system:masters), for the host. */
  readonly kubeconfig: string;
  /** `https://<bridge address>:<port>`: valid on the host, on nodes and in pods. */
  readonly apiServer: string;
  readonly kubectlPath: string;
  readonly nodes: readonly ClusterNode[];
  /** `127.0.0.1:<port>`: the registry's name on the host, in manifests and on every node. */
  readonly registry: {
    readonly hostRef: string;
    /** Pinned reference of the image that does nothing, present in every cluster's registry. */
    readonly pauseImage: string;
  };
  state(): ClusterState;
  node(name: string): ClusterNode;
  /** Runs kubectl as admin and answers its output. @throws Error when it fails. */
  kubectl(args: readonly string[], options?: CommandOptions): Promise<string>;
  /** Power off: every process of the node dies at once, its disk stays. */
  stopNode(name: string): Promise<void>;
  /** Power on a stopped node. */
  startNode(name: string): Promise<void>;
  /** Writes or removes the CNI configuration of every node. */
  setCni(mode: CniMode): Promise<void>;
  /** Kills kube-apiserver with SIGKILL. */
  stopApiServer(): Promise<void>;
  startApiServer(): Promise<void>;
  /** Kills the registry; what was pushed is kept. */
  stopRegistry(): Promise<void>;
  startRegistry(): Promise<void>;
  /** Starts a program on the host that ends with the cluster; its output goes to `logs/<name>.log` of the cluster. */
  startProgram(name: string, argv: readonly string[]): Promise<void>;
  /** Removes the cluster and everything that exists because of it. */
  down(): Promise<void>;
}
