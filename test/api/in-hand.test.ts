import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, foreignAnnotations } from '../../constructs/api/constants.ts';
import type { LedgerEntry } from '../../constructs/api/ledger.ts';
import { formatUninstall, uninstallPlan } from '../../constructs/api/uninstall.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { until } from './kubeBed.ts';
import { holdAnnotation, is, payloadMutations, type RunningExecutor, type SliceBed, withBed } from './slice-bed.ts';
import {
  type BuiltPayload,
  buildPayload,
  configMap,
  deployment,
  gate,
  type Manifest,
  testKey,
} from './slice-payload.ts';
import { inPlace, mapValue, ready, want } from './spans-bed.ts';

/** What somebody takes in hand while work on it is under way. */

const quiesceAnnotation = annotations.quiesce;
const requested = 'reconcile.fluxcd.io/requestedAt';

const pathOf = (bed: SliceBed, name: string): string => `/api/v1/namespaces/${bed.names.namespace}/configmaps/${name}`;
const replacedPath = (bed: SliceBed): string => `/apis/apps/v1/namespaces/${bed.names.namespace}/deployments/replaced`;

const mark = (bed: SliceBed, path: string, key: string, value: string | null): Promise<unknown> =>
  bed.server.admin.expect('PATCH', path, {
    body: { metadata: { annotations: { [key]: value } } },
    type: 'application/merge-patch+json',
  });

const uidAt = async (bed: SliceBed, path: string): Promise<unknown> =>
  ((await bed.get(path))?.metadata as JsonObject | undefined)?.uid;

/** A Deployment that can only be replaced when it gets another `app`. */
function replaceable(namespace: string, app: string): Manifest {
  const object = deployment(namespace, 'replaced', 1);
  const spec = object.spec as JsonObject;
  const template = spec.template as JsonObject;
  const labels = { app };
  const changed = { ...spec, selector: { matchLabels: labels }, template: { ...template, metadata: { labels } } };
  return { object: { ...object, spec: changed }, flags: { recreate: true } };
}

/** Two phases; between them the gate of a Deployment with that many replicas. */
function gated(
  bed: SliceBed,
  value: string,
  replicas: number,
  maps: { readonly first: readonly string[]; readonly last: readonly string[] },
  more: readonly Manifest[] = [],
): Promise<BuiltPayload> {
  const { namespace, release } = bed.names;
  const of = (names: readonly string[]): Manifest[] =>
    names.map((name) => ({ object: configMap(namespace, name, { value }) }));
  return buildPayload({
    release,
    key: testKey,
    phases: [
      {
        name: 'first',
        gates: [gate('WorkloadsReady', 'first')],
        manifests: [...of(maps.first), { object: deployment(namespace, 'server', replicas) }],
      },
      { name: 'last', manifests: [...of(maps.last), ...more] },
    ],
  });
}

const atGate = (bed: SliceBed, built: BuiltPayload): Promise<unknown> =>
  bed.untilStatus(
    'the gate is waited for',
    (s) => s.raw.actual === built.digest && s.raw.phases[0].state === 'Waiting',
  );

/** Waits until the gate was looked at some more times. */
async function moreLooks({ plan }: RunningExecutor): Promise<void> {
  const looks = (): number => plan.count((r) => r.verb === 'list' && r.resource === 'deployments');
  const before = looks();
  await until('the gate is looked at again', () => looks() >= before + 4);
}

