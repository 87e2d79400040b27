/** How an object leaves the ledger: after its removal, or after a read that shows it gone. */

import { capMessage, timeText } from '../../constructs/api/conditions.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, type KubeObject, type ObjectMeta, type ObjectRef, uidOf } from '../kube/types.ts';
import { definitionGone } from './definition.ts';
import type { PassContext, StepGuard } from './engine.ts';
import { claimant } from './need.ts';
import { removeObject } from './remove.ts';

interface Listed {
  readonly id: string;
  readonly ref: ObjectRef;
  readonly uid: string;
  readonly keeps?: (metadata: ObjectMeta) => boolean;
}

/**
 * Removes one object and forgets it; one that says of itself that it stays is forgotten alone. Answers the problem that keeps
 * it; the ledger remembers a refusal.
 */
export async function removeListed(
  context: PassContext,
  { id, ref, uid, keeps }: Listed,
  guard: StepGuard,
): Promise<Problem | undefined> {
  const { input, client, clock, options, counts } = context;
  const outcome = await removeObject(ref, uid, {
    client,
    clock,
    signal: guard.signal,
    check: guard.check,
    release: input.release,
    goneMs: options.goneMs,
    ...(keeps === undefined ? {} : { keeps }),
  });
  if (outcome.type === 'failed' && outcome.denied) remember(context, id, outcome.problem);
  if (outcome.type === 'terminating' || outcome.type === 'failed') return outcome.problem;
  if (outcome.type === 'held')
    return { reason: 'ObjectHeld', message: `it is held: ${outcome.by}`, object: describeRef(ref) };
  input.ledger.remove(id);
  if (outcome.type === 'gone') {
    counts.pruned += 1;
    context.pruned.push(id);
  }
  return undefined;
}

/** A removal that was refused stays in the ledger with its reason and the number of tries. */
function remember({ input, clock }: PassContext, id: string, problem: Problem): void {
  const entry = input.ledger.ledger.get(id);
  if (entry === undefined) return;
  const { attempts = 0, since = timeText(clock.now()) } = entry.refused ?? {};
  const message = capMessage(problem.message, 512);
  input.ledger.put({ ...entry, refused: { reason: problem.reason, message, attempts: attempts + 1, since } });
}

/** What a read finds of an id that the listing did not show. */
export type Still =
  /** It has left the ledger: it is gone, or its name means something that is not ours. */
  | { readonly type: 'forgotten' }
  /** Under the ledger's UID: it only lost its label. */
  | { readonly type: 'ours'; readonly object: KubeObject }
  | { readonly type: 'unknown'; readonly problem: Problem };

/** An id whose object the listing did not show leaves the ledger after a read has confirmed it. */
export async function confirmGone(
  { input, client }: PassContext,
  { id, ref, uid }: { readonly id: string; readonly ref: ObjectRef; readonly uid: string | undefined },
  signal: AbortSignal,
): Promise<Still> {
  const live = await client.get(ref, { signal });
  switch (live.type) {
    case 'found': {
      const elsewhere = claimant(live.object.metadata, input.release);
      if (uidOf(live.object) === uid && elsewhere === undefined) return { type: 'ours', object: live.object };
      break;
    }
    case 'absent':
    case 'namespaceMissing':
      break;
    case 'kindAbsent': {
      const problem = await definitionGone(client, groupOf(ref.apiVersion), ref.kind, signal);
      if (problem !== undefined) return { type: 'unknown', problem };
      break;
    }
    default:
      return {
        type: 'unknown',
        problem: {
          reason: live.type === 'forbidden' ? 'Forbidden' : 'ApiUnavailable',
          message: live.message,
          object: describeRef(ref),
        },
      };
  }
  input.ledger.remove(id);
  return { type: 'forgotten' };
}
