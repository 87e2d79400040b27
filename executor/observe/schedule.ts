/**
 * In which order the sidecars of the nodes are asked, and how many at a time. Everybody is asked once in a round; who changed
 * comes first, then who was not well, then whoever was not asked for the longest time. Pure.
 */

export interface Pullable {
  readonly id: string;
  /** It appeared, or something about its pod or node changed, since it was asked last. */
  readonly changed: boolean;
  /** Whether its last answer was complete and found nothing wrong. */
  readonly healthy: boolean;
  /** When it was asked last, on the clock that never jumps; undefined for never. */
  readonly askedTick?: number;
}

/** A round under way. */
export interface Schedule {
  readonly order: readonly string[];
  /** How many of them were started. */
  readonly started: number;
  readonly running: readonly string[];
}

const urgency = ({ changed, healthy }: Pullable): number => (changed ? 0 : healthy ? 2 : 1);
const askedAt = ({ askedTick }: Pullable): number => askedTick ?? Number.NEGATIVE_INFINITY;

/** The order of a round; it depends on nothing but the targets themselves. */
export function startSchedule(targets: readonly Pullable[]): Schedule {
  const order = targets.toSorted((a, b) => {
    const pressing = urgency(a) - urgency(b);
    if (pressing !== 0) return pressing;
    // Never asked is longer ago than anything; two of them are equally old.
    if (askedAt(a) !== askedAt(b)) return askedAt(a) < askedAt(b) ? -1 : 1;
    return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
  });
  return { order: order.map(({ id }) => id), started: 0, running: [] };
}

/** Starts as many as may run at a time. */
export function startNext(
  schedule: Schedule,
  atOnce: number,
): { readonly schedule: Schedule; readonly start: string[] } {
  const room = Math.max(0, atOnce - schedule.running.length);
  const start = schedule.order.slice(schedule.started, schedule.started + room);
  return {
    schedule: {
      ...schedule,
      started: schedule.started + start.length,
      running: [...schedule.running, ...start],
    },
    start,
  };
}

/** Notes that one has ended, whatever it came to. */
export const ended = (schedule: Schedule, id: string): Schedule => ({
  ...schedule,
  running: schedule.running.filter((other) => other !== id),
});

export const isOver = ({ order, started, running }: Schedule): boolean =>
  started === order.length && running.length === 0;
