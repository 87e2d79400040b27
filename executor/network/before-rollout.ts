/** What a rollout of sidecars waits for before it makes the first pod of OVN central anew. */
import type { DomainCondition } from '../../constructs/api/conditions.ts';
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, type KubeObject, type ObjectRef } from '../kube/types.ts';
import { freshConditions } from '../observe/verdict.ts';
import type { DomainDeps, PlannedChange } from '../release/domain.ts';
import { readinessOf } from '../release/readiness.ts';
import type { Observations } from './evidence.ts';
import type { NetworkSnapshot } from './snapshot.ts';

/** What databases say that are not whole, though it is nobody's fault. */
const moving: ReadonlySet<string> = new Set(['MemberJoining', 'MemberElecting', 'NoLeader', 'MembershipChanging']);

/**
 * Why no member may be taken away now: every pod is ready, and the databases are seen not to be whole, so that a rollout, which
 * goes by pods, would take a member too many. Where a pod is not ready the rollout begins with that one, and may be what mends
 * it; and what nobody sees keeps nothing back, since sidecars that do not answer are replaced by this very way. Pure.
 */
export function notWhole(workload: KubeObject | undefined, condition: DomainCondition | undefined): string | undefined {
  if (workload === undefined || condition === undefined || readinessOf(workload).state !== 'True') return undefined;
  const seen = condition.status === 'False' || (condition.status === 'Unknown' && moving.has(condition.reason));
  return seen ? `${condition.reason}: ${condition.message}` : undefined;
}

/** Why the rollout waits; nothing where none is planned, or none of OVN central. */
export async function rolloutProblems(
  { changeClass, actions }: PlannedChange,
  { installation }: NetworkSnapshot,
  observations: Observations | undefined,
  { client, clock, signal }: DomainDeps,
): Promise<Problem[]> {
  if (changeClass !== 'keelson' || installation === undefined) return [];
  const observed = observations?.of(installation.uid);
  if (observed === undefined) return [];
  const { verdict, limitMs } = observed;
  const condition = freshConditions(verdict, { tick: clock.monotonic(), limitMs }).find(
    ({ type }) => type === 'OVNDBReady',
  );
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
        remedy: 'wait, or mend the databases; what is in place stays enforced',
      });
  }
  return problems;
}
