import { z } from 'zod';
import { ipText, requiredText, text } from '../fields.ts';
import { daemonIdentity, databaseUUID } from './fields.ts';

/** What the sidecar beside Open vSwitch and ovn-controller sees on its node. */

/** From the node's own database. */
const ovsdb = z.object({
  /** Name of the chassis. */
  systemID: requiredText(256),
  /** `_uuid` of the row that describes this Open vSwitch. */
  chassisUUID: databaseUUID().optional(),
  /** Where ovn-controller is told to find SB; several by commas. */
  remote: text(1024),
  encaps: z.array(z.object({ type: requiredText(32), ip: ipText() })).max(16),
  /** Whether ovn-controller waits for a northd of its own version. */
  matchNorthdVersion: z.boolean(),
  hostname: text(253).optional(),
  version: text(128).optional(),
  daemon: daemonIdentity(),
});

const controller = z.object({
  /** Whether it is connected to SB. */
  connected: z.boolean(),
  paused: z.boolean().optional(),
  version: text(128).optional(),
  /** Whether it has stopped because northd is of another version; absent where that can not be told from here. */
  frozenByNorthdMatch: z.boolean().optional(),
  daemon: daemonIdentity(),
});

const vswitchd = z.object({
  bridge: z.object({
    name: requiredText(64),
    /** Whether the running ovs-vswitchd has it, whatever the database says. */
    inVswitchd: z.boolean(),
    datapath: text(64).optional(),
  }),
  version: text(128).optional(),
  daemon: daemonIdentity(),
});

/** Facts by component; each of them is here or among the problems. */
export const chassisFacts = z.object({
  ovsdb: ovsdb.optional(),
  controller: controller.optional(),
  vswitchd: vswitchd.optional(),
});
export type ChassisFacts = z.output<typeof chassisFacts>;
