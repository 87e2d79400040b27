import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { mustRun, runCommand } from './run.ts';
import type { ClusterState, NodeRecord } from './state.ts';

/** IPv4 destinations of the host's routes. A default route does not count. */
export async function hostRoutes(): Promise<string[]> {
  const routes = JSON.parse(await mustRun(['ip', '-4', '-json', 'route', 'show', 'table', 'all'])) as { dst: string }[];
  return routes.map((route) => route.dst).filter((dst) => dst !== 'default');
}

/** Creates the bridge with the host's address on it, and the one for tunnels, where the host has none. */
export async function createBridges({ bridge, tunnelBridge }: ClusterState): Promise<void> {
  const commands = [
    `link add ${bridge.name} type bridge`,
    `address add ${bridge.address}/${bridge.prefixLength} dev ${bridge.name}`,
    `link add ${tunnelBridge} type bridge`,
    ...[bridge.name, tunnelBridge].map((name) => `link set ${name} up`),
  ];
  await mustRun(['ip', '-batch', '-'], { input: `${commands.join('\n')}\n` });
}

/** Settings inside a node's network namespace; they die with it. */
const nodeSysctls: Readonly<Record<string, string>> = {
  'net/ipv4/ip_forward': '1',
  'net/ipv4/conf/all/rp_filter': '0',
  'net/ipv4/conf/default/rp_filter': '0',
  // A pod that answers another pod of its node behind a Service must pass the address translation on the way back.
  'net/bridge/bridge-nf-call-iptables': '1',
};

/** The lowest preference: a pod network that has a better way to another node's pods adds its own. */
const fallbackMetric = 1000;

/**
 * Creates one node's network namespace, held by a file below the cluster's directory, and joins it to both bridges: by
 * eth0 as a node among nodes, by eth1 for a network that tunnels. Whoever takes eth1 into a switch of its own moves its
 * address there. `others` are the nodes whose pods it needs routes to.
 */
export async function createNodeNetwork(
  state: ClusterState,
  node: NodeRecord,
  others: readonly NodeRecord[],
): Promise<void> {
  mkdirSync(dirname(node.netns), { recursive: true });
  writeFileSync(node.netns, '');
  await mustRun(['unshare', `--net=${node.netns}`, 'true']);
  const inside = ['nsenter', `--net=${node.netns}`];
  const { bridge, tunnelBridge } = state;
  const cables = [
    [node.link, bridge.name],
    [node.tunnelLink, tunnelBridge],
  ].flatMap(([link, master]) => [
    `link add ${link} type veth peer name ${link}p`,
    `link set ${link} master ${master} up`,
    `link set ${link}p netns ${node.netns}`,
  ]);
  await mustRun(['ip', '-batch', '-'], { input: `${cables.join('\n')}\n` });
  const commands = [
    'link set lo up',
    `link set ${node.link}p name eth0`,
    `address add ${node.address}/${bridge.prefixLength} dev eth0`,
    'link set eth0 up',
    `link set ${node.tunnelLink}p name eth1`,
    `address add ${node.tunnelAddress}/${bridge.prefixLength} dev eth1`,
    'link set eth1 up',
    `route add default via ${bridge.address}`,
    ...others.map((other) => `route add ${other.podCIDR} via ${other.address} metric ${fallbackMetric}`),
  ];
  await mustRun([...inside, 'ip', '-batch', '-'], { input: `${commands.join('\n')}\n` });
  const writes = Object.entries(nodeSysctls).map(([key, value]) => `echo ${value} > /proc/sys/${key}`);
  await mustRun([...inside, 'sh', '-ec', writes.join('\n')]);
  await mustRun(['ip', 'route', 'add', node.podCIDR, 'via', node.address, 'dev', bridge.name]);
}

/** Deletes a link of the host if it exists; its routes go with it. */
export async function deleteLink(name: string): Promise<void> {
  const result = await runCommand(['ip', 'link', 'delete', name]);
  if (result.code !== 0 && !/Cannot find device/.test(result.stderr)) {
    throw new Error(`ip link delete ${name}: ${result.stderr.trim()}`);
  }
}
