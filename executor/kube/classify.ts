/** From an HTTP answer to a typed refusal. Pure; the texts it makes are fit for status, Events and logs. */
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { redact } from '../../constructs/lib/redact.ts';
import { type Answer, isTransient, isTypedPatchFailure, type NoAnswer, retryAfterMs } from './call.ts';
import type { ApplyConflict, Cause, ConflictManager, Gone, Rejection, Subject } from './outcome.ts';

/** A `Status` of the API server, or what little a plain-text answer says. */
export interface ServerStatus {
  readonly reason: string;
  readonly message: string;
  readonly kind: string;
  readonly name: string;
  readonly causes: readonly { readonly reason: string; readonly field: string; readonly message: string }[];
  readonly retryAfterSeconds?: number;
  /** False for an answer that is no Status, such as the plain 404 of a path that nobody serves. */
  readonly structured: boolean;
}

const longestMessage = 2000;

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** Reads a JSON object, or undefined for anything else. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function parseStatus(text: string): ServerStatus {
  const status = parseObject(text);
  if (status?.kind !== 'Status')
    return { reason: '', message: text.slice(0, 200).trim(), kind: '', name: '', causes: [], structured: false };
  const details = isObject(status.details) ? status.details : {};
  const causes = Array.isArray(details.causes) ? details.causes.filter(isObject) : [];
  return {
    reason: textOf(status.reason),
    message: textOf(status.message),
    kind: textOf(details.kind),
    name: textOf(details.name),
    causes: causes.map((cause) => ({
      reason: textOf(cause.reason),
      field: textOf(cause.field),
      message: textOf(cause.message),
    })),
    ...(typeof details.retryAfterSeconds === 'number' ? { retryAfterSeconds: details.retryAfterSeconds } : {}),
    structured: true,
  };
}

/** True when texts about this object may quote its data: they are then replaced by the reason alone. */
function isSecret(subject: Subject): boolean {
  return subject.ref?.kind === 'Secret';
}

/** What may be told of a server's message. */
export function tell(subject: Subject, status: ServerStatus, code: number): string {
  const head = `${subject.what}: ${code}`;
  if (isSecret(subject)) return `${head} ${status.reason || 'refused'} (details withheld: the object is a Secret)`;
  const text = redact(`${head} ${status.message || status.reason || 'no message'}`);
  return text.length > longestMessage ? `${text.slice(0, longestMessage)}…` : text;
}

function causesOf(subject: Subject, status: ServerStatus): Cause[] {
  return status.causes.map(({ field, reason, message }) => ({
    field,
    reason,
    message: isSecret(subject) ? '' : redact(message).slice(0, longestMessage),
  }));
}

/** `.data.foo: field not declared in schema` names its field only inside the message. */
function undeclaredFields(subject: Subject, status: ServerStatus): Cause[] {
  const found = [
    ...status.message.matchAll(
      /(\.[^\s:,;]+): (field not declared in schema|expected [a-z ]+|duplicate entries[^;]*)/g,
    ),
  ];
  return found.map(([, field = '', message = '']) => ({
    field,
    reason: message.startsWith('field not declared') ? 'FieldNotDeclared' : 'TypedPatch',
    message: isSecret(subject) ? '' : message,
  }));
}

/** `strict decoding error: unknown field "spec.foo", duplicate field "x"`. */
function strictFields(status: ServerStatus): Cause[] {
  const found = [...status.message.matchAll(/(unknown|duplicate) field "([^"]+)"/g)];
  return found.map(([, why = '', field = '']) => ({
    field,
    reason: why === 'unknown' ? 'FieldUnknown' : 'FieldDuplicate',
    message: `${why} field`,
  }));
}

function unavailable(message: string, happened: boolean, retryAfter?: number): Rejection {
  return {
    type: 'unavailable',
    message,
    mayHaveHappened: happened,
    ...(retryAfter === undefined ? {} : { retryAfterMs: retryAfter }),
  };
}

/** A call that got no answer at all. */
export function unanswered(subject: Subject, none: NoAnswer): Rejection {
  return unavailable(redact(`${subject.what}: ${none.message}`), none.mayHaveHappened);
}

/** True when a 404 says that the namespace is missing, not the object. */
function isNamespaceMissing(subject: Subject, status: ServerStatus): boolean {
  const namespace = subject.ref?.namespace;
  return namespace !== undefined && status.kind === 'namespaces' && status.name === namespace;
}

