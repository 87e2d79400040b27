import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { type Transport, TransportError } from '../../executor/kube/transport.ts';
import { acquireLease } from '../../executor/lease/acquire.ts';
import { type HeldLease, LeaseLost } from '../../executor/lease/held.ts';
import { lead } from '../../executor/lease/leadership.ts';
import { acquireInOrder } from '../../executor/lease/operation.ts';
import type { LeaseOptions } from '../../executor/lease/record.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { type SharedServer, sharedApiServer } from '../apiserver/shared.ts';
import { FaultPlan } from '../faults/plan.ts';
import { faultTransport } from '../faults/transport.ts';
import { type Edge, edgeOf, until } from './kubeBed.ts';

const timings = { durationMs: 3000, renewEveryMs: 500, marginMs: 300, retryMs: 50, requestMs: 1000 };

let server: SharedServer;
let edge: Edge;
let namespace: string;
const held: HeldLease[] = [];
const edges: Edge[] = [];

test.before(async () => {
  server = await sharedApiServer();
  edge = edgeOf(server);
  edges.push(edge);
  namespace = await freshNamespace(server.admin, 'lease');
});

test.after(async () => {
  for (const lease of held) await lease.release();
  for (const { transport } of edges) await transport.close();
  await server.admin.close();
});

function options(name: string, holder: string, change: Partial<LeaseOptions> = {}): LeaseOptions {
  return {
    client: edge.client,
    clock: systemClock,
    namespace,
    name,
    holder,
    fieldManager: 'keelson',
    timings,
    ...change,
  };
}

async function acquire(wanted: LeaseOptions, limitMs = 20_000): Promise<HeldLease> {
  const outcome = await acquireLease(wanted, { signal: AbortSignal.timeout(limitMs) });
  if (outcome.type !== 'held') throw new Error(outcome.message);
  held.push(outcome.lease);
  return outcome.lease;
}

function isHeld(lease: HeldLease): boolean {
  return lease.state().held;
}

async function read(
  name: string,
  client: KubeClient = edge.client,
): Promise<JsonObject & { metadata: { uid?: string; resourceVersion?: string } }> {
  const found = await client.get({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name });
  if (found.type !== 'found') throw new Error(found.type);
  return { ...found.object.spec, metadata: found.object.metadata };
}

/** A client whose network can be cut. */
function cuttable(): { client: KubeClient; cut: () => void } {
  let dead = false;
  const own = edgeOf(server, {
    wrap:
      (inner: Transport): Transport =>
      (request) =>
        dead ? Promise.reject(new TransportError('the network is cut', false)) : inner(request),
  });
  edges.push(own);
  return {
    client: own.client,
    cut: () => {
      dead = true;
    },
  };
}

test('renewed past its first expiry, released, and at once taken by the next with the next number', async () => {
  const lease = await acquire(options('renewed', 'one'));
  const { leaseUid } = lease.token;
  const spec = await read('renewed');
  assert.equal([spec.holderIdentity, spec.leaseDurationSeconds, spec.leaseTransitions], ['one', 3, 0]);
  const began = performance.now();
  await until('it is older than its duration', () => performance.now() - began > 3500);
  assert.equal(lease.check(), { leaseUid, holder: 'one', transitions: 0 });
  assert.ok(lease.state().renewals >= 3);
  assert.equal(await lease.release(), { type: 'released' });
  assert.throws(
    () => lease.check(),
    (error: unknown) => error instanceof LeaseLost && error.reason === 'released',
  );
  const asked = performance.now();
  const next = await acquire(options('renewed', 'two'));
  assert.ok(performance.now() - asked < 1500, 'a free Lease needs no wait');
  assert.equal(next.token, { leaseUid, holder: 'two', transitions: 1 });
  assert.equal(await lease.release(), { type: 'notOurs', holder: 'two' });
  assert.is((await read('renewed')).holderIdentity, 'two');
});

