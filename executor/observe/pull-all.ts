/** Asks many targets, few at a time, in the order of a schedule. */
import { ended, type Pullable, startNext, startSchedule } from './schedule.ts';

/**
 * Runs `pull` once for each target, at most `atOnce` at a time, and waits until all have ended. It ends with the signal's
 * reason on abort, and then only after those under way have ended too.
 */
export async function pullAll(
  targets: readonly Pullable[],
  atOnce: number,
  pull: (id: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let schedule = startSchedule(targets);
  const take = (): string | undefined => {
    const next = startNext(schedule, schedule.running.length + 1);
    schedule = next.schedule;
    return next.start[0];
  };
  const worker = async (): Promise<void> => {
    for (let id = take(); id !== undefined; id = take()) {
      signal.throwIfAborted();
      await pull(id);
      schedule = ended(schedule, id);
    }
  };
  const workers = Array.from({ length: Math.min(atOnce, targets.length) }, worker);
  for (const outcome of await Promise.allSettled(workers)) if (outcome.status === 'rejected') throw outcome.reason;
}
