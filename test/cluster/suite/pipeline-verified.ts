import * as assert from 'uvu/assert';
import { getAt, objectsOf } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import type { Cluster } from '../types.ts';
import { conditionOf, type Look, textAt, until } from './pipeline-look.ts';

/** What the evidence of a whole local cluster comes to, when all of it is well. */

/** Conditions that a round of evidence decides, with their reasons when all is well. */
export const wellObserved = {
  OVNDBReady: 'MembersAgree',
  NorthdReady: 'OneActive',
  DataPlaneReady: 'ChassisConnected',
  NetworkReady: 'PacketsDelivered',
  TopologyRecorded: 'TopologyMatches',
} as const;

/** Waits until the installation is Ready by what was seen of it; answers it. */
export const untilVerified = (look: Look, limitMs: number): Promise<KubeObject> =>
  until('the installation to be Ready by what was seen', limitMs, async (saw) => {
    const installation = await look.installation();
    const ready = conditionOf(installation, 'Ready');
    saw(`Ready=${ready?.status} ${ready?.reason}: ${ready?.message}`);
    return ready?.status === 'True' && ready.reason === 'VerificationComplete' ? installation : undefined;
  });

/** Waits until an executor's metrics say so too: they follow the status, and a look may come too late on a busy machine. */
export const untilMeasured = (look: Look, node: string): Promise<string> =>
  until('the metrics to say that the installation is Ready', 30_000, async (saw) => {
    const text = await look.metrics(node);
    saw(/^kubeovn_operator_installation_ready.*$/m.exec(text)?.[0] ?? 'no such line');
    return /^kubeovn_operator_installation_ready\{.*\} 1$/m.test(text) ? text : undefined;
  });

/** Every gate of every phase is open by itself: none was passed without looking. */
export function expectGatesOpen(release: KubeObject | undefined): void {
  const gates = objectsOf(release?.status?.phases).flatMap((phase) =>
    objectsOf(phase.gates).map((gate) => ({ name: `${String(gate.type)}(${String(gate.scope)})`, gate })),
  );
  assert.equal(
    gates.map(({ name }) => name),
    [
      'Established(definitions)',
      'WorkloadsReady(central)',
      'OVNDBReady(central)',
      'NorthdReady(central)',
      'WorkloadsReady(data-plane)',
      'DataPlaneReady(data-plane)',
      'WorkloadsReady(network-probe)',
      'NetworkReady(network-probe)',
    ],
  );
  for (const { name, gate } of gates) {
    assert.is(gate.state, 'True', `${name}: ${String(gate.message)}`);
    assert.is(gate.bypassed, undefined, name);
  }
}

/** The status names members, leaders, chassis and packets as they are. */
export function expectTold(installation: KubeObject, cluster: Cluster): void {
  const told = (type: string) => {
    const condition = conditionOf(installation, type);
    assert.ok(condition !== undefined, `there is no condition ${type}`);
    return condition;
  };
  for (const [type, reason] of Object.entries(wellObserved)) {
    const { status, reason: found, message } = told(type);
    assert.equal([status, found], ['True', reason], `${type}: ${message}`);
  }
  const names = cluster.nodes.map(({ name }) => name);
  const node = `node (?:${names.join('|')})`;
  const database = (name: string): string => `${name}: leader ${node}, term \\d+, 3 of 3 members, quorum 2`;
  assert.match(
    told('OVNDBReady').message,
    new RegExp(`^${database('OVN_Northbound')}; ${database('OVN_Southbound')}$`),
  );
  assert.match(
    told('NorthdReady').message,
    new RegExp(`${node} \\(pod ovn-central-[a-z0-9-]+\\) is active, 2 stand by$`),
  );
  assert.is(told('DataPlaneReady').message, '3 of 3 chassis are connected and run br-int');
  // From each node to the server on it, to that on the next, to the Service by address and by name.
  assert.is(told('NetworkReady').message, '12 of 12 checks from 3 nodes passed by IPv4');
  const record = textAt(installation, '/status/topology/inventory/name');
  assert.is(told('TopologyRecorded').message, `3 members are as ${record} has them`);
  assert.is(textAt(installation, '/status/phase'), 'Ready');
  assert.is(told('Degraded').status, 'False', told('Degraded').message);
  const databases = objectsOf(getAt(installation, '/status/topology/databases'));
  assert.equal(
    databases.map((each) => [
      each.name,
      each.model,
      objectsOf(each.members)
        .map((member) => member.node)
        .sort(),
    ]),
    ['OVN_Northbound', 'OVN_Southbound'].map((each) => [each, 'clustered', names.toSorted()]),
  );
}
