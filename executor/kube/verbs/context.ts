/** What every verb shares: where a kind lives, and one request about it. */
import { type Answer, type Caller, type CallOptions, type CallRequest, call, type NoAnswer } from '../call.ts';
import { classify, parseObject, parseStatus, tell, unanswered, warningsOf } from '../classify.ts';
import type { Discovery, Resource } from '../discovery.ts';
import type { Invalid, Rejection, Subject, UpdateOutcome, Written } from '../outcome.ts';
import { describeRef, type KubeObject, type ObjectRef } from '../types.ts';

export interface VerbContext {
  readonly caller: Caller;
  readonly discovery: Discovery;
}

/** Subject of a verb on an object, for messages. */
export function subjectOf(verb: string, ref: ObjectRef): Subject {
  return { ref, what: `${verb} of ${describeRef(ref)}` };
}

/** Where the object's kind is served; `invalid` for a reference that cannot be one. */
export async function locate(
  context: VerbContext,
  subject: Subject,
  ref: ObjectRef,
  options: CallOptions,
): Promise<Resource | Rejection> {
  if (ref.name === '') return invalid(subject, 'metadata.name', 'the object has no name');
  const found = await context.discovery.resource(ref, options);
  if (found.type !== 'resource') return found;
  if (found.resource.namespaced && (ref.namespace ?? '') === '')
    return invalid(subject, 'metadata.namespace', `${ref.kind} is namespaced and the object names no namespace`);
  return found.resource;
}

export function isResource(found: Resource | Rejection): found is Resource {
  return !('type' in found);
}

export function invalid(subject: Subject, field: string, message: string): Invalid {
  return {
    type: 'invalid',
    message: `${subject.what}: ${field}: ${message}`,
    causes: [{ field, reason: 'FieldValueInvalid', message }],
  };
}

/** Leases bypass the limiter. */
export function ask(
  context: VerbContext,
  ref: ObjectRef,
  request: CallRequest,
  options: CallOptions,
): Promise<Answer | NoAnswer> {
  return call(context.caller, request, options, ref.kind !== 'Lease');
}

/** The refusal behind an answer that the verb itself has no name for. */
export async function refusal(
  context: VerbContext,
  subject: Subject,
  answer: Answer | NoAnswer,
  options: CallOptions,
): Promise<Rejection> {
  if (answer.type === 'none') return unanswered(subject, answer);
  const { ref } = subject;
  if (answer.status === 404 && ref !== undefined && parseStatus(answer.text).name === '') {
    // No object is named, so the path itself is gone: the kind was removed, or moved, since it was discovered.
    const again = await context.discovery.refresh(ref, options);
    if (again.type !== 'resource') return again;
    return {
      type: 'unavailable',
      message: `${subject.what}: 404 from a path that discovery names`,
      mayHaveHappened: false,
    };
  }
  return classify(subject, answer, context.caller.clock.now());
}

/** True when a 404 is about the object itself (a Status that names no other kind), not about its path or its namespace. */
export function isObjectAbsent(answer: Answer, resource: Resource): boolean {
  if (answer.status !== 404) return false;
  const status = parseObject(answer.text);
  const details = status?.details;
  if (status === undefined || typeof details !== 'object' || details === null || Array.isArray(details)) return false;
  return details.kind === resource.plural || details.kind === resource.kind;
}

/** The object of a success. @throws TypeError when the server sent none, which no API server does. */
export function objectOf(answer: Answer): KubeObject {
  const object = parseObject(answer.text);
  if (object === undefined || typeof object.kind !== 'string' || typeof object.metadata !== 'object')
    throw new TypeError('the API server answered a write without an object');
  return object as KubeObject;
}

export function written(answer: Answer): Written {
  return { object: objectOf(answer), warnings: warningsOf(answer.headers), retried: answer.retried };
}

/** What an answer to the change of one object means; another version of it makes the change `stale`. */
export async function updated(
  context: VerbContext,
  subject: Subject,
  resource: Resource,
  answer: Answer | NoAnswer,
  options: CallOptions,
): Promise<UpdateOutcome> {
  if (answer.type === 'none') return refusal(context, subject, answer, options);
  if (answer.status === 200) return { type: 'updated', ...written(answer) };
  if (answer.status === 409) return { type: 'stale', message: tell(subject, parseStatus(answer.text), 409) };
  if (isObjectAbsent(answer, resource)) return { type: 'absent' };
  return refusal(context, subject, answer, options);
}
