import { timeText } from '../../../constructs/api/conditions.ts';
import { reasonMessage } from '../../../constructs/api/reasons.ts';
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { LedgerCondition } from '../objects.ts';

export interface NewCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

/** A condition of a reason of the table. */
export const conditionOf = (
  type: string,
  status: 'True' | 'False',
  why: string,
  values: Readonly<Record<string, string | number>> = {},
): NewCondition => ({ type, status, reason: why, message: reasonMessage(why, values) });

/** A clock that can not be read never runs out, and no server takes it back: it begins anew. */
const isTime = ({ lastTransitionTime }: LedgerCondition): boolean => !Number.isNaN(Date.parse(lastTransitionTime));

/**
 * The conditions with some of them set, merged by type; foreign ones stay. The time of a condition moves only with its
 * status: of the condition `Bound` it is the clock of a released address.
 */
export function withConditions(
  present: readonly LedgerCondition[],
  set: readonly NewCondition[],
  now: number,
): JsonObject[] {
  const merged = set.map((condition): LedgerCondition => {
    const known = present.find(({ type }) => type === condition.type);
    const since = known?.status === condition.status && isTime(known) ? known.lastTransitionTime : timeText(now);
    return { ...condition, lastTransitionTime: since };
  });
  const others = present.filter(({ type }) => !set.some((one) => one.type === type));
  return [...others, ...merged].sort((a, b) => (a.type < b.type ? -1 : 1)).map((one) => ({ ...one }));
}
