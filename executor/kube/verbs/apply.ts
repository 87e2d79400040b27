import { deepEqual } from '../../../constructs/lib/json.ts';
import type { Answer, CallOptions } from '../call.ts';
import { applyConflict, goneByUid, parseStatus } from '../classify.ts';
import { objectPath } from '../discovery.ts';
import type { ApplyOutcome, Subject, Written } from '../outcome.ts';
import { type KubeObject, refOf, resourceVersionOf, serverFields } from '../types.ts';
import { ask, isResource, locate, refusal, subjectOf, type VerbContext, written } from './context.ts';

export interface ApplyOptions extends CallOptions {
  readonly fieldManager: string;
  /** Asks what would happen; nothing is stored. */
  readonly dryRun?: boolean;
  /** Asks for no more than metadata in the answer. */
  readonly metadataOnly?: boolean;
  /** Only an object with this UID is changed; none is created. */
  readonly uid?: string;
  /** Only in this version; another live version answers `stale`, and nothing is written. */
  readonly resourceVersion?: string;
  /** The live object as last seen: lets the outcome tell `unchanged` from `configured`. */
  readonly live?: KubeObject;
}

/** An aggregated API that can not answer with metadata alone answers with whole objects, which serve as well. */
const metadataAnswer = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json';

/** The body of an apply: the intent, without what the server fills in, with UID and version when these are preconditions. */
function applyBody(object: KubeObject, uid: string | undefined, resourceVersion?: string): string {
  const metadata = { ...object.metadata };
  for (const field of serverFields) delete metadata[field];
  if (uid !== undefined) metadata.uid = uid;
  if (resourceVersion !== undefined) metadata.resourceVersion = resourceVersion;
  return JSON.stringify({ ...object, metadata });
}

/**
 * Server-side apply. Fields that another manager holds stay untouched and come back as `conflict`: there is no way to
 * overwrite them from here. Fields that the kind does not declare are refused.
 */
export async function apply(context: VerbContext, object: KubeObject, options: ApplyOptions): Promise<ApplyOutcome> {
  const ref = refOf(object);
  const subject = subjectOf(options.dryRun === true ? 'dry run' : 'apply', ref);
  const resource = await locate(context, subject, ref, options);
  if (!isResource(resource)) return resource;
  const answer = await ask(
    context,
    ref,
    {
      method: 'PATCH',
      path: objectPath(resource, ref),
      query: {
        fieldManager: options.fieldManager,
        // An apply refuses undeclared fields whatever this says. `Strict` adds a second reading of the whole body, which
        // finds keys given twice; a body made by JSON.stringify has none.
        fieldValidation: 'Ignore',
        dryRun: options.dryRun === true ? 'All' : undefined,
      },
      headers: {
        'content-type': 'application/apply-patch+yaml',
        ...(options.metadataOnly === true ? { accept: metadataAnswer } : {}),
      },
      body: applyBody(object, options.uid, options.resourceVersion),
    },
    options,
  );
  if (answer.type === 'answer') {
    const known = interpret(subject, answer, options);
    if (known !== undefined) return known;
  }
  return refusal(context, subject, answer, options);
}

function interpret(subject: Subject, answer: Answer, options: ApplyOptions): ApplyOutcome | undefined {
  if (answer.status === 201) return { type: 'created', ...written(answer) };
  if (answer.status === 200) return compared(written(answer), options);
  const conflict = applyConflict(subject, answer);
  if (conflict !== undefined) return conflict;
  const gone = options.uid === undefined ? undefined : goneByUid(subject, answer);
  return gone ?? raced(subject, answer, options);
}

/** A stored no-op keeps the resourceVersion; a dry run always does, so there the contents decide. */
function compared(result: Written, { live, dryRun }: ApplyOptions): ApplyOutcome {
  const same =
    live !== undefined && (dryRun === true ? sameContent(live, result.object) : sameVersion(live, result.object));
  return { type: same ? 'unchanged' : 'configured', ...result };
}

function sameVersion(live: KubeObject, result: KubeObject): boolean {
  return live.metadata.uid === result.metadata.uid && resourceVersionOf(live) === resourceVersionOf(result);
}

function sameContent(live: KubeObject, result: KubeObject): boolean {
  return deepEqual(withoutBookkeeping(live), withoutBookkeeping(result));
}

function withoutBookkeeping(object: KubeObject): KubeObject {
  const { managedFields: _m, resourceVersion: _r, generation: _g, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/**
 * A 409 that names no manager: another write came between. Without a version as a precondition the server retried already, so
 * the caller is told to.
 */
function raced(subject: Subject, answer: Answer, { resourceVersion }: ApplyOptions): ApplyOutcome | undefined {
  if (answer.status !== 409) return undefined;
  const status = parseStatus(answer.text);
  if (status.reason !== 'Conflict' && status.reason !== 'AlreadyExists') return undefined;
  const message = `${subject.what}: 409 ${status.reason}: another write came between`;
  if (resourceVersion !== undefined && status.reason === 'Conflict') return { type: 'stale', message };
  return { type: 'unavailable', message, mayHaveHappened: answer.retried };
}
