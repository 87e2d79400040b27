import type { Condition } from '../../constructs/api/fields.ts';
import { type JsonObject, type JsonValue, objectsOf } from '../../constructs/lib/json.ts';
import type { CellState } from '../observe/matrix.ts';
import { type ConditionView, type Mark, pageLimits } from './model.ts';

/** Reading what lies in the cluster: whatever it is, a page comes of it. */

export const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');
export const countOf = (value: JsonValue | undefined): number =>
  typeof value === 'number' && Number.isFinite(value) ? value : 0;

/** A message short enough for a page. */
export const short = (message: string): string =>
  message.length <= pageLimits.message ? message : `${message.slice(0, pageLimits.message - 1)}…`;

export const markOfCell: Readonly<Record<CellState, Mark>> = {
  well: 'well',
  broken: 'broken',
  unknown: 'unknown',
  absent: 'idle',
};

/** Conditions that are good news when they are False. */
const inverse: ReadonlySet<string> = new Set(['Degraded', 'Failing', 'Stalled', 'InSpan', 'Unverified']);
/** Conditions that tell what goes on, which is neither good nor bad. */
const neutral: ReadonlySet<string> = new Set(['Progressing', 'Reconciling']);

function markOf({ type, status }: Pick<Condition, 'type' | 'status'>): Mark {
  if (neutral.has(type)) return status === 'True' ? 'working' : 'idle';
  if (status === 'Unknown') return 'unknown';
  return (status === 'True') === inverse.has(type) ? 'broken' : 'well';
}

function conditionView(found: JsonObject): ConditionView {
  const status = found.status === 'True' || found.status === 'False' ? found.status : 'Unknown';
  const type = textOf(found.type);
  return {
    type,
    status,
    mark: markOf({ type, status }),
    word: status,
    reason: textOf(found.reason),
    message: short(textOf(found.message)),
    since: textOf(found.lastTransitionTime),
  };
}

/** Conditions of a status, and Ready whatever there is. */
export function conditionsView(status: JsonObject): { ready: ConditionView; conditions: ConditionView[] } {
  const conditions = objectsOf(status.conditions).map(conditionView);
  const ready = conditions.find(({ type }) => type === 'Ready');
  return {
    ready: ready ?? conditionView({ type: 'Ready', reason: 'Pending', message: 'nothing is known of it yet' }),
    conditions: conditions.filter(({ type }) => type !== 'Ready'),
  };
}
