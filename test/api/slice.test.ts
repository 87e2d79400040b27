import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { FaultPlan, RequestRecord } from '../faults/plan.ts';
import { is, payloadMutations, type SliceBed, sliceBed } from './slice-bed.ts';
import { buildPayload, configMap, slicePhases, testKey } from './slice-payload.ts';

/** Ids in a ledger ConfigMap that a request writes. */
function idsOf(record: RequestRecord): string[] {
  const { data } = record.body as { data: Record<string, string> };
  return JSON.parse(data['entries.json'] ?? '[]').map(({ id }: { id: string }) => id);
}

/** Before the first change of any payload object the ledger holds every id; answers how many there were. */
function assertLedgerFirst(plan: FaultPlan, system: string): number {
  const [first] = payloadMutations(plan, system);
  assert.ok(first, 'a payload object was written');
  const ledger = plan
    .mutations()
    .filter(({ name, sequence }) => name?.startsWith('keelson-ledger-') === true && sequence < (first?.sequence ?? 0));
  assert.ok(ledger.length > 0, 'the ledger was written before the first payload object');
  const last = ledger.at(-1);
  assert.ok(
    last?.status === 201 || last?.status === 200,
    'the ledger write was answered before the first payload object was sent',
  );
  return last === undefined ? 0 : idsOf(last).length;
}

const count = (plan: FaultPlan, verb: 'dry' | 'real', system: string): number =>
  plan.requests(
    ({ verb: v, dryRun, namespace }) => v === 'apply' && dryRun === (verb === 'dry') && namespace !== system,
  ).length;

async function settled(bed: SliceBed): Promise<void> {
  await bed.makeReady();
  await bed.untilStatus('Ready', (s) => is(s, 'Ready', 'True'));
}

test('twelve objects in three phases: accepted, written down, written, gated, told; then edited and pruned', async () => {
  const bed = await sliceBed();
  try {
    const { names, system } = bed;
    const phases = slicePhases(names, 'one', [{ object: configMap(names.namespace, 'leaves') }]);
    const first = await buildPayload({ release: names.release, phases, key: testKey });
    await bed.deliver(first);
    await bed.applyRelease(first);
    const executor = bed.executor();
    const waiting = await bed.untilStatus(
      'the gate of the last phase is waited for',
      (s) => s.raw.sync?.blocker?.gate === 'WorkloadsReady(workloads)',
    );
    assert.is(waiting.condition('Ready')?.status, 'Unknown');
    assert.match(waiting.condition('Progressing')?.message ?? '', /13 of 13 done \(100% complete\), waiting on/);
    assert.match(waiting.raw.sync.blocker.message, /Deployment.apps demo-\w+\/server|DaemonSet.apps demo-\w+\/agent/);
    assert.equal(
      waiting.raw.phases.map((p: { name: string; state: string }) => [p.name, p.state]),
      [
        ['definitions', 'Done'],
        ['access', 'Done'],
        ['workloads', 'Waiting'],
      ],
    );
    assert.is(waiting.raw.history[0].state, 'Partial');
    await settled(bed);
    const done = await bed.status();
    assert.is(done.raw.state, 'Reconciling');
    assert.is(done.raw.actual, first.digest);
    assert.is(done.raw.history[0].state, 'Completed');
    assert.is(done.condition('Available')?.status, 'True');
    assert.not.ok(done.condition('Reconciling'));

    // The whole ledger stands before the first object, and every object costs two requests.
    assert.is(assertLedgerFirst(executor.plan, system), 13);
    assert.is(payloadMutations(executor.plan, system).length, 13);
    assert.is(count(executor.plan, 'dry', system), 13);
    assert.is(count(executor.plan, 'real', system), 13);
    console.log(
      `requests for 13 new objects: ${count(executor.plan, 'dry', system)} dry runs, ${count(executor.plan, 'real', system)} applies`,
    );
    const ledger = await bed.ledger();
    assert.is(Object.keys(ledger).length, 13);
    assert.ok(Object.values(ledger).every((entry) => entry.state === 'applied' && entry.uid !== undefined));
    const retained = await bed.server.admin.expect('GET', `/api/v1/namespaces/${system}/configmaps`, {
      query: { labelSelector: 'keelson.dev/holds=retained' },
    });
    assert.is(retained.body.items.length, 1);
    assert.is(retained.body.items[0].metadata.managedFields[0].manager, 'keelson');

    // One object edited, one gone from the payload.
    executor.plan.resetLog();
    const second = await buildPayload({ release: names.release, phases: slicePhases(names, 'two'), key: testKey });
    await bed.deliver(second);
    await bed.applyRelease(second);
    const after = await bed.untilStatus(
      'the second payload is in place',
      (s) => s.raw.actual === second.digest && is(s, 'Ready', 'True'),
    );
    assert.equal(after.raw.plan.counts, {
      created: 0,
      configured: 1,
      unchanged: 11,
      replaced: 0,
      pruned: 1,
      absent: 0,
    });
    assert.is(after.raw.plan.changeClass, 'free');
    assert.equal(
      payloadMutations(executor.plan, system).map(({ verb, name }) => [verb, name]),
      [
        ['apply', 'settings'],
        ['delete', 'leaves'],
      ],
    );
    assert.is(count(executor.plan, 'dry', system), 1);
    assert.is((await bed.get(`/api/v1/namespaces/${names.namespace}/configmaps/leaves`)) === undefined, true);
    const settings = await bed.get(`/api/v1/namespaces/${names.namespace}/configmaps/settings`);
    assert.equal(settings?.data, { value: 'two' });
    assert.not.ok((await bed.ledger())[`/ConfigMap/${names.namespace}/leaves`]);
    assert.equal(
      after.raw.history.map((h: { digest: string; state: string }) => [h.digest, h.state]),
      [
        [second.digest, 'Completed'],
        [first.digest, 'Completed'],
      ],
    );
  } finally {
    await bed.close();
  }
});

