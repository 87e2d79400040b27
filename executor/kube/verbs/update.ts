/** Writes that depend on the resourceVersion they were decided on. */
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { CallOptions } from '../call.ts';
import { objectPath } from '../discovery.ts';
import type { UpdateOutcome } from '../outcome.ts';
import { type KubeObject, type ManagedFieldsEntry, type ObjectRef, refOf } from '../types.ts';
import { ask, invalid, isResource, locate, subjectOf, updated, type VerbContext } from './context.ts';

export interface StatusPatch {
  /** The version that was read; another live version makes the write `stale`. */
  readonly resourceVersion: string;
  /** JSON merge patch of `.status` (RFC 7396): null removes. */
  readonly status: JsonObject;
}

/** Merge patch of `/status`, and of nothing else. */
export async function mergeStatus(
  context: VerbContext,
  ref: ObjectRef,
  patch: StatusPatch,
  options: CallOptions & { readonly fieldManager: string },
): Promise<UpdateOutcome> {
  const subject = subjectOf('status', ref);
  const resource = await locate(context, subject, ref, options);
  if (!isResource(resource)) return resource;
  if (!resource.statusSubresource) return invalid(subject, 'status', `${ref.kind} has no status subresource`);
  const request = {
    method: 'PATCH',
    path: objectPath(resource, ref, 'status'),
    query: { fieldManager: options.fieldManager, fieldValidation: 'Strict' },
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ metadata: { resourceVersion: patch.resourceVersion }, status: patch.status }),
  } as const;
  return updated(context, subject, resource, await ask(context, ref, request, options), options);
}

/** A Lease, with the resourceVersion that was read. */
export interface LeaseObject extends KubeObject {
  apiVersion: 'coordination.k8s.io/v1';
  kind: 'Lease';
}

/** Replaces a Lease in the version that the object carries. The only PUT there is. */
export async function putLease(
  context: VerbContext,
  lease: LeaseObject,
  options: CallOptions & { readonly fieldManager: string },
): Promise<UpdateOutcome> {
  const ref = refOf(lease);
  const subject = subjectOf('put', ref);
  const resource = await locate(context, subject, ref, options);
  if (!isResource(resource)) return resource;
  const request = {
    method: 'PUT',
    path: objectPath(resource, ref),
    query: { fieldManager: options.fieldManager },
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(lease),
  } as const;
  return updated(context, subject, resource, await ask(context, ref, request, options), options);
}

/**
 * Replaces `metadata.managedFields`, guarded by UID and resourceVersion; nothing else of the object. This is how a value
 * that an Update-operation manager took is given up for the next apply, without overwriting anything.
 */
export async function replaceManagedFields(
  context: VerbContext,
  ref: ObjectRef,
  patch: { readonly uid: string; readonly resourceVersion: string; readonly entries: readonly ManagedFieldsEntry[] },
  options: CallOptions = {},
): Promise<UpdateOutcome> {
  const subject = subjectOf('managed fields of', ref);
  const resource = await locate(context, subject, ref, options);
  if (!isResource(resource)) return resource;
  const operations = [
    { op: 'test', path: '/metadata/uid', value: patch.uid },
    { op: 'replace', path: '/metadata/resourceVersion', value: patch.resourceVersion },
    { op: 'replace', path: '/metadata/managedFields', value: patch.entries },
  ];
  const request = {
    method: 'PATCH',
    path: objectPath(resource, ref),
    query: {},
    headers: { 'content-type': 'application/json-patch+json' },
    body: JSON.stringify(operations),
  } as const;
  const answer = await ask(context, ref, request, options);
  const tested =
    answer.type === 'answer' && answer.status === 422 && /the server rejected our request|testing/i.test(answer.text);
  if (tested) return { type: 'stale', message: `${subject.what}: another object has this name now` };
  return updated(context, subject, resource, answer, options);
}