test('held or quiesced while the pass waits for a gate: neither written nor replaced; what was quiesced before is written', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const { namespace } = bed.names;
    const maps = { first: ['a'], last: ['held', 'quiesced', 'before', 'free'] };
    const first = await gated(bed, 'one', 1, maps, [replaceable(namespace, 'x')]);
    await want(bed, first);
    await inPlace(bed, first, 1);
    const uid = await uidAt(bed, replacedPath(bed));
    await mark(bed, pathOf(bed, 'before'), quiesceAnnotation, 'upgrade');
    const second = await gated(bed, 'two', 2, maps, [replaceable(namespace, 'y')]);
    await want(bed, second, { approval: { mode: 'never' } });
    await atGate(bed, second);
    await mark(bed, pathOf(bed, 'held'), holdAnnotation, 'by hand');
    await mark(bed, pathOf(bed, 'quiesced'), quiesceAnnotation, 'upgrade');
    await mark(bed, replacedPath(bed), quiesceAnnotation, 'upgrade');
    executor.plan.resetLog();
    await inPlace(bed, second, 2);
    const values = async (): Promise<unknown> =>
      Promise.all(['held', 'quiesced', 'before', 'free'].map((name) => mapValue(bed, name)));
    assert.equal(await values(), ['one', 'one', 'two', 'two']);
    assert.is(await uidAt(bed, replacedPath(bed)), uid);
    const written = payloadMutations(executor.plan, bed.system).filter(({ dryRun }) => dryRun !== true);
    assert.equal(written.map(({ verb, name }) => `${verb} ${name}`).sort(), ['apply before', 'apply free']);
    const held = (await bed.status()).condition('Held');
    for (const name of ['held \\(by hand\\)', 'quiesced \\(upgrade\\)', 'replaced \\(upgrade\\)'])
      assert.match(held?.message ?? '', new RegExp(name));
    // A pass that finds the marks there leaves what the payload in place had to leave; without them it is written.
    await bed.annotate(requested, 'first');
    await bed.untilStatus('a pass is over', (s) => s.raw.lastHandledReconcileAt === 'first');
    assert.equal([await values(), await uidAt(bed, replacedPath(bed))], [['one', 'one', 'two', 'two'], uid]);
    await mark(bed, pathOf(bed, 'held'), holdAnnotation, null);
    await mark(bed, pathOf(bed, 'quiesced'), quiesceAnnotation, null);
    await mark(bed, replacedPath(bed), quiesceAnnotation, null);
    await bed.annotate(requested, 'second');
    await bed.untilStatus('a pass is over', (s) => s.raw.lastHandledReconcileAt === 'second');
    assert.equal(await values(), ['two', 'two', 'two', 'two']);
    assert.is.not(await uidAt(bed, replacedPath(bed)), uid);
    assert.equal(executor.plan.violations, []);
  }));

test('given to another controller while the pass waits for a gate: not removed to be replaced', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const { namespace } = bed.names;
    const maps = { first: ['a'], last: ['b'] };
    const first = await gated(bed, 'one', 1, maps, [replaceable(namespace, 'x')]);
    await want(bed, first);
    await inPlace(bed, first, 1);
    const uid = await uidAt(bed, replacedPath(bed));
    const second = await gated(bed, 'two', 2, maps, [replaceable(namespace, 'y')]);
    await want(bed, second, { approval: { mode: 'never' } });
    await atGate(bed, second);
    const owner = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: 'a',
      uid: await uidAt(bed, pathOf(bed, 'a')),
      controller: true,
    };
    await bed.server.admin.expect('PATCH', replacedPath(bed), {
      body: { metadata: { ownerReferences: [owner as JsonObject] } },
      type: 'application/merge-patch+json',
    });
    await ready(bed, 2);
    await bed.untilStatus('it is told', (s) => /belongs to the controller ConfigMap a/.test(JSON.stringify(s.raw)));
    assert.is(await uidAt(bed, replacedPath(bed)), uid);
    assert.is(
      executor.plan.count((r) => r.verb === 'delete' && r.resource === 'deployments'),
      0,
    );
    await bed.server.admin.expect('PATCH', replacedPath(bed), {
      body: { metadata: { ownerReferences: null } },
      type: 'application/merge-patch+json',
    });
    await bed.annotate(requested, 'first');
    await inPlace(bed, second);
    assert.is.not(await uidAt(bed, replacedPath(bed)), uid);
  }));

