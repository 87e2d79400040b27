/** Who else waits for an address that is about to change hands. Pure. */
import { poolName } from '../../../constructs/api/metallb.ts';
import { type AddressView, type ClaimView, claimKey } from '../objects.ts';
import { addressesWith, isLeaving, isUser, userText } from './facts.ts';
import { unfitness } from './fitness.ts';
import type { MetallbLedger } from './ledger.ts';
import { type ServiceView, serviceKey } from './views.ts';

export interface Rival {
  readonly user: string;
  readonly address: string;
  /** Nothing tells when who waits for anything of a pool has got it: it is looked at again. */
  readonly againMs?: number;
}

const lookAgainMs = 30_000;

/** The addresses that the claim shows, each of which has to name that very claim. */
export function shownBy(claim: ClaimView, addresses: readonly AddressView[]): AddressView[] | undefined {
  const shown = claim.addresses.map(({ name }) => addresses.find((one) => one.name === name));
  const known = shown.filter((one) => one !== undefined && one.ip !== undefined && !isLeaving(one));
  return known.length === shown.length && known.length > 0 ? (known as AddressView[]) : undefined;
}

/**
 * Somebody else who asks for an address that is about to change hands: MetalLB looks at who waits when the hold goes, and that
 * is before the pin is written. It may be asked by a pin, by `spec.loadBalancerIP`, or for whatever a pool has. Others that name
 * the claim wait for their turn like this one.
 */
export function rivalFor(
  ledger: MetallbLedger,
  service: ServiceView,
  wanted: readonly AddressView[],
): Rival | undefined {
  for (const { ip, associatedTo, className } of wanted) {
    const isHandedOver = ip !== undefined && !service.ingress.includes(ip.text);
    if (!isHandedOver || (associatedTo !== undefined && claimKey(associatedTo) === serviceKey(service))) continue;
    const named = ledger.asking(ip.text).find((one) => isRival(ledger, service, one));
    if (named !== undefined) return { user: userText(named), address: ip.text };
    const any = ledger
      .asking(`pool ${poolName(className)}`)
      .find((one) => isRival(ledger, service, one) && one.families.includes(ip.family) && !awaitsOwn(ledger, one));
    if (any !== undefined) return { user: userText(any), address: ip.text, againMs: lookAgainMs };
  }
  return undefined;
}

const isRival = ({ settings }: MetallbLedger, service: ServiceView, other: ServiceView): boolean =>
  other.placeholder === undefined &&
  !other.deleting &&
  other.claim !== service.claim &&
  other.type === 'LoadBalancer' &&
  other.lbClass === (settings.lbClass ?? '');

/** Who is about to be pinned to what its own claim has; two of that kind do not wait for each other. */
function awaitsOwn(ledger: MetallbLedger, other: ServiceView): boolean {
  const claim = other.claim === undefined ? undefined : ledger.claim(other.claim);
  if (claim?.phase !== 'Bound' || claim.deleting) return false;
  const own = shownBy(claim, addressesWith(ledger, claim));
  if (own === undefined || unfitness(ledger, other, own) !== undefined) return false;
  return own.every((one) => one.associatedTo === undefined || isUser(one, other));
}
