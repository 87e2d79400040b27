/** How each fault of the matrix is made on a real node, and mended. */
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { networkProbe, ports, probeContainers } from '../../../constructs/api/constants.ts';
import { rest, systemClock } from '../../../constructs/lib/clock.ts';
import { objectsOf } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import type { InstallationEvidence } from '../../../executor/page/evidence.ts';
import { findControl } from '../../../probes/unixctl/find.ts';
import { isAlive, killAll } from '../processes.ts';
import { mustRun } from '../run.ts';
import type { PipelineBed } from '../suite/pipeline-bed.ts';
import { textAt, until } from '../suite/pipeline-look.ts';
import type { ClusterNode } from '../types.ts';
import type { Fault, FaultName } from './evidence-matrix.ts';
import {
  control,
  type Disk,
  type Found,
  folderOn,
  isDialled,
  keptKey,
  processesOf,
  type Rule,
  rules,
  signal,
  theProcess,
} from './node-tools.ts';

/** Where faults are made. */
export interface Ground {
  readonly bed: PipelineBed;
  /** Disks of the databases, by node. */
  readonly disks: ReadonlyMap<string, Disk>;
}

/** Breaks something on a node; what it answers mends it. */
type Cause = (ground: Ground, node: ClusterNode) => Promise<() => Promise<void>>;

const nothing = async (): Promise<void> => undefined;
const system = ['-n', 'kube-system'] as const;

/** The pod of a workload on a node; its label is `app`, or the name that our own workloads have. */
async function podOn({ look }: PipelineBed, node: string, app: string): Promise<KubeObject> {
  const listed = await look.client.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system' });
  if (listed.type !== 'listed') throw new Error(listed.message);
  const found = listed.items.find(
    (pod) =>
      pod.spec?.nodeName === node &&
      pod.metadata.deletionTimestamp === undefined &&
      [pod.metadata.labels?.app, pod.metadata.labels?.['app.kubernetes.io/name']].includes(app),
  );
  if (found === undefined) throw new Error(`there is no pod of ${app} on ${node}`);
  return found;
}

/** Runs a command in a container of a workload's pod on a node, and answers what it prints. */
export async function inContainer(
  bed: PipelineBed,
  node: ClusterNode,
  { app, container }: { readonly app: string; readonly container: string },
  argv: readonly string[],
): Promise<string> {
  const { metadata } = await podOn(bed, node.name, app);
  return bed.cluster.kubectl([...system, 'exec', metadata.name ?? '', '-c', container, '--', ...argv]);
}

const central = { app: 'ovn-central', container: 'ovn-central' } as const;

const containerOf = (pod: KubeObject, name: string): string => {
  const status = objectsOf(pod.status?.containerStatuses).find((one) => one.name === name);
  if (typeof status?.containerID !== 'string') throw new Error(`${pod.metadata.name}: ${name} does not run`);
  return status.containerID;
};

/** A daemon of a container, and the script that would start it again, or end the container, if it saw it end. */
async function daemonOf(
  bed: PipelineBed,
  node: ClusterNode,
  app: string,
  container: string,
  is: (found: Found) => boolean,
) {
  const id = containerOf(await podOn(bed, node.name, app), container);
  const script = theProcess(id, 'the script', ({ commandLine }) => /^bash \/kube-ovn\/start-/.test(commandLine));
  return { daemon: theProcess(id, 'the daemon', is), script };
}

const isServer = ({ program, commandLine }: Found): boolean =>
  program === 'ovsdb-server' && commandLine.includes('ovnnb_db.pid');

/** Puts rules in, and takes them out. */
async function ruled(netns: string, all: readonly Rule[]): Promise<() => Promise<void>> {
  await rules(netns, '-I', all);
  return () => rules(netns, '-D', all);
}

const northbound = (node: ClusterNode): string => folderOn(node, '/run/ovn/ovnnb_db.ctl');

async function northd(node: ClusterNode, command: 'pause' | 'resume'): Promise<void> {
  const found = await findControl(folderOn(node, '/run/ovn'), 'ovn-northd');
  if (found.type !== 'ok') throw new Error(found.message);
  await control(found.value.path, command);
}

/** Writes a value of so many bytes to NB; the log gets it twice, since the client leaves its command there as a comment. */
async function writeNorthbound(bed: PipelineBed, node: ClusterNode, bytes: number): Promise<void> {
  const db = '--db=unix:/var/run/ovn/ovnnb_db.sock';
  const value = randomBytes(Math.ceil(bytes / 2))
    .toString('hex')
    .slice(0, bytes);
  const set = ['set', 'NB_Global', '.', `external_ids:filler=${value}`];
  await inContainer(bed, node, central, ['ovn-nbctl', '--timeout=10', db, '--no-leader-only', ...set]);
}

