/** What can come back from the API server, as closed unions: no caller ever looks at a status code. */
import type { KubeObject, ObjectRef } from './types.ts';

/** One cause that the server names in a Status: which field, why. `message` is empty where it could carry secret data. */
export interface Cause {
  readonly field: string;
  readonly reason: string;
  readonly message: string;
}

/** A field manager that holds fields which an apply wanted to change. */
export interface ConflictManager {
  readonly manager: string;
  readonly operation?: 'Apply' | 'Update';
  readonly subresource?: string;
  readonly fields: readonly string[];
}

/** The request is wrong and stays wrong until its input changes: never retried. */
export interface Invalid {
  readonly type: 'invalid';
  readonly message: string;
  readonly causes: readonly Cause[];
}

/** Access is denied. Retried slowly by callers, since a grant may follow. */
export interface Forbidden {
  readonly type: 'forbidden';
  readonly message: string;
}

/** The credentials were refused, also after they had been read again. */
export interface Unauthorized {
  readonly type: 'unauthorized';
  readonly message: string;
}

/** The object's namespace does not exist, or takes nothing new since it is being deleted. */
export interface NamespaceMissing {
  readonly type: 'namespaceMissing';
  readonly namespace: string;
  readonly terminating: boolean;
  readonly message: string;
}

/** The API server answers, and serves no such kind; confirmed by discovery that was read for this answer. */
export interface KindAbsent {
  readonly type: 'kindAbsent';
  readonly apiVersion: string;
  readonly kind: string;
  readonly message: string;
}

/**
 * No answer that means anything: network, time-out, 429, 5xx. Attempts are already spent. `mayHaveHappened` is true when
 * an attempt may have had its effect while the reply was lost.
 */
export interface Unavailable {
  readonly type: 'unavailable';
  readonly message: string;
  readonly mayHaveHappened: boolean;
  readonly retryAfterMs?: number;
}

/** Refusals that every verb knows. */
export type Rejection = Invalid | Forbidden | Unauthorized | NamespaceMissing | KindAbsent | Unavailable;

/** Parts of every answer that carries an object. `retried`: an earlier attempt of this call was sent and got no reply. */
export interface Written {
  readonly object: KubeObject;
  readonly warnings: readonly string[];
  readonly retried: boolean;
}

/** Other field managers hold what this apply wants to set; nothing was written. */
export interface ApplyConflict {
  readonly type: 'conflict';
  readonly managers: readonly ConflictManager[];
  readonly message: string;
}

/** The object with the UID of the precondition exists no more: `deleted`, or `replaced` by another under its name. */
export interface Gone {
  readonly type: 'gone';
  readonly why: 'deleted' | 'replaced';
  readonly message: string;
}

/** The resourceVersion of the precondition is not the live one; nothing was written. */
export interface Stale {
  readonly type: 'stale';
  readonly message: string;
}

/**
 * Outcome of a server-side apply. `unchanged` is only told when the caller passed the live object to compare with; without
 * it an apply onto an existing object reads `configured`.
 */
export type ApplyOutcome =
  | ({ readonly type: 'created' } & Written)
  | ({ readonly type: 'configured' } & Written)
  | ({ readonly type: 'unchanged' } & Written)
  | ApplyConflict
  | Gone
  | Stale
  | Rejection;

export type GetOutcome =
  | { readonly type: 'found'; readonly object: KubeObject }
  | { readonly type: 'absent' }
  | Rejection;

/** `expired`: the server gave up a paged list half way (410) and did so again on a second try. */
export type ListOutcome =
  | { readonly type: 'listed'; readonly items: readonly KubeObject[]; readonly resourceVersion: string }
  | { readonly type: 'expired'; readonly message: string }
  | Rejection;

export type UpdateOutcome = ({ readonly type: 'updated' } & Written) | Stale | { readonly type: 'absent' } | Rejection;

export type CreateOutcome =
  | ({ readonly type: 'created' } & Written)
  | { readonly type: 'exists'; readonly retried: boolean }
  | Rejection;

/**
 * `deleted`: it is gone. `terminating`: finalizers or dependents hold it. `preconditionFailed`: the name now means another
 * object, or (with a resourceVersion) it changed meanwhile; nothing was deleted.
 */
export type DeleteOutcome =
  | { readonly type: 'deleted' }
  | { readonly type: 'terminating'; readonly finalizers: readonly string[] }
  | { readonly type: 'absent' }
  | { readonly type: 'preconditionFailed'; readonly message: string }
  | Rejection;

/** A GET of a path that is no object (`/version`, `/openapi/v3`, `/readyz`). */
export type PathOutcome =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'absent' }
  | Exclude<Rejection, KindAbsent | NamespaceMissing>;

/** True for the refusals that every verb knows. */
export function isRejection<T extends { readonly type: string }>(outcome: T | Rejection): outcome is Rejection {
  return ['invalid', 'forbidden', 'unauthorized', 'namespaceMissing', 'kindAbsent', 'unavailable'].includes(
    outcome.type,
  );
}

/** What a request is about, for messages and for the decision whether its texts may be told. */
export interface Subject {
  readonly ref?: ObjectRef;
  /** Words for messages: `apply of ConfigMap demo/a`. */
  readonly what: string;
}
