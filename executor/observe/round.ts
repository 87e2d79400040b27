/**
 * What one round of observation came to. Everything in it was seen between its start and its end, by one clock, so that
 * what is judged of it is judged of one moment; nothing is carried over from the round before.
 */
import type { ComponentOf, EvidenceKind, EvidenceOf } from '../../constructs/api/evidence.ts';

/** What asking one sidecar came to. Only `Broken` says that something does not work; the rest say that nobody knows. */
export type Outcome<K extends EvidenceKind> =
  | { readonly type: 'Evidence'; readonly evidence: EvidenceOf<K> }
  /** Nobody answers, neither directly nor through the kubelet. */
  | { readonly type: 'Unreachable'; readonly message: string }
  /** Whoever answers could not prove to be the one that was asked. */
  | { readonly type: 'Untrusted'; readonly message: string }
  /** The connection stands, and no answer came within the limit. */
  | { readonly type: 'Hung'; readonly limitMs: number }
  /** The answer is not evidence that this program can read. */
  | { readonly type: 'Unreadable'; readonly message: string }
  /** What was asked was replaced or restarted while it was asked. */
  | { readonly type: 'IdentityChanged'; readonly message: string }
  /** The API server says that what should answer is not there, or has failed. */
  | { readonly type: 'Broken'; readonly message: string };

/** A container of a pod, as its kubelet tells it. */
export interface ContainerFacts {
  readonly name: string;
  /** Id of the running instance; empty while there is none. */
  readonly id: string;
  readonly restarts: number;
}

/** A pod that was found through the UIDs of its controllers. */
export interface PodFacts {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly addresses: readonly string[];
  readonly containers: readonly ContainerFacts[];
}

/** A node, as the API server has it now. */
export interface NodeFacts {
  readonly name: string;
  readonly uid: string;
  /** Internal addresses in the order of the API server. */
  readonly addresses: readonly string[];
  readonly ready: 'True' | 'False' | 'Unknown';
  readonly unschedulable: boolean;
}

/** The workload that pods belong to, and how far it is rolled out. */
export interface Rollout {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly observedGeneration: number;
  readonly desired: number;
  readonly updated: number;
  readonly ready: number;
}

/** Where a member keeps its databases. */
export type StorageIdentity =
  | { readonly type: 'hostPath'; readonly path: string }
  | { readonly type: 'claim'; readonly name: string; readonly uid: string };

/** A place that a member of OVN central is expected at: a node of the accepted payload. */
export interface CentralTarget {
  readonly node: { readonly name: string; readonly uid: string; readonly addresses: readonly string[] };
  /** The node of that name now; undefined when it is gone. */
  readonly live: NodeFacts | undefined;
  readonly pod: PodFacts | undefined;
  readonly storage: StorageIdentity | undefined;
  /** Id of the image that its daemons run; undefined where they run none, or several. */
  readonly image?: string | undefined;
  /** Whether a pod of it is still there that ends: its daemons may well run on, and their evidence counts no more. */
  readonly ending?: boolean;
}

/** A member is asked twice, everybody once before anybody twice: what moves in between is seen to move. */
export interface CentralSample {
  readonly target: CentralTarget;
  readonly first: Outcome<'central'>;
  readonly second: Outcome<'central'>;
}

export interface CentralRound {
  readonly workload: Rollout | undefined;
  readonly samples: readonly CentralSample[];
  /** Pods of OVN central on nodes that none is expected on. */
  readonly strays: readonly PodFacts[];
}

export interface ChassisTarget {
  readonly node: string;
  /** The node of that name now; undefined when it is gone. */
  readonly live: NodeFacts | undefined;
  readonly pod: PodFacts;
  /** The same of its daemons, where their image is the one of OVN central; a node of DPDK has one of its own. */
  readonly image?: string | undefined;
}

export interface ChassisSample {
  readonly target: ChassisTarget;
  readonly outcome: Outcome<'chassis'>;
}

export interface ChassisRound {
  /** DaemonSets that carry Open vSwitch; one of them may want no pod, all of them together do. */
  readonly workloads: readonly Rollout[];
  readonly samples: readonly ChassisSample[];
  /** What of workload, pods or nodes changed while the round went on; nothing of the round counts then. */
  readonly changed: readonly string[];
}

/** A name of a component of some kind of evidence. */
export type Component = { [K in EvidenceKind]: ComponentOf<K> }[EvidenceKind];

/** Start and end in milliseconds: by the wall clock for people, and by the clock that never jumps for ages. */
export interface RoundTime {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly startedTick: number;
  readonly endedTick: number;
}
