import type { Clock } from '../../constructs/lib/clock.ts';
import type { Result } from '../jsonrpc/fault.ts';
import type { Collector } from '../server/collector.ts';

/** What one look at a component may take, and when it is given up. */
export interface Look {
  readonly clock: Clock;
  /** Milliseconds for each connection and each answer; the component's own limit stands above. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** The part of a component's limit that one answer may take: less than the whole, so that the fault names who hung. */
const answerShare = 0.8;

/** A collector that looks by `ask`. */
export function collector<F>(
  { clock, limitMs }: { readonly clock: Clock; readonly limitMs: number },
  ask: (look: Look) => Promise<Result<F>>,
): Collector<F> {
  return { limitMs, collect: (signal) => ask({ clock, limitMs: Math.floor(limitMs * answerShare), signal }) };
}
