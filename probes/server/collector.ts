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
 * `question` is the body of the request: absent for whoever looks at what is beside it, and needs not be told where.
 */
export interface Collector<F> {
  readonly limitMs: number;
  readonly collect: (signal: AbortSignal, question?: string) => Promise<Result<F>>;
}

/** A collector for every component of a kind. */
export type Collectors<K extends EvidenceKind> = { readonly [C in ComponentOf<K>]: Collector<ComponentFacts<K, C>> };
