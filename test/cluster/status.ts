import { formatDuration } from '../../constructs/lib/duration.ts';
import { adminKubeconfig } from './accounts.ts';
import { apiServerUrl } from './controlPlane.ts';
import { isAlive } from './processes.ts';
import { registryRef } from './registry.ts';
import type { ClusterState } from './state.ts';

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function daemonsOf(state: ClusterState, prefix: string): string {
  const daemons = state.processes.filter(({ name }) =>
    prefix === '' ? !name.includes('/') : name.startsWith(`${prefix}/`),
  );
  return daemons
    .map((entry) => {
      const name = entry.name.slice(prefix === '' ? 0 : prefix.length + 1);
      return entry.process !== undefined && isAlive(entry.process) ? name : `${name} (stopped)`;
    })
    .join(', ');
}

function ownerText(state: ClusterState): string {
  if (state.owner === 'kept') return 'kept until down';
  return isAlive(state.owner)
    ? `process ${state.owner.pid}`
    : `process ${state.owner.pid}, gone: the next up or down removes it`;
}

/** What `status` prints: every cluster with its addresses, and one line per machine with the daemons that run on it. */
export function clusterTable(states: readonly ClusterState[], nowMs: number): string {
  if (states.length === 0) return 'no cluster here';
  return states
    .map((state) => {
      const age = formatDuration(Math.floor((nowMs - Date.parse(state.startedAt)) / 1000) * 1000);
      const facts = [
        ['cluster', state.name],
        ['phase', `${state.phase} (${age}), ${ownerText(state)}`],
        ['api server', apiServerUrl(state)],
        ['kubeconfig', adminKubeconfig(state)],
        ['registry', registryRef(state)],
        ['cni', state.cni],
      ];
      const machines = [
        ['MACHINE', 'ADDRESS', 'PODS', 'DAEMONS'],
        ['host', state.bridge.address, '', daemonsOf(state, '')],
        ...state.nodes.map((node) => [node.name, node.address, node.podCIDR, daemonsOf(state, node.name)]),
      ];
      return `${table(facts)}\n\n${table(machines)}`;
    })
    .join('\n\n');
}
