import { limits } from './constants.ts';
import type { Condition } from './fields.ts';

/**
 * From what a controller knows to the conditions that people, Flux and Argo CD read. One function for all kinds.
 * Ready is Unknown while work or evidence is outstanding, and False only when something is known to be wrong.
 */

export interface Why {
  /** A word of the table of reasons. */
  readonly reason: string;
  readonly message: string;
}

/** What a pass came to. */
export type Outcome =
  /** Objects are being written. */
  | ({ readonly kind: 'applying' } & Why)
  /** Nothing to write before something else happens: evidence, a person, a span, another release. */
  | ({ readonly kind: 'waiting' } & Why)
  /** A wait is over its soft limit. */
  | ({ readonly kind: 'slow' } & Why)
  /** Something went wrong and is tried again. */
  | ({ readonly kind: 'retrying' } & Why)
  /** Something is wrong that only a change of the spec can mend; a blocked change is one. */
  | ({ readonly kind: 'terminal' } & Why)
  /** Everything is written and was seen to work. */
  | ({ readonly kind: 'steady' } & Why)
  /** Everything is written; an observation says that something does not work. */
  | ({ readonly kind: 'unhealthy' } & Why)
  /** Steady, but somebody keeps changing an object back. */
  | ({ readonly kind: 'driftFight' } & Why)
  | ({ readonly kind: 'paused' } & Why)
  /** The executor may plan but not write. */
  | ({ readonly kind: 'planOnly' } & Why)
  /** Everything is written, but a gate was passed without looking. */
  | ({ readonly kind: 'gatesBypassed' } & Why);

export type OutcomeKind = Outcome['kind'];

/** A condition that a domain reports of its own. */
export type DomainCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

export interface ConditionInput {
  readonly outcome: Outcome;
  /** Conditions as they are on the object. */
  readonly previous: readonly Condition[];
  /** Generation of the spec that the outcome is about. */
  readonly generation: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Observations; the whole list, those that are not named are dropped. */
  readonly domain?: readonly DomainCondition[];
}

type Status = Condition['status'];
type Cell = Status | 'absent' | 'asBefore';

interface Row {
  readonly Available: Cell;
  readonly Progressing: Status;
  readonly Failing: Status;
  readonly Ready: Cell;
  readonly Reconciling: 'True' | 'absent';
  readonly Stalled: 'True' | 'absent';
}

const row = (
  Available: Cell,
  Progressing: Status,
  Failing: Status,
  Ready: Cell,
  Reconciling: 'True' | 'absent',
  Stalled: 'True' | 'absent',
): Row => ({ Available, Progressing, Failing, Ready, Reconciling, Stalled });

/** What each outcome means for the common conditions. */
export const outcomeRows: Readonly<Record<OutcomeKind, Row>> = {
  applying: row('asBefore', 'True', 'False', 'Unknown', 'True', 'absent'),
  waiting: row('asBefore', 'True', 'False', 'Unknown', 'True', 'absent'),
  slow: row('asBefore', 'True', 'Unknown', 'Unknown', 'True', 'absent'),
  retrying: row('asBefore', 'True', 'True', 'False', 'True', 'absent'),
  terminal: row('asBefore', 'False', 'True', 'False', 'absent', 'True'),
  steady: row('True', 'False', 'False', 'True', 'absent', 'absent'),
  unhealthy: row('asBefore', 'False', 'True', 'False', 'absent', 'absent'),
  driftFight: row('True', 'False', 'True', 'False', 'absent', 'absent'),
  paused: row('asBefore', 'False', 'False', 'asBefore', 'absent', 'absent'),
  planOnly: row('asBefore', 'False', 'False', 'False', 'absent', 'absent'),
  gatesBypassed: row('asBefore', 'False', 'False', 'Unknown', 'absent', 'absent'),
};

/** Order in which the common conditions stand. */
export const commonConditionTypes = ['Ready', 'Reconciling', 'Stalled', 'Available', 'Progressing', 'Failing'] as const;
type CommonType = (typeof commonConditionTypes)[number];

/** Time as conditions carry it. */
export const timeText = (ms: number): string =>
  new Date(Math.floor(ms / 1000) * 1000).toISOString().replace('.000Z', 'Z');

