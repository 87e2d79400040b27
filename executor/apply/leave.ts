/** How an object leaves the ledger: after its removal, or after a read that shows it gone. */
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, type ObjectRef } from '../kube/types.ts';
import type { PassContext, StepGuard } from './engine.ts';
import { removeObject } from './remove.ts';

/** Removes one object and forgets it. Answers the problem that keeps it. */
export async function removeListed(
  { input, client, clock, options, counts }: PassContext,
  { id, ref, uid }: { readonly id: string; readonly ref: ObjectRef; readonly uid: string },
  guard: StepGuard,
): Promise<Problem | undefined> {
  const outcome = await removeObject(ref, uid, {
    client,
    clock,
    signal: guard.signal,
    check: guard.check,
    release: input.release,
    goneMs: options.goneMs,
  });
  if (outcome.type === 'terminating' || outcome.type === 'failed') return outcome.problem;
  if (outcome.type === 'held')
    return { reason: 'ObjectHeld', message: `it is held: ${outcome.by}`, object: describeRef(ref) };
  input.ledger.remove(id);
  counts.pruned += outcome.type === 'gone' ? 1 : 0;
  return undefined;
}

/**
 * An id whose object the listing did not show leaves the ledger after a read has confirmed it. One that lost its label
 * is still ours by its UID, and is looked at again in the next pass.
 */
export async function confirmGone(
  { input, client }: PassContext,
  { id, ref, uid }: { readonly id: string; readonly ref: ObjectRef; readonly uid: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const live = await client.get(ref, { signal });
  const gone = live.type === 'absent' || live.type === 'kindAbsent' || live.type === 'namespaceMissing';
  if (gone || (live.type === 'found' && live.object.metadata.uid !== uid)) input.ledger.remove(id);
}
