import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, labels } from '../../constructs/api/constants.ts';
import { startApiServer } from '../apiserver/server.ts';
import { until } from './kubeBed.ts';
import { is, payloadMutations, type SliceBed, sliceBed } from './slice-bed.ts';
import {
  type BuiltPayload,
  buildPayload,
  configMap,
  type Manifest,
  namespaceObject,
  testKey,
} from './slice-payload.ts';
import { phasesOf, uninstaller } from './uninstall-bed.ts';

/** What an uninstall must leave alone: what was not approved, and what another Release is waiting for. */

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

const server = await startApiServer();
const { uninstall, planOf } = uninstaller(server);

const payload = (bed: SliceBed, namespace: string, names: readonly string[]): Promise<BuiltPayload> =>
  buildPayload({
    release: bed.names.release,
    key: testKey,
    phases: [{ name: 'one', manifests: names.map((name) => ({ object: configMap(namespace, name) })) }],
  });

async function carriedOut(bed: SliceBed, built: BuiltPayload): Promise<void> {
  await bed.deliver(built);
  await bed.applyRelease(built);
  await bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'), 60_000);
}

const configMaps = async (bed: SliceBed, namespace: string): Promise<Map<string, Loose>> => {
  const listed = (await bed.get(`/api/v1/namespaces/${namespace}/configmaps`)) as Loose;
  const ours = listed.items.filter(({ metadata }: Loose) => metadata.labels?.[labels.release] !== undefined);
  return new Map(ours.map((item: Loose) => [item.metadata.name, item]));
};

const uids = (found: Map<string, Loose>): string[] => [...found.values()].map(({ metadata }) => metadata.uid).sort();

test('an approval that was taken back half way is not one for what came afterwards', async () => {
  const bed = await sliceBed(server);
  const { namespace } = bed.names;
  try {
    await server.admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(namespace) });
    const executor = bed.executor({ engine: { goneMs: 5_000, gatePollMs: 100 } });
    await carriedOut(bed, await payload(bed, namespace, ['a', 'b', 'c']));
    const path = `/api/v1/namespaces/${namespace}/configmaps/b`;
    const hold = (value: string | null): Promise<unknown> =>
      server.admin.expect('PATCH', path, {
        body: { metadata: { annotations: { [annotations.hold]: value } } },
        type: 'application/merge-patch+json',
      });
    await hold('not yet');
    const { digest } = await planOf(bed, '--delete');
    const asked = `delete ${digest}`;
    await bed.annotate(annotations.uninstall, asked);
    const failing = (reason: string) => (status: { raw: Loose }) =>
      (status.raw.failures ?? []).some((failure: Loose) => failure.reason === reason);
    await bed.untilStatus('it is held', failing('ObjectHeld'), 60_000);
    assert.equal([...(await configMaps(bed, namespace)).keys()], ['b'], 'the others are gone');

    await bed.annotate(annotations.uninstall, null);
    await hold(null);
    await carriedOut(bed, await payload(bed, namespace, ['a', 'b', 'c', 'd']));
    const before = await configMaps(bed, namespace);
    assert.is(before.size, 4);
    executor.plan.resetLog();
    await bed.annotate(annotations.uninstall, asked);
    await bed.untilStatus('it is refused', failing('UninstallNotApproved'), 60_000);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    assert.equal(uids(await configMaps(bed, namespace)), uids(before));
    // What is approved now is carried out.
    await bed.annotate(annotations.uninstall, null);
    const now = await planOf(bed, '--delete');
    const said = await uninstall(bed, '--delete', '--approve', now.digest);
    assert.is(said.code, 0, said.err);
    assert.is((await configMaps(bed, namespace)).size, 0);
  } finally {
    await bed.close();
  }
});

for (const flags of [['--delete'], []])
  test(`uninstall ${flags.join(' ')}: what another Release waits for is handed over`, async () => {
    const a = await sliceBed(server);
    const b = await sliceBed(server, a);
    const { namespace } = a.names;
    try {
      await server.admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(namespace) });
      const executor = a.executor({ engine: { goneMs: 5_000, gatePollMs: 100 } });
      await carriedOut(a, await payload(a, namespace, ['of-a', 'shared']));
      const before = await configMaps(a, namespace);
      const takes = await payload(b, namespace, ['of-b', 'shared']);
      await b.deliver(takes);
      await b.applyRelease(takes);
      await b.untilStatus('it waits', (s) => s.condition('Accepted')?.reason === 'OwnedByAnother', 60_000);
      executor.plan.resetLog();
      const { digest } = await planOf(a, ...flags);
      const said = await uninstall(a, ...flags, '--approve', digest);
      assert.is(said.code, 0, said.err);
      await b.untilStatus('it has it', (s) => s.raw.actual === takes.digest && is(s, 'Ready', 'True'), 60_000);
      const { metadata } = (await configMaps(a, namespace)).get('shared');
      assert.equal(
        [metadata.uid, metadata.labels[labels.release]],
        [before.get('shared').metadata.uid, b.names.release],
      );
      const removed = payloadMutations(executor.plan, a.system).filter(({ verb }) => verb === 'delete');
      assert.equal(
        removed.map(({ name }) => name),
        flags.length === 0 ? [] : ['of-a'],
      );
      assert.equal(executor.plan.violations, []);
    } finally {
      await a.close();
    }
  });

