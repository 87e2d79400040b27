/** Words of evidence that a probe needs as well. They stand apart from the schemas: a sidecar has no memory for those. */

export const evidenceSchema = 'keelson.dev/evidence/v1';

export const evidenceKinds = ['central', 'chassis', 'network', 'drain', 'host'] as const;
export type EvidenceKind = (typeof evidenceKinds)[number];

/** Components of each kind, in the order in which people read them. */
export const evidenceComponents = {
  central: ['nb', 'sb', 'northd', 'progress'],
  chassis: ['ovsdb', 'controller', 'vswitchd'],
  network: ['addresses', 'checks'],
  drain: ['chassis', 'gateways', 'ports'],
  host: ['database', 'ports', 'cni', 'kernel'],
} as const satisfies Readonly<Record<EvidenceKind, readonly string[]>>;
export type ComponentOf<K extends EvidenceKind> = (typeof evidenceComponents)[K][number];

/**
 * Why a component could not be looked at. `timeout`: it does not answer. `refused`: nobody listens. `protocol`: it
 * answers what can not be read. `denied`: the probe may not ask. `tooLarge`: the answer is over a limit.
 */
export const problemCodes = ['timeout', 'refused', 'protocol', 'denied', 'tooLarge'] as const;
export type ProblemCode = (typeof problemCodes)[number];

/** What a network probe asks: servers by their own addresses, and the Service before them by its address and by its name. */
export const networkTargets = ['sameNode', 'nextNode', 'service', 'name'] as const;
export type NetworkTarget = (typeof networkTargets)[number];

export const addressFamilies = ['IPv4', 'IPv6'] as const;
export type AddressFamily = (typeof addressFamilies)[number];

/** What a nonce looks like: 16 to 32 random bytes. */
export const noncePattern = /^[0-9a-f]{32,64}$/;

export const evidencePath = '/v1/evidence';
