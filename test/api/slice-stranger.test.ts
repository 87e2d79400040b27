import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { labels } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { told } from './prune-bed.ts';
import { payloadMutations, type SliceBed, withBed } from './slice-bed.ts';
import {
  type BuiltPayload,
  buildPayload,
  configMap,
  deployment,
  gate,
  type Manifest,
  type PhaseInput,
  testKey,
} from './slice-payload.ts';
import { inPlace, ready, want } from './spans-bed.ts';

/** What a stranger made before a create-only manifest named it: it is theirs, whatever a later payload says of it. */

const names = ['plain', 'labelled', 'clashing'] as const;

/** What the payload says of them; of one of them something else than what is there. */
const said = (name: (typeof names)[number]): Record<string, string> =>
  name === 'clashing' ? { value: 'ours' } : { ours: 'one' };

const phases = (bed: SliceBed, value: string, flags: NonNullable<Manifest['flags']>): Promise<BuiltPayload> => {
  const { namespace, release } = bed.names;
  const theirs = names.map((name) => ({ object: configMap(namespace, name, said(name)), flags }));
  const manifests = [{ object: configMap(namespace, 'a', { value }) }, ...theirs];
  return buildPayload({ release, key: testKey, phases: [{ name: 'one', manifests }] });
};

const pathOf = (bed: SliceBed, name: string): string => `/api/v1/namespaces/${bed.names.namespace}/configmaps/${name}`;
const idOf = (bed: SliceBed, name: string): string => `/ConfigMap/${bed.names.namespace}/${name}`;

const live = (bed: SliceBed): Promise<(JsonObject | undefined)[]> =>
  Promise.all(names.map((name) => bed.get(pathOf(bed, name))));

/** Made by somebody else; one of them with a label like ours, by which it is listed. Answers them as they are. */
async function strangers(bed: SliceBed): Promise<(JsonObject | undefined)[]> {
  const { namespace, release } = bed.names;
  for (const name of names) {
    const object = configMap(namespace, name, { value: 'theirs' });
    const label = name === 'labelled' ? { labels: { [labels.release]: release } } : {};
    await bed.server.admin.expect('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      body: { ...object, metadata: { ...(object.metadata as JsonObject), ...label } },
      query: { fieldManager: 'kubectl-create' },
    });
  }
  const before = await live(bed);
  const built = await phases(bed, 'one', { createOnly: true });
  await want(bed, built);
  await inPlace(bed, built);
  assert.equal(await live(bed), before, 'they are left alone');
  const ledger = await bed.ledger();
  for (const name of names) assert.is(ledger[idOf(bed, name)]?.state, 'unmanaged', name);
  return before;
}

test('a tombstone for it removes the id from the ledger, and nothing from the cluster', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const before = await strangers(bed);
    executor.plan.resetLog();
    const second = await phases(bed, 'one', { absent: true });
    await want(bed, second, { approval: { mode: 'never' } });
    await inPlace(bed, second);
    assert.equal(await live(bed), before);
    assert.equal(Object.keys(await bed.ledger()), [idOf(bed, 'a')]);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    assert.equal(executor.plan.violations, []);
  }));

test('a payload that means to manage it is refused, and nothing is written', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const before = await strangers(bed);
    executor.plan.resetLog();
    const second = await phases(bed, 'two', {});
    await want(bed, second);
    const reasons = { plain: 'AlreadyExists', labelled: 'AlreadyExists', clashing: 'FieldConflict' };
    const status = await bed.untilStatus('it is refused', (s) =>
      Object.values(reasons).includes(s.condition('Accepted')?.reason ?? ''),
    );
    const told = status.raw.failures.map(({ reason, object }: { reason: string; object: string }) => [reason, object]);
    assert.equal(told.sort(), names.map((name) => [reasons[name], `ConfigMap ${bed.names.namespace}/${name}`]).sort());
    assert.equal(await live(bed), before);
    const written = payloadMutations(executor.plan, bed.system).filter(({ dryRun }) => dryRun !== true);
    assert.equal(written, []);
    for (const name of names) assert.is((await bed.ledger())[idOf(bed, name)]?.state, 'unmanaged', name);
  }));

test('what somebody makes while an earlier phase waits keeps no mark of ours, and stays when it leaves the payload', () =>
  withBed(async (bed) => {
    bed.executor();
    const { namespace, release } = bed.names;
    const first = {
      name: 'one',
      gates: [gate('WorkloadsReady', 'one')],
      manifests: [{ object: deployment(namespace, 'server', 2) }],
    };
    const second = { name: 'two', manifests: [{ object: configMap(namespace, 'late', { ours: 'one' }) }] };
    const build = (phases: PhaseInput[]): Promise<BuiltPayload> => buildPayload({ release, key: testKey, phases });
    await want(bed, await build([first, second]));
    await bed.untilStatus(
      'the first phase to wait',
      (s) => Object.keys(s.raw.phases?.[0]?.gates?.[0] ?? {}).length > 0,
    );
    await bed.server.admin.expect('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      body: configMap(namespace, 'late', { value: 'theirs' }),
      query: { fieldManager: 'kubectl-create' },
    });
    await ready(bed, 2);
    await told(bed, 'AlreadyExists');
    const found = await bed.get(pathOf(bed, 'late'));
    const { labels: labelled = {}, annotations = {}, ownerReferences = [] } = (found?.metadata ?? {}) as JsonObject;
    assert.not.match(JSON.stringify([labelled, annotations, ownerReferences]), 'keelson');
    assert.is((found?.data as JsonObject | undefined)?.value, 'theirs');
    const without = await build([first]);
    await want(bed, without, { approval: { mode: 'never' } });
    await inPlace(bed, without);
    assert.is(((await bed.get(pathOf(bed, 'late')))?.data as JsonObject | undefined)?.value, 'theirs');
    assert.is((await bed.ledger())[idOf(bed, 'late')], undefined);
  }));

test.run();
