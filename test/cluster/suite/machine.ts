import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupHierarchies } from '../cgroups.ts';
import { mountPoints } from '../mounts.ts';
import { allPids, childrenOf, processesWithEnvironment } from '../processes.ts';
import { mustRun, runCommand } from '../run.ts';
import { clusterVariable } from '../state.ts';

/** What a cluster could leave on a machine, as sorted lines of text by what they are. */
export type MachineSnapshot = Readonly<Record<string, readonly string[]>>;

const namespaceKinds = ['mnt', 'net', 'pid', 'uts', 'ipc'] as const;
const sharedFolders = [
  '/run',
  '/run/netns',
  '/run/containerd',
  '/etc/cni',
  '/etc/cni/net.d',
  '/opt',
  '/opt/cni/bin',
  '/var/lib',
  '/var/lib/cni',
  '/var/lib/kubelet',
  '/var/log',
  '/etc',
];
const settings = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
  'kernel/hostname',
  'net/ipv4/ip_forward',
  'net/bridge/bridge-nf-call-iptables',
  'net/netfilter/nf_conntrack_max',
];

function namespacesOf(pid: number): string[] {
  return namespaceKinds.flatMap((kind) => {
    try {
      return [readlinkSync(`/proc/${pid}/ns/${kind}`)];
    } catch {
      // The process has ended in between, or is a zombie.
      return [];
    }
  });
}

/** The namespaces, other than this process's own, of a cluster's processes and of all that descend from them. */
export function clusterNamespaces(id: string): string[] {
  const own = new Set(namespacesOf(process.pid));
  const family = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(family)];
  const members = processesWithEnvironment(clusterVariable, id).flatMap((process) => family(process.pid));
  return [...new Set(members.flatMap(namespacesOf))].filter((namespace) => !own.has(namespace));
}

/** Those of the given namespaces that any process of the machine is still in. */
export function heldNamespaces(namespaces: readonly string[]): string[] {
  const held = new Set(allPids().flatMap(namespacesOf));
  return namespaces.filter((namespace) => held.has(namespace));
}

function cgroups(): string[] {
  return cgroupHierarchies().flatMap((top) =>
    readdirSync(top, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(top, entry.name)),
  );
}

async function firewall(): Promise<string[]> {
  const lines: string[] = [];
  for (const program of ['iptables-save', 'iptables-legacy-save', 'ip6tables-save']) {
    const { stdout } = await runCommand([program]);
    // Comments carry times, chain heads carry counters.
    for (const line of stdout.split('\n'))
      if (/^[:-]/.test(line)) lines.push(`${program} ${line.replace(/ \[.*\]$/, '')}`);
  }
  return lines;
}

function markedProcesses(): string[] {
  return allPids().flatMap((pid) => {
    try {
      const [, id] = /(?:^|\0)KEELSON_CLUSTER=([0-9a-f]+)/.exec(readFileSync(`/proc/${pid}/environ`, 'latin1')) ?? [];
      return id === undefined ? [] : [`${pid} of cluster ${id}`];
    } catch {
      return [];
    }
  });
}

/** Takes stock of the machine. */
export async function takeSnapshot(): Promise<MachineSnapshot> {
  const lines = async (argv: string[]): Promise<string[]> => (await mustRun(argv)).split('\n').filter(Boolean);
  const snapshot = {
    processes: markedProcesses(),
    mounts: mountPoints().map((mount) => `${mount.type} ${mount.point}`),
    links: (await lines(['ip', '-brief', 'link'])).map((line) => line.split(/\s/)[0] ?? ''),
    routes: await lines(['ip', 'route', 'show', 'table', 'all']),
    firewall: await firewall(),
    cgroups: cgroups(),
    files: sharedFolders.flatMap((folder) =>
      existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [],
    ),
    settings: settings.flatMap((name) => {
      const file = `/proc/sys/${name}`;
      return existsSync(file) ? [`${name}=${readFileSync(file, 'utf8').trim()}`] : [];
    }),
  };
  return Object.fromEntries(Object.entries(snapshot).map(([kind, list]) => [kind, [...list].sort()]));
}

/** What `after` has and `before` had not, one line each. */
export function additions(before: MachineSnapshot, after: MachineSnapshot): string[] {
  return Object.entries(after).flatMap(([kind, list]) => {
    const known = new Set(before[kind]);
    return list.filter((line) => !known.has(line)).map((line) => `${kind}: ${line}`);
  });
}
