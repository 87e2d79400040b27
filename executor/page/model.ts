/**
 * What the status page shows, as plain data: bounded, without secrets, without anything that only passes with time. Two equal
 * models are the same page.
 */

/** How something stands. Each has a symbol and a word, so that colour is never the only one to tell. */
export type Mark = 'well' | 'broken' | 'unknown' | 'working' | 'idle';

export interface Told {
  readonly mark: Mark;
  readonly word: string;
}

export interface ConditionView extends Told {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly since: string;
}

export interface GateView extends Told {
  readonly name: string;
  readonly reason: string;
  readonly message: string;
  readonly since: string;
  readonly bypassed: boolean;
  /** When what it was judged by was seen. */
  readonly evidenceTime?: string;
}

export interface PhaseView extends Told {
  readonly name: string;
  readonly applied: number;
  readonly total: number;
  readonly since: string;
  readonly gates: readonly GateView[];
}

export interface HistoryView extends Told {
  readonly digest: string;
  readonly startedAt: string;
  readonly completedAt?: string;
  readonly acceptedRisks?: string;
}

export interface BlockerView {
  readonly what: string;
  readonly reason: string;
  readonly message: string;
  readonly since: string;
  readonly softLimit?: string;
  readonly limit?: string;
}

export interface ReleaseView {
  readonly name: string;
  readonly ready: ConditionView;
  readonly state: string;
  readonly step: string;
  readonly done: number;
  readonly total: number;
  readonly desired?: string;
  readonly actual?: string;
  readonly plan?: { readonly digest: string; readonly changeClass: string; readonly counts: string };
  readonly blocker?: BlockerView;
  /** Hold, pin and what else people put on a Release to break the rules. */
  readonly loud: readonly string[];
  readonly phases: readonly PhaseView[];
  readonly history: readonly HistoryView[];
  /** Entries of the history that are not shown. */
  readonly historyMore: number;
  readonly ledger?: { readonly count: number; readonly digest: string; readonly configMaps: number };
  readonly failures: readonly { readonly object: string; readonly reason: string; readonly message: string }[];
}

export interface MemberView extends Told {
  readonly node: string;
  readonly leads: boolean;
  readonly serverID: string;
  readonly index: string;
  readonly unapplied: string;
  readonly links: string;
}

export interface DatabaseView {
  readonly name: string;
  readonly model: string;
  readonly leader: string;
  readonly term: string;
  readonly members: readonly MemberView[];
}

export interface NorthdView extends Told {
  readonly node: string;
}

export interface MatrixCell extends Told {
  readonly detail: string;
}

export interface MatrixRow {
  readonly name: string;
  /** Kubelet, OVN central, chassis, network probe. */
  readonly cells: readonly [MatrixCell, MatrixCell, MatrixCell, MatrixCell];
}

/** How many nodes stand how in one column. */
export type MatrixCount = Readonly<Record<'well' | 'broken' | 'unknown', number>>;

export interface MatrixView {
  readonly nodes: number;
  readonly counts: readonly [MatrixCount, MatrixCount, MatrixCount, MatrixCount];
  /** All nodes, or in a large cluster only those that are not well. */
  readonly rows: readonly MatrixRow[];
  readonly summarised: boolean;
  /** Nodes that are not well and not shown either. */
  readonly more: number;
}

/** A node that is being taken away, and what stands in the way. */
export interface DrainView extends Told {
  readonly node: string;
  readonly why: readonly string[];
}

export interface EvidenceView {
  /** When the last round ended. */
  readonly seenAt: string;
  readonly tookMs: number;
  readonly limitMs: number;
  readonly stale: boolean;
}

export interface InstallationView {
  readonly namespace: string;
  readonly name: string;
  readonly phase: string;
  readonly version: string;
  readonly ready: ConditionView;
  readonly conditions: readonly ConditionView[];
  /** Absent: this process has not observed it. */
  readonly evidence?: EvidenceView;
  readonly databases: readonly DatabaseView[];
  readonly northd: readonly NorthdView[];
  readonly progress?: { readonly nbCfg: string; readonly sbCfg: string; readonly hvCfg: string };
  readonly network?: {
    readonly passed: number;
    readonly checks: number;
    readonly families: string;
    readonly missing: readonly string[];
  };
  readonly matrix?: MatrixView;
  /** Cordoned nodes. */
  readonly drains: readonly DrainView[];
  /** Cordoned nodes that are not shown. */
  readonly drainsMore: number;
}

export interface CountView {
  readonly word: string;
  readonly count: number;
}

/** How much of the ranges of a class is taken, in one family. Counts may be beyond what numbers hold. */
export interface AddressUsageView {
  readonly family: string;
  readonly taken: string;
  readonly size: string;
  readonly percent: number;
}

export interface AddressClassView {
  readonly name: string;
  /** Empty: the class is gone. */
  readonly provisioner: string;
  /** Addresses by phase. */
  readonly addresses: readonly CountView[];
  readonly claims: readonly CountView[];
  readonly usage: readonly AddressUsageView[];
  /** Addresses that lie in none of the ranges. */
  readonly outside: number;
}

export interface AddressTroubleView extends Told {
  readonly object: string;
  readonly what: string;
}

/** The address ledger. */
export interface AddressesView {
  readonly classes: readonly AddressClassView[];
  readonly classesMore: number;
  readonly troubles: readonly AddressTroubleView[];
  readonly troublesMore: number;
}

export interface PageModel {
  readonly identity: string;
  readonly namespace: string;
  readonly standing: { readonly type: 'leading'; readonly since: string } | { readonly type: 'standby' };
  readonly planOnly: boolean;
  readonly installations: readonly InstallationView[];
  readonly releases: readonly ReleaseView[];
  /** Absent: there is no ledger, or it is not heard of. */
  readonly addresses?: AddressesView;
  /** Releases and installations that are not shown. */
  readonly more: number;
}

/** Most of each that one page shows. */
export const pageLimits = {
  installations: 8,
  releases: 100,
  history: 12,
  /** A matrix of more nodes shows only those that are not well. */
  wholeMatrix: 48,
  matrixRows: 32,
  drains: 16,
  addressClasses: 40,
  addressTroubles: 24,
  message: 600,
} as const;
