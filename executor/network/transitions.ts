/** What people are told of an installation: only when its phase or Ready moved. Pure. */
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { EventInput, EventTarget } from '../kube/events.ts';

interface Standing {
  readonly phase: string | undefined;
  readonly ready: { readonly status: string; readonly reason: string; readonly message: string } | undefined;
}

function standingOf(status: JsonObject): Standing {
  const conditions = Array.isArray(status.conditions) ? status.conditions.filter(isObject) : [];
  const ready = conditions.find((condition) => condition.type === 'Ready');
  return {
    phase: typeof status.phase === 'string' ? status.phase : undefined,
    ready:
      ready === undefined
        ? undefined
        : { status: String(ready.status), reason: String(ready.reason), message: String(ready.message) },
  };
}

/** The Events that the step from one status to the next is worth. */
export function transitionEvents(regarding: EventTarget, before: JsonObject, after: JsonObject): EventInput[] {
  const [was, is] = [standingOf(before), standingOf(after)];
  const events: EventInput[] = [];
  if (is.phase !== undefined && is.phase !== was.phase)
    events.push({
      regarding,
      type: is.phase === 'Failed' || is.phase === 'Blocked' ? 'Warning' : 'Normal',
      reason: 'PhaseChanged',
      action: 'Reconcile',
      note: `phase ${was.phase ?? 'none'} -> ${is.phase}`,
    });
  if (is.ready !== undefined && is.ready.status !== was.ready?.status)
    events.push({
      regarding,
      type: is.ready.status === 'False' ? 'Warning' : 'Normal',
      reason: 'ReadyChanged',
      action: 'Reconcile',
      note: `Ready ${was.ready?.status ?? 'none'} -> ${is.ready.status}: ${is.ready.reason}: ${is.ready.message}`,
    });
  return events;
}
