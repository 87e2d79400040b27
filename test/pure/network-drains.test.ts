import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { ListOutcome } from '../../executor/kube/outcome.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type DrainProvider, Drains } from '../../executor/network/drains.ts';
import { broken } from '../../executor/observe/finding.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import { installation } from './network-support.ts';
import { clusterLook, kube } from './observe-look-support.ts';
import { answer, drainFacts, podOf } from './observe-support.ts';
import { VirtualClock } from './virtualClock.ts';

const container = 'main';

/** Nodes whose sidecars answer after 50 ms, and an API server that has on them what it is told. */
function bed(size: number, providers: readonly DrainProvider[] = []) {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const made = {
    clock,
    look: clusterLook(size) as ReturnType<typeof clusterLook> | undefined,
    asked: [] as string[],
    listed: [] as string[],
    said: [] as string[],
    pods: [] as KubeObject[],
    outcome: undefined as Outcome<'drain'> | undefined,
    denied: undefined as string | undefined,
    installations: [installation({})],
  };
  const client = {
    async list({ kind, fieldSelector = '' }: { kind: string; fieldSelector?: string }): Promise<ListOutcome> {
      made.listed.push(`${kind} ${fieldSelector}`.trim());
      if (made.denied === kind) return { type: 'unavailable', message: `${kind}: 403` } as ListOutcome;
      return { type: 'listed', items: kind === 'Pod' ? made.pods : [], resourceVersion: '1' };
    },
  } as unknown as KubeClient;
  const drains = new Drains({
    client,
    clock,
    container,
    providers,
    look: () => made.look,
    atOnce: 4,
    pace: { everyMs: 10_000, restMs: 60_000, retryMs: 20_000, most: 6 },
    log: (_level, message) => made.said.push(message),
    async ask(target, signal) {
      made.asked.push(target.node);
      await clock.sleep(50, signal);
      const n = Number(target.node.slice(1));
      return (made.outcome ?? answer('drain', podOf(target), drainFacts(n))) as never;
    },
  });
  const running = drains.run(() => made.installations, stop.signal);
  return Object.assign(made, {
    drains,
    /** State of a node, and why. */
    told(node: string): string | undefined {
      const verdict = drains.of('uid-1').find((row) => row.node === node)?.verdict;
      if (verdict === undefined || verdict.state === 'drained') return verdict?.state;
      const why = verdict.state === 'blocked' ? verdict.blockers : verdict.unknown;
      return `${verdict.state} ${why.map(({ reason }) => reason).join(' ')}`;
    },
    cordon(...nodes: string[]): void {
      const look = made.look ?? clusterLook(size);
      const of = (node: KubeObject): KubeObject => {
        const cordoned = nodes.includes(node.metadata.name ?? '');
        return { ...node, spec: cordoned ? { unschedulable: true } : {} };
      };
      made.look = { ...look, nodes: look.nodes.map(of) };
      drains.hurry();
    },
    async stop() {
      stop.abort();
      await running;
    },
  });
}

test('while no node is cordoned the API server is asked nothing, and few nodes at a time', async () => {
  const one = bed(20);
  await one.clock.advance(1_000);
  assert.is(one.asked.length, 6, 'a turn is bounded');
  await one.clock.advance(30_000);
  assert.is(new Set(one.asked).size, 20);
  assert.is(one.asked.length, 20, 'nobody is asked again so soon');
  assert.equal(one.listed, []);
  assert.is(one.told('n1'), 'blocked NodeNotCordoned');
  assert.equal(
    one.drains.of('uid-1').map(({ node }) => node),
    Array.from({ length: 20 }, (_, n) => `n${n + 1}`),
  );
  await one.stop();
});

test('a cordoned node is looked at within a second, turn after turn, for one request and one for the volumes of all', async () => {
  const one = bed(20);
  await one.clock.advance(40_000);
  one.pods = [kube('v1', 'Pod', 'web', { metadata: { namespace: 'shop' } })];
  one.cordon('n17');
  await one.clock.advance(1_100);
  assert.equal(one.listed.sort(), ['Pod spec.nodeName=n17', 'VolumeAttachment']);
  assert.is(one.told('n17'), 'blocked PodsRemain');
  one.pods = [];
  await one.clock.advance(10_100);
  assert.is(one.told('n17'), 'drained');
  const before = one.listed.length;
  await one.clock.advance(20_000);
  assert.is(one.listed.length - before, 4);
  one.cordon();
  await one.clock.advance(1_100);
  assert.is(one.told('n17'), 'blocked NodeNotCordoned', 'that it stays is told as soon');
  await one.stop();
});

