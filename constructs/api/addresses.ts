import type { IPAddress } from '../lib/ip.ts';

/** Names of the address ledger. They are those of its API, which is older than Keelson: objects in clusters carry them. */

export const addressesGroup = 'local.sdn.cozystack.io';
export const addressesApiVersion = 'local.sdn.cozystack.io/v1alpha1';

export const addressAnnotations = {
  /** On a class, `"true"`: claims that name no class get this one. */
  defaultClass: `ipaddressclass.${addressesGroup}/is-default-class`,
  /** On a claim: the provisioner that serves it. */
  provisioner: `${addressesGroup}/provisioner`,
  /** On a Service: the claim, in its own namespace, whose addresses it takes. */
  claim: `${addressesGroup}/ip-address-claim`,
  /** On an address, `"true"`: it is not given back to its class when its delay is over. */
  held: `ipaddress.${addressesGroup}/held`,
  /** On a claim, `"true"`: a lost address may be replaced by another one. */
  replaceLost: `ipaddressclaim.${addressesGroup}/replace-lost`,
} as const;

export const addressFinalizers = {
  claim: `${addressesGroup}/claim-protection`,
  address: `${addressesGroup}/address-protection`,
  class: `${addressesGroup}/class-protection`,
} as const;

/** Leases of the workers of role `addresses`: those of the controllers before them, so that both never work at once. */
export const addressLeases = { core: 'a4cfeeab.sdn.cozystack.io', driver: 'e1633266.iad.cozystack.io' } as const;

/**
 * How its process uses memory: a large ledger fits into a small pod when the young generation is small, at the cost of a fifth more
 * CPU while it lists. The old generation leaves the pod room for everything else.
 */
export const addressesNodeOptions = '--max-old-space-size=160 --max-semi-space-size=1';

/** The release of the ledger, and of its domain the only one. */
export const addressesRelease = 'addresses';

/** ConfigMap of that release, beside the placeholders: the networks of each class, one a line, under the name of the class. */
export const addressRanges = 'keelson-address-ranges';

/** The name that an IPAddress has by convention: `ip-203-0-113-7`, `ip-2001-db8--7`, `ip-2001-db8--0` for 2001:db8::. */
export function addressName({ text }: IPAddress): string {
  const words = text.replaceAll(/[.:]/g, '-');
  // A name ends in a letter or a digit; no other address is written with this zero.
  return `ip-${words}${words.endsWith('-') ? '0' : ''}`;
}
