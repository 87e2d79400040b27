import { z } from 'zod';
import { requiredText, text } from '../fields.ts';
import { decimal64 } from './fields.ts';

/** What stands on a node before anything is installed there. */

/** Facts by component; each of them is here or among the problems. */
export const hostFacts = z.object({
  /** Folder of the databases. One that is not empty holds somebody's data. */
  database: z
    .object({
      path: requiredText(4096),
      state: z.enum(['absent', 'empty', 'occupied']),
      entries: z.array(text(255)).max(64),
      freeBytes: decimal64(),
    })
    .optional(),
  /** TCP ports that were tried. */
  ports: z
    .array(z.object({ port: z.int().min(1).max(65_535), free: z.boolean() }))
    .max(64)
    .optional(),
  /** Configurations of the container network, in the order in which the runtime reads them. */
  cni: z.object({ path: requiredText(4096), files: z.array(text(255)).max(64) }).optional(),
  kernel: z.object({ release: requiredText(128), modules: z.array(text(64)).max(64), ipv6: z.boolean() }).optional(),
});
