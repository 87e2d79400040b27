// time limit: 180s
/** Who may write: the Leases of an installation and of its central, the Lease of the executors, and what a loss stops. */
import * as assert from 'uvu/assert';
import type { RequestRecord } from '../faults/plan.ts';
import { until } from './kubeBed.ts';
import {
  bypass,
  changes,
  condition,
  gatesBypassed,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
  system,
} from './network-bed.ts';
import { networkRelease } from './network-folder.ts';
import { checkpointWrites, idOf, orderProblems, phaseOf } from './network-log.ts';
import { workshopSuite } from './network-suite.ts';

const test = workshopSuite('network leases');

/** Short enough to see one run out. */
const lease = { durationMs: 3_000, renewEveryMs: 700, marginMs: 500, retryMs: 100, requestMs: 1_500 };
const leases = `/apis/coordination.k8s.io/v1/namespaces/${system}/leases`;
const isCentral = (record: Pick<RequestRecord, 'path' | 'dryRun'>): boolean =>
  record.path === paths.central && !record.dryRun;
const uid8 = (object: Loose): string => object.metadata.uid.replaceAll('-', '').slice(0, 8);

/** Writes a Lease as another holder would. */
async function hold(bed: NetworkBed, path: string, holder: string): Promise<void> {
  const live = await bed.get(path);
  const { leaseTransitions } = live.spec;
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  const spec = { ...live.spec, holderIdentity: holder, renewTime, leaseTransitions: leaseTransitions + 1 };
  await bed.server.admin.expect('PUT', path, { body: { ...live, spec } });
}

test('X13: the Lease of central is stolen in its phase: nothing more is written, and later it goes on at the same step', async ({
  shop,
}) => {
  const bed = await networkBed(shop);
  try {
    const rendered = await bed.render();
    const total = networkRelease(rendered).objects.size;
    await bed.deliver(rendered);
    bed.playKubelets();
    const executor = await bed.executor({ ...bypass, lease: { ...lease, durationMs: 4_000 } });
    const hits = executor.plan.inject({ match: isCentral, fault: { kind: 'hang' } });
    await until('the write of ovn-central to be under way', () => hits() === 1, 60_000);
    const installation = await bed.installation();
    const path = `${leases}/keelson-central-${uid8(installation)}`;
    // The write that is held up outlasts the first duration: the Lease is renewed beside it, and still ours.
    await bed.until(path, 'the Lease to be renewed past its first end', ({ spec }) => {
      const heldMs = Date.parse(spec.renewTime) - Date.parse(spec.acquireTime);
      return heldMs > spec.leaseDurationSeconds * 1_000;
    });
    const before = executor.plan.log.length;
    await hold(bed, path, 'thief');
    const written = payloadMutations(executor.plan.log).length;
    const told = await bed.until(paths.release, 'the loss to be told', (object) =>
      object.status.failures?.some((failure: Loose) => failure.reason === 'LeaseLost'),
    );
    assert.is(condition(told, 'Ready')?.status, 'False');
    assert.is(told.status.phases.find((p: Loose) => p.name === 'central').state === 'Done', false);
    // A holder that renews keeps everybody else out, however long it takes.
    const looks = (): number => executor.plan.log.slice(before).filter(({ path: at }) => at === path).length;
    for (let n = 0; n < 3; n += 1) {
      const seen = looks();
      await hold(bed, path, `thief-${n}`);
      await until('the executor to look at the Lease again', () => looks() > seen + 1, 20_000);
    }
    assert.is(payloadMutations(executor.plan.log).length, written);
    assert.is((await bed.get(path)).spec.holderIdentity, 'thief-2');
    const release = await bed.until(paths.release, 'it to go on', gatesBypassed, 60_000);
    assert.is(release.status.history.length, 1);
    const log = payloadMutations(executor.plan.log);
    assert.is(log.filter(({ status }) => status === 201).length, total);
    assert.equal(log.filter(({ status }) => status !== 201).map(idOf), ['apps/Deployment/kube-system/ovn-central']);
    assert.equal(orderProblems(executor.plan.log), []);
    assert.is(checkpointWrites(executor.plan.log).length, 1);
    const resumed = log.slice(written).map(phaseOf);
    assert.equal([...new Set(resumed)], ['central', 'data-plane']);
  } finally {
    await bed.close();
  }
});

test('two executors: one works; when it dies in the middle, the other goes on after the full time', async ({
  shop,
}) => {
  const bed = await networkBed(shop);
  try {
    const rendered = await bed.render();
    const total = networkRelease(rendered).objects.size;
    await bed.deliver(rendered);
    bed.playKubelets();
    const first = await bed.executor({
      ...bypass,
      lease,
      identity: 'first',
      crash: {
        match: ({ mutating, path }) => mutating && path.includes('/daemonsets/'),
        nth: 2,
        at: 'afterEffect',
      },
    });
    await bed.until(`${leases}/keelson-executor`, 'the first to lead', (l) =>
      l.spec.holderIdentity.startsWith('first'),
    );
    const second = await bed.executor({ ...bypass, lease, identity: 'second' });
    await until('the first to die', first.dead, 60_000);
    assert.equal(changes(second.plan.log), []);
    const release = await bed.until(paths.release, 'the second to be through', gatesBypassed, 60_000);
    assert.is(release.status.history.length, 1);
    const sent = [first, second].flatMap(({ plan }) => payloadMutations(plan.log));
    const created = sent.filter(({ status }) => status === 201).map(idOf);
    assert.is(new Set(sent.map(idOf)).size, total);
    assert.is(new Set(created).size, created.length);
    // What the first wrote and could not record any more is found by its marks, and taken for ours.
    const again = payloadMutations(second.plan.log).filter(({ status }) => status === 200);
    assert.is(new Set([...again.map(idOf), ...created]).size, total);
    assert.equal([...new Set(again.map(phaseOf))], ['data-plane']);
    const live = await bed.ledger();
    assert.ok(live.every((entry) => entry.state === 'applied' && entry.uid !== undefined));
  } finally {
    await bed.close();
  }
});

test.run();
