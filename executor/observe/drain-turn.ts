/**
 * Which nodes are asked in a turn what they would take along, and how long that holds. Who is cordoned is about to go, and is
 * asked turn after turn; of the others it is asked now and then. Each answer costs SB three connections: a turn is bounded.
 * Pure.
 */
import { timings } from '../../constructs/api/constants.ts';

export interface DrainCandidate {
  readonly node: string;
  readonly cordoned: boolean;
  /** When it was asked last, on the clock that never jumps; undefined for never. */
  readonly askedTick?: number;
  /** Whether something of it could not be seen then. */
  readonly open?: boolean;
}

export interface DrainPace {
  /** Pause between turns. */
  readonly everyMs: number;
  /** How long nobody asks a node again that is not cordoned. */
  readonly restMs: number;
  /** The same where something could not be seen: a sidecar starts after its node is first asked. */
  readonly retryMs: number;
  /** Nodes of a turn. */
  readonly most: number;
}

export const defaultDrainPace: DrainPace = { everyMs: 15_000, restMs: 300_000, retryMs: 30_000, most: 16 };

const askedAt = ({ askedTick }: DrainCandidate): number => askedTick ?? Number.NEGATIVE_INFINITY;

/** The cordoned ones first, each group by how long ago it was asked. */
export function chooseDrains(candidates: readonly DrainCandidate[], pace: DrainPace, tick: number): string[] {
  return candidates
    .filter((one) => one.cordoned || tick - askedAt(one) >= (one.open === true ? pace.retryMs : pace.restMs))
    .toSorted((a, b) => {
      if (a.cordoned !== b.cordoned) return a.cordoned ? -1 : 1;
      if (askedAt(a) !== askedAt(b)) return askedAt(a) < askedAt(b) ? -1 : 1;
      return a.node < b.node ? -1 : 1;
    })
    .slice(0, pace.most)
    .map(({ node }) => node);
}

/**
 * How long an answer holds, in milliseconds: until its node's turn has come twice, and a minute at least.
 * @param group how many nodes are asked like this one; @param turnMs how long a turn takes
 */
export function drainLimitMs(cordoned: boolean, group: number, pace: DrainPace, turnMs: number): number {
  const turns = Math.max(1, Math.ceil(group / pace.most));
  const cycle = turns * (pace.everyMs + turnMs);
  return Math.max(timings.evidence.freshMs, 2 * (cordoned ? cycle : pace.restMs + cycle));
}
