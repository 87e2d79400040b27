import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { CallOptions } from '../call.ts';
import { objectPath } from '../discovery.ts';
import type { UpdateOutcome } from '../outcome.ts';
import type { ObjectRef } from '../types.ts';
import { ask, isResource, locate, subjectOf, updated, type VerbContext } from './context.ts';

/**
 * The kinds that may be merged into: those whose fields people, drivers and other controllers write as well. Their finalizers
 * were put on by other managers before us, and an apply could never take those off.
 */
export type SharedRef = ObjectRef &
  (
    | { readonly apiVersion: 'local.sdn.cozystack.io/v1alpha1' }
    | { readonly apiVersion: 'v1'; readonly kind: 'Service' }
    | { readonly apiVersion: 'metallb.io/v1beta1' }
  );

export interface MergePatch {
  /** The object and version that the change was decided on; another one makes the write `stale`. */
  readonly uid: string;
  readonly resourceVersion: string;
  /** The whole list. */
  readonly finalizers?: readonly string[];
  /** The whole list. */
  readonly ownerReferences?: readonly JsonObject[];
  readonly labels?: Readonly<Record<string, string>>;
  /** null takes one away. */
  readonly annotations?: Readonly<Record<string, string | null>>;
  /** JSON merge patch of `.spec` (RFC 7396): null removes. */
  readonly spec?: JsonObject;
}

/** Merge patch of the very fields that are named, and of nothing else. */
export async function mergeShared(
  context: VerbContext,
  ref: SharedRef,
  { spec, ...metadata }: MergePatch,
  options: CallOptions & { readonly fieldManager: string },
): Promise<UpdateOutcome> {
  const subject = subjectOf('patch', ref);
  const resource = await locate(context, subject, ref, options);
  if (!isResource(resource)) return resource;
  const request = {
    method: 'PATCH',
    path: objectPath(resource, ref),
    query: { fieldManager: options.fieldManager, fieldValidation: 'Strict' },
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ metadata, ...(spec === undefined ? {} : { spec }) }),
  } as const;
  return updated(context, subject, resource, await ask(context, ref, request, options), options);
}
