/** What stands on a node before anything is installed there. It reads, and changes nothing: no port is opened, no module loaded. */
import type { Clock } from '../../constructs/lib/clock.ts';
import { collector } from '../daemons/look.ts';
import type { Collectors } from '../server/collector.ts';
import { cniFiles } from './cni.ts';
import { databaseRoot } from './database.ts';
import { kernelFacts } from './kernel.ts';
import { portsInUse } from './ports.ts';

export interface HostOptions {
  readonly clock: Clock;
  /** Milliseconds for one component. */
  readonly limitMs: number;
  /** Below which the top folders of the host are mounted. */
  readonly root: string;
  readonly procDirectory: string;
  /** Paths as the host names them. */
  readonly database: string;
  readonly cni: string;
  /** TCP ports that have to be free. */
  readonly ports: readonly number[];
}

export const hostCollectors = (options: HostOptions): Collectors<'host'> => ({
  database: collector(options, () => databaseRoot(options.root, options.database)),
  ports: collector(options, () => portsInUse(options.procDirectory, options.ports)),
  cni: collector(options, () => cniFiles(options.root, options.cni)),
  kernel: collector(options, () => kernelFacts(options.procDirectory)),
});
