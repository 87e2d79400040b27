import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { installationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { nodeMatters, serviceMatters } from '../../executor/network/cluster-watch.ts';
import { digestsOf, enforcedPart } from '../../executor/network/enforced.ts';
import { Observer } from '../../executor/network/observer.ts';
import { installationStatus } from '../../executor/network/status.ts';
import type { ClusterLook } from '../../executor/observe/expect.ts';
import { checkpointAt, installation } from './network-support.ts';
import { centralNodes, clusterLook } from './observe-look-support.ts';
import { answer, centralFacts, chassisFacts, drainFacts, podOf } from './observe-support.ts';
import { VirtualClock } from './virtualClock.ts';

interface Bed {
  readonly clock: VirtualClock;
  readonly observer: Observer;
  readonly told: number[];
  readonly said: string[];
  /** Kinds of sidecars that were asked. */
  readonly asked: string[];
  look: ClusterLook | undefined;
  installations: KubeObject[];
  down: boolean;
  fails: boolean;
  /** How long a look at the other half of a pair takes. */
  slowMs: number;
  /** The last installation whose other half was looked at. */
  peered: KubeObject | undefined;
  stop(): Promise<void>;
}

const nodes = centralNodes as unknown as never;

type SpecInput = Parameters<typeof installation>[0];

function bed(look: ClusterLook | null = clusterLook()): Bed {
  const clock = new VirtualClock();
  const said: string[] = [];
  const stop = new AbortController();
  const made: Omit<Bed, 'observer' | 'stop'> = {
    clock,
    told: [],
    said,
    asked: [],
    look: look ?? undefined,
    installations: [installation({ mode: 'centralOnly' }, { nodes })],
    down: false,
    fails: false,
    slowMs: 0,
    peered: undefined,
  };
  const observer = new Observer({
    client: { list: async () => ({ type: 'listed', items: [], resourceVersion: '1' }) } as unknown as KubeClient,
    clock,
    namespace: 'keelson-system',
    look: () => made.look,
    atOnce: 4,
    log: (_level, message) => said.push(message),
    source: {
      containers: { central: 'e', chassis: 'e', network: 'e', drain: 'main' },
      async ask(target) {
        made.asked.push(target.kind);
        if (target.kind === 'drain') return answer('drain', podOf(target), drainFacts(1)) as never;
        if (made.fails) throw new Error('a defect');
        const n = Number(target.node.slice(1));
        const pod = podOf(target);
        const facts = centralFacts(n, 3);
        if (made.down && n === 3) delete facts.nb;
        return (
          target.kind === 'central' ? answer('central', pod, facts) : answer('chassis', pod, chassisFacts(n))
        ) as never;
      },
      async peer(object) {
        made.peered = object;
        if (made.slowMs > 0) await clock.sleep(made.slowMs);
        return { type: 'noProvider' };
      },
    },
  });
  const running = observer.run(
    () => made.installations,
    () => made.told.push(clock.monotonic()),
    stop.signal,
  );
  return Object.assign(made, {
    observer,
    async stop() {
      stop.abort();
      await running;
    },
  });
}

const statusOf = ({ observer }: Bed, type: string): string | undefined =>
  observer.of('uid-1')?.verdict.conditions.find((one) => one.type === type)?.status;

test('J10: a hint shortens the pause between rounds, and decides nothing', async () => {
  const one = bed();
  await one.clock.advance(0);
  assert.is(statusOf(one, 'OVNDBReady'), 'True');
  one.down = true;
  await one.clock.advance(1_000);
  assert.is(statusOf(one, 'OVNDBReady'), 'True');
  for (let n = 0; n < 50; n += 1) one.observer.hurry();
  await one.clock.advance(0);
  assert.is(statusOf(one, 'OVNDBReady'), 'False');
  // The next round is a second away at least, however many hints come.
  one.down = false;
  one.observer.hurry();
  await one.clock.advance(900);
  assert.is(statusOf(one, 'OVNDBReady'), 'False');
  await one.clock.advance(100);
  assert.is(statusOf(one, 'OVNDBReady'), 'True');
  await one.stop();
});

test('R2: a verdict that says what the one before said is told once a minute, another one at once', async () => {
  const one = bed();
  await one.clock.advance(59_000);
  assert.equal(one.told, [0]);
  await one.clock.advance(6_000);
  assert.is(one.told.length, 2);
  one.down = true;
  await one.clock.advance(6_000);
  assert.is(one.told.length, 3);
  await one.stop();
});

test('E9: a round that ends with a defect is told, and the next one is as good as any; what is gone is forgotten', async () => {
  const one = bed();
  one.fails = true;
  await one.clock.advance(0);
  assert.match(one.said[0] ?? '', /^observation of main: a defect$/);
  assert.is(one.observer.of('uid-1'), undefined);
  one.fails = false;
  await one.clock.advance(5_000);
  assert.is(statusOf(one, 'OVNDBReady'), 'True');
  one.installations = [];
  await one.clock.advance(20_000);
  assert.is(one.observer.of('uid-1'), undefined);
  await one.stop();
});

test('E9: while the cluster can not be looked at no verdict is made', async () => {
  const one = bed(null);
  await one.clock.advance(30_000);
  assert.is(one.observer.of('uid-1'), undefined);
  one.look = clusterLook();
  await one.clock.advance(5_000);
  assert.is(statusOf(one, 'NorthdReady'), 'True');
  await one.stop();
});

test('E9: an executor that starts anew knows nothing until its first round is over: it says Unknown of all, and False of nothing', async () => {
  const inventory = { name: 'record', uid: 'cm-1', digest: `sha256:${'a'.repeat(64)}` };
  const held = installation({ mode: 'centralOnly' }, { nodes, topology: { inventory } });
  const release: KubeObject = {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    metadata: { name: 'network-main', generation: 1 },
    status: { observedGeneration: 1 },
  };
  /** What a process tells at this moment, of what was told before. */
  const told = ({ observer, clock }: Bed, before: KubeObject) => {
    const observed = observer.of('uid-1');
    const status = installationStatus({
      installation: before,
      spec: installationSpec.parse(before.spec),
      release,
      workloads: { type: 'WorkloadsReady', status: 'True', reason: 'RolledOut', message: 'all' },
      observing: true,
      planOnly: false,
      now: clock.now(),
      tick: clock.monotonic(),
      ...(observed === undefined ? {} : { observed }),
    });
    const list = status.conditions as unknown as { type: string; status: string; reason: string }[];
    const of = (type: string) => list.find((one) => one.type === type);
    const said = ['Ready', 'OVNDBReady', 'NorthdReady', 'Degraded'].map(
      (type) => `${type} ${of(type)?.status}/${of(type)?.reason}`,
    );
    return { said, after: { ...before, status } };
  };
  const old = bed();
  await old.clock.advance(0);
  const well = told(old, held);
  assert.equal(well.said.slice(1, 3), ['OVNDBReady True/MembersAgree', 'NorthdReady True/OneActive']);
  assert.ok(isObject(well.after.status.topology) && Array.isArray(well.after.status.topology.databases));
  await old.stop();

  // Watches take their time.
  const fresh = bed(null);
  for (const ms of [0, 3_000, 60_000]) {
    await fresh.clock.advance(ms);
    const { said, after } = told(fresh, well.after);
    assert.equal(said, [
      'Ready Unknown/VerificationPending',
      'OVNDBReady Unknown/RoundPending',
      'NorthdReady Unknown/RoundPending',
      'Degraded Unknown/RoundPending',
    ]);
    assert.equal(after.status.topology, { inventory });
  }
  fresh.look = clusterLook();
  await fresh.clock.advance(5_000);
  assert.equal(told(fresh, well.after).said.slice(1), well.said.slice(1));
  await fresh.stop();
});

test('E9: what was seen of one installation holds until its turn comes again, however many there are', async () => {
  const one = bed();
  const uids = [1, 2, 3, 4, 5, 6].map((n) => `uid-${n}`);
  one.installations = uids.map((uid) => {
    const made = installation({ mode: 'centralOnly' }, { nodes });
    return { ...made, metadata: { ...made.metadata, uid } };
  });
  one.slowMs = 15_000;
  // The first turn is still to tell how long one takes.
  await one.clock.advance(240_000);
  let oldest = 0;
  for (let second = 0; second < 300; second += 1) {
    await one.clock.advance(1_000);
    for (const uid of uids) {
      const observed = one.observer.of(uid);
      assert.ok(observed, uid);
      const age = one.clock.monotonic() - observed.verdict.time.endedTick;
      oldest = Math.max(oldest, age);
      assert.ok(age <= observed.limitMs, `${uid} is ${age} ms old, and holds for ${observed.limitMs} ms`);
    }
  }
  assert.ok(oldest > 60_000, `a turn takes its time: ${oldest}`);
  const stopped = one.stop();
  await one.clock.advance(60_000);
  await stopped;
});

/** An installation with a change that is not accepted; `kept`: its status holds what is enforced. */
function changed(accepted: SpecInput, live: SpecInput, kept = true): KubeObject {
  const before = installation(accepted);
  const digest = digestsOf(before).live;
  const applyCheckpoint = checkpointAt(digest);
  const enforced = enforcedPart({ ...before, status: { applyCheckpoint } }, installationSpec.parse(before.spec));
  return installation(live, { nodes, applyCheckpoint, ...(kept ? enforced : {}) });
}

test('while a change of the databases outside is blocked the accepted ones are asked, and not those of the change', async () => {
  const at = (host: string) => ({ northbound: `tcp:${host}:6641`, southbound: `tcp:${host}:6642` });
  const pair = { enabled: true, role: 'dataPlane', peerNamespace: 'hosted', tlsSecretRef: { name: 'keys' } } as const;
  const outside = { mode: 'nodeNetworking', external: at('192.0.2.1') } as const;
  for (const live of [
    { mode: 'nodeNetworking', external: at('192.0.2.9'), version: '1.17.0' },
    { mode: 'nodeNetworking', hcp: { ...pair, ...at('192.0.2.9') } },
  ] as const) {
    const one = bed();
    one.installations = [changed(outside, live)];
    await one.clock.advance(20_000);
    const asked = installationSpec.parse(one.peered?.spec);
    assert.equal([asked.external, asked.hcp, asked.version], [outside.external, undefined, '1.16.13']);
    await one.stop();
  }
  const half = bed();
  half.installations = [changed({ mode: 'nodeNetworking', hcp: { ...pair, ...at('192.0.2.1') } }, outside)];
  await half.clock.advance(20_000);
  const asked = installationSpec.parse(half.peered?.spec);
  assert.equal([asked.external, asked.hcp?.northbound], [undefined, at('192.0.2.1').northbound]);
  await half.stop();
});

test('no topology is recorded by a specification that may not be the enforced one', async () => {
  const [accepted, live] = [{ mode: 'centralOnly' }, { mode: 'centralOnly', central: { replicas: 5 } }] as const;
  const recorded = async (object: KubeObject): Promise<number | undefined> => {
    const one = bed();
    one.installations = [object];
    await one.clock.advance(20_000);
    assert.is(statusOf(one, 'OVNDBReady'), 'True');
    await one.stop();
    return one.observer.of('uid-1')?.verdict.toRecord?.chartReplicas;
  };
  assert.is(await recorded(changed(accepted, accepted, false)), 3);
  assert.is(await recorded(changed(accepted, live)), 3, 'what is kept is recorded');
  assert.is(await recorded(changed(accepted, live, false)), undefined);
});

test('J10: creation, deletion, labels, addresses, readiness and schedulability of a node matter, its heartbeat does not', () => {
  const [node] = clusterLook().nodes;
  assert.ok(node);
  const previous = node as KubeObject;
  const modified = (change: Partial<KubeObject>): boolean =>
    nodeMatters({ type: 'modified', previous, object: { ...previous, ...change } });
  const status = (conditions: object[], more: object = {}) =>
    ({ status: { ...previous.status, conditions, ...more } }) as Partial<KubeObject>;
  assert.ok(nodeMatters({ type: 'added', object: previous }) && nodeMatters({ type: 'deleted', object: previous }));
  assert.ok(modified({ metadata: { ...previous.metadata, labels: { role: 'x' } } }));
  assert.ok(modified({ spec: { unschedulable: true } }));
  assert.ok(modified(status([{ type: 'Ready', status: 'False' }])));
  assert.ok(modified(status([{ type: 'Ready', status: 'True' }], { addresses: [] })));
  assert.not(modified(status([{ type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' }])));
  assert.not(nodeMatters({ type: 'synced' }));
});

test('J10: what changes where packets of the probe go matters, and when it was last written does not', () => {
  const slice = (ready: boolean, trigger = 'a'): KubeObject =>
    ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'keelson-network-probe-x', annotations: { trigger } },
      ports: [{ port: 10673 }],
      endpoints: [{ addresses: ['10.16.0.2'], conditions: { ready } }],
    }) as unknown as KubeObject;
  const modified = (previous: KubeObject, object: KubeObject): boolean =>
    serviceMatters({ type: 'modified', previous, object });
  assert.ok(serviceMatters({ type: 'added', object: slice(true) }));
  assert.ok(serviceMatters({ type: 'deleted', object: slice(true) }));
  assert.ok(modified(slice(true), slice(false)));
  assert.not(modified(slice(true), slice(true, 'b')));
  const service = (name: string, clusterIP: string): KubeObject =>
    ({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { clusterIP } }) as unknown as KubeObject;
  const probe = 'keelson-network-probe';
  assert.ok(modified(service(probe, '10.96.0.1'), service(probe, '10.96.0.2')));
  assert.not(modified(service(probe, '10.96.0.1'), service(probe, '10.96.0.1')));
  assert.not(modified(service('ovn-nb', '10.96.0.1'), service('ovn-nb', '10.96.0.2')), 'others are none of its');
  assert.not(serviceMatters({ type: 'synced' }));
});

test('news of a node lead to a look at what it would take along; a question for a round does not', async () => {
  const one = bed();
  one.installations = [installation({ mode: 'full' }, { nodes })];
  await one.clock.advance(2_000);
  const drains = (): string[] => one.asked.filter((kind) => kind === 'drain');
  assert.is(drains().length, 3);
  const [first, ...rest] = one.look?.nodes ?? [];
  assert.ok(first && one.look);
  one.look = { ...one.look, nodes: [{ ...first, spec: { unschedulable: true } }, ...rest] };
  one.observer.hurry();
  await one.clock.advance(1_500);
  assert.is(drains().length, 3);
  one.observer.hurryNodes();
  await one.clock.advance(1_500);
  assert.is(drains().length, 4);
  assert.equal(
    one.observer.of('uid-1')?.drains?.map(({ node, cordoned }) => `${node} ${cordoned}`),
    ['n1 true', 'n2 false', 'n3 false'],
  );
  await one.stop();
});

test.run();
