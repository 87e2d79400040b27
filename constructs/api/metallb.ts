/** Names that MetalLB and the driver for it put on objects. They are older than Keelson: objects in clusters carry them. */

const driver = 'metallb.drivers.local.sdn.cozystack.io';

/** Provisioner of the classes that the driver serves. */
export const metallbProvisioner = driver;

export const metallbLabels = {
  /** On a Service in the namespace of placeholders, `"true"`: it holds an address, and serves nothing. */
  placeholder: `${driver}/placeholder`,
} as const;

export const metallbAnnotations = {
  /** On a Service, `"true"`: its pin is the driver's, and goes when the driver takes it off. */
  pinned: `${driver}/pinned`,
  /** On a Service: the addresses that MetalLB is to give it. */
  addresses: 'metallb.io/loadBalancerIPs',
} as const;

/** Annotations of a Service by which MetalLB chooses its addresses; the older ones are still read. */
export const metallbChoices: readonly string[] = ['metallb.io', 'metallb.universe.tf'].flatMap((prefix) =>
  ['address-pool', 'loadBalancerIPs', 'allow-shared-ip'].map((name) => `${prefix}/${name}`),
);

export const metallbGroup = 'metallb.io';

/** Kinds that the driver renders for a class, and their resources. */
export const metallbKinds = { IPAddressPool: 'ipaddresspools', L2Advertisement: 'l2advertisements' } as const;

/** Name of the pool of a class, and of its advertisement. */
export const poolName = (className: string): string => `iad-${className}`;
