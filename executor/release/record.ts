/** What a worker knows of its Release: made by the worker alone, read by status, events and metrics. */
import type { FailureMemory, Outcome } from '../../constructs/api/conditions.ts';
import type { ChangeClass, HistoryEntry, ReleaseState } from '../../constructs/api/release.ts';
import type { SpanPosition } from '../../constructs/api/span.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DriftTold } from '../apply/drift/state.ts';
import type { PassProgress } from '../apply/progress.ts';
import type { SourceRevision } from '../source/source.ts';
import type { PlanCounts } from './status.ts';

export interface PlanRecord {
  readonly digest: string;
  readonly changeClass: ChangeClass;
  readonly counts: PlanCounts;
  readonly confidence: 'full' | 'partial';
  readonly report: string;
}

/** Whether the wanted payload was accepted: False with the step that refused it. */
export interface AcceptedRecord {
  readonly status: 'True' | 'False' | 'Unknown';
  readonly step: string;
  readonly message: string;
}

export interface WorkerRecord {
  /** Generation that the worker acts upon. */
  generation: number;
  state: ReleaseState;
  desired: string | undefined;
  actual: string | undefined;
  /** Acceptance step or phase. */
  step: string;
  progress: PassProgress | undefined;
  /** Where the accepted payload is inside a one-way span. */
  span: SpanPosition | undefined;
  /** A pause that takes effect when the span is left. */
  pauseWaits: boolean;
  plan: PlanRecord | undefined;
  history: HistoryEntry[];
  ledger: { readonly count: number; readonly digest: string; readonly configMaps: number } | undefined;
  problems: readonly Problem[];
  /** Who keeps changing what back, and what could not be set back. */
  drift: DriftTold;
  outcome: Outcome;
  memory: FailureMemory | undefined;
  accepted: AcceptedRecord;
  /** Passes in a row that failed, and that completed. */
  attempt: number;
  completed: number;
  /** Milliseconds since 1970. */
  lastProgress: number | undefined;
  retryAt: number | undefined;
  /** When the last round of looks at what is in place was complete, on the monotonic clock. */
  lookedAt: number | undefined;
  /** Only a change of the spec is of use. */
  stalled: boolean;
  verified: boolean;
  /** Why nobody vouches for the accepted payload. */
  unverified: string | undefined;
  pin: string | undefined;
  hold: string | undefined;
  handledAt: string | undefined;
  /** Revision of the source that was last looked at, that of the accepted payload, and the one that was carried out. */
  attempted: string | undefined;
  revision: SourceRevision | undefined;
  applied: string | undefined;
  /** Objects that left the payload and stay, with the reason. */
  left: readonly { readonly id: string; readonly why: string }[];
}

/** The record of a worker that has done nothing yet. */
export const initialRecord = (): WorkerRecord => ({
  generation: 0,
  state: 'Initial',
  desired: undefined,
  actual: undefined,
  step: '',
  progress: undefined,
  span: undefined,
  pauseWaits: false,
  plan: undefined,
  history: [],
  ledger: undefined,
  problems: [],
  drift: { fights: [], problems: [] },
  outcome: { kind: 'waiting', reason: 'Pending', message: 'the executor has just taken this release up' },
  memory: undefined,
  accepted: { status: 'Unknown', step: 'Fetch', message: '' },
  attempt: 0,
  completed: 0,
  lastProgress: undefined,
  retryAt: undefined,
  lookedAt: undefined,
  stalled: false,
  verified: false,
  unverified: undefined,
  pin: undefined,
  hold: undefined,
  handledAt: undefined,
  attempted: undefined,
  revision: undefined,
  applied: undefined,
  left: [],
});
