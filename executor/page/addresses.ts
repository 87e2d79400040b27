/** The address ledger as the page shows it: in numbers, and what somebody has to look at. Pure. */
import { addressPhases, claimPhases } from '../../constructs/api/ledger-words.ts';
import type { ClassSummary, LedgerSummary } from '../addressbook/summary.ts';
import type { FamilyUsage } from '../addressbook/usage.ts';
import {
  type AddressClassView,
  type AddressesView,
  type AddressUsageView,
  type CountView,
  pageLimits,
} from './model.ts';
import { short } from './words.ts';

const countsOf = <Phase extends string>(
  phases: readonly Phase[],
  counts: Readonly<Record<Phase, number>>,
): readonly CountView[] => phases.map((word) => ({ word, count: counts[word] }));

/** Taken is whatever nobody else can get: what claims have, and what is released, held back or not settled. */
function usageView({ family, size, counts, free }: FamilyUsage): AddressUsageView {
  const open = free + BigInt(counts.ready);
  const taken = size - open;
  const permille = size === 0n ? 0 : Number((taken * 1000n) / size);
  return { family, taken: `${taken}`, size: `${size}`, percent: permille / 10 };
}

const classView = ({ name, provisioner, addresses, claims, families, outside }: ClassSummary): AddressClassView => ({
  name,
  provisioner,
  addresses: countsOf(addressPhases, addresses),
  claims: countsOf(claimPhases, claims),
  usage: families.map(usageView),
  outside,
});

/** Classes with trouble come first where not all are shown. */
export function addressesView({ classes, troubles }: LedgerSummary): AddressesView {
  const bad = ({ addresses, claims }: ClassSummary): number =>
    addresses.Conflict + addresses.Lost + claims.Lost > 0 ? 0 : 1;
  const shown = (
    classes.length > pageLimits.addressClasses ? classes.toSorted((a, b) => bad(a) - bad(b)) : classes
  ).slice(0, pageLimits.addressClasses);
  const told = troubles.slice(0, pageLimits.addressTroubles);
  return {
    classes: shown.map(classView),
    classesMore: classes.length - shown.length,
    troubles: told.map(({ phase, object, what }) => ({ mark: 'broken', word: phase, object, what: short(what) })),
    troublesMore: troubles.length - told.length,
  };
}
