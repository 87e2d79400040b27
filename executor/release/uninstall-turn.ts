/** One turn of a worker whose Release carries an uninstall request; told in its record like any other work. */
import { annotations } from '../../constructs/api/constants.ts';
import { parseUninstall } from '../../constructs/api/uninstall.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { lostLedger, openLedger } from '../apply/ledger-store.ts';
import type { Claims } from '../apply/prune.ts';
import type { Journal } from './journal.ts';
import { uninstall } from './uninstall.ts';
import type { ReleaseView } from './view.ts';
import type { WorkerDeps } from './worker-options.ts';

/** Answers what keeps the uninstall from being done; nothing when it is. The ledger is read anew, since it is what was approved. */
export async function uninstallTurn(
  deps: WorkerDeps & { readonly claims: Claims },
  journal: Journal,
  view: ReleaseView,
  signal: AbortSignal,
): Promise<readonly Problem[]> {
  const { client, clock, check, claims, domains, engine, namespace, options } = deps;
  if (options.planOnly) {
    journal.planOnly();
    return [];
  }
  const request = parseUninstall(view.uninstall ?? '');
  if (request === undefined)
    return [
      {
        reason: 'UninstallNotApproved',
        message: `annotation ${annotations.uninstall} names no mode and plan`,
        value: view.uninstall ?? '',
        remedy: `remove it, or let the command write it: keelson uninstall ${view.name}`,
      },
    ];
  const target = { release: view.name, namespace };
  const opened = await openLedger(client, target, signal);
  if (!opened.ok) return opened.problems;
  const { configMaps } = opened.store;
  if (configMaps === 0 && journal.record.history.some(({ state }) => state === 'Completed'))
    return [lostLedger(target)];
  const domain = domains.find(({ name }) => view.name === name || view.name.startsWith(`${name}-`));
  if (domain === undefined)
    return [{ reason: 'UnknownDomain', message: `no domain of this executor carries Release ${view.name}` }];
  const outcome = await uninstall(
    {
      client,
      clock,
      check,
      guard: (during) => domain.guardRemoval(target, { client, clock, signal: during }),
      claims,
      concurrency: engine.concurrency,
      goneMs: engine.goneMs,
      onProgress: (step, done, total) => journal.uninstalling(step, done, total),
    },
    { ...target, releaseUID: view.uid, request, ledger: opened.store, signal },
  );
  journal.counted(opened.store);
  if (outcome.type === 'failed') return outcome.problems;
  journal.uninstalled(outcome.total);
  return [];
}
