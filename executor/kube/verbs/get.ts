import type { CallOptions } from '../call.ts';
import { call } from '../call.ts';
import { classify, unanswered } from '../classify.ts';
import { objectPath } from '../discovery.ts';
import type { GetOutcome, PathOutcome } from '../outcome.ts';
import type { ObjectRef } from '../types.ts';
import { ask, isObjectAbsent, isResource, locate, objectOf, refusal, subjectOf, type VerbContext } from './context.ts';

/** Reads an object uncached (a quorum read). */
export async function get(context: VerbContext, ref: ObjectRef, options: CallOptions = {}): Promise<GetOutcome> {
  const subject = subjectOf('get', ref);
  const resource = await locate(context, subject, ref, options);
  if (!isResource(resource)) return resource;
  const answer = await ask(
    context,
    ref,
    { method: 'GET', path: objectPath(resource, ref), query: {}, headers: {} },
    options,
  );
  if (answer.type === 'answer' && answer.status === 200) return { type: 'found', object: objectOf(answer) };
  if (answer.type === 'answer' && isObjectAbsent(answer, resource)) return { type: 'absent' };
  return refusal(context, subject, answer, options);
}

/** Reads a path that is no object, such as `/version`. */
export async function getPath(context: VerbContext, path: string, options: CallOptions = {}): Promise<PathOutcome> {
  const subject = { what: `GET ${path}` };
  const [bare = path, search = ''] = path.split('?', 2);
  const query = Object.fromEntries(new URLSearchParams(search));
  const answer = await call(context.caller, { method: 'GET', path: bare, query, headers: {} }, options);
  if (answer.type === 'none') return unanswered(subject, answer) as PathOutcome;
  if (answer.status === 200) return { type: 'text', text: answer.text };
  if (answer.status === 404) return { type: 'absent' };
  return classify(subject, answer, context.caller.clock.now()) as PathOutcome;
}
