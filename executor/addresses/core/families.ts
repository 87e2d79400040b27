import type { ClaimFamily } from '../../../constructs/api/ledger-words.ts';
import type { IPFamily } from '../../../constructs/lib/ip.ts';
import type { AddressView, ClaimView } from '../objects.ts';

/** Families that a claim asks for, in the order in which they are served. */
export const requested = ({ family }: { readonly family: ClaimFamily }): readonly IPFamily[] =>
  family === 'Dual' ? ['IPv4', 'IPv6'] : [family];

/** Families of a claim for which it has no address, or only a lost one. */
export const missingFamilies = (claim: ClaimView, accepted: readonly AddressView[]): IPFamily[] =>
  requested(claim).filter((family) => !accepted.some(({ ip, phase }) => ip?.family === family && phase !== 'Lost'));
