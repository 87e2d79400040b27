/** What the last rounds saw in full, as `keelson evidence` prints it. Pure. */
import { timeText } from '../../constructs/api/conditions.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { redactObject } from '../../constructs/lib/redact.ts';
import { uidOf } from '../kube/types.ts';
import { type DrainRow, type DrainVerdict, type DrainWhy, freshDrain } from '../observe/drain.ts';
import type { MemberRow, NodeRow, NorthdRow } from '../observe/matrix.ts';
import type { Known } from './page.ts';

/** What would be lost with a node, looked at beside the rounds. It authorises nothing. */
export interface DrainReport {
  readonly node: string;
  readonly cordoned: boolean;
  readonly state: DrainVerdict['state'];
  readonly blockers: readonly DrainWhy[];
  /** What could not be seen. */
  readonly unknown: readonly DrainWhy[];
  readonly seenAt: string;
  readonly ageMs: number;
  readonly limitMs: number;
}

export interface InstallationEvidence {
  readonly namespace: string;
  readonly name: string;
  /** When the round ended, and how old that is by the clock of the process that observed it. */
  readonly seenAt: string;
  readonly ageMs: number;
  readonly limitMs: number;
  readonly stale: boolean;
  readonly conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[];
  readonly members: readonly MemberRow[];
  readonly northd: readonly NorthdRow[];
  readonly nodes: readonly NodeRow[];
  readonly drains: readonly DrainReport[];
}

export interface EvidenceReport {
  /** Whether the process that was asked leads: nobody else observes. */
  readonly leads: boolean;
  readonly identity: string;
  readonly installations: readonly InstallationEvidence[];
}

function drainReport(row: DrainRow, tick: number): DrainReport {
  const { node, cordoned, seenAt, seenTick, limitMs } = row;
  const verdict = freshDrain(row, tick);
  return {
    node,
    cordoned,
    state: verdict.state,
    blockers: verdict.state === 'blocked' ? verdict.blockers : [],
    unknown: verdict.state === 'drained' ? [] : verdict.unknown,
    seenAt: timeText(seenAt),
    ageMs: Math.round(tick - seenTick),
    limitMs: Math.round(limitMs),
  };
}

/** @param node its rows alone, when named */
export function evidenceReport(
  identity: string,
  known: Known | undefined,
  tick: number,
  node: string | undefined,
): EvidenceReport {
  const here = (row: { readonly node: string }): boolean => node === undefined || row.node === node;
  const installations = (known?.installations ?? []).flatMap((installation): InstallationEvidence[] => {
    const observed = known?.observed(uidOf(installation));
    if (observed === undefined) return [];
    const { verdict, limitMs, matrix, drains = [] } = observed;
    const ageMs = Math.round(tick - verdict.time.endedTick);
    return [
      {
        namespace: installation.metadata.namespace ?? '',
        name: installation.metadata.name ?? '',
        seenAt: timeText(verdict.time.endedAt),
        ageMs,
        limitMs,
        stale: ageMs > limitMs,
        conditions: verdict.conditions.map(({ type, status, reason, message }) => ({ type, status, reason, message })),
        members: (matrix?.members ?? []).filter(here),
        northd: (matrix?.northd ?? []).filter(here),
        nodes: (matrix?.nodes ?? []).filter(({ name }) => node === undefined || name === node),
        drains: drains.filter(here).map((row) => drainReport(row, tick)),
      },
    ];
  });
  const report: EvidenceReport = { leads: known !== undefined, identity, installations };
  return redactObject(report as unknown as JsonObject) as unknown as EvidenceReport;
}
