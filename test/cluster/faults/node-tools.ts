/** Hands on the nodes of a cluster, for tests that break something there: processes of containers, sockets, rules, disks. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { ControlSocket } from '../../../probes/unixctl/control.ts';
import { kill9, spawnTied } from '../../tools/process.ts';
import { allPids, identify, isAlive, type ProcessId } from '../processes.ts';
import { mustRun } from '../run.ts';
import type { Cluster, ClusterNode } from '../types.ts';

export interface Found {
  readonly id: ProcessId;
  /** As the kernel names it. */
  readonly program: string;
  readonly commandLine: string;
}

const proc = (pid: number, name: string): string => readFileSync(`/proc/${pid}/${name}`, 'latin1');

function look(pid: number): Found | undefined {
  const id = identify(pid);
  if (id === undefined) return undefined;
  return { id, program: proc(pid, 'comm').trim(), commandLine: proc(pid, 'cmdline').replaceAll('\0', ' ') };
}

/**
 * Processes of a container by its id (`containerd://...` as the kubelet tells it), or of all containers of a pod by `pod` and
 * its UID, with the ids that the host has for them.
 */
export function processesOf(group: string): Found[] {
  const folder = `/${basename(group)}`;
  return allPids().flatMap((pid) => {
    try {
      const inside = proc(pid, 'cgroup')
        .split('\n')
        .some((line) => line.endsWith(folder) || line.includes(`${folder}/`));
      return inside ? (look(pid) ?? []) : [];
    } catch {
      // It has ended in between.
      return [];
    }
  });
}

/** The one process of a container that is as described. @throws Error when there is none, or more than one. */
export function theProcess(containerID: string, what: string, is: (found: Found) => boolean): Found {
  const all = processesOf(containerID);
  const [found, second] = all.filter(is);
  if (found !== undefined && second === undefined) return found;
  const shown = all.map(({ id, commandLine }) => `${id.pid} ${commandLine}`).join('\n');
  throw new Error(`${what} is not one process of ${containerID}:\n${shown}`);
}

/** Sends a signal to a process that is still the one that was found. @throws Error when it is not. */
export function signal(id: ProcessId, name: NodeJS.Signals): void {
  if (!isAlive(id)) throw new Error(`process ${id.pid} has ended before it got ${name}`);
  process.kill(id.pid, name);
}

/** A folder of a node as this process can open it, whatever is mounted there. @throws Error while the node is stopped. */
export function folderOn(node: ClusterNode, path: string): string {
  const pid = node.pid();
  if (pid === undefined) throw new Error(`${node.name} is not running`);
  return `/proc/${pid}/root${path}`;
}

/** Sends one command to the control socket of a daemon. @throws Error when it is not carried out. */
export async function control(path: string, name: string, ...args: string[]): Promise<string> {
  const opened = await ControlSocket.open({ daemon: basename(path), path, clock: systemClock, limitMs: 5_000 });
  if (opened.type !== 'ok') throw new Error(opened.message);
  try {
    const outcome = await opened.value.command(name, ...args);
    if (outcome.type !== 'ok') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
    return outcome.value;
  } finally {
    opened.value.close();
  }
}

/** A rule of iptables, apart from whether it is put in or taken out. */
export interface Rule {
  readonly table?: 'filter' | 'nat';
  readonly chain: string;
  readonly match: readonly string[];
}

/** Changes rules in the network namespace that a file holds. */
export async function rules(netns: string, what: '-I' | '-D', all: readonly Rule[]): Promise<void> {
  for (const { table = 'filter', chain, match } of all)
    await mustRun(['nsenter', `--net=${netns}`, 'iptables', '--wait', '10', '-t', table, what, chain, ...match]);
}

/** Packets that each rule of a chain has met, in their order. */
export async function packetsMet(netns: string, chain: string): Promise<number[]> {
  const list = ['iptables', '--wait', '10', '--list', chain, '--numeric', '--verbose', '--exact'];
  const [, , ...lines] = (await mustRun(['nsenter', `--net=${netns}`, ...list])).trimEnd().split('\n');
  return lines.map((line) => Number(line.trim().split(/\s+/)[0]));
}

/** Takes a port in a network namespace, on every address; what it answers gives it free again. */
export async function portTaken(netns: string, port: number): Promise<() => Promise<void>> {
  const script = `require('node:net').createServer().listen(${port}, () => console.log('taken'))`;
  const child = spawnTied('nsenter', [`--net=${netns}`, process.execPath, '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`port ${port} could not be taken: exit ${code}`)));
  });
  return () => kill9(child);
}

/** Whether a connection to a port is established in a network namespace, seen from the side that was dialled. */
export function isDialled(pid: number, port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const established = new RegExp(`^\\s*\\d+: [0-9A-F]+:${hex} \\S+ 01 `, 'm');
  return ['tcp', 'tcp6'].some((file) => established.test(proc(pid, `net/${file}`)));
}

/** A disk of its own for a folder of a node, in memory: large as long as nobody makes it small. */
export interface Disk {
  /** Leaves no room for another byte. */
  fill(): Promise<void>;
  makeRoom(): Promise<void>;
}

const roomy = '4g';

/** Puts a disk at a folder that nobody uses yet. It goes with the node. */
export async function diskAt(node: ClusterNode, folder: string): Promise<Disk> {
  const inside = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await node.exec(argv);
    if (code !== 0) throw new Error(`${argv.join(' ')} on ${node.name}: ${stderr}`);
    return stdout;
  };
  await inside('mkdir', '-p', folder);
  await inside('mount', '-t', 'tmpfs', '-o', `size=${roomy},mode=0755`, 'tmpfs', folder);
  const resize = (size: string): Promise<string> => inside('mount', '-o', `remount,size=${size}`, folder);
  return {
    async fill() {
      const figures = await inside('stat', '--file-system', '--format=%b %f %S', folder);
      const [blocks = 0, free = 0, bytes = 0] = figures.trim().split(' ').map(Number);
      await resize(String((blocks - free) * bytes));
    },
    async makeRoom() {
      await resize(roomy);
    },
  };
}

/** Keeps the value of a key of the cluster's etcd; what it answers puts it back. */
export async function keptKey(cluster: Cluster, key: string): Promise<() => Promise<void>> {
  const url = `http://127.0.0.1:${cluster.state().ports.etcd}/v3/kv`;
  const ask = async (verb: 'range' | 'put', body: object): Promise<{ kvs?: { value: string }[] }> => {
    const answer = await fetch(`${url}/${verb}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd answers ${answer.status} to ${verb} of ${key}`);
    return (await answer.json()) as { kvs?: { value: string }[] };
  };
  const name = Buffer.from(key).toString('base64');
  const value = (await ask('range', { key: name })).kvs?.[0]?.value;
  if (value === undefined) throw new Error(`etcd has no ${key}`);
  return async () => {
    await ask('put', { key: name, value });
  };
}
