// time limit: 300s
/** X4 and D4: an executor that dies in the middle of a first install, again and again. */
import * as assert from 'uvu/assert';
import type { CrashPlan, CrashPoint } from '../faults/crash.ts';
import { until } from './kubeBed.ts';
import {
  bypass,
  condition,
  gatesBypassed,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
  type RunningExecutor,
} from './network-bed.ts';
import { networkRelease } from './network-folder.ts';
import { checkpointWrites, idOf, orderProblems } from './network-log.ts';
import { workshopSuite } from './network-suite.ts';

const test = workshopSuite('network crash');

/** Short, since the Lease of a dead executor has to run out each time. */
const lease = { durationMs: 2_000, renewEveryMs: 500, marginMs: 300, retryMs: 50, requestMs: 1_000 };

type Match = NonNullable<CrashPlan['match']>;

/** One write at a time, so that the n-th is the same one in every run. */
const engine = { gatePollMs: 100, goneMs: 3_000, concurrency: 1 };

const ofPayload: Match = (request) =>
  payloadMutations([{ ...request, sequence: 0 }]).length === 1 && request.verb === 'apply';

async function dieAt(bed: NetworkBed, nth: number, at: CrashPoint, match: Match = ofPayload): Promise<RunningExecutor> {
  const executor = await bed.executor({ ...bypass, lease, engine, crash: { match, nth, at } });
  await until(`death ${at} of write ${nth}`, executor.dead, 60_000);
  await executor.ended;
  return executor;
}

test('X4: it dies between the seventh and the eighth write; a changed spec is blocked; the same payload is completed', async ({
  shop,
}) => {
  const bed = await networkBed(shop);
  try {
    const rendered = await bed.render();
    const { index, objects } = networkRelease(rendered);
    await bed.deliver(rendered);
    bed.playKubelets();
    const died = await dieAt(bed, 8, 'beforeSend');
    assert.is(payloadMutations(died.plan.log).filter(({ status }) => status === 201).length, 7);
    const checkpoint = (await bed.installation()).status.applyCheckpoint;
    assert.is(checkpoint.payloadDigest, index.digest);
    assert.is((await bed.ledger()).length, objects.size);

    // The gates of central stay shut, so that the install is still in the middle when the change arrives.
    const changed = await bed.render({ spec: { networkStack: 'ipv6' } });
    await bed.deliver(changed);
    const next = await bed.executor({ lease, engine });
    const blocked = await bed.until(
      paths.release,
      'the change to be blocked',
      (object) => condition(object, 'Ready')?.reason === 'ChangeBlocked',
      60_000,
    );
    assert.match(condition(blocked, 'Ready').message, /keelson uninstall/);
    assert.is(condition(blocked, 'Stalled')?.status, 'True');
    assert.is(blocked.status.desired, networkRelease(changed).index.digest);
    await bed.until(
      paths.installation,
      'the installation to be told',
      (object) => condition(object, 'Ready')?.reason === 'ChangeBlocked',
    );
    assert.equal((await bed.installation()).status.applyCheckpoint, checkpoint);
    await next.stop();
    const bodies = JSON.stringify(payloadMutations(next.plan.log).map(({ body }) => body));
    assert.not.match(bodies, /"ipv6"/);

    await bed.deliver(rendered);
    const last = await bed.executor({ ...bypass, lease, engine });
    const release = await bed.until(paths.release, 'the install to be completed', gatesBypassed, 60_000);
    assert.is(release.status.actual, index.digest);
    assert.equal(
      release.status.history.map((entry: Loose) => [entry.digest, entry.state]),
      [[index.digest, 'Completed']],
    );
    const all = [died, next, last].flatMap(({ plan }) => payloadMutations(plan.log));
    const created = all.filter(({ status }) => status === 201).map(idOf);
    assert.is(new Set(created).size, objects.size);
    assert.is(created.length, objects.size);
    assert.equal((await bed.installation()).status.applyCheckpoint, checkpoint);
  } finally {
    await bed.close();
  }
});

