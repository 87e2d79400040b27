/** Whether a peer that says nothing is still there: one echo after the interval, and as long again for any word of it. */

export interface Silence {
  readonly nowMs: number;
  /** When the last byte came. */
  readonly heardAtMs: number;
  /** When an echo was sent that nothing has come since. */
  readonly probedAtMs?: number | undefined;
  readonly intervalMs: number;
}

export type Probing =
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'probe' }
  | { readonly type: 'gone'; readonly silentMs: number };

export function probing({ nowMs, heardAtMs, probedAtMs, intervalMs }: Silence): Probing {
  const asked = probedAtMs !== undefined && probedAtMs >= heardAtMs;
  const due = (asked ? probedAtMs : heardAtMs) + intervalMs;
  if (nowMs < due) return { type: 'wait', ms: due - nowMs };
  return asked ? { type: 'gone', silentMs: nowMs - heardAtMs } : { type: 'probe' };
}
