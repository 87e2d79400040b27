/** What a courier does: applies the objects of a rendered unit. It overwrites nobody, and removes nothing. */
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ApplyOutcome } from '../kube/outcome.ts';
import { describeRef, type KubeObject, type ObjectRef, refOf } from '../kube/types.ts';

export interface CourierDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Field manager of the courier whose place is taken. */
  readonly fieldManager: string;
  /** Told of every object that was written. */
  readonly onApplied?: (ref: ObjectRef, what: Applied['what']) => void;
}

export interface Applied {
  readonly ref: ObjectRef;
  readonly what: 'created' | 'configured' | 'unchanged';
}

/** Kinds that others need, kinds that need everything else, and the rest between them. */
const stages: readonly (readonly string[])[] = [
  ['Namespace', 'CustomResourceDefinition'],
  ['ServiceAccount', 'ClusterRole', 'Role'],
  ['ClusterRoleBinding', 'RoleBinding', 'ConfigMap'],
];
const last = ['Deployment', 'Release', 'ValidatingAdmissionPolicyBinding'];

const stageOf = (object: KubeObject): number => {
  const found = stages.findIndex((kinds) => kinds.includes(object.kind));
  if (found >= 0) return found;
  return stages.length + (last.includes(object.kind) ? 1 : 0);
};

const establishLimitMs = 60_000;

/**
 * Applies objects in an order in which each finds what it needs. All are tried, also after one was refused, and every
 * refusal is told.
 */
export async function applyObjects(
  deps: CourierDeps,
  objects: readonly KubeObject[],
): Promise<{ applied: Applied[]; problems: Problem[] }> {
  const applied: Applied[] = [];
  const problems: Problem[] = [];
  const ordered = objects.map((object, n) => ({ object, n, stage: stageOf(object) }));
  ordered.sort((a, b) => a.stage - b.stage || a.n - b.n);
  let stage = 0;
  for (const { object, stage: at } of ordered) {
    if (at > stage) {
      await established(deps, objects);
      stage = at;
    }
    const outcome = await applyOne(deps, object);
    if ('reason' in outcome) problems.push(outcome);
    else {
      applied.push(outcome);
      deps.onApplied?.(outcome.ref, outcome.what);
    }
  }
  return { applied, problems };
}

async function applyOne(deps: CourierDeps, object: KubeObject): Promise<Applied | Problem> {
  const { client, signal, fieldManager } = deps;
  const ref = refOf(object);
  const read = await client.get(ref, { signal });
  const live = read.type === 'found' ? { live: read.object } : {};
  const outcome = await client.apply(object, { fieldManager, signal, ...live });
  if (outcome.type === 'created' || outcome.type === 'configured' || outcome.type === 'unchanged')
    return { ref, what: outcome.type };
  return refusal(ref, outcome);
}

/** What a person is told about an object that was not taken. */
export function refusal(
  ref: ObjectRef,
  outcome: Exclude<ApplyOutcome, { type: 'created' | 'configured' | 'unchanged' }>,
): Problem {
  const object = describeRef(ref);
  switch (outcome.type) {
    case 'conflict':
      return {
        reason: 'FieldConflict',
        message: outcome.managers.map((m) => `${m.manager} holds ${m.fields.join(', ')}`).join('; '),
        object,
        remedy:
          'let the other manager give the fields up, or set spec.delivery.courier to the courier that applies this tree; after a change of courier, use keelson bootstrap --take-over',
      };
    case 'invalid':
      return {
        reason: 'ObjectInvalid',
        message: outcome.message,
        object,
        remedy: 'correct the specs, render and publish again',
      };
    case 'forbidden':
    case 'unauthorized':
      return {
        reason: 'AccessDenied',
        message: outcome.message,
        object,
        remedy: 'use a kubeconfig of an administrator; spec.allow.principals names who may deliver',
      };
    default:
      return {
        reason: 'ApplyFailed',
        message: outcome.message,
        object,
        remedy: 'deliver again when the cause is gone',
      };
  }
}

/** Waits until every definition among the objects serves its kind. */
async function established(deps: CourierDeps, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects.filter((candidate) => candidate.kind === 'CustomResourceDefinition')) {
    const ref = refOf(object);
    await waitFor({
      what: `${describeRef(ref)} to be established`,
      limitMs: establishLimitMs,
      intervalMs: 200,
      clock: deps.clock,
      signal: deps.signal,
      probe: async (saw) => {
        const read = await deps.client.get(ref, { signal: deps.signal });
        // A definition that was refused, or that may not be looked at, is told as such; there is nothing to wait for.
        if (read.type === 'absent' || read.type === 'unauthorized' || read.type === 'forbidden') return true;
        const conditions = read.type === 'found' ? read.object.status?.conditions : undefined;
        const found = (Array.isArray(conditions) ? conditions : []) as { type?: string; status?: string }[];
        saw(found.map((c) => `${c.type}=${c.status}`).join(', ') || 'no conditions');
        return found.some((c) => c.type === 'Established' && c.status === 'True') ? true : undefined;
      },
    });
  }
  deps.client.forget();
}