test('it dies at one write after the other, before, during and after; in the end everything is there once', async ({
  shop,
}) => {
  const bed = await networkBed(shop);
  try {
    const rendered = await bed.render();
    const { index, objects } = networkRelease(rendered);
    await bed.deliver(rendered);
    bed.playKubelets();
    const deaths: readonly (readonly [nth: number, at: CrashPoint, match?: Match])[] = [
      [1, 'afterEffect', ({ name, mutating }) => mutating && name?.startsWith('keelson-retained-') === true],
      [1, 'beforeSend', ({ name, mutating }) => mutating && name?.startsWith('keelson-ledger-') === true],
      [1, 'afterEffect', ({ name, mutating }) => mutating && name?.startsWith('keelson-ledger-') === true],
      [1, 'afterEffect', (request) => request.mutating && JSON.stringify(request.body).includes('applyCheckpoint')],
      [1, 'afterEffect'],
      [9, 'afterReply'],
      [3, 'afterEffect'],
      [20, 'beforeSend'],
      [15, 'afterReply'],
      [4, 'afterEffect'],
    ];
    const dead: RunningExecutor[] = [];
    for (const [nth, at, match] of deaths) dead.push(await dieAt(bed, nth, at, match));

    const last = await bed.executor({ ...bypass, lease, engine });
    const release = await bed.until(paths.release, 'the install to be completed', gatesBypassed, 60_000);
    const all = [...dead, last].flatMap(({ plan }) => payloadMutations(plan.log));
    const created = all.filter(({ status }) => status === 201).map(idOf);
    assert.is(new Set(created).size, created.length);
    assert.is(new Set(all.map(idOf)).size, objects.size);
    assert.is(release.status.actual, index.digest);
    for (const { plan } of [...dead, last]) assert.equal(plan.violations, []);
    const first = dead.find(({ plan }) => payloadMutations(plan.log).length > 0);
    const upToFirst = dead.slice(0, first === undefined ? 0 : dead.indexOf(first) + 1).flatMap(({ plan }) => plan.log);
    assert.equal(orderProblems(upToFirst.map((record, n) => ({ ...record, sequence: n }))), []);
    // Written once, and told to nobody when its reply was lost.
    assert.ok(checkpointWrites([...dead, last].flatMap(({ plan }) => plan.log)).length <= 1);
    assert.is((await bed.installation()).status.applyCheckpoint.payloadDigest, index.digest);
    const ledger = await bed.ledger();
    assert.is(ledger.length, objects.size);
    assert.ok(ledger.every((entry) => entry.state === 'applied'));
    console.log(`${deaths.length} deaths, ${all.length} writes sent for ${objects.size} objects`);
  } finally {
    await bed.close();
  }
});

test('X5: a value that another applies of an object in the making is a conflict; nothing more is written until it lets go', async ({
  shop,
}) => {
  const bed = await networkBed(shop);
  const { admin } = bed.server;
  try {
    const rendered = await bed.render();
    await bed.deliver(rendered);
    bed.playKubelets();
    await dieAt(bed, 1, 'afterEffect', ({ path, mutating }) => mutating && path === paths.central);
    const { apiVersion, kind, metadata } = await bed.get(paths.central);
    const { name, namespace } = metadata;
    await admin.expect('PATCH', paths.central, {
      body: { apiVersion, kind, metadata: { name, namespace }, spec: { replicas: 5 } },
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'scaler', force: 'true' },
    });
    const executor = await bed.executor({ ...bypass, lease, engine });
    const told = await bed.until(
      paths.release,
      'the conflict to be told',
      (object) => object.status.failures?.some((failure: Loose) => failure.reason === 'FieldConflict'),
      60_000,
    );
    assert.match(condition(told, 'Ready').message, /ovn-central.*scaler.*holds \.spec\.replicas/);
    assert.equal(payloadMutations(executor.plan.log), []);
    const live = await bed.get(paths.central);
    assert.is(live.spec.replicas, 5);
    const managedFields = live.metadata.managedFields.filter((entry: Loose) => entry.manager !== 'scaler');
    await bed.patch(paths.central, { metadata: { managedFields, resourceVersion: live.metadata.resourceVersion } });
    await bed.until(paths.release, 'the install to be completed', gatesBypassed, 60_000);
    assert.is((await bed.get(paths.central)).spec.replicas, 3);
    assert.is((await bed.get(paths.central)).metadata.uid, live.metadata.uid);
  } finally {
    await bed.close();
  }
});

test.run();
