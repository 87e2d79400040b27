/** Which problems can pass by themselves, which wait for somebody, and which only a change of the Release can mend. */

import type { Reason } from '../../constructs/api/reasons/reason.ts';
import { findReason } from '../../constructs/api/reasons.ts';
import type { Problem } from '../../constructs/lib/problems.ts';

export type Retry = Reason['retry'];

/** How one problem is to be met; the table of reasons decides. */
export const retryOf = (reason: string): Retry => findReason(reason)?.retry ?? 'retry';

/**
 * How a set of problems is to be met. One terminal problem makes all of them so, unless the API server gave no answer to
 * something: then the set is not known to be whole. Only waits together are a wait.
 */
export function retryOfAll(problems: readonly Problem[]): Retry {
  const kinds = new Set(problems.map(({ reason }) => retryOf(reason)));
  if (problems.some(({ reason }) => reason === 'ApiUnavailable')) return 'retry';
  if (kinds.has('terminal')) return 'terminal';
  return kinds.has('retry') ? 'retry' : 'wait';
}
