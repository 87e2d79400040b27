/** Whether one live object has got where it was meant to get, by the rules of its kind. Pure. */

import type { GateState } from '../../constructs/api/release.ts';
import { isObject, type JsonObject, type JsonValue, objectOf } from '../../constructs/lib/json.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { KubeObject } from '../kube/types.ts';

export interface Readiness {
  readonly state: GateState;
  readonly reason: string;
  readonly message: string;
}

const ready: Readiness = { state: 'True', reason: 'Ready', message: '' };
const waiting = (reason: string, message: string): Readiness => ({ state: 'Unknown', reason, message });
const failed = (reason: string, message: string): Readiness => ({ state: 'False', reason, message });

const count = (value: JsonValue | undefined, absent = 0): number => (typeof value === 'number' ? value : absent);

/** A condition of `status.conditions`. */
function conditionOf(object: KubeObject, type: string): JsonObject | undefined {
  const { conditions } = objectOf(object.status);
  return Array.isArray(conditions) ? conditions.filter(isObject).find((entry) => entry.type === type) : undefined;
}

/** Status of a condition, 'Unknown' when it is absent. */
const statusOf = (condition: JsonObject | undefined): string =>
  typeof condition?.status === 'string' ? condition.status : 'Unknown';

const messageOf = (condition: JsonObject | undefined): string =>
  [condition?.reason, condition?.message].filter((text) => typeof text === 'string' && text !== '').join(': ');

/** Whether the controller has seen this generation; a workload whose controller never wrote has not been seen. */
function behind(object: KubeObject): Readiness | undefined {
  const wanted = count(object.metadata.generation, 1);
  const { observedGeneration } = objectOf(object.status);
  if (observedGeneration === undefined) return waiting('NotObserved', 'its controller has not looked at it yet');
  const seen = count(observedGeneration, -1);
  return seen >= wanted ? undefined : waiting('NotObserved', `its controller has seen generation ${seen} of ${wanted}`);
}

const shortfall = (what: string, has: number, wanted: number): Readiness | undefined =>
  has >= wanted ? undefined : waiting('RolloutInProgress', `${has} of ${wanted} ${what}`);

const nothingWanted = waiting('NothingDesired', 'it wants no replica, which proves nothing');

function firstOf(...checks: (Readiness | undefined)[]): Readiness {
  return checks.find((check) => check !== undefined) ?? ready;
}

function deployment(object: KubeObject): Readiness {
  const wanted = count(objectOf(object.spec).replicas, 1);
  const status = objectOf(object.status);
  const progressing = conditionOf(object, 'Progressing');
  const failure = conditionOf(object, 'ReplicaFailure');
  return firstOf(
    behind(object),
    wanted > 0 ? undefined : nothingWanted,
    statusOf(failure) === 'True' ? failed('ReplicaFailure', messageOf(failure)) : undefined,
    progressing?.reason === 'ProgressDeadlineExceeded'
      ? failed('ProgressDeadlineExceeded', messageOf(progressing))
      : undefined,
    shortfall('replicas are updated', count(status.updatedReplicas), wanted),
    count(status.replicas) > wanted
      ? waiting('RolloutInProgress', `${count(status.replicas) - wanted} replicas of an older revision are still there`)
      : undefined,
    shortfall('replicas are ready', count(status.readyReplicas), wanted),
    shortfall('replicas are available', count(status.availableReplicas), wanted),
  );
}

function statefulSet(object: KubeObject): Readiness {
  const wanted = count(objectOf(object.spec).replicas, 1);
  const status = objectOf(object.status);
  const { currentRevision, updateRevision } = status;
  return firstOf(
    behind(object),
    wanted > 0 ? undefined : nothingWanted,
    shortfall('replicas are updated', count(status.updatedReplicas, count(status.currentReplicas)), wanted),
    shortfall('replicas are ready', count(status.readyReplicas), wanted),
    currentRevision !== updateRevision
      ? waiting('RolloutInProgress', `revision ${String(currentRevision)} still runs beside ${String(updateRevision)}`)
      : undefined,
  );
}

function daemonSet(object: KubeObject): Readiness {
  const status = objectOf(object.status);
  const onDelete = objectOf(objectOf(object.spec).updateStrategy).type === 'OnDelete';
  const byHand = onDelete ? '; the others get it when somebody deletes theirs (OnDelete)' : '';
  const wanted = count(status.desiredNumberScheduled);
  return firstOf(
    behind(object),
    wanted > 0 ? undefined : waiting('NothingDesired', 'no node wants a pod of it, which proves nothing'),
    shortfall(`nodes have the updated pod${byHand}`, count(status.updatedNumberScheduled), wanted),
    shortfall('nodes have a ready pod', count(status.numberReady), wanted),
    shortfall('nodes have an available pod', count(status.numberAvailable), wanted),
  );
}

