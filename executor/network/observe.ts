/** WorkloadsReady of the whole installation: everything that rolls out, binds or is established, as it is now. */

import type { DomainCondition } from '../../constructs/api/conditions.ts';
import type { Ledger } from '../../constructs/api/ledger.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { describeObject, parseObjectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { openLedger } from '../apply/ledger-store.ts';
import { kindsInUse, readLive } from '../apply/live.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import { readinessOf } from '../release/readiness.ts';

/** Versions in which the kinds with a readiness are read. */
const versions: Readonly<Record<string, string>> = {
  'apps/Deployment': 'apps/v1',
  'apps/StatefulSet': 'apps/v1',
  'apps/DaemonSet': 'apps/v1',
  'batch/Job': 'batch/v1',
  '/PersistentVolumeClaim': 'v1',
  'apiextensions.k8s.io/CustomResourceDefinition': 'apiextensions.k8s.io/v1',
};

/** An object that the ledger names and that has a readiness. */
export interface Expected {
  readonly id: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** What must be ready: ids on their way out do not count, overridden ones do. */
export function expectedOf(ledger: Ledger): Expected[] {
  const expected: Expected[] = [];
  for (const entry of ledger.values()) {
    if (entry.state === 'pruning') continue;
    const { group, kind, namespace, name } = parseObjectId(entry.id);
    const apiVersion = versions[`${group}/${kind}`];
    if (apiVersion !== undefined)
      expected.push({ id: entry.id, apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) });
  }
  return expected;
}

/** The condition, from what is expected and what is live. Nothing expected proves nothing. */
export function workloadsReady(expected: readonly Expected[], live: ReadonlyMap<string, KubeObject>): DomainCondition {
  const type = 'WorkloadsReady';
  if (expected.length === 0)
    return {
      type,
      status: 'Unknown',
      reason: 'NothingApplied',
      message: 'no object of the installation is applied yet',
    };
  const open = expected.flatMap((wanted) => {
    const object = live.get(wanted.id);
    const readiness =
      object === undefined
        ? { state: 'False' as const, reason: 'NotFound', message: 'it does not exist' }
        : readinessOf(object);
    return readiness.state === 'True' ? [] : [{ wanted, readiness }];
  });
  const worst = open.find(({ readiness }) => readiness.state === 'False') ?? open[0];
  if (worst === undefined)
    return {
      type,
      status: 'True',
      reason: 'RolledOut',
      message: `${expected.length} of ${expected.length} workloads, claims and definitions are ready`,
    };
  const ready = expected.length - open.length;
  return {
    type,
    status: 'False',
    reason: worst.readiness.reason,
    message: `${ready} of ${expected.length} are ready; ${describeObject(worst.wanted)}: ${worst.readiness.message}`,
  };
}

/** Looks at the workloads of a release. A look that failed answers Unknown: what was seen before counts no more. */
async function observeWorkloads(
  client: KubeClient,
  target: { readonly release: string; readonly namespace: string },
  signal: AbortSignal,
): Promise<DomainCondition> {
  const failed = (problems: readonly Problem[]): DomainCondition => ({
    type: 'WorkloadsReady',
    status: 'Unknown',
    reason: 'ObservationFailed',
    message: problems[0]?.message ?? 'the workloads could not be read',
  });
  const ledger = await openLedger(client, target, signal);
  if (!ledger.ok) return failed(ledger.problems);
  const expected = expectedOf(ledger.store.ledger);
  const read = await readLive(client, { release: target.release, kinds: kindsInUse(expected), whole: true }, signal);
  return read.ok ? workloadsReady(expected, read.live) : failed(read.problems);
}

/**
 * The same within a limit: a look that takes longer than that answers Unknown, and what was told before stands no longer.
 */
export async function observeInTime(
  client: KubeClient,
  target: { readonly release: string; readonly namespace: string },
  { clock, limitMs }: { readonly clock: Clock; readonly limitMs: number },
  signal: AbortSignal,
): Promise<DomainCondition> {
  const over = new AbortController();
  const ended = new AbortController();
  clock.sleep(limitMs, ended.signal).then(
    () => over.abort(),
    // The look was over in time.
    () => undefined,
  );
  try {
    return await observeWorkloads(client, target, AbortSignal.any([signal, over.signal]));
  } catch (error) {
    if (signal.aborted || !over.signal.aborted) throw error;
    return {
      type: 'WorkloadsReady',
      status: 'Unknown',
      reason: 'ObservationOutdated',
      message: `the workloads could not be looked at within ${formatDuration(limitMs)}`,
    };
  } finally {
    ended.abort();
  }
}
