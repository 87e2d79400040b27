/** When a released address can be claimed again. */
import type { AddressView, ClassView } from '../addresses/objects.ts';
import { workloadOf } from './book.ts';

/** `leftMs` is what is left of the delay of the class, 0 when it is over. */
export type AddressReturn =
  /** It is not Released. */
  | { readonly type: 'none' }
  /** Its class gives nothing back by itself. */
  | { readonly type: 'byHand' }
  | { readonly type: 'counting'; readonly leftMs: number }
  /** A person holds it back; time goes on all the same. */
  | { readonly type: 'held'; readonly leftMs: number }
  /** A workload uses it still. */
  | { readonly type: 'inUse'; readonly leftMs: number };

/**
 * What stands between a released address and its return.
 * @param found its class; undefined when that is gone.
 * @param now milliseconds since 1970.
 */
export function returnOf(address: AddressView, found: ClassView | undefined, now: number): AddressReturn {
  const { phase, bound, held } = address;
  if (phase !== 'Released') return { type: 'none' };
  const since = Date.parse(bound?.lastTransitionTime ?? '');
  const delay = found?.releaseDelayMs;
  if (delay === undefined || Number.isNaN(since)) return { type: 'byHand' };
  const leftMs = Math.max(0, since + delay - now);
  if (held) return { type: 'held', leftMs };
  return { type: workloadOf(address) === undefined ? 'counting' : 'inUse', leftMs };
}
