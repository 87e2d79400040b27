import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { startDaemon } from './daemon.ts';
import { nodeBin, rootOf, separateTopDirectories } from './nodeFiles.ts';
import { childrenOf, identify, isAlive, killAll, namespaceMembers, type ProcessId, untilGone } from './processes.ts';
import type { NodeRecord, StateFile } from './state.ts';

/** Programs of the host that a node runs from {@link nodeBin}: name to path. */
export type NodePrograms = Readonly<Record<'pause' | 'kubelet' | 'kube-proxy', string>>;

/**
 * Kernel settings that a kubelet writes when they differ, though they are the whole machine's. The node sees files with
 * the values it wants in their place, so that nothing outside changes.
 */
const pretendedSettings: Readonly<Record<string, string>> = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
};

/** Plugins of the distribution, linked into /opt/cni/bin; others can be installed beside them. */
const pluginFolder = '/usr/lib/cni';

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The script that turns fresh namespaces into a node: its own root, then the process that holds it. */
function bootScript(node: NodeRecord, programs: NodePrograms, overlay: boolean): string {
  const usr = join(node.directory, 'usr');
  const pretend = Object.entries(pretendedSettings).flatMap(([key, value]) => {
    const file = `run/keelson/settings/${key.replaceAll('/', '.')}`;
    return [`if [ -e proc/sys/${key} ]; then echo ${value} > ${file}; mount --bind ${file} proc/sys/${key}; fi`];
  });
  const plugins = existsSync(pluginFolder) ? readdirSync(pluginFolder) : [];
  return [
    `mount --bind ${quote(rootOf(node))} ${quote(rootOf(node))}`,
    `cd ${quote(rootOf(node))}`,
    'mount -t tmpfs -o mode=755 tmpfs run',
    'mkdir -p run/keelson/settings run/lock run/cni',
    'mount -t proc proc proc',
    'mount -t sysfs sysfs sys',
    // A fresh sysfs shows the node's network devices and no cgroups: those are the machine's.
    'mount --rbind /sys/fs/cgroup sys/fs/cgroup',
    'mount --rbind /dev dev',
    overlay
      ? `mount -t overlay -o lowerdir=/usr,upperdir=${quote(join(usr, 'upper'))},workdir=${quote(join(usr, 'work'))} overlay usr`
      : 'mount --bind -o ro /usr usr',
    ...separateTopDirectories().map((name) => `mount --bind -o ro /${name} ${name}`),
    ...Object.entries(programs).flatMap(([name, path]) => [
      `: > ${join('.', nodeBin, name)}`,
      `mount --bind -o ro ${quote(path)} ${join('.', nodeBin, name)}`,
    ]),
    ...plugins.map((name) => `ln -sfn ${pluginFolder}/${name} opt/cni/bin/${name}`),
    ...pretend,
    `hostname ${node.name}`,
    'pivot_root . old',
    'cd /',
    'umount -l /old',
    // Pods may ask for mounts that spread in both directions.
    'mount --make-rshared /',
    ': > /run/keelson/booted',
    `exec ${join(nodeBin, 'pause')}`,
  ].join('\n');
}

export function bootName(node: NodeRecord): string {
  return `${node.name}/boot`;
}

/**
 * Starts the node's first process in namespaces of its own (mounts, processes, host name, IPC; the network namespace
 * exists already) and answers its id on the host. The kernel ends everything in the node when that process ends.
 */
export async function bootNode(
  file: StateFile,
  node: NodeRecord,
  programs: NodePrograms,
  overlay: boolean,
  clock: Clock,
  signal?: AbortSignal,
): Promise<ProcessId> {
  const outer = await startDaemon(file, {
    name: bootName(node),
    argv: [
      ...['nsenter', `--net=${node.netns}`],
      ...['unshare', '--mount', '--uts', '--ipc', '--pid', '--fork', '--kill-child=SIGKILL'],
      ...['sh', '-ec', bootScript(node, programs, overlay)],
    ],
  });
  return waitFor({
    what: `${node.name} to boot`,
    limitMs: 20_000,
    intervalMs: 20,
    clock,
    ...(signal === undefined ? {} : { signal }),
    probe: async () => {
      if (!isAlive(outer)) throw new Error(`${node.name} did not boot; see logs/${bootName(node)}.log`);
      const first = firstProcess(outer);
      return first !== undefined && existsSync(`/proc/${first.pid}/root/run/keelson/booted`) ? first : undefined;
    },
  });
}

/** The first process of a node, given the process that made its namespaces. */
export function firstProcess(outer: ProcessId): ProcessId | undefined {
  if (!isAlive(outer)) return undefined;
  return childrenOf(outer.pid)
    .map(identify)
    .find((id) => id !== undefined);
}

/**
 * Ends a node at once: its first process is killed, and the kernel kills all others before that one is gone. The outer
 * process then ends by itself, having collected the first one.
 */
export async function killNode(outer: ProcessId, clock: Clock): Promise<void> {
  const first = firstProcess(outer);
  if (first === undefined) return killAll([outer], clock);
  const members = namespaceMembers(first.pid)
    .map(identify)
    .filter((id) => id !== undefined);
  await killAll([first, ...members], clock, 30_000);
  await untilGone([outer], clock, 10_000);
}
