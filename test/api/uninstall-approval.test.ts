import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, labels } from '../../constructs/api/constants.ts';
import { startApiServer } from '../apiserver/server.ts';
import { is, payloadMutations, type SliceBed, sliceBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, namespaceObject, testKey } from './slice-payload.ts';
import { uninstaller } from './uninstall-bed.ts';

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

test.after(async () => {
  await server.stop();
});

test.run();
