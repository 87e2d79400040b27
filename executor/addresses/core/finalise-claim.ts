/** What the core does about a claim that is being deleted: every address of it is released, or goes along. */
import { addressFinalizers } from '../../../constructs/api/addresses.ts';
import { reasonMessage } from '../../../constructs/api/reasons.ts';
import type { Ledger } from '../ledger.ts';
import type { AddressView, ClaimView } from '../objects.ts';
import { type LedgerAction, type LedgerEvent, type LedgerPlan, nothing } from '../plan.ts';
import { acceptance, isReleased } from './accept.ts';
import { goesAlong, releasedStatus } from './release.ts';

export function finaliseClaim(ledger: Ledger, claim: ClaimView, now: number): LedgerPlan {
  if (!claim.finalizers.includes(addressFinalizers.claim)) return nothing;
  const { accepted } = acceptance(ledger, claim);
  const finalizers = claim.finalizers.filter((one) => one !== addressFinalizers.claim);
  return {
    actions: [
      ...accepted.filter(({ deleting }) => !deleting).flatMap((address) => reclaim(ledger, claim, address, now)),
      { type: 'patch', target: claim, patch: { finalizers } },
    ],
    warnings: [],
  };
}

/** The policy is that of the address; what the class says by now is for later addresses. */
function reclaim(ledger: Ledger, claim: ClaimView, address: AddressView, now: number): LedgerAction[] {
  const told = (why: string): LedgerEvent[] => [
    { about: claim, type: 'Normal', reason: why, note: reasonMessage(why, { address: address.name }) },
  ];
  // What the claim has shown, somebody may have written down elsewhere, however fresh the address itself looks.
  const shown = claim.addresses.some(({ name }) => name === address.name);
  if (shown ? address.reclaimPolicy === 'Delete' : goesAlong(ledger, address))
    return [{ type: 'delete', target: address, events: told('AddressDeleted') }];
  const release: LedgerAction[] = isReleased(address)
    ? []
    : [{ type: 'status', target: address, status: releasedStatus(address, now), events: told('AddressReleased') }];
  // Without a UID a later claim of this name would take it for its own.
  const fill: LedgerAction[] =
    address.claimRef?.uid === '' ? [{ type: 'patch', target: address, patch: { claimRef: { uid: claim.uid } } }] : [];
  return [...fill, ...release];
}
