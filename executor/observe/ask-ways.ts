/** The two ways to a sidecar: straight, and once more through API server and kubelet where nobody answers. */
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import type { ProbeTarget } from '../evidence/target.ts';
import type { Outcome } from './round.ts';

/** Asks one sidecar. It answers within its own limit, whatever happens, and rejects only on abort. */
export type Ask = <K extends EvidenceKind>(target: ProbeTarget<K>, signal: AbortSignal) => Promise<Outcome<K>>;

export interface AskWays {
  readonly ask: Ask;
  /** Through API server and kubelet; absent where there is no such way. */
  readonly retry?: Ask;
}

/** Why there is no answer by either way. */
export function missedBoth<K extends EvidenceKind>(straight: string, again: Outcome<K>): Outcome<K> {
  return again.type === 'Unreachable' ? { type: 'Unreachable', message: `${straight}; ${again.message}` } : again;
}

/** Asks straight, and at once through the kubelet where nobody answers: for few, since that costs the API server. */
export async function askByEitherWay<K extends EvidenceKind>(
  ways: AskWays,
  target: ProbeTarget<K>,
  signal: AbortSignal,
): Promise<Outcome<K>> {
  const straight = await ways.ask(target, signal);
  if (straight.type !== 'Unreachable' || ways.retry === undefined) return straight;
  return ways.retry(target, signal).then((again) => missedBoth(straight.message, again));
}
