/** Names of the driver, and of what it makes. Objects in clusters carry them. */

import { addressName } from '../../../constructs/api/addresses.ts';
import { metallbProvisioner } from '../../../constructs/api/metallb.ts';
import { sha256Hex } from '../../../constructs/lib/digest.ts';
import type { IPAddress, IPFamily } from '../../../constructs/lib/ip.ts';
import { boundedName, isDns1123Label } from '../../../constructs/lib/names.ts';

/** How MetalLB is installed, and how the driver is to work with it. */
export interface MetallbSettings {
  /** Where MetalLB looks for pools. */
  readonly metallbNamespace: string;
  /** Where placeholders are; closed to everybody else. */
  readonly placeholderNamespace: string;
  /** `--lb-class` of MetalLB; absent: it serves Services without a class. */
  readonly lbClass?: string;
  /** Whether an address is taken off a Service that keeps it against its annotations. */
  readonly forcedRelease: 'never' | 'deleted' | 'always';
}

export const metallbVersion = 'metallb.io/v1beta1';

export const driverFinalizer = `${metallbProvisioner}/teardown`;

export const placeholderLabels = {
  /** IPAddress that a placeholder is for; its hash where the name is no label. */
  address: `${metallbProvisioner}/ip-address`,
} as const;

export const placeholderAnnotations = {
  claimNamespace: `${metallbProvisioner}/claim-namespace`,
  claimName: `${metallbProvisioner}/claim-name`,
  /** Name of the IPAddress, where it is no label. */
  address: `${metallbProvisioner}/ip-address`,
  /** When MetalLB was last asked to look again at a placeholder that waits, and how often before. */
  asked: `${metallbProvisioner}/asked`,
  pool: 'metallb.io/address-pool',
} as const;

/** On a Service, `"true"`: its pool is the driver's, and takes its addresses away from it. */
export const releasing = `${metallbProvisioner}/releasing`;
/** A pool that there never is: no class has an empty name. */
export const noPool = 'iad-';

export const pins = { own: 'metallb.io/loadBalancerIPs', old: 'metallb.universe.tf/loadBalancerIPs' } as const;
export const pools = { own: 'metallb.io/address-pool', old: 'metallb.universe.tf/address-pool' } as const;

const versionOf = { IPv4: 'v4', IPv6: 'v6' } as const;

/** Name of the placeholder that asks for an address; later ones where an earlier one is kept for another address. */
export const allocationName = (claimUid: string, family: IPFamily, nth: number): string =>
  `iad-${claimUid}-${versionOf[family]}${nth === 1 ? '' : `-${nth}`}`;

/** A name as a Service takes it: shortened by its hash where it is too long, or has dots. */
function serviceName(name: string): string {
  const whole = `iad-${name}`;
  if (isDns1123Label(whole)) return whole;
  return `${whole.replaceAll('.', '-').slice(0, 52).replace(/-+$/, '')}-${sha256Hex(name).slice(0, 10)}`;
}

/** Name of the placeholder that holds an address. */
export const holdName = (address: string): string => serviceName(address);

/** Value of the label that names an IPAddress. */
export const addressLabel = (name: string): string =>
  name.length <= 63 && !name.endsWith('.') ? name : boundedName([name]);

/** Name of a new IPAddress: by convention, or with a hash where another address has that name. */
export function newAddressName(ip: IPAddress, isTaken: (name: string) => boolean): string {
  const name = addressName(ip);
  return isTaken(name) ? `${name}-${sha256Hex(ip.text).slice(0, 6)}` : name;
}
