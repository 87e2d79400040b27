/** What the server would make of values, without storing them: always a dry run. */
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { CallOptions } from '../call.ts';
import { objectPath } from '../discovery.ts';
import type { UpdateOutcome } from '../outcome.ts';
import type { ObjectRef } from '../types.ts';
import { ask, isResource, locate, subjectOf, updated, type VerbContext } from './context.ts';

export interface Preview {
  /** Only of this version. */
  readonly resourceVersion: string;
  /** Members of the object besides its metadata and status. */
  readonly values: JsonObject;
  readonly fieldManager: string;
}

/**
 * The object as it would be with these values, whoever holds them: defaults filled in, quantities and the like in the words
 * of the server. Nothing is stored and nothing changes hands.
 */
export async function preview(
  context: VerbContext,
  ref: ObjectRef,
  { resourceVersion, values, fieldManager }: Preview,
  options: CallOptions = {},
): Promise<UpdateOutcome> {
  const subject = subjectOf('preview', ref);
  const resource = await locate(context, subject, ref, options);
  if (!isResource(resource)) return resource;
  const { metadata: _m, status: _s, apiVersion: _a, kind: _k, ...content } = values;
  const request = {
    method: 'PATCH',
    path: objectPath(resource, ref),
    query: { dryRun: 'All', fieldManager, fieldValidation: 'Strict' },
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ ...content, metadata: { resourceVersion } }),
  } as const;
  return updated(context, subject, resource, await ask(context, ref, request, options), options);
}