test('a second process finds everything in place and changes nothing, at no cost per object', async () => {
  const bed = await sliceBed();
  try {
    const { names, system } = bed;
    const built = await buildPayload({ release: names.release, phases: slicePhases(names), key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built);
    const first = bed.executor();
    await settled(bed);
    await first.stop();
    const before = await bed.status();
    const second = bed.executor();
    await bed.untilStatus(
      'the second process has looked',
      () => second.plan.requests({ resource: 'daemonsets', verb: 'list' }).length >= 2,
    );
    await second.stop();
    assert.equal(payloadMutations(second.plan, system), []);
    const inSystem = second.plan.mutations().filter(({ resource }) => resource === 'configmaps');
    assert.equal(inSystem, [], 'neither ledger nor copies nor plan were written');
    assert.is(second.plan.count({ dryRun: true }), 0);
    const single = second.plan.requests(({ verb, namespace }) => verb === 'get' && namespace === names.namespace);
    assert.equal(single, [], 'no object is read by itself');
    const lists = second.plan.requests(({ verb, resource }) => verb === 'list' && resource !== 'releases');
    console.log(`a pass over 12 unchanged objects: ${lists.length} lists, 0 requests per object`);
    const after = await bed.status();
    assert.is(after.raw.history.length, before.raw.history.length);
    assert.is(after.condition('Ready')?.status, 'True');
  } finally {
    await bed.close();
  }
});

test('an object that somebody deleted comes back, and only that one is written', async () => {
  const bed = await sliceBed();
  try {
    const { names, system } = bed;
    const built = await buildPayload({ release: names.release, phases: slicePhases(names), key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built);
    const first = bed.executor();
    await settled(bed);
    await first.stop();
    const path = `/api/v1/namespaces/${names.namespace}/configmaps/scripts`;
    const old = await bed.get(path);
    await bed.server.admin.expect('DELETE', path);
    const second = bed.executor();
    const stored = (): number =>
      second.plan
        .mutations()
        .filter(({ name, status }) => name?.startsWith('keelson-ledger-') === true && status === 200).length;
    await bed.untilStatus('it is back, and the ledger knows it', () => stored() >= 2);
    await second.stop();
    assert.equal(
      payloadMutations(second.plan, system).map(({ verb, name }) => [verb, name]),
      [['apply', 'scripts']],
    );
    const fresh = await bed.get(path);
    const uid = (object: typeof fresh): unknown => (object?.metadata as { uid: string } | undefined)?.uid;
    assert.is.not(uid(fresh), uid(old));
    assert.is((await bed.ledger())[`/ConfigMap/${names.namespace}/scripts`]?.uid, uid(fresh));
  } finally {
    await bed.close();
  }
});

test.run();
