import type { Clock } from '../../constructs/lib/clock.ts';

/** Where the daemons of a node are, and how long they may take. */
export interface ChassisOptions {
  readonly clock: Clock;
  /** Where Open vSwitch's sockets are, such as `/var/run/openvswitch`. */
  readonly switchDirectory: string;
  /** Where ovn-controller's socket is, such as `/var/run/ovn`. */
  readonly controllerDirectory: string;
  /** The integration bridge. */
  readonly bridge: string;
  /** Milliseconds for one component. */
  readonly limitMs: number;
  readonly procDirectory?: string;
}
