import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { isDns1123Label } from '../../constructs/lib/names.ts';
import { withLock } from '../tools/lock.ts';
import { freePlan } from './addresses.ts';
import { createBridges, hostRoutes } from './network.ts';
import { freePorts } from './ports.ts';
import { identify } from './processes.ts';
import { type ClusterState, type NodeRecord, StateFile } from './state.ts';
import type { ClusterOptions } from './types.ts';

/** The name a cluster gets when none is given. */
export const defaultName = 'local';

/** What is wrong with the options, as one message per problem. */
export function optionProblems(options: Pick<ClusterOptions, 'name' | 'nodes'>): string[] {
  const { name = defaultName, nodes = 3 } = options;
  const problems: string[] = [];
  if (!isDns1123Label(name) || name.length > 40) {
    problems.push(`name ${JSON.stringify(name)}: give a DNS label of at most 40 characters`);
  }
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > 9) problems.push(`nodes ${nodes}: give a number from 1 to 9`);
  return problems;
}

/**
 * Chooses names, ranges and ports that nothing else on this machine uses, writes the state file and creates the bridges,
 * which reserves the ranges; one process of the machine at a time does so.
 */
export function reserveCluster(options: ClusterOptions, clock: Clock): Promise<StateFile> {
  const name = options.name ?? defaultName;
  return withLock('cluster-addresses', options.signal === undefined ? {} : { signal: options.signal }, async () => {
    const plan = freePlan(await hostRoutes());
    const id = randomBytes(3).toString('hex');
    const directory = join(options.directory, name);
    const owner = identify(process.pid);
    if (owner === undefined) throw new Error('this process is not in /proc');
    const nodes = Array.from({ length: options.nodes ?? 3 }, (_, index): NodeRecord => {
      const nodeName = `node-${index + 1}`;
      return {
        name: nodeName,
        ...plan.node(index + 1),
        link: `ks${id}n${index + 1}`,
        tunnelLink: `ks${id}t${index + 1}`,
        directory: join(directory, 'nodes', nodeName),
        netns: join(directory, 'nodes', `${nodeName}.netns`),
      };
    });
    const bridge = { name: `ks${id}br`, address: plan.bridgeAddress, prefixLength: plan.prefixLength };
    const state: ClusterState = {
      formatVersion: 2,
      name,
      id,
      directory,
      startedAt: new Date(clock.now()).toISOString(),
      owner,
      phase: 'starting',
      cni: options.cni ?? 'none',
      bridge,
      tunnelBridge: `ks${id}tb`,
      podCIDR: plan.podCIDR,
      serviceCIDR: plan.serviceCIDR,
      cgroup: `keelson-${id}`,
      ports: { apiServer: 0, etcd: 0, registry: 0, dns: 0 },
      nodes,
      processes: [],
    };
    const file = new StateFile(state);
    await createBridges(state);
    const [apiServer = 0, etcd = 0, registry = 0, dns = 0] = await freePorts(bridge.address, 4);
    file.update({ ports: { apiServer, etcd, registry, dns } });
    return file;
  });
}
