// time limit: 120s
/** Two Releases and one object that changes hands: whoever comes first, nothing is deleted, and one of them has it. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { is, payloadMutations, type RunningExecutor, type SliceBed, sliceBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, namespaceObject, testKey } from './slice-payload.ts';

/** Long enough for what is applied one after the other to be seen together. */
const engine = { gatePollMs: 100, goneMs: 3_000, handOverMs: 1_500 };

const spec = { prune: { enabled: true, maxPercent: 100, maxCount: 20 } };

interface Pair {
  readonly a: SliceBed;
  readonly b: SliceBed;
  readonly executor: RunningExecutor;
  /** Payload of one of the two: an object of its own, and the one that changes hands where it has it. */
  build(of: SliceBed, own: string, has: boolean): Promise<BuiltPayload>;
  shared(): Promise<{ uid: string; release: string } | undefined>;
  id: string;
}

async function pair(work: (pair: Pair) => Promise<void>): Promise<void> {
  const a = await sliceBed();
  const b = await sliceBed(undefined, a);
  const { namespace } = a.names;
  try {
    await a.server.admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(namespace) });
    const executor = a.executor({ engine });
    await work({
      a,
      b,
      executor,
      id: `/ConfigMap/${namespace}/shared`,
      build: (of, own, has) =>
        buildPayload({
          release: of.names.release,
          key: testKey,
          phases: [
            {
              name: 'one',
              manifests: [own, ...(has ? ['shared'] : [])].map((name) => ({
                object: configMap(namespace, name, { from: of.names.release }),
              })),
            },
          ],
        }),
      async shared() {
        const live = (await a.get(`/api/v1/namespaces/${namespace}/configmaps/shared`)) as
          | { metadata: { uid: string; labels: Record<string, string> } }
          | undefined;
        if (live === undefined) return undefined;
        return { uid: live.metadata.uid, release: live.metadata.labels['keelson.dev/release'] ?? '' };
      },
    });
  } finally {
    await a.close();
  }
}

const ready = (bed: SliceBed, built: BuiltPayload) =>
  bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'), 30_000);

/** A has the object and B has not; answers its UID. */
async function start({ a, b, build, shared, executor }: Pair): Promise<string> {
  for (const [bed, has] of [
    [a, true],
    [b, false],
  ] as const) {
    const built = await build(bed, bed === a ? 'of-a' : 'of-b', has);
    await bed.deliver(built);
    await bed.applyRelease(built, spec);
    await ready(bed, built);
  }
  executor.plan.resetLog();
  const live = await shared();
  assert.is(live?.release, a.names.release);
  return live?.uid ?? '';
}

async function assertOwner(
  { executor, shared, id, a }: Pair,
  uid: string,
  owner: SliceBed,
  other: SliceBed,
): Promise<void> {
  assert.equal(await shared(), { uid, release: owner.names.release });
  assert.is((await owner.ledger())[id]?.uid, uid);
  assert.is((await other.ledger())[id], undefined);
  const removals = payloadMutations(executor.plan, a.system).filter(({ verb }) => verb === 'delete');
  assert.equal(removals, []);
  assert.equal(executor.plan.violations, []);
}

test('the one that takes it comes first: it is refused by name until the other lets go', () =>
  pair(async (two) => {
    const { a, b, build } = two;
    const uid = await start(two);
    const takes = await build(b, 'of-b', true);
    await b.deliver(takes);
    await b.applyRelease(takes, spec);
    const refused = await b.untilStatus('it is refused', (s) => s.condition('Accepted')?.reason === 'OwnedByAnother');
    assert.match(refused.condition('Accepted')?.message ?? '', new RegExp(`shared: Release ${a.names.release} has it`));
    assert.equal(payloadMutations(two.executor.plan, a.system), []);
    const drops = await build(a, 'of-a', false);
    await a.deliver(drops);
    await a.applyRelease(drops, spec);
    await Promise.all([ready(a, drops), ready(b, takes)]);
    await assertOwner(two, uid, b, a);
  }));

test('the one that gives it up comes first; afterwards it goes back the same way', () =>
  pair(async (two) => {
    const { a, b, build } = two;
    const uid = await start(two);
    const [drops, takes] = [await build(a, 'of-a', false), await build(b, 'of-b', true)];
    await a.deliver(drops);
    await a.applyRelease(drops, spec);
    await a.untilStatus('the first is accepted', (s) => s.raw.actual === drops.digest);
    await b.deliver(takes);
    await b.applyRelease(takes, spec);
    await Promise.all([ready(a, drops), ready(b, takes)]);
    await assertOwner(two, uid, b, a);

    const [back, gone] = [await build(a, 'of-a', true), await build(b, 'of-b', false)];
    await Promise.all([a.deliver(back), b.deliver(gone)]);
    await Promise.all([a.applyRelease(back, spec), b.applyRelease(gone, spec)]);
    await Promise.all([ready(a, back), ready(b, gone)]);
    await assertOwner(two, uid, a, b);
  }));

test('what was let go and is wanted back by the same release is taken up again, and pruned when nobody wants it', () =>
  pair(async (two) => {
    const { a, b, build, shared } = two;
    const uid = await start(two);
    const takes = await build(b, 'of-b', true);
    const drops = await build(a, 'of-a', false);
    // B asks for it and never gets so far as to take it: it is paused.
    await b.deliver(takes);
    await b.applyRelease(takes, { ...spec, paused: true });
    await a.deliver(drops);
    await a.applyRelease(drops, spec);
    await ready(a, drops);
    assert.equal(await shared(), { uid, release: a.names.release });
    assert.is((await a.ledger())[two.id], undefined);
    const back = await build(a, 'of-a', true);
    await a.deliver(back);
    await a.applyRelease(back, spec);
    await ready(a, back);
    await assertOwner(two, uid, a, b);
    const without = await build(b, 'of-b', false);
    await b.deliver(without);
    await b.applyRelease(without, spec);
    await ready(b, without);
    await a.applyRelease(drops, spec);
    await ready(a, drops);
    assert.is(await shared(), undefined, 'nobody wants it');
  }));

test.run();
