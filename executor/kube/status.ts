/** The one way a status is written: compared first, guarded by version, tried again once, never too large. */
import {
  canonicalJson,
  deepEqual,
  isObject,
  type JsonObject,
  type JsonValue,
  wellFormed,
} from '../../constructs/lib/json.ts';
import type { CallOptions } from './call.ts';
import type { KubeClient } from './client.ts';
import type { Rejection } from './outcome.ts';
import { describeRef, type KubeObject, refOf, resourceVersionOf, uidOf } from './types.ts';

export const largestStatusBytes = 32 * 1024;

/** `gone`: the object was deleted, or another one has its name. `lost`: someone else wrote twice meanwhile; come again. */
export type StatusOutcome =
  | { readonly type: 'written'; readonly status: JsonObject; readonly object: KubeObject }
  | { readonly type: 'unchanged'; readonly status: JsonObject; readonly object: KubeObject }
  | { readonly type: 'gone'; readonly message: string }
  | { readonly type: 'lost'; readonly message: string }
  | { readonly type: 'tooLarge'; readonly bytes: number; readonly limit: number; readonly message: string }
  | Rejection;

export interface StatusOptions extends CallOptions {
  readonly fieldManager: string;
}

/**
 * The merge patch (RFC 7396) that turns `from` into `to`: members that are gone become null, arrays are replaced whole.
 * Undefined when both are the same. Members that are null in `to` count as absent.
 */
export function mergePatch(from: JsonObject, to: JsonObject): JsonObject | undefined {
  const patch: JsonObject = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const member = patchOf(from[key], to[key]);
    if (member !== undefined) patch[key] = member;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function patchOf(from: JsonValue | undefined, to: JsonValue | undefined): JsonValue | undefined {
  if ((to ?? null) === null) return (from ?? null) === null ? undefined : null;
  if (isObject(from) && isObject(to)) return mergePatch(from, to);
  return deepEqual(from, to) ? undefined : to;
}

/**
 * Writes the status that `build` makes of the live object. Nothing is sent when it says the same as the live one; on a
 * version conflict the object is read again, its UID checked, and `build` asked once more.
 */
export async function writeStatus(
  client: KubeClient,
  live: KubeObject,
  build: (live: KubeObject) => JsonObject,
  options: StatusOptions,
): Promise<StatusOutcome> {
  const first = await attempt(client, live, build, options);
  if (first.type !== 'lost') return first;
  const ref = refOf(live);
  const again = await client.get(ref, options);
  if (again.type === 'absent')
    return { type: 'gone', message: `status of ${describeRef(ref)}: the object was deleted` };
  if (again.type !== 'found') return again;
  if (uidOf(again.object) !== uidOf(live))
    return {
      type: 'gone',
      message: `status of ${describeRef(ref)}: another object has its name now (UID ${uidOf(again.object)})`,
    };
  return attempt(client, again.object, build, options);
}

async function attempt(
  client: KubeClient,
  live: KubeObject,
  build: (live: KubeObject) => JsonObject,
  options: StatusOptions,
): Promise<StatusOutcome> {
  const ref = refOf(live);
  // Messages repeat what anybody said. Half of a character in one of them must not keep the others from being told.
  const status = wellFormed(build(live));
  const bytes = Buffer.byteLength(canonicalJson(status));
  if (bytes > largestStatusBytes) {
    const message = `status of ${describeRef(ref)}: ${bytes} bytes, more than ${largestStatusBytes}; it was not written`;
    return { type: 'tooLarge', bytes, limit: largestStatusBytes, message };
  }
  const patch = mergePatch(live.status ?? {}, status);
  if (patch === undefined) return { type: 'unchanged', status, object: live };
  const outcome = await client.mergeStatus(ref, { resourceVersion: resourceVersionOf(live), status: patch }, options);
  if (outcome.type === 'updated')
    return { type: 'written', status: outcome.object.status ?? {}, object: outcome.object };
  if (outcome.type === 'stale') return { type: 'lost', message: outcome.message };
  if (outcome.type === 'absent')
    return { type: 'gone', message: `status of ${describeRef(ref)}: the object was deleted` };
  return outcome;
}
