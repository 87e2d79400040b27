import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { labels } from '../../constructs/api/constants.ts';
import type { RequestMatch } from '../faults/plan.ts';
import { until } from './kubeBed.ts';
import { is, type RunningExecutor, type SliceBed, withBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, testKey } from './slice-payload.ts';

/** Edits by hand of an object that an accepted payload is about to write: neither drift of the old payload nor in place yet. */

const build = ({ names }: SliceBed, value: string): Promise<BuiltPayload> => {
  const phase = (name: string, objects: readonly string[]) => ({
    name,
    manifests: objects.map((one) => ({ object: configMap(names.namespace, one, { value }) })),
  });
  return buildPayload({ release: names.release, phases: [phase('one', ['a']), phase('two', ['b'])], key: testKey });
};

async function want(bed: SliceBed, value: string): Promise<BuiltPayload> {
  const built = await build(bed, value);
  await bed.deliver(built);
  await bed.applyRelease(built);
  return built;
}

const inPlace = (bed: SliceBed, built: BuiltPayload): Promise<unknown> =>
  bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'), 30_000);

const path = ({ names }: SliceBed, name: string): string => `/api/v1/namespaces/${names.namespace}/configmaps/${name}`;

const edit = (bed: SliceBed, name: string): Promise<unknown> =>
  bed.server.admin.expect('PATCH', path(bed, name), {
    type: 'application/merge-patch+json',
    query: { fieldManager: 'kubectl-edit' },
    body: { metadata: { annotations: { note: 'mine' } }, data: { value: 'by hand' } },
  });

const writeOf =
  (name: string): RequestMatch =>
  (request) =>
    request.mutating && request.verb === 'apply' && request.name === name;

const arrived = (executor: RunningExecutor, name: string): Promise<void> =>
  until(`the write of ${name} to come`, () => executor.plan.count(writeOf(name)) > 0, 20_000);

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

/** It is as the payload says, under the same UID, and what else the hand did stands under its name. */
async function takenBack(bed: SliceBed, uid: unknown, executors: readonly RunningExecutor[]): Promise<void> {
  const { metadata, data } = (await bed.get(path(bed, 'b'))) as Loose;
  assert.equal([data.value, metadata.uid, metadata.labels[labels.release]], ['two', uid, bed.names.release]);
  assert.is(metadata.annotations.note, 'mine');
  const hand = metadata.managedFields.find(({ manager }: Loose) => manager === 'kubectl-edit');
  assert.equal(Object.keys(hand.fieldsV1), ['f:metadata'], 'the hand gave up what it took, and nothing else');
  for (const { plan } of executors) assert.equal(plan.violations, []);
}

const uidOf = async (bed: SliceBed): Promise<unknown> => ((await bed.get(path(bed, 'b'))) as Loose).metadata.uid;

test('an edit between the dry run and the write is taken back by that write', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    await inPlace(bed, await want(bed, 'one'));
    const uid = await uidOf(bed);
    executor.plan.resetLog();
    executor.plan.inject({ match: writeOf('b'), fault: { kind: 'delay', ms: 1_500 } });
    const built = await want(bed, 'two');
    await arrived(executor, 'b');
    await edit(bed, 'b');
    await inPlace(bed, built);
    await takenBack(bed, uid, [executor]);
  }));

test('an edit while a payload is half carried out, and nobody works, is taken back by whoever goes on', () =>
  withBed(async (bed) => {
    const first = bed.executor();
    await inPlace(bed, await want(bed, 'one'));
    const uid = await uidOf(bed);
    first.plan.resetLog();
    first.plan.inject({ match: writeOf('b'), times: 1e6, fault: { kind: 'status', code: 403 } });
    const built = await want(bed, 'two');
    await arrived(first, 'b');
    await bed.untilStatus('the pass has failed', (s) => s.raw.failures?.length > 0);
    await first.stop();
    await edit(bed, 'b');
    const second = bed.executor();
    await inPlace(bed, built);
    await takenBack(bed, uid, [first, second]);
  }));

test("another manager's Apply is not taken back: it is named, and stands", () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    await inPlace(bed, await want(bed, 'one'));
    executor.plan.inject({ match: writeOf('b'), fault: { kind: 'delay', ms: 1_500 } });
    executor.plan.resetLog();
    const built = await want(bed, 'two');
    await arrived(executor, 'b');
    await bed.server.admin.expect('PATCH', path(bed, 'b'), {
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'other-tool', force: 'true' },
      body: configMap(bed.names.namespace, 'b', { value: 'theirs' }),
    });
    const told = await bed.untilStatus('it is named', (s) => s.condition('Ready')?.reason === 'FieldConflict');
    assert.match(told.condition('Ready')?.message ?? '', /other-tool/);
    assert.is(((await bed.get(path(bed, 'b'))) as Loose).data.value, 'theirs');
    assert.is((await bed.status()).raw.actual, built.digest);
  }));

test.run();