/**
 * The refusal behind an answer that is no success. 404 of an object, 409 and 410 mean something else to each verb and are
 * sorted out there; what is left of them here is unexpected and reads `invalid` with the server's words.
 */
export function classify(subject: Subject, answer: Answer, now: number): Rejection {
  const status = parseStatus(answer.text);
  const code = answer.status;
  const message = tell(subject, status, code);
  if (code === 401) return { type: 'unauthorized', message };
  if (code === 404 && isNamespaceMissing(subject, status))
    return { type: 'namespaceMissing', namespace: subject.ref?.namespace ?? '', terminating: false, message };
  // A namespace that is being deleted answers 403 with this cause; it will be absent soon.
  if (code === 403 && status.causes.some(({ reason }) => reason === 'NamespaceTerminating'))
    return { type: 'namespaceMissing', namespace: subject.ref?.namespace ?? '', terminating: true, message };
  if (code === 403) return { type: 'forbidden', message };
  if (isTransient(code, answer.text)) {
    const wanted =
      retryAfterMs(answer.headers, now) ??
      (status.retryAfterSeconds === undefined ? undefined : status.retryAfterSeconds * 1000);
    return unavailable(message, answer.retried || code === 500 || code === 504, wanted);
  }
  if (isTypedPatchFailure(answer.text)) return { type: 'invalid', message, causes: undeclaredFields(subject, status) };
  const causes = causesOf(subject, status);
  return { type: 'invalid', message, causes: causes.length > 0 ? causes : strictFields(status) };
}

const conflictWith = /^conflict with "((?:[^"\\]|\\.)*)"(.*)$/s;

/** Manager, operation and subresource from `conflict with "kubectl" with subresource "scale" using apps/v1 at …`. */
function managerOf(message: string): { manager: string; operation?: 'Apply' | 'Update'; subresource?: string } {
  const [, quoted = '', rest = ''] = conflictWith.exec(message) ?? [];
  const manager = quoted.replaceAll(/\\(.)/g, '$1');
  const subresource = /with subresource "([^"]+)"/.exec(rest)?.[1];
  // The server adds " using <version>" exactly when the other entry is an Update.
  const operation = / using /.test(rest) ? 'Update' : 'Apply';
  return { manager, ...(manager === '' ? {} : { operation }), ...(subresource === undefined ? {} : { subresource }) };
}

/** Who holds what, from the causes of an apply conflict; undefined when the 409 is another one. */
export function applyConflict(subject: Subject, answer: Answer): ApplyConflict | undefined {
  const status = parseStatus(answer.text);
  const causes = status.causes.filter(({ reason }) => reason === 'FieldManagerConflict');
  if (answer.status !== 409 || causes.length === 0) return undefined;
  const byManager = new Map<string, ConflictManager & { fields: string[] }>();
  for (const cause of causes) {
    const who = managerOf(cause.message);
    const key = JSON.stringify(who);
    const known = byManager.get(key) ?? { ...who, fields: [] };
    known.fields.push(cause.field);
    byManager.set(key, known);
  }
  return { type: 'conflict', managers: [...byManager.values()], message: tell(subject, status, 409) };
}

/**
 * Whether the UID of the precondition no longer names the object: 409 when nothing of that name exists (an apply with a
 * UID never creates), 422 on `metadata.uid` when another object took the name.
 */
export function goneByUid(subject: Subject, answer: Answer): Gone | undefined {
  const status = parseStatus(answer.text);
  if (answer.status === 409 && /uid mismatch/i.test(status.message))
    return { type: 'gone', why: 'deleted', message: tell(subject, status, 409) };
  const replaced = answer.status === 422 && status.causes.some(({ field }) => field === 'metadata.uid');
  return replaced ? { type: 'gone', why: 'replaced', message: tell(subject, status, 422) } : undefined;
}

/** Texts of `Warning` headers (RFC 9111 warn-values, joined by commas). */
export function warningsOf(headers: Readonly<Record<string, string>>): string[] {
  if (headers.warning === undefined) return [];
  const found = [...headers.warning.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)];
  return found.map(([, text = '']) => redact(text.replaceAll(/\\(.)/g, '$1')));
}
