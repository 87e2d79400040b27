import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { mustRun, runCommand } from './run.ts';
import type { ClusterState, NodeRecord } from './state.ts';

/** IPv4 destinations of the host's routes. A default route does not count. */
export async function hostRoutes(): Promise<string[]> {
  const routes = JSON.parse(await mustRun(['ip', '-4', '-json', 'route', 'show', 'table', 'all'])) as { dst: string }[];
  return routes.map((route) => route.dst).filter((dst) => dst !== 'default');
}

/** Creates the bridge with the host's address on it. */
export async function createBridge(bridge: ClusterState['bridge']): Promise<void> {
  await mustRun(['ip', 'link', 'add', bridge.name, 'type', 'bridge']);
  await mustRun(['ip', 'address', 'add', `${bridge.address}/${bridge.prefixLength}`, 'dev', bridge.name]);
  await mustRun(['ip', 'link', 'set', bridge.name, 'up']);
}

/** Settings inside a node's network namespace; they die with it. */
const nodeSysctls: Readonly<Record<string, string>> = {
  'net/ipv4/ip_forward': '1',
  'net/ipv4/conf/all/rp_filter': '0',
  'net/ipv4/conf/default/rp_filter': '0',
  // A pod that answers another pod of its node behind a Service must pass the address translation on the way back.
  'net/bridge/bridge-nf-call-iptables': '1',
};

/**
 * Creates one node's network namespace, held by a file below the cluster's directory, and joins it to the bridge.
 * `others` are the nodes whose pods it needs routes to.
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
  const { bridge } = state;
  await mustRun(['ip', 'link', 'add', node.link, 'type', 'veth', 'peer', 'name', `${node.link}p`]);
  await mustRun(['ip', 'link', 'set', node.link, 'master', bridge.name, 'up']);
  await mustRun(['ip', 'link', 'set', `${node.link}p`, 'netns', node.netns]);
  const commands = [
    'link set lo up',
    `link set ${node.link}p name eth0`,
    `address add ${node.address}/${bridge.prefixLength} dev eth0`,
    'link set eth0 up',
    `route add default via ${bridge.address}`,
    ...others.map((other) => `route add ${other.podCIDR} via ${other.address}`),
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
