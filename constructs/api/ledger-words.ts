/** Words of the address ledger. Apart from the kinds: who reads objects needs no schemas. */

export const addressPhases = ['Pending', 'Available', 'Bound', 'Released', 'Conflict', 'Lost'] as const;
export type AddressPhase = (typeof addressPhases)[number];

export const claimFamilies = ['IPv4', 'IPv6', 'Dual'] as const;
export type ClaimFamily = (typeof claimFamilies)[number];

export const claimPhases = ['Pending', 'Bound', 'Lost'] as const;
export type ClaimPhase = (typeof claimPhases)[number];
