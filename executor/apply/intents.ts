/** The ledger entries that must be stored before the first write of a pass. Pure. */
import type { Ledger, LedgerEntry } from '../../constructs/api/ledger.ts';
import type { Adoption } from './adopt-judge.ts';
import type { Judged } from './dryrun.ts';
import type { Item } from './items.ts';
import type { Need } from './need.ts';

export interface IntentInput {
  readonly payload: string;
  readonly items: readonly Item[];
  readonly needs: ReadonlyMap<string, Need>;
  readonly judged: ReadonlyMap<string, Judged>;
  /** What is to be adopted. */
  readonly adoptions?: ReadonlyMap<string, Pick<Adoption, 'uid'>>;
  readonly ledger: Ledger;
}

/** The ledger entry of an item. Its members stand in the order in which they are stored, which makes storing them cheap. */
export const entryOf = (
  item: Item,
  payload: string,
  state: LedgerEntry['state'],
  uid: string | undefined,
): LedgerEntry => ({
  id: item.id,
  ...(item.entry.keep ? { keep: true } : {}),
  payload,
  phase: item.phase,
  sha256: item.entry.sha256,
  state,
  ...(uid === undefined ? {} : { uid }),
});

function written(item: Item, input: IntentInput): LedgerEntry | undefined {
  const judged = input.judged.get(item.id);
  if (judged === undefined) return undefined;
  const { verdict } = judged;
  if (verdict.verdict === 'leave') return entryOf(item, input.payload, 'unmanaged', verdict.uid);
  return entryOf(item, input.payload, 'intended', verdict.verdict === 'new' ? undefined : verdict.uid);
}

function entryFor(item: Item, need: Need, input: IntentInput): LedgerEntry | undefined {
  const known = input.ledger.get(item.id);
  const adoption = input.adoptions?.get(item.id);
  if (adoption !== undefined) return entryOf(item, input.payload, 'adopting', adoption.uid);
  switch (need.need) {
    case 'write':
      return written(item, input);
    case 'none':
      // A create-only object keeps the digest under which it was created.
      return known === undefined
        ? undefined
        : { ...entryOf(item, input.payload, known.state, known.uid), sha256: known.sha256 };
    case 'unmanaged':
      return entryOf(item, input.payload, 'unmanaged', known?.uid);
    case 'remove':
      return {
        ...entryOf(item, input.payload, 'pruning', need.uid),
        ...(known?.refused === undefined ? {} : { refused: known.refused }),
      };
    case 'adopt':
    case 'gone':
    case 'held':
    case 'terminating':
      return undefined;
  }
}

const same = (a: LedgerEntry | undefined, b: LedgerEntry): boolean =>
  a !== undefined &&
  a.uid === b.uid &&
  a.state === b.state &&
  a.sha256 === b.sha256 &&
  a.phase === b.phase &&
  a.payload === b.payload &&
  a.keep === b.keep;

/** Entries to be put, those that say nothing new left out. */
export function intents(input: IntentInput): LedgerEntry[] {
  const entries: LedgerEntry[] = [];
  for (const item of input.items) {
    const need = input.needs.get(item.id);
    const wanted = need === undefined ? undefined : entryFor(item, need, input);
    if (wanted !== undefined && !same(input.ledger.get(item.id), wanted)) entries.push(wanted);
  }
  return entries;
}
