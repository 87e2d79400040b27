import * as assert from 'uvu/assert';
import { mustRun } from '../run.ts';
import type { Cluster, ClusterNode } from '../types.ts';
import { asking, until } from './pipeline-look.ts';

const system = ['-n', 'kube-system'];

/** Runs a command in the container of a workload's pod on one node. */
async function onNode(cluster: Cluster, app: string, node: string, ...argv: string[]): Promise<string> {
  const selection = ['-l', `app=${app}`, '--field-selector', `spec.nodeName=${node}`, '-o', 'name'];
  const pod = (await cluster.kubectl([...system, 'get', 'pods', ...selection])).trim();
  return cluster.kubectl([...system, 'exec', pod, '--', ...argv]);
}

/** Every pinger reaches the API server through its Service, and the pingers of both other nodes. */
export async function expectPingersAnswer(cluster: Cluster): Promise<void> {
  const names = await cluster.kubectl([...system, 'get', 'pods', '-l', 'app=kube-ovn-pinger', '-o', 'name']);
  for (const pod of names.split('\n').filter(Boolean))
    await until(`${pod} to reach all others`, 60_000, async (saw) => {
      const told = await cluster.kubectl([...system, 'logs', pod, '--tail=1']);
      saw(told);
      return /API server reached; 2 peers answer$/m.test(told) ? true : undefined;
    });
}

/** Pods have ports in OVN, and what went between nodes went through tunnels that end in the switch. */
export async function expectPortsAndTunnels(cluster: Cluster): Promise<void> {
  const pods = await cluster.kubectl(['get', 'pods', '-A', '-o', 'json']);
  const { items } = JSON.parse(pods) as {
    items: { metadata: { name: string; namespace: string }; spec: { hostNetwork?: boolean } }[];
  };
  const overlay = items.filter(({ spec }) => spec.hostNetwork !== true);
  assert.ok(overlay.length >= 5, `only ${overlay.length} pods are on the pod network`);
  for (const node of cluster.nodes) {
    const find = ['ovs-vsctl', '--bare', '--columns=statistics', 'find', 'Interface', 'type=geneve'];
    const packets = await onNode(cluster, 'ovs', node.name, ...find);
    const received = [...packets.matchAll(/rx_packets=(\d+)/g)].map(([, count]) => Number(count));
    assert.is(received.filter((count) => count > 0).length, 2, `${node.name}: ${packets}`);
  }
  const [first] = cluster.nodes;
  const show = ['ovn-sbctl', '--no-leader-only', '--bare', '--columns=logical_port', 'find', 'Port_Binding', 'up=true'];
  const bound = (await onNode(cluster, 'ovn-central', first?.name ?? '', ...show)).split(/\s+/);
  for (const { metadata } of overlay) {
    const port = `${metadata.name}.${metadata.namespace}`;
    assert.ok(bound.includes(port), `${port} is no bound port of OVN`);
  }
}

/** While the switch of a node is frozen nobody answers for the address where tunnels to it end. */
async function expectNoAnswerFor(node: ClusterNode, from: ClusterNode): Promise<void> {
  const shown = (await node.exec(['ip', '-4', '-oneline', 'address', 'show', 'dev', 'br-phy'])).stdout;
  const address = /inet ([0-9.]+)/.exec(shown)?.[1] ?? '';
  assert.not.equal(address, '', shown);
  await from.exec(['ip', 'neighbor', 'flush', 'to', address, 'dev', 'br-phy']);
  await from.exec(['bash', '-c', `echo anybody >/dev/udp/${address}/9`]);
  await until(`nobody to answer for ${address}`, 20_000, async (saw) => {
    const { stdout } = await from.exec(['ip', 'neighbor', 'show', 'to', address, 'dev', 'br-phy']);
    saw(stdout);
    assert.not.match(stdout, /lladdr/, 'another interface answers in the place of the switch');
    return stdout.includes('FAILED') ? true : undefined;
  });
}

/** With ovs-vswitchd frozen a node loses its pods and stays a node; awake again, it has them back. */
export async function expectNodeOutlivesSwitch(cluster: Cluster, node: ClusterNode, url: string): Promise<void> {
  const pid = (await node.exec(['cat', '/run/openvswitch/ovs-vswitchd.pid'])).stdout.trim();
  const ask = (): Promise<string> =>
    mustRun(['nsenter', `--net=${node.netns}`, process.execPath, '-e', asking(url)], { limitMs: 10_000 });
  await node.exec(['kill', '-STOP', pid]);
  try {
    await until('the pods of the node to be out of reach', 15_000, async () =>
      ask().then(
        () => undefined,
        () => true,
      ),
    );
    assert.is((await onNode(cluster, 'ovs', node.name, 'echo', 'here')).trim(), 'here');
    const other = cluster.nodes.find(({ name }) => name !== node.name);
    assert.ok(other !== undefined);
    await expectNoAnswerFor(node, other);
  } finally {
    await node.exec(['kill', '-CONT', pid]);
  }
  await until('the pods of the node to be back', 30_000, async (saw) =>
    ask().catch((error) => {
      saw(String(error));
      return undefined;
    }),
  );
}
