import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { acquireLease } from '../../executor/lease/acquire.ts';
import { type HeldLease, LeaseLost } from '../../executor/lease/held.ts';
import { lead } from '../../executor/lease/leadership.ts';
import { acquireInOrder } from '../../executor/lease/operation.ts';
import { acquired, bed, timed } from './kube-lease-support.ts';
import { seededRandom, settled } from './virtualClock.ts';

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
  // Nobody has taken the Lease meanwhile: its former holder goes on as soon as it is answered.
  await clock.advance(2_000 + 5_000);
  assert.is(working, 1);
  await clock.advance(53_000);
  assert.is(working, 1);
  assert.is(server.stored.get('lease')?.spec.leaseTransitions, 1);
  stop.abort();
  await timed(clock, leading);
  assert.is(server.stored.get('lease')?.spec.holderIdentity, undefined);
  assert.equal(told, ['executor_pod_id0', 'expired', 'executor_pod_id1', 'still executor_pod_id1', 'ended']);
  assert.is(clock.sleeping, 0);
});

test('after a refusal the Lease of a term of our own is waited for like that of any other', async () => {
  const { clock, server } = bed();
  const stop = new AbortController();
  const told: string[] = [];
  let ids = 0;
  const { holder: _holder, ...options } = server.options('');
  const leading = lead(
    {
      ...options,
      identity: 'pod',
      uniqueId: () => `id${ids++}`,
      work: (_lease, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      onEvent: (event) => told.push(event.type),
    },
    stop.signal,
  );
  await clock.advance(5_000);
  server.down = true;
  await clock.advance(60_000);
  server.refusing = true;
  server.down = false;
  await clock.advance(5_000);
  server.refusing = false;
  await clock.advance(30_000);
  assert.equal(told, ['leading', 'stopped', 'refused']);
  await clock.advance(20_000);
  assert.equal(told, ['leading', 'stopped', 'refused', 'leading']);
  stop.abort();
  await timed(clock, leading);
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