function replicaSet(object: KubeObject): Readiness {
  const wanted = count(objectOf(object.spec).replicas, 1);
  const status = objectOf(object.status);
  const failure = conditionOf(object, 'ReplicaFailure');
  return firstOf(
    behind(object),
    wanted > 0 ? undefined : nothingWanted,
    statusOf(failure) === 'True' ? failed('ReplicaFailure', messageOf(failure)) : undefined,
    shortfall('replicas are ready', count(status.readyReplicas), wanted),
    shortfall('replicas are available', count(status.availableReplicas), wanted),
  );
}

/** A pod without a controller: it runs and says so, or it has ended well. */
function pod(object: KubeObject): Readiness {
  const { phase } = objectOf(object.status);
  if (phase === 'Succeeded') return ready;
  if (phase === 'Failed')
    return failed('PodFailed', messageOf(objectOf(object.status)) || 'its containers have failed');
  if (statusOf(conditionOf(object, 'Ready')) === 'True') return ready;
  const why = messageOf(conditionOf(object, 'Ready')) || messageOf(conditionOf(object, 'PodScheduled'));
  return waiting(
    'PodNotReady',
    `it is ${typeof phase === 'string' ? phase : 'Pending'}${why === '' ? '' : `: ${why}`}`,
  );
}

function job(object: KubeObject): Readiness {
  const failure = conditionOf(object, 'Failed');
  if (statusOf(failure) === 'True') return failed('JobFailed', messageOf(failure));
  if (statusOf(conditionOf(object, 'Complete')) === 'True') return ready;
  return waiting('JobRunning', 'it has not completed');
}

function claim(object: KubeObject): Readiness {
  const { phase } = objectOf(object.status);
  if (phase === 'Bound') return ready;
  if (phase === 'Lost') return failed('ClaimLost', 'its volume is lost');
  return waiting('VolumeClaimNotBound', `it is ${typeof phase === 'string' ? phase : 'Pending'}`);
}

/** CRDs: Established, and their names accepted. */
export function established(object: KubeObject): Readiness {
  const names = conditionOf(object, 'NamesAccepted');
  if (statusOf(names) === 'False') return failed('NamesNotAccepted', messageOf(names));
  const condition = conditionOf(object, 'Established');
  if (statusOf(condition) === 'True') return ready;
  return waiting('NotEstablished', messageOf(condition) || 'the API server does not serve it yet');
}

const rules: Readonly<Record<string, (object: KubeObject) => Readiness>> = {
  'apps/Deployment': deployment,
  'apps/StatefulSet': statefulSet,
  'apps/DaemonSet': daemonSet,
  'apps/ReplicaSet': replicaSet,
  '/Pod': pod,
  'batch/Job': job,
  '/PersistentVolumeClaim': claim,
  'apiextensions.k8s.io/CustomResourceDefinition': established,
};

const ruleFor = (object: { readonly apiVersion: string; readonly kind: string }) =>
  rules[`${groupOf(object.apiVersion)}/${object.kind}`];

/** Whether objects of this kind have a readiness that WorkloadsReady waits for. */
export const hasReadiness = (object: { readonly apiVersion: string; readonly kind: string }): boolean =>
  ruleFor(object) !== undefined;

/** Readiness of a live object; an object being deleted is never ready, one of a kind without a rule always is. */
export function readinessOf(object: KubeObject): Readiness {
  const { deletionTimestamp, finalizers } = object.metadata;
  if (typeof deletionTimestamp === 'string')
    return waiting('Terminating', `it is being deleted; finalizers: ${finalizers?.join(', ') || 'none'}`);
  return ruleFor(object)?.(object) ?? ready;
}

/** Readiness by one condition of a custom resource; its own generation must have been seen, where it tells. */
export function conditionReadiness(object: KubeObject, type: string): Readiness {
  if (typeof object.metadata.deletionTimestamp === 'string') return waiting('Terminating', 'it is being deleted');
  const { observedGeneration } = objectOf(object.status);
  const wanted = count(object.metadata.generation, 1);
  if (typeof observedGeneration === 'number' && observedGeneration < wanted)
    return waiting('NotObserved', `its controller has seen generation ${observedGeneration} of ${wanted}`);
  const condition = conditionOf(object, type);
  const own = condition?.observedGeneration;
  if (typeof own === 'number' && own < wanted)
    return waiting('NotObserved', `condition ${type} is of generation ${own}, the object has ${wanted}`);
  const status = statusOf(condition);
  const message = messageOf(condition) || `condition ${type} is absent`;
  if (status === 'True') return ready;
  return status === 'False' ? failed('ConditionFalse', message) : waiting('ConditionUnknown', message);
}
