/** Lease objects: what is read, what is written. */

import type { Clock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { CallOptions } from '../kube/call.ts';
import type { KubeClient } from '../kube/client.ts';
import { microTime } from '../kube/microtime.ts';
import type { CreateOutcome, Rejection, UpdateOutcome } from '../kube/outcome.ts';
import type { ObjectRef } from '../kube/types.ts';
import type { LeaseObject } from '../kube/verbs/update.ts';
import { type Look, viewOf } from './decide.ts';
import type { LeaseTimings } from './timings.ts';

/** Which Lease, by whom, through what. */
export interface LeaseOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly namespace: string;
  readonly name: string;
  /** Unique to this acquisition: a new one for each operation and each term. */
  readonly holder: string;
  readonly fieldManager: string;
  readonly timings?: Partial<LeaseTimings>;
  /** Labels of a Lease that is made new. */
  readonly labels?: { readonly [key: string]: string };
}

export function leaseRef({ namespace, name }: LeaseOptions): ObjectRef {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name };
}

/** One attempt, since whoever asks has its own deadline and its own way to try again. */
function callOptions(timings: LeaseTimings, signal: AbortSignal | undefined, limitMs = timings.requestMs): CallOptions {
  return {
    attempts: 1,
    timeoutMs: Math.max(1, Math.min(timings.requestMs, limitMs)),
    ...(signal === undefined ? {} : { signal }),
  };
}

/** An uncached look, with the object for a write that follows it. */
export async function look(
  options: LeaseOptions,
  timings: LeaseTimings,
  signal?: AbortSignal,
): Promise<{ readonly type: 'seen'; readonly look: Look; readonly object: LeaseObject | undefined } | Rejection> {
  const { client, clock } = options;
  const sentAt = clock.monotonic();
  const answer = await client.get(leaseRef(options), callOptions(timings, signal));
  const receivedAt = clock.monotonic();
  if (answer.type === 'absent')
    return { type: 'seen', look: { sentAt, receivedAt, lease: undefined }, object: undefined };
  if (answer.type !== 'found') return answer;
  return {
    type: 'seen',
    look: { sentAt, receivedAt, lease: viewOf(answer.object) },
    object: answer.object as LeaseObject,
  };
}

function claim(options: LeaseOptions, timings: LeaseTimings, transitions: number): JsonObject {
  return {
    holderIdentity: options.holder,
    leaseDurationSeconds: Math.ceil(timings.durationMs / 1000),
    leaseTransitions: transitions,
    renewTime: microTime(options.clock.now()),
  };
}

/** Makes the Lease, held by us. */
export function createLease(options: LeaseOptions, timings: LeaseTimings, signal: AbortSignal): Promise<CreateOutcome> {
  const { client, clock, namespace, name, labels, fieldManager } = options;
  const object: LeaseObject = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace, ...(labels === undefined ? {} : { labels: { ...labels } }) },
    spec: { ...claim(options, timings, 0), acquireTime: microTime(clock.now()) },
  };
  return client.create(object, { ...callOptions(timings, signal), fieldManager });
}

/** Takes a Lease over in the version that was read. */
export function takeLease(
  options: LeaseOptions,
  timings: LeaseTimings,
  object: LeaseObject,
  transitions: number,
  signal: AbortSignal,
): Promise<UpdateOutcome> {
  const spec = { ...object.spec, ...claim(options, timings, transitions), acquireTime: microTime(options.clock.now()) };
  return options.client.putLease(
    { ...object, spec },
    { ...callOptions(timings, signal), fieldManager: options.fieldManager },
  );
}

/** Renews a Lease in the version that was last written or read, within `limitMs`. */
export function renewLease(
  options: LeaseOptions,
  timings: LeaseTimings,
  object: LeaseObject,
  transitions: number,
  limitMs: number,
  signal: AbortSignal,
): Promise<UpdateOutcome> {
  const spec = { ...object.spec, ...claim(options, timings, transitions) };
  return options.client.putLease(
    { ...object, spec },
    { ...callOptions(timings, signal, limitMs), fieldManager: options.fieldManager },
  );
}

/** Gives a Lease up in the version that was read: without a holder, with its number of transitions kept. */
export function freeLease(options: LeaseOptions, timings: LeaseTimings, object: LeaseObject): Promise<UpdateOutcome> {
  const { holderIdentity: _holder, acquireTime: _acquired, ...spec } = object.spec ?? {};
  const freed = { ...object, spec: { ...spec, renewTime: microTime(options.clock.now()) } };
  return options.client.putLease(freed, { ...callOptions(timings, undefined), fieldManager: options.fieldManager });
}