test('marked to stay while the pass waits for a gate: not pruned', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const { namespace } = bed.names;
    const stay = ['helm', 'disabled'];
    const first = await gated(bed, 'one', 1, { first: ['a'], last: ['b', ...stay, 'goes'] });
    await want(bed, first);
    await inPlace(bed, first, 1);
    const uids = (): Promise<unknown[]> => Promise.all(stay.map((name) => uidAt(bed, pathOf(bed, name))));
    const before = await uids();
    const second = await gated(bed, 'two', 2, { first: ['a'], last: ['b'] });
    await want(bed, second, { approval: { mode: 'never' } });
    await atGate(bed, second);
    await mark(bed, pathOf(bed, 'helm'), foreignAnnotations.helmResourcePolicy, 'keep');
    await mark(bed, pathOf(bed, 'disabled'), annotations.prune, 'disabled');
    executor.plan.resetLog();
    await inPlace(bed, second, 2);
    assert.equal(await uids(), before);
    const removed = payloadMutations(executor.plan, bed.system).filter(({ verb }) => verb === 'delete');
    assert.equal(
      removed.map(({ name }) => name),
      ['goes'],
    );
    const ledger = await bed.ledger();
    for (const name of [...stay, 'goes']) assert.is(ledger[`/ConfigMap/${namespace}/${name}`], undefined, name);
    assert.equal(executor.plan.violations, []);
  }));

test('held between the look and the write of an update: not written over; what only changed, or went, is seen to', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const { namespace, release } = bed.names;
    const maps = ['held', 'changed', 'gone'];
    const of = (value: string): Promise<BuiltPayload> =>
      buildPayload({
        release,
        key: testKey,
        phases: [{ name: 'all', manifests: maps.map((name) => ({ object: configMap(namespace, name, { value }) })) }],
      });
    const [first, second] = [await of('one'), await of('two')];
    await want(bed, first);
    await bed.untilStatus('it is in place', (s) => s.raw.actual === first.digest && is(s, 'Ready', 'True'));
    const { plan } = executor;
    plan.resetLog();
    const apply = { verb: 'apply', resource: 'configmaps', namespace, dryRun: false } as const;
    const hits = plan.inject({ match: apply, times: maps.length, fault: { kind: 'hang' } });
    await want(bed, second);
    await until('all are about to be written', () => hits() === maps.length);
    await mark(bed, pathOf(bed, 'held'), holdAnnotation, 'by hand');
    await mark(bed, pathOf(bed, 'changed'), 'example.com/note', 'only a note');
    await bed.server.admin.expect('DELETE', pathOf(bed, 'gone'));
    // The writes go out once more, as they were decided on.
    plan.clear();
    const values = (): Promise<unknown[]> => Promise.all(maps.map((name) => mapValue(bed, name)));
    await until('what may be written is', async () => (await values()).filter((value) => value === 'two').length === 2);
    await bed.untilStatus('the hold is told', (s) => is(s, 'Held', 'True'));
    const refused = plan.requests(apply).filter(({ status }) => status === 409);
    assert.equal(refused.map(({ name }) => name).sort(), ['changed', 'gone', 'held']);
    assert.equal(await values(), ['one', 'two', 'two']);
    assert.match((await bed.status()).condition('Held')?.message ?? '', /held \(by hand\)/);
    assert.equal(plan.violations, []);
  }));

