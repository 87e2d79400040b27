import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { removeCgroup } from './cgroups.ts';
import { mountsBelow } from './mounts.ts';
import { deleteLink } from './network.ts';
import { bootName, killNode } from './nodeBoot.ts';
import { isAlive, killAll, type ProcessId, processesWithEnvironment } from './processes.ts';
import { mustRun } from './run.ts';
import { type ClusterState, clusterVariable, readState } from './state.ts';

/**
 * Removes everything that exists because of the cluster in `directory`, from its state file alone: it works after any
 * end of the process that started it, and again after an end of its own. Does nothing where there is no cluster.
 * @throws Error when something can not be removed; then the state file stays, and a second call goes on.
 */
export async function destroyCluster(directory: string, clock: Clock): Promise<void> {
  const state = readState(directory);
  if (state === undefined) return;
  await killProcesses(state, clock);
  await removeCgroup(state.cgroup, clock);
  for (const node of state.nodes) for (const link of [node.link, node.tunnelLink]) await deleteLink(link);
  for (const bridge of [state.bridge.name, state.tunnelBridge]) await deleteLink(bridge);
  for (const mount of mountsBelow(directory)) await mustRun(['umount', mount]);
  // Deleting through a mount would delete what is mounted.
  const left = mountsBelow(directory);
  if (left.length > 0) throw new Error(`still mounted below ${directory}: ${left.join(', ')}`);
  for (const part of ['nodes', 'etcd', 'registry', 'logs', 'pki'])
    rmSync(join(directory, part), { recursive: true, force: true });
  rmSync(directory, { recursive: true, force: true });
  if (existsSync(directory)) throw new Error(`${directory} could not be removed`);
}

/**
 * Nodes first: with a node's first process go its pods, kubelet, containerd and shims, all at once. Then the recorded
 * daemons, then whatever carries the cluster's id, which finds those whose start was cut short before it was recorded.
 */
async function killProcesses(state: ClusterState, clock: Clock): Promise<void> {
  const recorded = new Map(state.processes.map((entry) => [entry.name, entry.process]));
  await Promise.all(
    state.nodes.map((node) => {
      const outer = recorded.get(bootName(node));
      return outer === undefined ? undefined : killNode(outer, clock);
    }),
  );
  const daemons = [...recorded.values()].filter((id): id is ProcessId => id !== undefined && isAlive(id));
  await killAll(daemons, clock);
  await killAll(processesWithEnvironment(clusterVariable, state.id), clock);
}