/** Size of a file once nothing is written to it any more. */
async function sizeAtRest(file: string): Promise<number> {
  let [size, since] = [-1, 0];
  await until(`${file} to stay as it is`, 10_000, async () => {
    const [now, { size: found }] = [systemClock.monotonic(), statSync(file)];
    if (found !== size) [size, since] = [found, now];
    return now - since > 700 ? true : undefined;
  });
  return size;
}

const block = 4096;
/** More than what is left in a block, less than the shortest record of a log. */
const mostLeft = 60;

/**
 * Fills the last block of a log but for a few bytes. Otherwise the short record of a commit index finds a place on a full disk
 * where the entry before it did not, and the server can not read its own file any more.
 */
async function fillBlock(bed: PipelineBed, writer: ClusterNode, file: string): Promise<void> {
  const probe = 100;
  await writeNorthbound(bed, writer, probe);
  const before = await sizeAtRest(file);
  await writeNorthbound(bed, writer, probe);
  const after = await sizeAtRest(file);
  const frame = after - before - 2 * probe;
  const wanted = (block - mostLeft / 2 - ((after + frame) % block) + block) % block;
  await writeNorthbound(bed, writer, Math.floor((wanted < 2 * probe ? wanted + block : wanted) / 2));
  const left = block - ((await sizeAtRest(file)) % block);
  if (left > mostLeft) throw new Error(`${left} bytes are left in the last block of ${file}`);
}

const away = (all: readonly ClusterNode[], node: ClusterNode): ClusterNode => {
  const other = all.find(({ name }) => name !== node.name);
  if (other === undefined) throw new Error('there is only one node');
  return other;
};

/** Starts the server of NB in its container as the script once did; the script, which is stopped, does not know. */
async function startServer(bed: PipelineBed, node: ClusterNode, { commandLine }: Found): Promise<void> {
  await inContainer(bed, node, central, [...commandLine.trim().split(' '), '--detach']);
}

/** What has to be so before a fault is made. */
export const grounds: Partial<Record<FaultName, (ground: Ground, node: ClusterNode) => Promise<void>>> = {
  'disk-full': ({ bed }, node) =>
    fillBlock(bed, away(bed.cluster.nodes, node), folderOn(node, '/etc/origin/ovn/ovnnb_db.db')),
};

