import type { CallOptions } from '../call.ts';
import { parseStatus } from '../classify.ts';
import { collectionPath } from '../discovery.ts';
import type { CreateOutcome } from '../outcome.ts';
import { type KubeObject, refOf } from '../types.ts';
import { ask, refusal, subjectOf, type VerbContext, written } from './context.ts';
import type { SharedRef } from './merge.ts';
import type { LeaseObject } from './update.ts';

/** An Event of the newer API. */
export interface EventObject extends KubeObject {
  apiVersion: 'events.k8s.io/v1';
  kind: 'Event';
}

/** Questions that the API server answers in the reply and never stores. */
export interface ReviewObject extends KubeObject {
  apiVersion: 'authorization.k8s.io/v1' | 'authentication.k8s.io/v1';
  kind:
    | 'SelfSubjectAccessReview'
    | 'SelfSubjectRulesReview'
    | 'SubjectAccessReview'
    | 'LocalSubjectAccessReview'
    | 'TokenReview';
}

/** An object that many write: made once, and merged into later ({@link SharedRef}). */
export type SharedObject = KubeObject & Pick<SharedRef, 'apiVersion' | 'kind'>;

/** The kinds that may be POSTed. Everything else is applied: an object that was POSTed conflicts with its own manager later. */
export type Creatable = LeaseObject | EventObject | ReviewObject | SharedObject;

/** POST of one of the few kinds that are created that way. */
export async function create(
  context: VerbContext,
  object: Creatable,
  options: CallOptions & { readonly fieldManager: string },
): Promise<CreateOutcome> {
  const ref = refOf(object);
  const subject = subjectOf('create', ref);
  const found = await context.discovery.resource(ref, options);
  if (found.type !== 'resource') return found;
  const request = {
    method: 'POST',
    path: collectionPath(found.resource, ref.namespace),
    query: { fieldManager: options.fieldManager },
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(object),
  } as const;
  const answer = await ask(context, ref, request, options);
  if (answer.type === 'answer' && (answer.status === 201 || answer.status === 200))
    return { type: 'created', ...written(answer) };
  if (answer.type === 'answer' && answer.status === 409 && parseStatus(answer.text).reason === 'AlreadyExists')
    return { type: 'exists', retried: answer.retried };
  return refusal(context, subject, answer, options);
}
