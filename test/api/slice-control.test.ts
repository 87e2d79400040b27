import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { holdAnnotation, is, payloadMutations, pinAnnotation, type SliceBed, withBed } from './slice-bed.ts';
import {
  type BuiltPayload,
  buildPayload,
  configMap,
  deployment,
  type Manifest,
  type PhaseInput,
  testKey,
} from './slice-payload.ts';

const maps = (bed: SliceBed, names: readonly string[], value: string): Manifest[] =>
  names.map((name) => ({ object: configMap(bed.names.namespace, name, { value }) }));

const build = (bed: SliceBed, phases: PhaseInput[]): Promise<BuiltPayload> =>
  buildPayload({ release: bed.names.release, phases, key: testKey });

/** Two phases of ConfigMaps in a namespace that exists. */
const simple = (bed: SliceBed, value: string, extra: readonly Manifest[] = []): Promise<BuiltPayload> =>
  build(bed, [
    { name: 'one', manifests: maps(bed, ['a', 'b'], value) },
    { name: 'two', manifests: [...maps(bed, ['c', 'd'], value), ...extra] },
  ]);

async function inPlace(
  bed: SliceBed,
  built: BuiltPayload,
  spec: Parameters<SliceBed['applyRelease']>[1] = {},
): Promise<void> {
  await bed.deliver(built);
  await bed.applyRelease(built, spec);
  await bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'));
}

const dataOf = async (bed: SliceBed, name: string): Promise<JsonObject | undefined> =>
  (await bed.get(`/api/v1/namespaces/${bed.names.namespace}/configmaps/${name}`))?.data as JsonObject | undefined;

/** Long enough for a worker that wanted to write to have done so: several of its turns. */
const turns = (): Promise<void> => systemClock.sleep(500);

test('paused: nothing is written while it is looked at; released, it goes on', () =>
  withBed(async (bed) => {
    const executor = bed.executor({ worker: { reconcileMs: 100 } });
    const first = await simple(bed, 'one');
    await inPlace(bed, first);
    executor.plan.resetLog();
    const second = await simple(bed, 'two');
    await bed.deliver(second);
    await bed.applyRelease(second, { paused: true });
    const paused = await bed.untilStatus('it says so', (s) => s.condition('Progressing')?.reason === 'Paused');
    assert.is(paused.condition('Ready')?.status, 'True', 'a pause changes nothing about what is in place');
    await turns();
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    assert.ok(executor.plan.count({ verb: 'list', resource: 'configmaps' }) > 2, 'it goes on looking');
    await bed.applyRelease(second);
    await bed.untilStatus('it went on', (s) => s.raw.actual === second.digest && is(s, 'Ready', 'True'));
    assert.equal(await dataOf(bed, 'a'), { value: 'two' });
  }));

test('hold on a Release, and on one object', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const first = await simple(bed, 'one');
    await inPlace(bed, first);
    await bed.annotate(holdAnnotation, 'incident 12');
    const held = await bed.untilStatus('it is held', (s) => s.condition('Held')?.status === 'True');
    assert.match(held.condition('Held')?.message ?? '', /incident 12/);
    await bed.annotate(holdAnnotation, null);
    await bed.untilStatus('it is let go', (s) => s.condition('Held') === undefined);
    await bed.annotate(holdAnnotation, '');
    await bed.untilStatus('no reason is needed', (s) => s.condition('Held')?.status === 'True');
    const second = await simple(bed, 'two');
    await bed.deliver(second);
    await bed.applyRelease(second);
    executor.plan.resetLog();
    await turns();
    assert.equal(payloadMutations(executor.plan, bed.system), []);

    const path = `/api/v1/namespaces/${bed.names.namespace}/configmaps/c`;
    await bed.server.admin.expect('PATCH', path, {
      body: { metadata: { annotations: { [holdAnnotation]: 'by hand' } } },
      type: 'application/merge-patch+json',
    });
    await bed.annotate(holdAnnotation, null);
    const status = await bed.untilStatus(
      'the rest is in place',
      (s) => s.raw.actual === second.digest && is(s, 'Ready', 'True'),
    );
    assert.is(status.condition('Held')?.reason, 'ObjectsHeld');
    assert.match(status.condition('Held')?.message ?? '', /\/ConfigMap\/demo-\w+\/c \(by hand\)/);
    assert.equal(await dataOf(bed, 'c'), { value: 'one' });
    assert.equal(await dataOf(bed, 'd'), { value: 'two' });
  }));

