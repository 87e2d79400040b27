/** What the core does about a class: it stays as long as an address of it exists. */
import { addressFinalizers } from '../../../constructs/api/addresses.ts';
import { reasonMessage } from '../../../constructs/api/reasons.ts';
import type { Ledger } from '../ledger.ts';
import { type LedgerPlan, nothing } from '../plan.ts';

/** So many addresses are named; of the others the number is told. */
const named = 10;

/** One pass over a class, given by name. */
export function planClass(ledger: Ledger, name: string): LedgerPlan {
  const found = ledger.class(name);
  if (found === undefined) return nothing;
  const { finalizers } = found;
  const protectedNow = finalizers.includes(addressFinalizers.class);
  if (!found.deleting) {
    if (protectedNow) return nothing;
    const patch = { finalizers: [...finalizers, addressFinalizers.class] };
    return { actions: [{ type: 'patch', target: found, patch }], warnings: [] };
  }
  if (!protectedNow) return nothing;
  const names = ledger.addressesOfClass(name).map((address) => address.name);
  if (names.length === 0) {
    const patch = { finalizers: finalizers.filter((one) => one !== addressFinalizers.class) };
    const confirm = [{ type: 'noAddressOfClass', className: name }] as const;
    return { actions: [{ type: 'patch', target: found, patch, confirm }], warnings: [] };
  }
  const more = names.length > named ? ` and ${names.length - named} more` : '';
  const note = reasonMessage('ClassInUse', { addresses: `${names.slice(0, named).join(', ')}${more}` });
  return { actions: [], warnings: [{ about: found, type: 'Warning', reason: 'ClassInUse', note }] };
}
