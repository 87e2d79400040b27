import { timeText } from './conditions.ts';
import { limits } from './constants.ts';
import type { HistoryEntry } from './release.ts';

/** History of a Release, newest first, and the words and numbers of its progress. */

/** Records that work on a payload began. Beginning the newest entry's payload again changes nothing. */
export function recordStart(history: readonly HistoryEntry[], digest: string, now: number): HistoryEntry[] {
  if (history[0]?.digest === digest) return [...history];
  return pruneHistory([{ digest, state: 'Partial', startedAt: timeText(now) }, ...history]);
}

/** Records that the newest entry's payload was carried out in full; the first time counts. */
export function recordCompleted(
  history: readonly HistoryEntry[],
  digest: string,
  now: number,
  acceptedRisks?: string,
): HistoryEntry[] {
  const [newest, ...older] = history;
  if (newest?.digest !== digest || newest.state === 'Completed') return [...history];
  const completed: HistoryEntry = {
    ...newest,
    state: 'Completed',
    completedAt: timeText(now),
    ...(acceptedRisks === undefined ? {} : { acceptedRisks }),
  };
  return [completed, ...older];
}

/** Newest payload that was carried out in full. */
export const lastCompleted = (history: readonly HistoryEntry[]): HistoryEntry | undefined =>
  history.find((entry) => entry.state === 'Completed');

const untouchable = 1000;

/** How much an entry tells. The first, the newest five and the newest completed one are all but untouchable. */
function weights(history: readonly HistoryEntry[]): number[] {
  const newestCompleted = history.findIndex((entry) => entry.state === 'Completed');
  return history.map((entry, age) => {
    const kept = age < 5 || age === history.length - 1 || age === newestCompleted;
    const risk = entry.acceptedRisks === undefined ? 0 : 30;
    const state = entry.state === 'Completed' ? 20 : -20;
    return (kept ? untouchable : 0) + risk + state - 1.01 * age;
  });
}

/** Drops the entries that tell least until at most `most` are left. */
export function pruneHistory(history: readonly HistoryEntry[], most: number = limits.history): HistoryEntry[] {
  let kept = [...history];
  while (kept.length > most) {
    const scores = weights(kept);
    const least = scores.indexOf(Math.min(...scores));
    kept = kept.filter((_, n) => n !== least);
  }
  return kept;
}

/** Whole percent, rounded down, so that 100 means all of it. */
export const percent = (done: number, total: number): number => (total === 0 ? 100 : Math.floor((done * 100) / total));

/**
 * `Working towards <what>: <done> of <total> done (<p>% complete), waiting on <blocker>`.
 * @param what the payload or version that is worked towards.
 */
export function progressMessage(what: string, done: number, total: number, waitingOn?: string): string {
  const tail = waitingOn === undefined ? '' : `, waiting on ${waitingOn}`;
  return `Working towards ${what}: ${done} of ${total} done (${percent(done, total)}% complete)${tail}`;
}
