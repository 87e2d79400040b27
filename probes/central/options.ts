import type { Clock } from '../../constructs/lib/clock.ts';

/** Where the daemons of OVN central are, and how long they may take. */
export interface CentralOptions {
  readonly clock: Clock;
  /** Where their sockets are, such as `/var/run/ovn`. */
  readonly runDirectory: string;
  /** Where the files of the databases are, such as `/etc/ovn`. */
  readonly dataDirectory: string;
  /** Milliseconds for one component. */
  readonly limitMs: number;
  readonly procDirectory?: string;
}

export type DatabaseKey = 'nb' | 'sb';
export const databaseNames = { nb: 'OVN_Northbound', sb: 'OVN_Southbound' } as const;
