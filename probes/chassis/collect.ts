/** What the sidecar beside Open vSwitch and ovn-controller answers: every component by itself, anew for every request. */
import { collector } from '../daemons/look.ts';
import type { Collectors } from '../server/collector.ts';
import { controllerFacts } from './controller.ts';
import { nodeDatabaseFacts } from './database.ts';
import type { ChassisOptions } from './options.ts';
import { switchFacts } from './switch.ts';

export const chassisCollectors = (options: ChassisOptions): Collectors<'chassis'> => ({
  ovsdb: collector(options, (look) => nodeDatabaseFacts(options, look)),
  controller: collector(options, (look) => controllerFacts(options, look)),
  vswitchd: collector(options, (look) => switchFacts(options, look)),
});
