/** The verbs of the edge, and only these: what is not here cannot be sent. */
import type { BackoffPolicy } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { AttemptInfo, Caller, CallOptions } from './call.ts';
import { Discovery, type ResourceOutcome } from './discovery.ts';
import { defaultLimits, Limiter, type LimiterOptions } from './limiter.ts';
import type {
  ApplyOutcome,
  CreateOutcome,
  DeleteOutcome,
  GetOutcome,
  ListOutcome,
  PathOutcome,
  UpdateOutcome,
} from './outcome.ts';
import type { Transport } from './transport.ts';
import type { KindRef, KubeObject, ManagedFieldsEntry, ObjectRef } from './types.ts';
import { type ApplyOptions, apply } from './verbs/apply.ts';
import { type Creatable, create } from './verbs/create.ts';
import { type DeleteOptions, remove } from './verbs/delete.ts';
import { get, getPath } from './verbs/get.ts';
import { type ListOptions, list, type Selection } from './verbs/list.ts';
import { type MergePatch, mergeShared, type SharedRef } from './verbs/merge.ts';
import { type Preview, preview } from './verbs/preview.ts';
import { type LeaseObject, mergeStatus, putLease, replaceManagedFields, type StatusPatch } from './verbs/update.ts';
import { type WatchOptions, type WatchStart, watch } from './verbs/watch.ts';

/** Options of writes that name who writes. */
export type ManagedCallOptions = CallOptions & { readonly fieldManager: string };

/**
 * A raw client: JSON in, JSON out, no models that drop fields. Outcomes are values; the only exceptions are the signal's
 * reason after an abort and programming errors.
 */
export interface KubeClient {
  /** How a kind is served; `kindAbsent` is never from memory. */
  resource(kind: KindRef, options?: CallOptions): Promise<ResourceOutcome>;
  /** Forgets what is known of an API version, or of all. */
  forget(apiVersion?: string): void;
  get(ref: ObjectRef, options?: CallOptions): Promise<GetOutcome>;
  getPath(path: string, options?: CallOptions): Promise<PathOutcome>;
  list(selection: Selection, options?: ListOptions): Promise<ListOutcome>;
  watch(selection: Selection, options: WatchOptions): Promise<WatchStart>;
  apply(object: KubeObject, options: ApplyOptions): Promise<ApplyOutcome>;
  mergeStatus(ref: ObjectRef, patch: StatusPatch, options: ManagedCallOptions): Promise<UpdateOutcome>;
  mergeShared(ref: SharedRef, patch: MergePatch, options: ManagedCallOptions): Promise<UpdateOutcome>;
  create(object: Creatable, options: ManagedCallOptions): Promise<CreateOutcome>;
  putLease(lease: LeaseObject, options: ManagedCallOptions): Promise<UpdateOutcome>;
  replaceManagedFields(
    ref: ObjectRef,
    patch: { readonly uid: string; readonly resourceVersion: string; readonly entries: readonly ManagedFieldsEntry[] },
    options?: CallOptions,
  ): Promise<UpdateOutcome>;
  /** Never stores anything. */
  preview(ref: ObjectRef, preview: Preview, options?: CallOptions): Promise<UpdateOutcome>;
  delete(ref: ObjectRef, options: DeleteOptions): Promise<DeleteOutcome>;
  /** How many requests may be, are, and wait to be under way. */
  load(): { readonly limit: number; readonly active: number; readonly waiting: number };
}

export interface ClientOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: LimiterOptions;
  readonly backoff?: BackoffPolicy;
  readonly maxRetryAfterMs?: number;
  readonly onAttempt?: (attempt: AttemptInfo) => void;
}

const defaultBackoff: BackoffPolicy = { initialMs: 200, factor: 2, maxMs: 5_000, jitter: 0.2 };

/** A client over a transport. It holds no sockets and no timers of its own. */
export function createClient(options: ClientOptions): KubeClient {
  const limiter = new Limiter(options.clock, options.limits ?? defaultLimits);
  const caller: Caller = {
    transport: options.transport,
    limiter,
    clock: options.clock,
    random: options.random,
    backoff: options.backoff ?? defaultBackoff,
    maxRetryAfterMs: options.maxRetryAfterMs ?? 30_000,
    ...(options.onAttempt === undefined ? {} : { onAttempt: options.onAttempt }),
  };
  const context = { caller, discovery: new Discovery(caller) };
  return {
    resource: (kind, call) => context.discovery.resource(kind, call),
    forget: (apiVersion) => context.discovery.drop(apiVersion),
    get: (ref, call) => get(context, ref, call),
    getPath: (path, call) => getPath(context, path, call),
    list: (selection, call) => list(context, selection, call),
    watch: (selection, call) => watch(context, selection, call),
    apply: (object, call) => apply(context, object, call),
    mergeStatus: (ref, patch, call) => mergeStatus(context, ref, patch, call),
    mergeShared: (ref, patch, call) => mergeShared(context, ref, patch, call),
    create: (object, call) => create(context, object, call),
    putLease: (lease, call) => putLease(context, lease, call),
    replaceManagedFields: (ref, patch, call) => replaceManagedFields(context, ref, patch, call),
    preview: (ref, what, call) => preview(context, ref, what, call),
    delete: (ref, call) => remove(context, ref, call),
    load: () => ({ limit: limiter.limit, active: limiter.active, waiting: limiter.waiting }),
  };
}