export const causes: Readonly<Record<FaultName, Cause>> = {
  async 'server-killed'({ bed }, node) {
    const { daemon, script } = await daemonOf(bed, node, 'ovn-central', 'ovn-central', isServer);
    signal(script.id, 'SIGSTOP');
    signal(daemon.id, 'SIGKILL');
    return () => startServer(bed, node, daemon);
  },

  async 'disk-full'({ bed, disks }, node) {
    const disk = disks.get(node.name);
    if (disk === undefined) throw new Error(`${node.name} has no disk of its own for databases`);
    const { daemon, script } = await daemonOf(bed, node, 'ovn-central', 'ovn-central', isServer);
    await disk.fill();
    await writeNorthbound(bed, away(bed.cluster.nodes, node), 2 * block);
    return async () => {
      signal(script.id, 'SIGSTOP');
      await killAll([daemon.id], systemClock);
      await disk.makeRoom();
      await startServer(bed, node, daemon);
    };
  },

  async 'northd-paused'(_ground, node) {
    await northd(node, 'pause');
    return () => northd(node, 'resume');
  },

  async 'controller-stopped'({ bed }, node) {
    const is = ({ program }: Found): boolean => program === 'ovn-controller';
    const { daemon, script } = await daemonOf(bed, node, 'ovs', 'openvswitch', is);
    // The script would start it again at once. It ends without a word: asked to, it would take its chassis out of the network.
    signal(script.id, 'SIGSTOP');
    signal(daemon.id, 'SIGKILL');
    return async () => signal(script.id, 'SIGCONT');
  },

  async 'switch-frozen'({ bed }, node) {
    const { daemon } = await daemonOf(bed, node, 'ovs', 'openvswitch', ({ program }) => program === 'ovs-vswitchd');
    signal(daemon.id, 'SIGSTOP');
    return async () => {
      // Frozen for long enough it has been started anew already.
      if (isAlive(daemon.id)) signal(daemon.id, 'SIGCONT');
    };
  },

  async 'other-server'({ bed }, node) {
    const pod = await podOn(bed, node.name, networkProbe.servers);
    const other = await podOn(bed, away(bed.cluster.nodes, node).name, networkProbe.servers);
    const server = theProcess(containerOf(pod, probeContainers.network), 'the server', () => true);
    const netns = `/proc/${server.id.pid}/ns/net`;
    const forward = (on: 0 | 1): Promise<string> =>
      mustRun(['nsenter', `--net=${netns}`, 'sh', '-c', `echo ${on} >/proc/sys/net/ipv4/ip_forward`]);
    const to = `${textAt(other, '/status/podIP')}:${networkProbe.echoPort}`;
    const port = ['-p', 'tcp', '--dport', String(networkProbe.echoPort)];
    const all: Rule[] = [
      { table: 'nat', chain: 'PREROUTING', match: [...port, '-j', 'DNAT', '--to-destination', to] },
      { table: 'nat', chain: 'POSTROUTING', match: [...port, '-j', 'MASQUERADE'] },
    ];
    await forward(1);
    const out = await ruled(netns, all);
    return async () => {
      await out();
      await forward(0);
    };
  },

  // Of the daemons of a node only those of the chassis are root's: northd beside them still reaches its database.
  'southbound-blocked': (_ground, node) =>
    ruled(node.netns, [
      { chain: 'OUTPUT', match: ['-p', 'tcp', '--dport', '6642', '-m', 'owner', '--uid-owner', '0', '-j', 'DROP'] },
    ]),

  async 'sidecar-killed'({ bed }, node) {
    const pod = `pod${(await podOn(bed, node.name, 'ovs')).metadata.uid}`;
    const over = new AbortController();
    // Its container starts again within a second or two; each new one ends before it listens.
    const killing = (async (): Promise<void> => {
      while (!over.signal.aborted) {
        const sidecars = processesOf(pod).filter(({ commandLine }) => commandLine.includes(' probe chassis'));
        await killAll(
          sidecars.map(({ id }) => id),
          systemClock,
        );
        await rest(systemClock, 100, over.signal);
      }
    })();
    return async () => {
      over.abort();
      await killing;
    };
  },

  async 'authority-rotated'({ bed }) {
    await bed.keelson('pki', 'rotate');
    await until('the successor to be believed', 60_000, async (saw) => {
      const told = await bed.keelson('pki', 'status');
      saw(told);
      return /a new one is believed/.test(told) ? true : undefined;
    });
    return nothing;
  },

  async 'leadership-moved'(_ground, node) {
    const pid = node.pid() ?? 0;
    // The executor asks the members of OVN central at the start of a round, each over a connection of its own.
    await until('a round to ask the leader', 40_000, async () => (isDialled(pid, ports.central) ? true : undefined), 2);
    await control(northbound(node), 'cluster/failure-test', 'transfer-leadership');
    return nothing;
  },

  async 'node-cordoned'({ bed }, node) {
    await bed.cluster.kubectl(['cordon', node.name]);
    return async () => void (await bed.cluster.kubectl(['uncordon', node.name]));
  },

  async 'node-deleted'({ bed }, node) {
    const restore = await keptKey(bed.cluster, `/registry/minions/${node.name}`);
    await bed.cluster.kubectl(['delete', 'node', node.name, '--wait=false']);
    return restore;
  },
};

/** How much a node does that others would have to take over: a fault there moves more than its own condition. */
function weightOf(name: string, { members, northd: all }: InstallationEvidence, executorNode: string): number {
  const leads = members.some(({ leads: leading, node }) => leading && node === name);
  const active = all.some(({ status, node }) => status === 'active' && node === name);
  return (leads ? 4 : 0) + (active ? 2 : 0) + (name === executorNode ? 1 : 0);
}

/** The node for a fault, by what the last round saw, and by where the executor that leads is; undefined while there is none. */
export function placeOf(
  { place }: Pick<Fault, 'place'>,
  report: InstallationEvidence,
  executorNode: string,
): string | undefined {
  const names = report.nodes.map(({ name }) => name);
  switch (place) {
    case 'leader':
      return report.members.find(({ leads, database }) => leads && database === 'OVN_Northbound')?.node;
    case 'activeNorthd':
      return report.northd.find(({ status }) => status === 'active')?.node;
    case 'away':
      return names.find((name) => name !== executorNode);
    case 'none':
      return names[0];
    case 'aside':
    case 'follower': {
      const weights = names.map((name) => ({ name, weight: weightOf(name, report, executorNode) }));
      const [lightest] = weights.toSorted((a, b) => a.weight - b.weight);
      return lightest !== undefined && lightest.weight < (place === 'aside' ? 1 : 2) ? lightest.name : undefined;
    }
  }
}

/** Lets other members lead; which ones, the members settle, and northd goes after them. */
export async function moveLeaders({ bed }: Ground, { members }: InstallationEvidence): Promise<void> {
  for (const { database, node } of members.filter(({ leads }) => leads)) {
    const socket = folderOn(
      bed.cluster.node(node),
      `/run/ovn/${database === 'OVN_Northbound' ? 'ovnnb' : 'ovnsb'}_db.ctl`,
    );
    await control(socket, 'cluster/failure-test', 'transfer-leadership');
  }
}
