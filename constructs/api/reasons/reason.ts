/** A word that we use for why something is as it is. The table of them is closed: what is not in it is not said. */

/** Where a reason shows. `Input` is an error of a command, `Gate` a gate of a phase, `Event` an Event alone. */
export const reasonPlaces = [
  'Input',
  'Accepted',
  'Progressing',
  'Failing',
  'Ready',
  'Available',
  'Stalled',
  'ClassResolved',
  'Bound',
  'Held',
  'Gate',
  'Evidence',
  'Deletion',
  'Event',
] as const;
export type ReasonPlace = (typeof reasonPlaces)[number];

export type Severity = 'info' | 'warning' | 'error';

/**
 * `retry`: tried again by itself. `terminal`: only a change of what was asked for helps.
 * `wait`: goes on by itself once something else has happened.
 */
export type Retry = 'retry' | 'terminal' | 'wait';

export interface Reason {
  readonly reason: string;
  readonly condition: ReasonPlace;
  readonly severity: Severity;
  readonly retry: Retry;
  /** What is said; `{name}` stands for a value. */
  readonly template: string;
  /** What a person does about it. */
  readonly remedy: string;
  /** Place of its section in the reference. */
  readonly runbook: string;
}

const runbookOf = (reason: string): string => `docs/reference/reasons.md#${reason.toLowerCase()}`;

/** One line of a part of the table: reason, what is said, what to do. */
export type ReasonLine = readonly [reason: string, template: string, remedy: string];

/** Lines that share place, severity and retry. */
export const reasonsOf = (
  condition: ReasonPlace,
  severity: Severity,
  retry: Retry,
  lines: readonly ReasonLine[],
): Reason[] =>
  lines.map(([reason, template, remedy]) => ({
    reason,
    condition,
    severity,
    retry,
    template,
    remedy,
    runbook: runbookOf(reason),
  }));
