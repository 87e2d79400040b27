import { type BackoffPolicy, backoff } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import { parseRetryAfter } from '../../constructs/lib/retryafter.ts';
import type { FileBody } from '../http/types.ts';
import { findBlob } from './findblob.ts';
import type { Descriptor } from './links.ts';
import { type Reference, referenceName } from './reference.ts';
import type { RegistrySession } from './session.ts';
import { failed, type RegistryFailure, type RegistryOutcome, type RegistryRefusal } from './types.ts';

/** How often, and how patiently, an upload begins again. */
export interface PushTimes {
  readonly clock: Clock;
  readonly random: Random;
  readonly retry: BackoffPolicy & { readonly attempts: number };
}

const uploadLimits = { totalMs: 2 * 3_600_000, idleMs: 180_000 };

type Attempt =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly outcome: RegistryRefusal; readonly again: boolean; readonly afterMs?: number };

/**
 * Sends a blob in one piece. What an interrupted upload left is never gone on with: a new one begins, and the registry
 * checks the digest before it keeps anything. The file was verified before.
 */
export async function pushBlob(
  session: RegistrySession,
  ref: Reference,
  blob: Descriptor,
  file: string,
  times: PushTimes,
  signal?: AbortSignal,
): Promise<RegistryOutcome<undefined>> {
  const { clock, random, retry } = times;
  for (let tried = 1; ; tried++) {
    const attempt = await sendOnce(session, ref, blob, file, clock, signal);
    if (attempt.kind === 'done') return { ok: true, value: undefined };
    if (!attempt.again || tried >= retry.attempts) return attempt.outcome;
    const wait = Math.max(backoff(retry, tried - 1, random), Math.min(attempt.afterMs ?? 0, retry.maxMs));
    await clock.sleep(wait, signal);
    // The answer may be what was lost, and not the upload.
    const there = await findBlob(session, ref, blob.digest, signal);
    if (there.ok && there.value) return { ok: true, value: undefined };
  }
}

const final: readonly RegistryFailure['kind'][] = ['denied', 'refused', 'notFound'];

const failure = (outcome: RegistryRefusal, afterMs?: number): Attempt => ({
  kind: 'failed',
  outcome,
  again: !final.includes(outcome.failure.kind),
  ...(afterMs === undefined ? {} : { afterMs }),
});

async function sendOnce(
  session: RegistrySession,
  ref: Reference,
  blob: Descriptor,
  file: string,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<Attempt> {
  const what = `${referenceName(ref)}@${blob.digest}`;
  const push = { actions: 'pull,push', signal } as const;
  // Trying again is done here, from the beginning, and nowhere below.
  const begun = await session.send(ref, { at: { path: 'blobs/uploads/' }, method: 'POST', retry: false, ...push });
  if (!begun.ok) return failure(begun);
  const location = begun.value.headers.get('location');
  if (begun.value.status !== 202)
    return failure(
      session.refusal(begun.value, what),
      parseRetryAfter(begun.value.headers.get('retry-after'), clock.now()),
    );
  if (location === undefined)
    return failure(failed('unavailable', `${what}: the registry named no place to send it to`));
  const url = new URL(location, `${session.baseUrl(ref.registry)}/`);
  url.searchParams.set('digest', blob.digest);
  const body: FileBody = { file, size: blob.size };
  const put = await session.send(ref, {
    at: { url: url.href },
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body,
    limits: uploadLimits,
    retry: false,
    ...push,
  });
  if (!put.ok) return failure(put);
  if (put.value.status === 201) return { kind: 'done' };
  const refusal = session.refusal(put.value, what);
  // A session that is gone, or bytes that arrived broken: the next upload may do.
  const outcome = refusal.failure.kind === 'notFound' ? failed('unavailable', refusal.failure.message) : refusal;
  return failure(outcome, parseRetryAfter(put.value.headers.get('retry-after'), clock.now()));
}
