/** What the OVN runtime image is made of; whoever builds the image adds the libraries that the programs need. */
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { goProgram } from '../../images/goProgram.ts';
import type { LayerEntry } from '../../images/layer.ts';

const folder = new URL('runtime/', import.meta.url).pathname;
const podNetworkSources = new URL('cni', import.meta.url).pathname;

/** Debian packages that hold the daemons, their tools and schemas. */
export const runtimePackages = ['openvswitch-switch', 'ovn-central', 'ovn-host'] as const;

/** Programs that the scripts and the chart's probes and init containers call, by name. */
export const runtimePrograms = [
  ...['ovsdb-server', 'ovsdb-tool', 'ovsdb-client', 'ovs-vswitchd', 'ovs-vsctl', 'ovs-appctl', 'ovs-ofctl'],
  ...['ovn-northd', 'ovn-controller', 'ovn-nbctl', 'ovn-sbctl', 'ovn-appctl'],
  ...[
    'bash',
    'cat',
    'chmod',
    'chown',
    'cp',
    'cut',
    'date',
    'env',
    'grep',
    'head',
    'ls',
    'mkdir',
    'mknod',
    'mktemp',
    'mv',
  ],
  ...['rm', 'sed', 'sha256sum', 'sleep', 'sort', 'stat', 'tail', 'timeout', 'touch', 'tr', 'curl', 'ip'],
  ...['ethtool', 'iptables', 'iptables-restore', 'nsenter'],
] as const;

/** The program that makes pods ports of OVN: CNI plugin, agent of a node, writer of load balancers. */
export const podNetworkProgram = (cache: string): Promise<string> => goProgram(podNetworkSources, cache, 'podnetwork');

/** The entry scripts and the program they start, as the image carries them in `/kube-ovn/`. */
export async function runtimeScripts(cache: string): Promise<LayerEntry[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sh')).sort();
  const files = [...names.map((name) => join(folder, name)), await podNetworkProgram(cache)];
  return files.map((source) => ({ type: 'file', path: `kube-ovn/${basename(source)}`, mode: 0o755, source }));
}
