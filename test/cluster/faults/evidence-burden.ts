/** What a node would take along with it, made on its real daemons: a gateway of its chassis, and a logical port that is no pod's. */
import * as assert from 'uvu/assert';
import type { DrainReport, InstallationEvidence } from '../../../executor/page/evidence.ts';
import type { PipelineBed } from '../suite/pipeline-bed.ts';
import { until } from '../suite/pipeline-look.ts';
import type { ClusterNode } from '../types.ts';
import { inContainer } from './evidence-faults.ts';

const router = 'burden-router';
const gateway = 'burden-gateway';
const network = 'burden-network';
const port = 'burden-port';

const words = (text: string): string[] => text.split(' ');

/** Puts both on a node; what it answers takes them away. */
export async function burdened(bed: PipelineBed, node: ClusterNode): Promise<() => Promise<void>> {
  const northbound = (...commands: string[]): Promise<string> =>
    inContainer(bed, node, { app: 'ovn-central', container: 'ovn-central' }, [
      ...words('ovn-nbctl --timeout=10 --db=unix:/var/run/ovn/ovnnb_db.sock --no-leader-only'),
      ...words(commands.join(' -- ')),
    ]);
  const openSwitch = (command: string): Promise<string> =>
    inContainer(bed, node, { app: 'ovs', container: 'openvswitch' }, words(`ovs-vsctl --timeout=10 ${command}`));
  const chassis = (await openSwitch('get Open_vSwitch . external_ids:system-id')).trim().replaceAll('"', '');
  await northbound(
    `lr-add ${router}`,
    `lrp-add ${router} ${gateway} 02:00:00:00:00:01 192.0.2.1/24`,
    `lrp-set-gateway-chassis ${gateway} ${chassis} 20`,
    `ls-add ${network}`,
    `lsp-add ${network} ${port}`,
    `lsp-set-addresses ${port} dynamic`,
    `lsp-add ${network} ${network}-router`,
    `lsp-set-type ${network}-router router`,
    `lsp-set-addresses ${network}-router router`,
    `lsp-set-options ${network}-router router-port=${gateway}`,
  );
  await openSwitch(`add-port br-int ${port} -- set Interface ${port} type=internal external_ids:iface-id=${port}`);
  return async () => {
    await openSwitch(`--if-exists del-port br-int ${port}`);
    await northbound(`--if-exists ls-del ${network}`, `--if-exists lr-del ${router}`);
  };
}

const told = ({ blockers, unknown }: DrainReport): string =>
  [...blockers, ...unknown].map(({ reason, message }) => `${reason}: ${message}`).join('\n');

/** Waits until the node that is cordoned is told with everything that hangs on it, and the others as not cordoned. */
export async function burdenTold(report: () => InstallationEvidence, node: string): Promise<void> {
  const drains = await until('what hangs on each node', 30_000, async (saw) => {
    const rows = report().drains;
    const own = rows.find((row) => row.node === node);
    saw(rows.map((row) => `${row.node} ${row.state}: ${told(row)}`).join('\n'));
    return own?.cordoned === true && /^PortsBound/m.test(told(own)) ? rows : undefined;
  });
  assert.is(drains.length, 3);
  for (const row of drains) {
    assert.equal(row.unknown, [], `${row.node}: nothing is left open`);
    assert.is(row.state, 'blocked');
    const text = told(row);
    if (row.node !== node) {
      assert.match(text, /^NodeNotCordoned: /);
      assert.not.match(text, /burden/, 'of another node');
      continue;
    }
    // Pods that are of no DaemonSet. Its controller is named, or one of those for which the text, which names three, has no room.
    const pods = `^PodsRemain: (?:[23] pods are left on node ${node}: .*kube-system/kube-ovn-controller-|[4-9] pods .* and [1-6] more)`;
    assert.match(text, new RegExp(pods, 'm'), text);
    assert.match(text, new RegExp(`^GatewayActive: .*cr-${gateway} \\(no other could take over\\)`, 'm'));
    assert.match(text, new RegExp(`^PortsBound: .*${port}`, 'm'));
    assert.not.match(text, /NodeNotCordoned|keelson-network-/, 'ports of pods are told with their pods');
  }
}
