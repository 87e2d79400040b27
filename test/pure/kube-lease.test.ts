import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createClient, type KubeClient } from '../../executor/kube/client.ts';
import { TransportError } from '../../executor/kube/transport.ts';
import { acquireLease } from '../../executor/lease/acquire.ts';
import { type Contender, contend, type LeaseView } from '../../executor/lease/decide.ts';
import { type HeldLease, LeaseLost } from '../../executor/lease/held.ts';
import { lead } from '../../executor/lease/leadership.ts';
import { acquireInOrder } from '../../executor/lease/operation.ts';
import { checkTimings, defaultLeaseTimings } from '../../executor/lease/timings.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

const timings = defaultLeaseTimings;

function view(change: Partial<LeaseView> = {}): LeaseView {
  return { uid: 'u', resourceVersion: '1', holder: 'other', durationMs: 30_000, transitions: 4, ...change };
}

function look(
  contender: Contender,
  sentAt: number,
  receivedAt: number,
  lease: LeaseView | undefined,
): ReturnType<typeof contend> {
  return contend(contender, { sentAt, receivedAt, lease }, timings);
}

test('absent is made, free is taken, ours is resumed, held is watched', () => {
  const me = { identity: 'me' };
  assert.equal(look(me, 0, 1, undefined).action, { type: 'create' });
  assert.equal(look(me, 0, 1, view({ holder: '' })).action, {
    type: 'take',
    lease: view({ holder: '' }),
    transitions: 5,
  });
  assert.equal(look(me, 0, 1, view({ holder: 'me' })).action, { type: 'resume', lease: view({ holder: 'me' }) });
  assert.equal(look(me, 0, 1, view()).action, { type: 'wait', ms: 2000, holder: 'other' });
});

test('takeover needs a whole duration between the answer of one look and the request of another', () => {
  const first = look({ identity: 'me' }, 0, 500, view());
  assert.is(look(first.contender, 30_499, 90_000, view()).action.type, 'wait');
  assert.is(look(first.contender, 30_500, 30_600, view()).action.type, 'take');
  // One look alone says nothing, however long the Lease lay there.
  assert.is(look({ identity: 'me' }, 1e9, 1e9, view()).action.type, 'wait');
  // The recorded duration counts, not ours; without one, ours does.
  assert.is(look(first.contender, 30_500, 30_600, view({ durationMs: 60_000 })).action.type, 'wait');
  assert.is(look(first.contender, 30_500, 30_600, view({ durationMs: undefined })).action.type, 'take');
});

test('any change of version or UID begins the watch anew', () => {
  const changes = fc.record({
    after: fc.integer({ min: 1, max: 40_000 }),
    change: fc.constantFrom('none', 'version', 'uid'),
  });
  fc.assert(
    fc.property(fc.array(changes, { minLength: 1, maxLength: 30 }), (steps) => {
      let contender: Contender = { identity: 'me' };
      let now = 0;
      let lease = view();
      let unchangedSince: number | undefined;
      let version = 1;
      for (const { after, change } of steps) {
        now += after;
        if (change === 'version') lease = { ...lease, resourceVersion: String(++version) };
        if (change === 'uid') lease = { ...lease, uid: `u${++version}` };
        if (change !== 'none' || unchangedSince === undefined) unchangedSince = undefined;
        const { contender: next, action } = look(contender, now, now + 10, lease);
        const expected = unchangedSince !== undefined && now - unchangedSince >= 30_000 ? 'take' : 'wait';
        assert.is(action.type, expected);
        unchangedSince ??= now + 10;
        contender = next;
      }
    }),
  );
});

test('times that cannot keep a Lease are refused', () => {
  checkTimings(timings);
  assert.throws(() => checkTimings({ ...timings, renewEveryMs: 25_000 }), /renewEveryMs/);
  assert.throws(() => checkTimings({ ...timings, retryMs: 0 }), /positive/);
});

interface Stored {
  uid: string;
  version: number;
  spec: { holderIdentity?: string; leaseTransitions?: number; [key: string]: unknown };
}

/** A server of Leases in memory: versions, conflicts, and a network that delays, loses requests and loses replies. */
class LeaseServer {
  readonly stored = new Map<string, Stored>();
  readonly clock: VirtualClock;
  readonly random: () => number;
  /** Shares of requests that get lost before and after their effect, and the longest delay each way. */
  loss = { before: 0, after: 0, delayMs: 0 };
  down = false;
  /** The method of which every reply gets lost. */
  deaf: string | undefined;
  writes = 0;
  #uids = 0;
  #versions = 0;

