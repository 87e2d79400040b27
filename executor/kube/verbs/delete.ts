import { isObject } from '../../../constructs/lib/json.ts';
import type { CallOptions } from '../call.ts';
import { parseObject, parseStatus, tell } from '../classify.ts';
import { objectPath } from '../discovery.ts';
import type { DeleteOutcome } from '../outcome.ts';
import type { ObjectRef } from '../types.ts';
import { ask, isObjectAbsent, isResource, locate, refusal, subjectOf, type VerbContext } from './context.ts';

export interface DeleteOptions extends CallOptions {
  /** Only the object with this UID is deleted: a name alone never is. */
  readonly uid: string;
  /** Only in this version. */
  readonly resourceVersion?: string;
  readonly propagation: 'Background' | 'Foreground' | 'Orphan';
  readonly dryRun?: boolean;
}

/** Deletes one object by name and UID. Finalizers are reported, never touched. */
export async function remove(context: VerbContext, ref: ObjectRef, options: DeleteOptions): Promise<DeleteOutcome> {
  const subject = subjectOf('delete', ref);
  const resource = await locate(context, subject, ref, options);
  if (!isResource(resource)) return resource;
  const { uid, resourceVersion } = options;
  const body = {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    propagationPolicy: options.propagation,
    preconditions: { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    ...(options.dryRun === true ? { dryRun: ['All'] } : {}),
  };
  const request = {
    method: 'DELETE',
    path: objectPath(resource, ref),
    query: {},
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  } as const;
  const answer = await ask(context, ref, request, options);
  if (answer.type === 'none') return refusal(context, subject, answer, options);
  if (answer.status === 200 || answer.status === 202) return deleted(answer.text);
  if (isObjectAbsent(answer, resource)) return { type: 'absent' };
  if (answer.status === 409)
    return { type: 'preconditionFailed', message: tell(subject, parseStatus(answer.text), 409) };
  return refusal(context, subject, answer, options);
}

/** The answer is a Status when the object is gone, and the object itself when something still holds it. */
function deleted(text: string): DeleteOutcome {
  const answer = parseObject(text);
  if (answer === undefined || answer.kind === 'Status' || !isObject(answer.metadata)) return { type: 'deleted' };
  const { deletionTimestamp, finalizers } = answer.metadata;
  if (deletionTimestamp === undefined || deletionTimestamp === null) return { type: 'deleted' };
  return { type: 'terminating', finalizers: Array.isArray(finalizers) ? finalizers.map(String) : [] };
}
