import type { FluxReading } from '../../constructs/couriers/fixtures.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';

/** Conditions by type, of an object that may have none. */
function conditionsOf(object: JsonObject): ReadonlyMap<unknown, unknown> {
  const status = isObject(object.status) ? object.status : {};
  const list = Array.isArray(status.conditions) ? status.conditions.filter(isObject) : [];
  return new Map(list.map((condition) => [condition.type, condition.status]));
}

/**
 * What Flux makes of an object of a kind that it does not know: the rules of kstatus in their order, the first that
 * applies decides.
 */
export function kstatusOf(object: JsonObject): FluxReading | 'Terminating' {
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const status = isObject(object.status) ? object.status : {};
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  // An absent generation is silent: this is why the definitions carry -1 as a default.
  if (typeof status.observedGeneration === 'number' && status.observedGeneration !== metadata.generation)
    return 'InProgress';
  const conditions = conditionsOf(object);
  if (conditions.get('Reconciling') === 'True') return 'InProgress';
  if (conditions.get('Stalled') === 'True') return 'Failed';
  if (!conditions.has('Ready')) return 'Current';
  return conditions.get('Ready') === 'True' ? 'Current' : 'InProgress';
}