  constructor(clock: VirtualClock, random: () => number) {
    this.clock = clock;
    this.random = random;
  }

  client(life: { dead: boolean } = { dead: false }): KubeClient {
    const { transport } = scriptedTransport(async (request) => {
      const known = discoveryAnswer(request.path);
      if (known !== undefined) return known;
      const signal = request.signal;
      await this.clock.sleep(this.random() * this.loss.delayMs, signal);
      if (this.down || life.dead || this.random() < this.loss.before) throw new TransportError('lost on the way', true);
      const answer = this.serve(request.method, request.path.split('/').at(-1) ?? '', request.body);
      await this.clock.sleep(this.random() * this.loss.delayMs, signal);
      if (request.method === this.deaf || life.dead || this.random() < this.loss.after)
        throw new TransportError('the reply was lost', true);
      return answer;
    });
    return createClient({ transport, clock: this.clock, random: this.random });
  }

  serve(method: string, name: string, body: string | undefined): Scripted {
    const sent = body === undefined ? undefined : JSON.parse(body);
    const key = method === 'POST' ? sent.metadata.name : name;
    const known = this.stored.get(key);
    if (method === 'POST') {
      if (known !== undefined) return statusOf(409, 'AlreadyExists', 'x');
      return this.store(key, { uid: `uid-${++this.#uids}`, version: 0, spec: sent.spec }, 201);
    }
    if (known === undefined) return statusOf(404, 'NotFound', 'x', { name: key, kind: 'leases' });
    if (method === 'GET') return this.answer(key, known, 200);
    if (sent.metadata.resourceVersion !== String(known.version)) return statusOf(409, 'Conflict', 'modified');
    return this.store(key, { ...known, spec: sent.spec }, 200);
  }

  store(key: string, next: Stored, status: number): Scripted {
    this.writes += 1;
    const stored = { ...next, version: ++this.#versions };
    this.stored.set(key, stored);
    return this.answer(key, stored, status);
  }

  answer(name: string, { uid, version, spec }: Stored, status: number): Scripted {
    const metadata = { name, namespace: 'demo', uid, resourceVersion: String(version) };
    return { status, body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec } };
  }

  options(holder: string, name = 'lease', life?: { dead: boolean }) {
    return { client: this.client(life), clock: this.clock, namespace: 'demo', name, holder, fieldManager: 'keelson' };
  }
}

async function timed<T>(clock: VirtualClock, promise: Promise<T>, steps = 10_000): Promise<T> {
  let over = false;
  const settle = (): void => {
    over = true;
  };
  promise.then(settle, settle);
  for (let n = 0; n < steps && !over; n += 1) await clock.next();
  return promise;
}

function bed(seed = 1): { clock: VirtualClock; server: LeaseServer; never: AbortSignal } {
  const clock = new VirtualClock();
  return { clock, server: new LeaseServer(clock, seededRandom(seed)), never: new AbortController().signal };
}

async function acquired(server: LeaseServer, holder: string, name?: string): Promise<HeldLease> {
  const outcome = await timed(
    server.clock,
    acquireLease(server.options(holder, name), { signal: new AbortController().signal }),
  );
  if (outcome.type !== 'held') throw new Error(JSON.stringify(outcome));
  return outcome.lease;
}

function lossOf(lease: HeldLease): string {
  try {
    lease.check();
    return 'held';
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
    return error.reason;
  }
}

test('a Lease outlives its duration by renewals, and its token stays', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  assert.equal(lease.check(), { leaseUid: 'uid-1', holder: 'one', transitions: 0 });
  await clock.advance(300_000);
  assert.equal(lease.check(), { leaseUid: 'uid-1', holder: 'one', transitions: 0 });
  assert.is(lease.state().renewals, 30);
  assert.equal(await timed(clock, lease.release()), { type: 'released' });
  assert.is(server.stored.get('lease')?.spec.holderIdentity, undefined);
  assert.is(clock.sleeping, 0);
  const next = await acquired(server, 'two');
  assert.equal(next.token, { leaseUid: 'uid-1', holder: 'two', transitions: 1 });
  await timed(clock, next.release());
});

