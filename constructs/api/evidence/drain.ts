import { z } from 'zod';
import { requiredText, text } from '../fields.ts';
import { databaseUUID } from './fields.ts';

/** What on a node would be hurt by taking it away, as the network's databases tell it. */

const gateway = z.object({
  /** Logical router port, or group, that has this chassis as a gateway. */
  port: requiredText(256),
  priority: z.int().min(0).max(32_767),
  /** Whether traffic goes through this chassis now. */
  active: z.boolean(),
  /** Other chassis that could take over. */
  others: z.int().min(0).max(100_000),
});

/** Facts by component; each of them is here or among the problems. */
export const drainFacts = z.object({
  chassis: z.object({ systemID: requiredText(256), chassisUUID: databaseUUID().optional() }).optional(),
  gateways: z.object({ count: z.int().min(0).max(1_000_000), first: z.array(gateway).max(128) }).optional(),
  /** Logical ports whose traffic ends on this chassis; the first of them by name. */
  ports: z
    .object({
      count: z.int().min(0).max(1_000_000),
      first: z.array(z.object({ name: requiredText(256), type: text(64) })).max(256),
    })
    .optional(),
});
