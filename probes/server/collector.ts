import type { ComponentOf, EvidenceKind } from '../../constructs/api/evidence/words.ts';
import type { FactsOf } from '../../constructs/api/evidence.ts';
import type { Result } from '../jsonrpc/fault.ts';

/** The facts of one component. */
export type ComponentFacts<K extends EvidenceKind, C extends ComponentOf<K>> = C extends keyof FactsOf<K>
  ? NonNullable<FactsOf<K>[C]>
  : never;

/**
 * Looks at one component, anew for every request. `collect` answers within `limitMs`, and gives up everything it holds
 * when the signal aborts; one that does not is told of as hung all the same, and not asked again before it is back.
 */
export interface Collector<F> {
  readonly limitMs: number;
  readonly collect: (signal: AbortSignal) => Promise<Result<F>>;
}

/** A collector for every component of a kind. */
export type Collectors<K extends EvidenceKind> = { readonly [C in ComponentOf<K>]: Collector<ComponentFacts<K, C>> };