test('pin: a retained payload is enforced until the annotation goes; one that is not retained is refused', () =>
  withBed(async (bed) => {
    bed.executor();
    const [first, second] = [await simple(bed, 'one'), await simple(bed, 'two')];
    await inPlace(bed, first);
    await inPlace(bed, second);
    await bed.annotate(pinAnnotation, first.digest);
    const pinned = await bed.untilStatus(
      'the pin is enforced',
      (s) => s.raw.actual === first.digest && is(s, 'Ready', 'True'),
    );
    assert.is(pinned.condition('Pinned')?.status, 'True');
    assert.equal(await dataOf(bed, 'a'), { value: 'one' });
    await bed.annotate(pinAnnotation, `sha256:${'0'.repeat(64)}`);
    await bed.untilStatus('an unknown pin is refused', (s) => s.condition('Accepted')?.reason === 'PinNotRetained');
    assert.equal(await dataOf(bed, 'a'), { value: 'one' });
    for (const text of ['latest', '']) {
      await bed.annotate(pinAnnotation, text);
      const said = `keelson.dev/pin says "${text}", which is not the digest`;
      await bed.untilStatus(
        'a pin that is no digest is told',
        (s) => s.condition('Ready')?.message.includes(said) === true,
      );
      assert.equal(await dataOf(bed, 'a'), { value: 'one' });
    }
    await bed.annotate(pinAnnotation, first.digest);
    await bed.untilStatus(
      'what was accepted before is told as accepted',
      (s) => is(s, 'Ready', 'True') && is(s, 'Accepted', 'True'),
    );
    await bed.annotate(pinAnnotation, null);
    await bed.untilStatus('the spec rules again', (s) => s.raw.actual === second.digest && is(s, 'Ready', 'True'));
    assert.equal(await dataOf(bed, 'a'), { value: 'two' });
  }));

test('overrides: the object is left alone and stays in the ledger; lifted, it is taken up again', () =>
  withBed(async (bed) => {
    bed.executor();
    await inPlace(bed, await simple(bed, 'one'));
    const { namespace } = bed.names;
    const overrides = [{ group: '', kind: 'ConfigMap', namespace, name: 'b' }];
    const second = await simple(bed, 'two');
    await inPlace(bed, second, { overrides });
    assert.equal(await dataOf(bed, 'b'), { value: 'one' });
    assert.equal(await dataOf(bed, 'a'), { value: 'two' });
    assert.is((await bed.ledger())[`/ConfigMap/${namespace}/b`]?.state, 'unmanaged');
    await bed.applyRelease(second, { overrides: [] });
    await bed.untilStatus('the ledger owns it again', (s) => is(s, 'Ready', 'True'));
    assert.equal(await dataOf(bed, 'b'), { value: 'two' });
    assert.is((await bed.ledger())[`/ConfigMap/${namespace}/b`]?.state, 'applied');
  }));