test('without an acknowledged renewal it ends 25 s after the last one was sent, while a contender waits 30', async () => {
  const { clock, server, never } = bed();
  const lease = await acquired(server, 'one');
  await clock.advance(10_000);
  server.down = true;
  await clock.advance(24_999);
  assert.is(lossOf(lease), 'held');
  assert.is(lease.state().remainingMs, 1);
  await clock.advance(1);
  assert.is(lossOf(lease), 'expired');
  assert.is(lease.signal.aborted, true);
  server.down = false;
  const second = acquireLease(server.options('two'), { signal: never });
  await clock.advance(29_999);
  assert.is(server.stored.get('lease')?.spec.holderIdentity, 'one');
  const outcome = await timed(clock, second);
  assert.is(outcome.type === 'held' && outcome.lease.token.transitions, 1);
  assert.equal(await timed(clock, lease.release()), { type: 'notOurs', holder: 'two' });
  assert.is(server.stored.get('lease')?.spec.holderIdentity, 'two');
  if (outcome.type === 'held') await timed(clock, outcome.lease.release());
  assert.is(clock.sleeping, 0);
});

test('a renewal that is acknowledged after the deadline does not bring a Lease back', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  server.loss.delayMs = 200_000;
  await clock.advance(200_000);
  assert.is(lossOf(lease), 'expired');
  server.loss.delayMs = 0;
  await timed(clock, lease.release());
  assert.is(lossOf(lease), 'expired');
});

test('taken, deleted and refused end it at once', async () => {
  for (const [change, expected] of [
    [(server: LeaseServer) => server.serve('PUT', 'lease', JSON.stringify(stolen(server))), 'taken'],
    [(server: LeaseServer) => server.stored.delete('lease'), 'deleted'],
  ] as const) {
    const { clock, server } = bed();
    const lease = await acquired(server, 'one');
    change(server);
    await clock.advance(10_000);
    assert.is(lossOf(lease), expected);
    assert.ok(lease.signal.reason instanceof LeaseLost);
    const released = await timed(clock, lease.release());
    assert.is(released.type, 'notOurs');
    assert.is(clock.sleeping, 0);
  }
});

function stolen(server: LeaseServer): object {
  return {
    metadata: { resourceVersion: String(server.stored.get('lease')?.version) },
    spec: { holderIdentity: 'thief', leaseTransitions: 9 },
  };
}

test('a label set by a person, and an own write whose reply was lost, cost nothing', async () => {
  const { clock, server } = bed();
  const lease = await acquired(server, 'one');
  const known = server.stored.get('lease');
  if (known !== undefined) server.store('lease', known, 200);
  await clock.advance(10_000);
  assert.is(lease.state().renewals, 1);
  server.loss.after = 1;
  await clock.advance(11_000);
  server.loss.after = 0;
  await clock.advance(20_000);
  assert.is(lossOf(lease), 'held');
  await timed(clock, lease.release());
});

test('an acquisition whose reply was lost is resumed as the same', async () => {
  const { clock, server, never } = bed();
  server.deaf = 'POST';
  const wanted = acquireLease(server.options('one'), { signal: never });
  await clock.advance(1000);
  assert.is(server.stored.get('lease')?.spec.holderIdentity, 'one');
  server.deaf = undefined;
  const outcome = await timed(clock, wanted);
  assert.equal(outcome.type === 'held' && outcome.lease.token, { leaseUid: 'uid-1', holder: 'one', transitions: 0 });
  if (outcome.type === 'held') await timed(clock, outcome.lease.release());
});

test('a limit ends the wait and names the holder; a refusal ends it at once', async () => {
  const { clock, server, never } = bed();
  const lease = await acquired(server, 'one');
  const outcome = await timed(clock, acquireLease(server.options('two'), { signal: never, limitMs: 5000 }));
  assert.is(outcome.type === 'busy' && outcome.holder, 'one');
  assert.is(clock.monotonic(), 5000);
  const { transport } = scriptedTransport(
    (request) => discoveryAnswer(request.path) ?? statusOf(403, 'Forbidden', 'x'),
  );
  const client = createClient({ transport, clock, random: Math.random });
  assert.is((await acquireLease({ ...server.options('two'), client }, { signal: never })).type, 'forbidden');
  await timed(clock, lease.release());
});