test('what the API server does not tell, and a sidecar that is not there, leave the answer open', async () => {
  const one = bed(3);
  one.denied = 'VolumeAttachment';
  one.cordon('n1', 'n2');
  await one.clock.advance(1_100);
  assert.is(one.told('n1'), 'unknown EvidenceIncomplete');
  one.denied = undefined;
  const look = clusterLook(3);
  const without = look.pods.map((pod) =>
    pod.metadata.name === 'ovs-ovn-n2' ? { ...pod, status: { ...pod.status, containerStatuses: [] } } : pod,
  );
  one.look = { ...look, pods: without };
  one.asked.length = 0;
  one.cordon('n1', 'n2');
  await one.clock.advance(1_100);
  assert.is(one.told('n1'), 'drained');
  assert.is(one.told('n2'), 'unknown EvidenceUnreachable');
  assert.not.ok(one.asked.includes('n2'), 'nobody is dialled who is not there');
  await one.stop();
});

test('a node whose sidecar starts after it was first asked does not wait for its turn among those that are well', async () => {
  const one = bed(2);
  one.outcome = { type: 'Unreachable', message: 'refused' };
  await one.clock.advance(15_000);
  assert.equal(one.asked, ['n1', 'n2']);
  one.outcome = undefined;
  await one.clock.advance(10_000);
  assert.equal(one.asked, ['n1', 'n2', 'n1', 'n2']);
  await one.clock.advance(30_000);
  assert.is(one.asked.length, 4);
  await one.stop();
});

test('a node or pod that was replaced while it was looked at was not looked at', async () => {
  const one = bed(2);
  one.cordon('n1', 'n2');
  // The turn after the first one is under way.
  await one.clock.advance(1_070);
  const { look } = one;
  assert.ok(look);
  const other = (name: string, object: KubeObject): KubeObject =>
    object.metadata.name === name ? { ...object, metadata: { ...object.metadata, uid: 'another' } } : object;
  one.look = {
    ...look,
    pods: look.pods.map((pod) => other('ovs-ovn-n1', pod)),
    nodes: look.nodes.map((node) => other('n2', node)),
  };
  await one.clock.advance(60);
  assert.equal([one.told('n1'), one.told('n2')], ['unknown EvidenceMoved', 'unknown EvidenceMoved']);
  await one.stop();
});

test('another domain is asked with the sidecar, about the very node, and what it finds counts', async () => {
  const nodes: string[] = [];
  const storage: DrainProvider = {
    async look({ name, uid }) {
      nodes.push(`${name} ${uid}`);
      return name === 'n2' ? [broken('VolumesAttached', `node ${name}`, { observed: 1, message: 'a copy' })] : [];
    },
  };
  const one = bed(2, [storage]);
  one.cordon('n1', 'n2');
  await one.clock.advance(1_150);
  assert.equal([...new Set(nodes)].sort(), ['n1 node-1', 'n2 node-2']);
  assert.equal([one.told('n1'), one.told('n2')], ['drained', 'blocked VolumesAttached']);
  await one.stop();
});

test('a defect is told and ends nothing; who is gone is forgotten; it ends at once', async () => {
  const failing: DrainProvider = { look: () => Promise.reject(new Error('a defect')) };
  const one = bed(2, [failing]);
  await one.clock.advance(11_000);
  assert.is(one.said.length, 2);
  assert.match(one.said[0] ?? '', 'a defect');
  await one.stop();
  const other = bed(2);
  await other.clock.advance(100);
  assert.is(other.drains.of('uid-1').length, 2);
  other.look = clusterLook(1);
  await other.clock.advance(10_000);
  assert.is(other.drains.of('uid-1').length, 1);
  other.installations = [];
  await other.clock.advance(10_000);
  assert.equal(other.drains.of('uid-1'), []);
  await other.stop();
});

test.run();
