/** What a rollout of sidecars waits for before it makes the first pod of OVN central anew. */
import type { DomainCondition } from '../../constructs/api/conditions.ts';
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, type KubeObject, type ObjectRef } from '../kube/types.ts';
import { freshConditions } from '../observe/verdict.ts';
import type { DomainDeps, PlannedChange } from '../release/domain.ts';
import { readinessOf } from '../release/readiness.ts';
import type { Observations, Observed } from './evidence.ts';
import type { NetworkSnapshot } from './snapshot.ts';

/** What databases say that are not whole, though it is nobody's fault. */
const moving: ReadonlySet<string> = new Set(['MemberJoining', 'MemberElecting', 'NoLeader', 'MembershipChanging']);

/** Reasons of no round: none has ended yet in this term, or the last one is too long ago. */
const unlooked: ReadonlySet<string> = new Set(['EvidencePending', 'EvidenceStale']);

/** OVNDBReady as a rollout goes by it; undefined where an installation is observed that holds no databases. Pure. */
export function databasesNow(observed: Observed | undefined, tick: number): DomainCondition | undefined {
  const type = 'OVNDBReady';
  if (observed === undefined)
    return {
      type,
      status: 'Unknown',
      reason: 'EvidencePending',
      message: 'nobody has looked at the databases yet',
    };
  const { verdict, limitMs } = observed;
  return freshConditions(verdict, { tick, limitMs }).find((one) => one.type === type);
}

/**
 * Why no member may be taken away now: every pod is ready, and the databases are seen not to be whole, so that a rollout, which
 * goes by pods, would take a member too many; or nobody has looked, as after a start or an outage, and a round is to come. Where
 * a pod is not ready the rollout begins with that one, and may be what mends it. A round ends when all sidecars are silent too,
 * and that keeps nothing back, since sidecars that do not answer are replaced by this very way. Pure.
 */
export function notWhole(workload: KubeObject | undefined, condition: DomainCondition | undefined): string | undefined {
  if (workload === undefined || condition === undefined || readinessOf(workload).state !== 'True') return undefined;
  const { status, reason } = condition;
  const waits = status === 'False' || (status === 'Unknown' && (moving.has(reason) || unlooked.has(reason)));
  return waits ? `${condition.reason}: ${condition.message}` : undefined;
}

/** Why the rollout waits; nothing where none is planned, or none of OVN central. */
export async function rolloutProblems(
  { changeClass, actions }: PlannedChange,
  { installation }: NetworkSnapshot,
  observations: Observations | undefined,
  { client, clock, signal }: DomainDeps,
): Promise<Problem[]> {
  // Where nothing observes, no round will ever come.
  if (changeClass !== 'keelson' || installation === undefined || observations === undefined) return [];
  const condition = databasesNow(observations.of(installation.uid), clock.monotonic());
  const isUnlooked = condition !== undefined && unlooked.has(condition.reason);
  if (isUnlooked) observations.hurry(installation.uid);
  const problems: Problem[] = [];
  for (const id of actions.configured) {
    const { group, kind, namespace, name } = parseObjectId(id);
    if (group !== 'apps' || name !== 'ovn-central') continue;
    const ref: ObjectRef = { apiVersion: 'apps/v1', kind, name, ...(namespace === undefined ? {} : { namespace }) };
    const found = await client.get(ref, { signal });
    const object = describeRef(ref);
    if (found.type !== 'found' && found.type !== 'absent')
      problems.push({ reason: 'ApiUnavailable', message: found.message, object });
    const why = notWhole(found.type === 'found' ? found.object : undefined, condition);
    if (why !== undefined)
      problems.push({
        reason: 'RolloutWaits',
        message: `its pods are made anew once its databases are whole; now ${why}`,
        object,
        remedy: `${isUnlooked ? 'wait for the next round' : 'wait, or mend the databases'}; what is in place stays enforced`,
      });
  }
  return problems;
}