test('two Leases are held in order, checked together, and given up in the opposite one', async () => {
  const { clock, server, never } = bed();
  const central = await acquired(server, 'someone', 'central');
  const wanted = [server.options('op', 'installation'), server.options('op', 'central')];
  const busy = await timed(clock, acquireInOrder(wanted, { signal: never, limitMs: 3000 }));
  assert.is(busy.type === 'busy' && busy.holder, 'someone');
  assert.is(server.stored.get('installation')?.spec.holderIdentity, undefined);
  await timed(clock, central.release());
  const outcome = await timed(clock, acquireInOrder(wanted, { signal: never }));
  if (outcome.type !== 'held') throw new Error(outcome.message);
  const { leases } = outcome;
  assert.is(leases.check().length, 2);
  server.serve(
    'PUT',
    'central',
    JSON.stringify({
      metadata: { resourceVersion: String(server.stored.get('central')?.version) },
      spec: { holderIdentity: 'thief' },
    }),
  );
  await clock.advance(10_000);
  assert.is(leases.signal.aborted, true);
  assert.throws(
    () => leases.check(),
    (error: unknown) => error instanceof LeaseLost && error.reason === 'taken',
  );
  const released = await timed(clock, leases.release());
  assert.equal(
    released.map(({ type }) => type),
    ['notOurs', 'released'],
  );
  assert.is(clock.sleeping, 0);
});

test('leading: a term per Lease under a new name, ended by loss, and given up only when the work has ended', async () => {
  const { clock, server } = bed();
  const stop = new AbortController();
  const told: string[] = [];
  let ids = 0;
  let working = 0;
  const { holder: _holder, ...options } = server.options('');
  const leading = lead(
    {
      ...options,
      identity: 'executor_pod',
      uniqueId: () => `id${ids++}`,
      work: async (lease, signal) => {
        working += 1;
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        // The last write of a term takes its time.
        await clock.sleep(700);
        if (lease.signal.aborted === false) told.push(`still ${server.stored.get('lease')?.spec.holderIdentity}`);
        working -= 1;
      },
      onEvent: (event) =>
        told.push(event.type === 'leading' ? event.holder : event.type === 'stopped' ? event.reason : event.type),
    },
    stop.signal,
  );
  await clock.advance(15_000);
  server.down = true;
  await clock.advance(60_000);
  assert.is(working, 0);
  server.down = false;
  await clock.advance(60_000);
  assert.is(working, 1);
  stop.abort();
  await timed(clock, leading);
  assert.is(server.stored.get('lease')?.spec.holderIdentity, undefined);
  assert.equal(told, ['executor_pod_id0', 'expired', 'executor_pod_id1', 'still executor_pod_id1', 'ended']);
  assert.is(clock.sleeping, 0);
});

test('whatever the network loses, never two at once believe that they may write, and somebody gets on', async () => {
  const network = fc.record({
    seed: fc.nat(),
    before: fc.double({ min: 0, max: 0.4, noNaN: true }),
    after: fc.double({ min: 0, max: 0.4, noNaN: true }),
    delayMs: fc.constantFrom(0, 50, 1000, 4000, 20_000),
    contenders: fc.integer({ min: 2, max: 4 }),
  });
  let terms = 0;
  await fc.assert(
    fc.asyncProperty(network, async ({ seed, before, after, delayMs, contenders }) => {
      const { clock, server } = bed(seed);
      const random = seededRandom(seed + 1);
      server.loss = { before, after, delayMs };
      const leases = new Set<HeldLease>();
      const both: string[] = [];
      const stop = new AbortController();
      let names = 0;
      const contender = async (): Promise<void> => {
        while (!stop.signal.aborted) {
          const life = { dead: false };
          const outcome = await acquireLease(server.options(`c${names++}`, 'lease', life), { signal: stop.signal });
          if (outcome.type !== 'held') throw new Error(outcome.type);
          terms += 1;
          leases.add(outcome.lease);
          const ends = AbortSignal.any([stop.signal, outcome.lease.signal]);
          await clock.sleep(random() * 90_000, ends).catch(() => undefined);
          // Some give the Lease up; some die with it, and believe for a while that they have it.
          if (random() < 0.5) await outcome.lease.release();
          else life.dead = true;
        }
      };
      const all = Array.from({ length: contenders }, () => contender().catch(() => undefined));
      for (const end = clock.monotonic() + 400_000; clock.monotonic() < end; ) {
        await clock.next();
        const holding = [...leases].filter((lease) => lease.state().held).map((lease) => lease.token.holder);
        if (holding.length > 1) both.push(`${clock.monotonic()}: ${holding.join(' ')}`);
      }
      assert.equal(both, []);
      stop.abort();
      server.loss = { before: 0, after: 0, delayMs: 0 };
      for (const lease of leases) await timed(clock, lease.release());
      await timed(clock, Promise.all(all));
    }),
    { numRuns: 40 },
  );
  assert.ok(terms > 40, `only ${terms} terms`);
  await settled();
});

test.run();
