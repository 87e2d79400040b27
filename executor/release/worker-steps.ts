/** Steps of a worker that need nothing of its state but what they are told. */
import type { HistoryEntry } from '../../constructs/api/release.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { PassDeps } from '../apply/engine.ts';
import { type LedgerStore, lostLedger, openLedger } from '../apply/ledger-store.ts';
import type { Accepted, AcceptInput } from './acceptance.ts';
import type { Loaded } from './load.ts';
import { dropReports, problemReport, storeReport } from './reports.ts';
import { desiredDigest, overriddenIds, type ReleaseView } from './view.ts';
import type { WorkerDeps } from './worker-options.ts';

/** The ledger as stored. One that is gone although payloads were completed with it is a problem, not an empty one. */
export async function openReleaseLedger(
  { client, namespace, release }: WorkerDeps,
  history: readonly HistoryEntry[],
  signal: AbortSignal,
): Promise<{ readonly ledger: LedgerStore } | readonly Problem[]> {
  const target = { release, namespace };
  const opened = await openLedger(client, target, signal);
  if (!opened.ok) return opened.problems;
  if (opened.store.configMaps === 0 && history.some(({ state }) => state === 'Completed')) return [lostLedger(target)];
  return { ledger: opened.store };
}

/** What a pass works with. */
export const passDeps = ({ client, clock, engine: options, check }: WorkerDeps): PassDeps => ({
  client,
  clock,
  options,
  check,
});

/** What acceptance is told of the payload that is wanted, and of the one that is enforced. */
export function acceptInput(
  view: ReleaseView,
  ledger: LedgerStore,
  current: { readonly loaded: Loaded | undefined; readonly completed: boolean },
  signal: AbortSignal,
): AcceptInput {
  const payload = current.loaded?.payload;
  const { completed } = current;
  return {
    release: view.name,
    releaseUID: view.uid,
    spec: view.spec,
    digest: desiredDigest(view),
    pinned: view.pin !== undefined,
    ...(view.pin === undefined ? {} : { pin: view.pin }),
    ledger,
    overridden: overriddenIds(view.spec),
    signal,
    ...(payload === undefined
      ? {}
      : {
          previous: {
            digest: payload.index.digest,
            content: payload.index.content,
            objects: payload.objects,
            completed,
          },
        }),
  };
}

/** Keeps an accepted payload, so that it does not depend on what delivered it. Answers why it could not be kept. */
export async function keepPayload(
  { retained, release, check }: WorkerDeps,
  { fromRetained, payload, archive, revision }: Accepted,
  signal: AbortSignal,
): Promise<readonly Problem[]> {
  if (fromRetained) return [];
  check();
  return retained.save({ release, digest: payload.index.digest, ...revision }, archive, signal);
}

/** All problems of the wanted payload, where a status has room for ten; written when it says something new. */
export class ProblemReports {
  readonly #deps: WorkerDeps;
  #stored = '';

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
  }

  async tell(view: ReleaseView, problems: readonly Problem[], signal: AbortSignal): Promise<void> {
    const { client, namespace, release } = this.#deps;
    const report = problemReport({ release, namespace }, desiredDigest(view), problems);
    const text = JSON.stringify(report.data);
    if (text === this.#stored) return;
    if ((await storeReport(client, report, signal)).length === 0) this.#stored = text;
  }

  async drop(signal: AbortSignal): Promise<void> {
    const { client, namespace, release } = this.#deps;
    await dropReports(client, { release, namespace }, signal);
    this.#stored = '';
  }
}

/** Lets go of payloads that a completed one makes old. */
export async function dropOld(
  { release, retained, options, check }: WorkerDeps,
  view: ReleaseView,
  payload: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const pinned = view.pin === undefined ? [] : [view.pin];
  const keep = new Set([payload ?? '', view.spec.payload.digest, ...pinned]);
  check();
  await retained.drop(release, keep, options.retain, signal);
}