test('dependsOn: another Release must be ready first; its becoming so is noticed at once', () =>
  withBed(async (bed) => {
    const other = `manifests-before-${bed.names.release.slice(-6)}`;
    bed.executor({
      worker: { reconcileMs: 60_000, backoff: { initialMs: 30_000, factor: 1, maxMs: 30_000, jitter: 0 } },
    });
    const built = await simple(bed, 'one');
    await bed.deliver(built);
    await bed.applyRelease(built, { dependsOn: [{ name: other }] });
    const waiting = await bed.untilStatus('it waits', (s) => s.condition('Accepted')?.reason === 'DependencyNotReady');
    assert.is(waiting.condition('Ready')?.status, 'Unknown');
    assert.not.ok(waiting.raw.actual);
    const path = `/apis/keelson.dev/v1alpha1/namespaces/${bed.system}/releases/${other}`;
    await bed.server.admin.expect('PATCH', path, {
      body: {
        apiVersion: 'keelson.dev/v1alpha1',
        kind: 'Release',
        metadata: { name: other, namespace: bed.system },
        spec: { payload: { digest: built.digest }, source: { configMaps: {} }, paused: true },
      },
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'test' },
    });
    // Once the executor has said that it is paused, it leaves Ready as it stands.
    const body = await waitFor({
      what: 'the executor to take the other release up',
      limitMs: 10_000,
      intervalMs: 50,
      clock: systemClock,
      probe: async () => {
        const answer = await bed.server.admin.expect('GET', path);
        return JSON.stringify(answer.body.status ?? {}).includes('"Paused"') ? answer.body : undefined;
      },
    });
    await bed.server.admin.expect('PATCH', `${path}/status`, {
      body: {
        status: {
          observedGeneration: body.metadata.generation,
          conditions: [
            {
              type: 'Ready',
              status: 'True',
              reason: 'Completed',
              message: '',
              lastTransitionTime: '2026-01-01T00:00:00Z',
            },
          ],
        },
      },
      type: 'application/merge-patch+json',
      query: { fieldManager: 'test' },
    });
    await bed.untilStatus('it goes on, long before its next try', (s) => is(s, 'Ready', 'True'), 10_000);
  }));

test('approval: a plan that removes what matters waits for its own digest', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const first = await build(bed, [
      { name: 'one', manifests: maps(bed, ['a', 'b'], 'one') },
      { name: 'two', manifests: maps(bed, ['c', 'd', 'e', 'f'], 'one') },
    ]);
    await inPlace(bed, first);
    executor.plan.resetLog();
    const second = await build(bed, [{ name: 'one', manifests: maps(bed, ['a', 'b'], 'two') }]);
    await bed.deliver(second);
    await bed.applyRelease(second);
    const waiting = await bed.untilStatus(
      'it waits for a person',
      (s) => s.condition('Accepted')?.reason === 'ApprovalRequired',
    );
    assert.is(waiting.condition('Ready')?.status, 'Unknown');
    assert.is(waiting.raw.plan.counts.pruned, 4);
    assert.match(waiting.condition('Accepted')?.message ?? '', /4 of 6 objects are pruned; prune.maxPercent is 10/);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    const planDigest = waiting.raw.plan.digest;
    await bed.applyRelease(second, { approval: { mode: 'destructive', planDigest: `sha256:${'1'.repeat(64)}` } });
    await bed.untilStatus(
      'another digest is no approval',
      (s) =>
        s.raw.observedGeneration === s.generation &&
        s.condition('Accepted')?.message.includes('approved is sha256:1111') === true,
    );
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    await bed.applyRelease(second, { approval: { mode: 'destructive', planDigest } });
    await bed.untilStatus('it went on', (s) => s.raw.actual === second.digest && is(s, 'Ready', 'True'));
    assert.equal(
      payloadMutations(executor.plan, bed.system)
        .map(({ verb, name }) => `${verb} ${name}`)
        .sort(),
      ['apply a', 'apply b', 'delete c', 'delete d', 'delete e', 'delete f'],
    );
  }));

test('suspendPhases: work ends before the phase and goes on when it is lifted', () =>
  withBed(async (bed) => {
    bed.executor();
    const built = await simple(bed, 'one');
    await bed.deliver(built);
    await bed.applyRelease(built, { suspendPhases: ['two'] });
    const suspended = await bed.untilStatus(
      'it is suspended',
      (s) => s.condition('Ready')?.reason === 'PhaseSuspended',
    );
    assert.is(suspended.raw.phases[1].state, 'Suspended');
    assert.is(suspended.raw.history[0].state, 'Partial');
    assert.ok(await dataOf(bed, 'a'));
    assert.not.ok(await dataOf(bed, 'c'));
    await bed.applyRelease(built, { suspendPhases: [] });
    await bed.untilStatus('it went on', (s) => is(s, 'Ready', 'True'));
    assert.ok(await dataOf(bed, 'c'));
  }));

