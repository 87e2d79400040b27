/** Names of MetalLB, and those that the driver for it writes. Objects in clusters carry them. */

export const metallbApiVersion = 'metallb.io/v1beta1';

/** The driver, as classes name it in `spec.provisioner`. */
export const metallbProvisioner = 'metallb.drivers.local.sdn.cozystack.io';

/** On a Service: the addresses that it wants, separated by commas. MetalLB still reads the older of the two. */
export const metallbPins = ['metallb.io/loadBalancerIPs', 'metallb.universe.tf/loadBalancerIPs'] as const;

/** On Services of one address: they share it. */
export const metallbSharing = ['metallb.io/allow-shared-ip', 'metallb.universe.tf/allow-shared-ip'] as const;

/** On a Service: the pin is the driver's own, and goes when the Service gives the claim up. */
export const driverPinned = `${metallbProvisioner}/pinned`;

/** Labels of Services that hold an address in MetalLB for nobody: that they are such, and the IPAddress. */
export const placeholderLabels = {
  placeholder: `${metallbProvisioner}/placeholder`,
  address: `${metallbProvisioner}/ip-address`,
} as const;

/** Name of the pool, and of its advertisement, that the driver makes of a class. */
export const driverPool = (className: string): string => `iad-${className}`;
