/** Verdicts of the gates that every domain knows, and how long a gate may stay shut. Pure. */
import { type Gate, gateText } from '../../constructs/api/payload.ts';
import { formatDuration, parseDuration } from '../../constructs/lib/duration.ts';
import { type Item, itemRef } from '../apply/items.ts';
import { describeRef, type KubeObject } from '../kube/types.ts';
import type { GateScope, GateVerdict } from './domain.ts';
import { conditionReadiness, established, hasReadiness, type Readiness, readinessOf } from './readiness.ts';

const isDefinition = (item: Item): boolean => item.entry.kind === 'CustomResourceDefinition';

/** The first object that is not ready, False before Unknown, and how many there are. */
function overAll(scope: GateScope, items: readonly Item[], judge: (object: KubeObject) => Readiness): GateVerdict {
  const open: { item: Item; readiness: Readiness }[] = [];
  for (const item of items) {
    if (item.entry.absent) continue;
    const live = scope.live.get(item.id);
    const readiness: Readiness =
      live === undefined ? { state: 'Unknown', reason: 'NotFound', message: 'it does not exist' } : judge(live);
    if (readiness.state !== 'True') open.push({ item, readiness });
  }
  const worst = open.find(({ readiness }) => readiness.state === 'False') ?? open[0];
  if (worst === undefined) return { state: 'True', reason: 'Ready', message: `${items.length} object(s) are ready` };
  const object = describeRef(itemRef(worst.item));
  const others = open.length - 1;
  const more = others > 0 ? `; ${others} more ${others === 1 ? 'is' : 'are'} not ready` : '';
  const { state, reason, message } = worst.readiness;
  return { state, reason, message: `${object}: ${message}${more}`, object };
}

function conditionGate(gate: Gate, scope: GateScope): GateVerdict {
  const { target } = gate;
  if (target === undefined)
    return { state: 'False', reason: 'GateInvalid', message: 'the gate names no target object' };
  const object = describeRef({
    apiVersion: target.apiVersion,
    kind: target.kind,
    name: target.name,
    ...(target.namespace === undefined ? {} : { namespace: target.namespace }),
  });
  if (scope.target === undefined)
    return { state: 'Unknown', reason: 'NotFound', message: `${object}: it does not exist`, object };
  const type = target.condition ?? 'Ready';
  const { state, reason, message } = conditionReadiness(scope.target, type);
  const told = state === 'True' ? `condition ${type} is True` : message;
  return { state, reason, message: `${object}: ${told}`, object };
}

/** Verdict of a gate that is not special to a domain; one that nobody knows is never open. */
export function commonGate(gate: Gate, scope: GateScope): GateVerdict {
  switch (gate.type) {
    case 'Established':
      return overAll(scope, scope.items.filter(isDefinition), established);
    case 'WorkloadsReady':
      return overAll(
        scope,
        scope.items.filter((item) => hasReadiness(item.entry)),
        readinessOf,
      );
    case 'Condition':
      return conditionGate(gate, scope);
    default:
      return {
        state: 'Unknown',
        reason: 'NoEvidence',
        message: `nothing in this executor observes ${gateText(gate)}`,
      };
  }
}

/** Items whose live objects a gate looks at, among those of its scope. */
export function observedItems({ type }: Pick<Gate, 'type'>, items: readonly Item[]): Item[] {
  if (type === 'Established') return items.filter(isDefinition);
  return type === 'WorkloadsReady' ? items.filter((item) => hasReadiness(item.entry)) : [];
}

export type Patience =
  | { readonly kind: 'waiting' }
  /** Beyond the soft limit: slow, which is not failing. */
  | { readonly kind: 'slow' }
  /** Beyond the limit. */
  | { readonly kind: 'expired' };

/** How a gate that is shut for `elapsedMs` counts. */
export function patience(gate: Pick<Gate, 'softLimit' | 'limit'>, elapsedMs: number): Patience {
  if (gate.limit !== undefined && elapsedMs >= parseDuration(gate.limit)) return { kind: 'expired' };
  return elapsedMs >= parseDuration(gate.softLimit) ? { kind: 'slow' } : { kind: 'waiting' };
}

/** What a person reads of a shut gate: gate, object, why, how long, which limit. */
export function gateMessage(gate: Gate, verdict: GateVerdict, elapsedMs: number): string {
  const limit = gate.limit === undefined ? `soft limit ${gate.softLimit}` : `limit ${gate.limit}`;
  const rounded = formatDuration(Math.floor(elapsedMs / 1000) * 1000);
  return `${gateText(gate)} ${verdict.reason}: ${verdict.message}; for ${rounded}, ${limit}`;
}