/** Definitions of widgets and gadgets, in this order. */
const definitions = (bed: SliceBed): Manifest[] =>
  (phasesOf(bed, {})[0]?.manifests ?? []).filter(({ object }) => object.kind === 'CustomResourceDefinition');

const defining = (bed: SliceBed, manifests: readonly Manifest[]): Promise<BuiltPayload> =>
  buildPayload({ release: bed.names.release, key: testKey, phases: [{ name: 'one', manifests }] });

const definitionPath = ({ names }: SliceBed, plural: string): string =>
  `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.${names.group}`;

const deleteAll = ['--delete', '--delete-definitions'];

test('a definition that another Release waits for is handed over: consent to delete definitions is not for that one', async () => {
  const a = await sliceBed(server);
  const b = await sliceBed(server, a);
  try {
    const executor = a.executor({ engine: { goneMs: 5_000, gatePollMs: 100 } });
    await carriedOut(a, await defining(a, definitions(a)));
    const path = definitionPath(a, 'widgets');
    const before = (await a.get(path)) as Loose;
    const takes = await defining(b, definitions(b).slice(0, 1));
    await b.deliver(takes);
    await b.applyRelease(takes);
    await b.untilStatus('it waits', (s) => s.condition('Accepted')?.reason === 'OwnedByAnother', 60_000);
    const { digest } = await planOf(a, ...deleteAll);
    const said = await uninstall(a, ...deleteAll, '--approve', digest);
    assert.is(said.code, 0, said.err);
    // Not a word of the one that changed hands: whether the heir has it by now or not, it is not up for deletion.
    assert.match(said.out, `deleted definition gadgets.${a.names.group}`);
    assert.not.match(said.out, `definition widgets.${a.names.group}`);
    await b.untilStatus('it has it', (s) => s.raw.actual === takes.digest && is(s, 'Ready', 'True'), 60_000);
    const { metadata } = (await a.get(path)) as Loose;
    assert.equal(
      [metadata.uid, metadata.labels[labels.release], metadata.deletionTimestamp],
      [before.metadata.uid, b.names.release, undefined],
    );
    assert.equal(executor.plan.violations, []);
  } finally {
    await a.close();
  }
});

test('a definition that another Release has taken up after the executor was done stays', async () => {
  const bed = await sliceBed(server);
  const { group, release } = bed.names;
  try {
    bed.executor({ engine: { goneMs: 5_000, gatePollMs: 100 } });
    await carriedOut(bed, await defining(bed, definitions(bed)));
    const path = definitionPath(bed, 'widgets');
    const before = (await bed.get(path)) as Loose;
    const { digest } = await planOf(bed, ...deleteAll);
    await bed.annotate(annotations.uninstall, `delete ${digest}`);
    const recordPath = `/api/v1/namespaces/${bed.system}/configmaps/keelson-uninstall-${release}`;
    const record = async (): Promise<Loose> =>
      JSON.parse(((await bed.get(recordPath)) as Loose)?.data['uninstall.json'] ?? '{}');
    await until('the executor is done', async () => (await record()).state === 'done', 30_000);
    assert.is((await record()).definitions.length, 2);
    await server.admin.expect('PATCH', path, {
      body: { metadata: { labels: { [labels.release]: 'manifests-heir' } } },
      type: 'application/merge-patch+json',
    });
    const said = await uninstall(bed, ...deleteAll, '--approve', digest);
    assert.is(said.code, 0, said.err);
    assert.match(said.out, `deleted definition gadgets.${group}`);
    assert.match(said.out, `definition widgets.${group} stays: Release manifests-heir has it`);
    const { metadata } = (await bed.get(path)) as Loose;
    assert.equal([metadata.uid, metadata.deletionTimestamp], [before.metadata.uid, undefined]);
  } finally {
    await bed.close();
  }
});

test.after(async () => {
  await server.stop();
});

test.run();