test('a dead holder stops by its own clock; takeover comes only after the whole duration unchanged', async () => {
  const network = cuttable();
  const first = await acquire(options('dead', 'one', { client: network.client }));
  await until('a renewal', () => first.state().renewals > 0);
  let lostAt = 0;
  first.signal.addEventListener('abort', () => {
    lostAt = performance.now();
  });
  network.cut();
  const asked = performance.now();
  const second = await acquire(options('dead', 'two'));
  const takenAt = performance.now();
  assert.ok(takenAt - asked >= 3000, `after ${takenAt - asked} ms`);
  assert.ok(lostAt > 0 && lostAt < takenAt, 'the first stopped before the second began');
  assert.is((first.signal.reason as LeaseLost).reason, 'expired');
  assert.is(second.token.transitions, 1);
});

test('a living holder is never robbed, however long one waits', async () => {
  const first = await acquire(options('living', 'one'));
  const outcome = await acquireLease(options('living', 'two'), { signal: AbortSignal.timeout(20_000), limitMs: 4000 });
  assert.is(outcome.type === 'busy' && outcome.holder, 'one');
  assert.ok(isHeld(first));
});

test('a Lease that another wrote is lost within a renewal, its work is cancelled, and its release refused', async () => {
  const lease = await acquire(options('stolen', 'one'));
  const spec = await read('stolen');
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/stolen`;
  await server.admin.expect('PATCH', path, {
    type: 'application/merge-patch+json',
    body: { spec: { holderIdentity: 'thief', leaseTransitions: 7 } },
  });
  await until('the loss', () => lease.signal.aborted, 10_000);
  assert.is((lease.signal.reason as LeaseLost).reason, 'taken');
  assert.equal(await lease.release(), { type: 'notOurs', holder: 'thief' });
  // The same name is not the same acquisition: neither with another number nor with another UID.
  await server.admin.expect('PATCH', path, {
    type: 'application/merge-patch+json',
    body: { spec: { holderIdentity: 'one', leaseTransitions: 8 } },
  });
  assert.equal(await lease.release(), { type: 'notOurs', holder: 'one' });
  await server.admin.expect('DELETE', path);
  const body = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'stolen' },
    spec: { ...spec, metadata: undefined },
  };
  await server.admin.expect('POST', path.replace(/\/stolen$/, ''), { body });
  assert.equal(await lease.release(), { type: 'notOurs', holder: 'one' });
  assert.is((await read('stolen')).holderIdentity, 'one');
});

test('many contenders on a bad network: one at a time, each acquisition with its own number', async () => {
  const name = 'contended';
  const short = { durationMs: 1000, renewEveryMs: 200, marginMs: 200, retryMs: 20, requestMs: 400 };
  const plan = new FaultPlan();
  const faulty = edgeOf(server, { wrap: (inner) => faultTransport(inner, plan) });
  edges.push(faulty);
  const match = { resource: 'leases', name } as const;
  for (let n = 3; n < 200; n += 7)
    plan.inject({ match, nth: n, fault: { kind: n % 2 === 0 ? 'dropBefore' : 'dropAfter' } });
  for (let n = 20; n < 200; n += 40) plan.inject({ match, nth: n, fault: { kind: 'delay', ms: 350, when: 'after' } });
  const stop = new AbortController();
  const tokens: string[] = [];
  const overlaps: string[] = [];
  const contend = async (who: number): Promise<void> => {
    for (let turn = 0; !stop.signal.aborted; turn += 1) {
      const outcome = await acquireLease(options(name, `c${who}-${turn}`, { client: faulty.client, timings: short }), {
        signal: stop.signal,
      });
      if (outcome.type !== 'held') throw new Error(outcome.message);
      const { lease } = outcome;
      held.push(lease);
      if (!isHeld(lease)) continue;
      tokens.push(`${lease.token.leaseUid}/${lease.token.transitions}`);
      for (let step = 0; step < 5 + who && isHeld(lease); step += 1) {
        const others = [...held].filter(
          (other) => other !== lease && isHeld(other) && other.token.leaseUid === lease.token.leaseUid,
        );
        if (others.length > 0) overlaps.push(`${lease.token.holder} and ${others[0]?.token.holder}`);
        await systemClock.sleep(20);
      }
      // Every third dies instead: its renewals end, the Lease is left to expire.
      if (turn % 3 !== 2) await lease.release();
      else
        plan.inject({
          match: (request) =>
            request.verb === 'update' && JSON.stringify(request.body).includes(`"${lease.token.holder}"`),
          times: 1e6,
          fault: { kind: 'dropBefore' },
        });
    }
  };
  const all = [1, 2, 3, 4].map((who) =>
    contend(who).catch((error: unknown) => (stop.signal.aborted ? undefined : Promise.reject(error))),
  );
  await until('enough acquisitions', () => tokens.length >= 12, 30_000);
  stop.abort();
  await Promise.all(all);
  plan.clear();
  assert.equal(overlaps, []);
  assert.is(new Set(tokens).size, tokens.length, tokens.join(' '));
  console.log(
    `${tokens.length} acquisitions, ${plan.log.length} requests, ${plan.log.filter(({ fault }) => fault !== undefined).length} faults`,
  );
});

test('the Leases of an operation: in order, none kept when one cannot be had', async () => {
  const central = await acquire(options('op-central', 'someone'));
  const wanted = [options('op-installation', 'op-1'), options('op-central', 'op-1')];
  const busy = await acquireInOrder(wanted, { signal: AbortSignal.timeout(20_000), limitMs: 500 });
  assert.is(busy.type === 'busy' && busy.holder, 'someone');
  assert.is((await read('op-installation')).holderIdentity, undefined);
  await central.release();
  const both = await acquireInOrder(
    wanted.map((one) => ({ ...one, holder: 'op-2' })),
    { signal: AbortSignal.timeout(20_000) },
  );
  if (both.type !== 'held') throw new Error(both.message);
  assert.equal(
    both.leases.check().map(({ holder, transitions }) => [holder, transitions]),
    [
      ['op-2', 1],
      ['op-2', 1],
    ],
  );
  assert.equal(
    (await both.leases.release()).map(({ type }) => type),
    ['released', 'released'],
  );
});

test('two replicas lead in turn; the end of one is the beginning of the other', async () => {
  const told: string[] = [];
  let ids = 0;
  const replica = (identity: string, signal: AbortSignal): Promise<void> =>
    lead(
      {
        ...options('leader', ''),
        identity,
        uniqueId: () => String(ids++),
        work: async (_lease, ends) => {
          told.push(`${identity} begins`);
          await new Promise((resolve) => ends.addEventListener('abort', resolve, { once: true }));
          told.push(`${identity} ends`);
        },
      },
      signal,
    );
  const stops = { a: new AbortController(), b: new AbortController() };
  const a = replica('a', stops.a.signal);
  await until('a leads', () => told.length === 1);
  const b = replica('b', stops.b.signal);
  stops.a.abort();
  await a;
  await until('b leads', () => told.length === 3, 10_000);
  stops.b.abort();
  await b;
  assert.equal(told, ['a begins', 'a ends', 'b begins', 'b ends']);
});

test('kill -9 of the API server: a short Lease is lost by its own clock, a long one outlives the restart', async () => {
  const own = await startApiServer();
  const past = edgeOf(own);
  const there = { client: past.client, namespace: 'default' };
  try {
    const short = await acquire(options('short', 'one', there));
    const long = await acquire(options('long', 'one', { ...there, timings: { ...timings, durationMs: 60_000 } }));
    await own.kill9();
    await until('the short one is lost', () => !isHeld(short), 10_000);
    assert.is((short.signal.reason as LeaseLost).reason, 'expired');
    assert.ok(isHeld(long));
    await own.restart();
    const { renewals } = long.state();
    await until('the long one is renewed again', () => long.state().renewals > renewals + 1, 10_000);
    const next = await acquire(options('short', 'two', there));
    assert.is(next.token.transitions, 1);
    assert.equal(
      [(await next.release()).type, (await long.release()).type, (await short.release()).type],
      ['released', 'released', 'notOurs'],
    );
  } finally {
    await past.transport.close();
    await own.stop();
  }
});

test.run();
