/** Keeps the position in a one-way span durable: it is stored with the ledger before what it stands for begins. */
import { timeText } from '../../constructs/api/conditions.ts';
import type { PayloadContent } from '../../constructs/api/payload.ts';
import type { SpanPosition } from '../../constructs/api/span.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { LedgerStore } from '../apply/ledger-store.ts';
import { entering, leaving, type Transition, turned } from './spans.ts';

/** What a pass does at a border of a phase. `stop`: it ends here, since something else is wanted outside the span. */
export type SpanStep =
  | { readonly type: 'go' }
  | { readonly type: 'stop' }
  | { readonly type: 'failed'; readonly problems: readonly Problem[] };

export interface SpanKeeperOptions {
  readonly ledger: LedgerStore;
  readonly content: Pick<PayloadContent, 'spans' | 'phases'>;
  readonly transition: Transition;
  /**
   * False when the payload is not, or no longer, what is wanted, or a pause waits: then no span is begun, and a pass ends
   * where it leaves one.
   */
  readonly wanted: boolean;
  readonly clock: Clock;
  /** Called before every write. @throws when this process may not write any more. */
  readonly check: () => void;
  /** Told of every change of the position. */
  readonly onSpan: (position: SpanPosition | undefined) => void;
  readonly signal: AbortSignal;
}

const go: SpanStep = { type: 'go' };
const stop: SpanStep = { type: 'stop' };

export class SpanKeeper {
  readonly #options: SpanKeeperOptions;

  constructor(options: SpanKeeperOptions) {
    this.#options = options;
    const { ledger, transition } = options;
    // Written with the ledger, which is always stored before the first write of a pass.
    if (ledger.span === undefined) return;
    ledger.span = turned(ledger.span, transition.digest);
    options.onSpan(ledger.span);
  }

  /** Before the writes of a phase; `writes` tells whether there are any. */
  async before(phase: string, writes: boolean): Promise<SpanStep> {
    const { ledger, content, transition, wanted, clock } = this.#options;
    if (!writes) return go;
    const next = entering(ledger.span, content, phase, transition, timeText(clock.now()));
    if (next === undefined) return go;
    if (!wanted) return stop;
    const former = ledger.span;
    ledger.span = next;
    try {
      return await this.#store(go);
    } catch (error) {
      // Cut off before anything of the span was written: it was not entered, and the next flush says so.
      ledger.span = former;
      throw error;
    }
  }

  /** After the gates of a phase have opened. */
  async after(phase: string): Promise<SpanStep> {
    const { ledger, transition, wanted } = this.#options;
    if (!leaving(ledger.span, transition.digest, phase)) return go;
    ledger.span = undefined;
    return this.#store(wanted ? go : stop);
  }

  /** After the last phase: a payload that is in place whole is inside no span, which ends a rollback as well. */
  async completed(): Promise<readonly Problem[]> {
    const { ledger } = this.#options;
    if (ledger.span === undefined) return [];
    ledger.span = undefined;
    const stored = await this.#store(go);
    return stored.type === 'failed' ? stored.problems : [];
  }

  async #store(then: SpanStep): Promise<SpanStep> {
    const { ledger, check, onSpan, signal } = this.#options;
    check();
    const problem = await ledger.flush(signal);
    if (problem !== undefined) return { type: 'failed', problems: [problem] };
    onSpan(ledger.span);
    return then;
  }
}