test('a quiesced release under a new payload: nothing that is missing is created, nothing is set back beside a wait', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const { admin } = bed.server;
    const maps = { first: ['a', 'kept'], last: ['b', 'gone'] };
    // Objects that do not change: what brings them back is repair alone.
    const build = async (value: string, replicas: number): Promise<BuiltPayload> => {
      const more = [{ object: configMap(bed.names.namespace, 'new', { value }) }];
      return gated(bed, 'same', replicas, maps, more);
    };
    const first = await build('one', 1);
    await want(bed, first);
    await inPlace(bed, first, 1);
    await bed.annotate(quiesceAnnotation, 'upgrade');
    await bed.annotate(requested, 'quiet');
    await bed.untilStatus('the mark is taken in', (s) => s.raw.lastHandledReconcileAt === 'quiet');
    await admin.expect('DELETE', pathOf(bed, 'gone'));
    const second = await build('two', 2);
    await want(bed, second);
    await atGate(bed, second);
    await until('what is in place is watched', () =>
      executor.plan.requests({ verb: 'watch' }).some((r) => r.resource === 'configmaps' && r.namespace === undefined),
    );
    await admin.expect('DELETE', pathOf(bed, 'kept'));
    await admin.expect('PATCH', pathOf(bed, 'a'), {
      body: { data: { value: 'theirs' } },
      type: 'application/merge-patch+json',
      query: { fieldManager: 'kubectl-patch' },
    });
    await moreLooks(executor);
    assert.equal([await mapValue(bed, 'kept'), await mapValue(bed, 'a')], [undefined, 'theirs']);
    await inPlace(bed, second, 2);
    const names = ['kept', 'a', 'gone', 'b', 'new'];
    const values = async (): Promise<unknown> => Promise.all(names.map((name) => mapValue(bed, name)));
    assert.equal(await values(), [undefined, 'theirs', undefined, 'same', 'two']);
    await bed.annotate(quiesceAnnotation, null);
    await until('all is back', async () => JSON.stringify(await values()) === '["same","same","same","same","two"]');
    assert.equal(executor.plan.violations, []);
  }));

/** Asks for an uninstall of what the ledger holds now. */
async function askToDelete(bed: SliceBed): Promise<void> {
  const { release } = bed.names;
  const path = `/apis/keelson.dev/v1alpha1/namespaces/${bed.system}/releases/${release}`;
  const entries = Object.values(await bed.ledger()) as unknown as LedgerEntry[];
  const ledger = new Map(entries.map((entry) => [entry.id, entry]));
  const releaseUID = String(await uidAt(bed, path));
  const { mode, digest } = uninstallPlan({ release, releaseUID, mode: 'delete', ledger });
  await bed.annotate(annotations.uninstall, formatUninstall({ mode, digest }));
  await bed.untilStatus('it is stopped by the object that is held', (s) =>
    (s.raw.failures ?? []).some(({ reason }: { reason: string }) => reason === 'ObjectHeld'),
  );
}

test('an uninstall that is paused in the middle, and one that is taken back: the release is looked at, and enforced again', () =>
  withBed(async (bed) => {
    const { namespace, release } = bed.names;
    const manifests = ['a', 'b'].map((name) => ({ object: configMap(namespace, name) }));
    const built = await buildPayload({ release, phases: [{ name: 'one', manifests }], key: testKey });
    bed.executor();
    await want(bed, built);
    await inPlace(bed, built);
    await mark(bed, pathOf(bed, 'b'), holdAnnotation, 'by hand');
    await askToDelete(bed);
    assert.equal([await mapValue(bed, 'a'), await mapValue(bed, 'b')], [undefined, 'one']);
    const told = (reason: string) => async (): Promise<boolean> => {
      const { raw, condition } = await bed.status();
      assert.not.match(JSON.stringify(raw), 'no payload is loaded');
      return condition('Progressing')?.reason === reason;
    };
    await want(bed, built, { paused: true });
    await until('the pause is told', told('Paused'));
    assert.is(await mapValue(bed, 'a'), undefined, 'a pause writes nothing');
    await want(bed, built, { paused: false });
    await bed.untilStatus('it goes on', (s) => s.condition('Progressing')?.reason !== 'Paused');
    await bed.annotate(annotations.uninstall, null);
    await bed.untilStatus('it is enforced again', (s) => is(s, 'Ready', 'True') && s.raw.state === 'Reconciling');
    assert.equal([await mapValue(bed, 'a'), await mapValue(bed, 'b')], ['one', 'one']);
    await bed.server.admin.expect('DELETE', pathOf(bed, 'a'));
    await until('what drifts is set back', async () => (await mapValue(bed, 'a')) === 'one');
  }));

test.run();
