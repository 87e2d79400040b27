/** What an outage must not do, judged by what was seen from outside: requests, statuses, objects. Pure. */
import type { RequestRecord } from '../../faults/plan.ts';

/** What a Release said, from `at` on, until the next entry. */
export interface Told {
  readonly at: number;
  readonly ready: string;
  readonly reason: string;
  readonly message: string;
  readonly failing: string;
  /** Digest of the payload that is in place. */
  readonly actual: string;
  /** The status is about the present spec. */
  readonly current: boolean;
}

export const graceMs = 30_000;
/** Between a fact and its status: one write that may have to be tried again, and the look of this program. */
export const tellingMs = 6_000;

const answered = ({ status }: RequestRecord): boolean => status !== undefined && status >= 200 && status < 300;
const arrived = ({ arrivedAt }: RequestRecord): number => arrivedAt ?? Number.NaN;

/** Requests that change what the payload names. */
export const objectWrites = (log: readonly RequestRecord[], namespace: string): RequestRecord[] =>
  log.filter((record) => record.mutating && record.namespace === namespace && record.resource !== 'events');

/** When a look at what the payload names began that came after `since` and was answered; undefined for none. */
export function lookedAt(log: readonly RequestRecord[], namespace: string, since: number): RequestRecord | undefined {
  return log.find(
    (record) =>
      arrived(record) >= since &&
      record.verb === 'list' &&
      record.resource === 'configmaps' &&
      (record.namespace === namespace || record.namespace === undefined) &&
      answered(record),
  );
}

/** The first answer at or after `since` that tells that the server works again. */
export function answeredAgain(log: readonly RequestRecord[], since: number): number | undefined {
  const times = log.flatMap((record) =>
    record.answeredAt !== undefined && record.answeredAt >= since && answered(record) ? [record.answeredAt] : [],
  );
  return times.length === 0 ? undefined : Math.min(...times);
}

/** After `back` nothing of the payload is written before it was looked at. */
export function unseenWrites(log: readonly RequestRecord[], namespace: string, back: number): string[] {
  const look = lookedAt(log, namespace, back);
  return objectWrites(log, namespace)
    .filter((record) => arrived(record) >= back && (look === undefined || arrived(record) < (look.answeredAt ?? 0)))
    .map(({ method, name }) => `${method} ${name} came before a look at what is there`);
}

/** Between the times no object of the payload is written with success. */
export function writesWithin(
  log: readonly RequestRecord[],
  namespace: string,
  [from, to]: readonly [number, number],
): string[] {
  return objectWrites(log, namespace)
    .filter((record) => arrived(record) >= from && arrived(record) < to && answered(record))
    .map(({ method, name, status }) => `${method} ${name} was answered ${status}`);
}

/** After `back` True may stand for the grace, or as long as a new look came in it. */
export function trueTooLong(
  told: readonly Told[],
  log: readonly RequestRecord[],
  namespace: string,
  back: number,
): string[] {
  const look = lookedAt(log, namespace, back)?.answeredAt;
  const due = back + graceMs;
  if (look !== undefined && look <= due) return [];
  const before = told.filter(({ at }) => at <= due + tellingMs).at(-1);
  if (before === undefined || before.ready !== 'True') return [];
  const seconds = ((look ?? Number.POSITIVE_INFINITY) - back) / 1000;
  return [`Ready stayed True more than ${graceMs / 1000} s after the server was back; the next look took ${seconds} s`];
}

/** True is never said of a payload that is not the one in place. */
export const trueUnproven = (told: readonly Told[], wanted: string): string[] =>
  told.flatMap(({ ready, actual, current }) =>
    ready === 'True' && current && actual !== wanted ? ['Ready was True while another payload was in place'] : [],
  );

/** Where nothing was seen to be wrong, nothing is called so. */
export const calledWrong = (told: readonly Told[]): string[] =>
  told.flatMap(({ ready, failing, reason, message }) =>
    ready === 'False' || failing === 'True' ? [`it was called wrong: ${reason}: ${message}`] : [],
  );

/** How many requests arrived in each minute at most. */
export function busiestMinute(log: readonly RequestRecord[], [from, to]: readonly [number, number]): number {
  const times = log.map(arrived).filter((at) => at >= from && at < to);
  let most = 0;
  let first = 0;
  for (let last = 0; last < times.length; last += 1) {
    while ((times[first] ?? 0) <= (times[last] ?? 0) - 60_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Objects that are gone or others than they were. */
export function lost(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...before].flatMap(([name, uid]) => {
    const now = after.get(name);
    if (now === undefined) return [`${name} is gone`];
    return now === uid ? [] : [`${name} was made anew`];
  });
}