/** A message that fits its field. */
export function capMessage(message: string, most: number = limits.conditionMessage): string {
  const points = [...message];
  return points.length <= most ? message : `${points.slice(0, most - 1).join('')}…`;
}

/** The conditions for an outcome. Times of conditions whose status stays are kept. */
export function conditionsFor(input: ConditionInput): Condition[] {
  const { outcome } = input;
  const cells = outcomeRows[outcome.kind];
  const common = commonConditionTypes.flatMap((type) => {
    const cell = cells[type];
    if (cell === 'absent') return [];
    if (cell === 'asBefore') return [before(type, input)];
    return [stamp({ type, status: cell, ...whyOf(type, cell, outcome) }, input)];
  });
  const own = (input.domain ?? []).map((condition) => stamp(condition, input));
  return [...common, ...own];
}

/** A condition that says of its type what holds when nothing is wrong with it. */
const calm: Readonly<Record<'Progressing' | 'Failing' | 'Available', Why>> = {
  Available: { reason: 'Completed', message: 'the payload was carried out in full' },
  Progressing: { reason: 'Idle', message: 'no work is outstanding' },
  Failing: { reason: 'NoFailure', message: 'nothing has failed' },
};

function whyOf(type: CommonType, status: Status, outcome: Outcome): Why {
  const { reason, message } = outcome;
  if (type === 'Available') return calm.Available;
  if (type === 'Failing' && status === 'False') return calm.Failing;
  // Why no work is under way is worth telling, except that all is done.
  if (type === 'Progressing' && status === 'False' && outcome.kind === 'steady') return calm.Progressing;
  return { reason, message };
}

/** A condition that the outcome does not touch; one that was never set says so. */
function before(type: CommonType, input: ConditionInput): Condition {
  const found = input.previous.find((condition) => condition.type === type);
  if (type === 'Ready') {
    if (found !== undefined) return found;
    return stamp({ type, status: 'Unknown', reason: input.outcome.reason, message: input.outcome.message }, input);
  }
  if (found?.status === 'True') return stamp(found, input);
  return stamp({ type, status: 'False', ...neverAvailable(input.outcome) }, input);
}

function neverAvailable(outcome: Outcome): Why {
  if (outcome.kind !== 'gatesBypassed')
    return { reason: 'NeverCompleted', message: 'no payload was carried out in full yet' };
  const message = 'the payload was carried out in full, and nothing looked whether it works: gates were bypassed';
  return { reason: outcome.reason, message };
}

function stamp(condition: DomainCondition, input: ConditionInput): Condition {
  const { type, status, reason, message } = condition;
  const found = input.previous.find((one) => one.type === type);
  return {
    type,
    status,
    observedGeneration: input.generation,
    lastTransitionTime: found?.status === status ? found.lastTransitionTime : timeText(input.now),
    reason,
    message: capMessage(message),
  };
}

/** Whether two lists of conditions say the same; times and order do not count. */
export function sameConditions(a: readonly Condition[], b: readonly Condition[]): boolean {
  const key = (list: readonly Condition[]): string =>
    JSON.stringify(list.map((c) => [c.type, c.status, c.observedGeneration ?? null, c.reason, c.message]).sort());
  return a.length === b.length && key(a) === key(b);
}

/** A failure that is shown until the work gets beyond the place where it happened. */
export interface FailureMemory extends Why {
  /** What was worked on, such as the digest of a payload; another one starts without memories. */
  readonly work: string;
  /** Number of steps done when it happened. */
  readonly position: number;
}

export interface Remembered {
  readonly outcome: Outcome;
  readonly memory: FailureMemory | undefined;
}

/**
 * Keeps a failure visible while the same work is tried again and has not yet passed the place of the failure.
 * Without it every retry would look fine for the time that it takes to fail again.
 */
export function rememberFailure(
  memory: FailureMemory | undefined,
  outcome: Outcome,
  at: { readonly work: string; readonly position: number },
): Remembered {
  const { kind, reason, message } = outcome;
  if (kind === 'retrying') return { outcome, memory: { ...at, reason, message } };
  const underWay = kind === 'applying' || kind === 'waiting' || kind === 'slow';
  if (memory === undefined || !underWay || memory.work !== at.work || at.position > memory.position)
    return { outcome, memory: undefined };
  const { reason: failed, message: told } = memory;
  return { outcome: { kind: 'retrying', reason: failed, message: told }, memory };
}
