import { z } from 'zod';
import { dnsLabel, dnsName, ipText, objectUID, text } from '../fields.ts';
import { milliseconds } from './fields.ts';
import { addressFamilies, networkTargets } from './words.ts';

/** What a probe pod sees of the network that it is part of. */

const check = z.object({
  target: z.enum(networkTargets),
  family: z.enum(addressFamilies),
  address: ipText(),
  port: z.int().min(1).max(65_535),
  /** `wrongPeer`: somebody answered, and it was not the server that was meant. */
  outcome: z.enum(['ok', 'timeout', 'refused', 'wrongPeer', 'wrongAddress', 'failed']),
  /** Who answered. */
  answered: z.object({ namespace: dnsLabel(), podUID: objectUID(), node: dnsName() }).optional(),
  /** What the name resolved to. */
  resolved: z.array(ipText()).max(16).optional(),
  message: text(512).optional(),
  elapsedMs: milliseconds(),
});
export type NetworkCheck = z.output<typeof check>;

/** Facts by component; each of them is here or among the problems. */
export const networkFacts = z.object({
  /** Addresses of the pod that asks, as it sees them itself. */
  addresses: z.array(ipText()).max(8).optional(),
  checks: z.array(check).max(64).optional(),
});