test('tombstones are removed in their phase, only what the ledger owns; create-only objects are left as they became', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const { namespace } = bed.names;
    const once: Manifest = { object: configMap(namespace, 'once', { value: 'one' }), flags: { createOnly: true } };
    await inPlace(bed, await simple(bed, 'one', [once]));
    await bed.server.admin.expect('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      body: configMap(namespace, 'foreign'),
    });
    executor.plan.resetLog();
    const second = await build(bed, [
      {
        name: 'one',
        manifests: [...maps(bed, ['a'], 'one'), { object: configMap(namespace, 'b'), flags: { absent: true } }],
      },
      {
        name: 'two',
        manifests: [
          ...maps(bed, ['c', 'd'], 'one'),
          { object: configMap(namespace, 'once', { value: 'two' }), flags: { createOnly: true } },
          { object: configMap(namespace, 'foreign'), flags: { absent: true } },
        ],
      },
    ]);
    await inPlace(bed, second, { approval: { mode: 'never' } });
    assert.equal(
      payloadMutations(executor.plan, bed.system).map(({ verb, name }) => `${verb} ${name}`),
      ['delete b'],
    );
    assert.equal(await dataOf(bed, 'once'), { value: 'one' });
    assert.ok(await dataOf(bed, 'foreign'), 'what the ledger does not own is not deleted');
    assert.not.ok((await bed.ledger())[`/ConfigMap/${namespace}/b`]);
  }));

test('an immutable field: terminal without consent, replaced with it; a field may be yielded to another manager', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const { namespace } = bed.names;
    const labelled = (app: string, replicas: number): JsonObject => ({
      ...deployment(namespace, 'server', replicas),
      spec: {
        ...(deployment(namespace, 'server', replicas).spec as JsonObject),
        selector: { matchLabels: { app } },
        template: {
          metadata: { labels: { app } },
          spec: ((deployment(namespace, 'server').spec as JsonObject).template as JsonObject).spec as JsonObject,
        },
      },
    });
    const phases = (app: string, flags: NonNullable<Manifest['flags']>, replicas = 2): PhaseInput[] => [
      { name: 'one', manifests: [{ object: labelled(app, replicas), flags }] },
    ];
    await inPlace(bed, await build(bed, phases('x', {})));
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/server`;
    const uid = async (): Promise<unknown> => ((await bed.get(path))?.metadata as JsonObject | undefined)?.uid;
    const before = await uid();
    // What is stored beside the status takes its time; the status never tells half of a refusal meanwhile.
    const slow = executor.plan.inject({
      match: { method: 'PATCH', path: /\/configmaps\/keelson-report-/ },
      fault: { kind: 'delay', ms: 1500 },
    });
    const refused = await build(bed, phases('y', {}));
    await bed.deliver(refused);
    await bed.applyRelease(refused);
    const status = await bed.untilStatus('it is refused', (s) => s.condition('Accepted')?.reason === 'ImmutableField');
    assert.is(status.condition('Stalled')?.status, 'True');
    assert.is(slow(), 1);
    assert.is(await uid(), before);
    await inPlace(bed, await build(bed, phases('y', { recreate: true })), { approval: { mode: 'never' } });
    assert.is.not(await uid(), before);

    const yielding: Manifest['flags'] = { conflict: 'yield', yieldFields: ['/spec/replicas'] };
    await inPlace(bed, await build(bed, phases('y', yielding)));
    await bed.server.admin.expect('PATCH', path, {
      body: { spec: { replicas: 7 } },
      type: 'application/merge-patch+json',
      query: { fieldManager: 'autoscaler' },
    });
    executor.plan.resetLog();
    await inPlace(bed, await build(bed, phases('y', yielding, 4)));
    const { body } = await bed.server.admin.expect('GET', path);
    assert.is(body.spec.replicas, 7, 'the other manager keeps it');
    assert.equal(executor.plan.violations, []);
  }));

test.run();
