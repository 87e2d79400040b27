// time limit: 180s
/** What keeps an object that left its payload from being removed, what only delays it, and that nothing is forgotten. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { until } from './kubeBed.ts';
import {
  build,
  deliver,
  denying,
  failureOf,
  idOf,
  inPlace,
  isThrough,
  map,
  merge,
  pathOf,
  roomy,
  told,
  webhook,
  webhookPath,
} from './prune-bed.ts';
import { is, payloadMutations, withBed } from './slice-bed.ts';
import { configMap, type Manifest } from './slice-payload.ts';

test('what is kept stays, annotation or not, and so does another object of the name; a lost label protects nothing', () =>
  withBed(async (bed) => {
    const { namespace } = bed.names;
    const kept = map(bed, 'kept', {
      metadata: { annotations: { 'helm.sh/resource-policy': 'keep' } },
      flags: { keep: true },
    });
    const disabled = map(bed, 'disabled', {
      metadata: { annotations: { 'keelson.dev/prune': 'disabled' } },
      flags: { keep: true },
    });
    const claim: Manifest = {
      object: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'claim', namespace },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
      flags: { keep: true },
    };
    const off = { ...roomy, prune: { ...roomy.prune, enabled: false } };
    const first = bed.executor();
    await inPlace(bed, [map(bed, 'a'), map(bed, 'b'), map(bed, 'c'), map(bed, 'd'), kept, disabled, claim]);
    await first.stop();
    // While nobody looks, so that it is not set back.
    await merge(bed, pathOf(bed, 'kept'), { metadata: { annotations: { 'helm.sh/resource-policy': null } } });
    const { admin } = bed.server;
    await admin.expect('DELETE', pathOf(bed, 'd'));
    const { body: stranger } = await admin.expect('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      body: configMap(namespace, 'd'),
    });
    const executor = bed.executor();
    await inPlace(bed, [map(bed, 'a')], off);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    assert.equal(
      Object.keys(await bed.ledger()).sort(),
      ['a', 'b', 'c'].map((name) => idOf(bed, name)),
    );
    // Switched on, the next pass takes what is left: also what lost the label by which it is listed.
    await merge(bed, pathOf(bed, 'b'), { metadata: { labels: { 'keelson.dev/release': null } } });
    await bed.applyRelease(await build(bed, [map(bed, 'a')]), roomy);
    await bed.untilStatus('the rest to go', (s) => is(s, 'Ready', 'True') && s.raw.ledger.count === 1);
    const gone = payloadMutations(executor.plan, bed.system).map(({ verb, name }) => `${verb} ${name}`);
    assert.equal(gone.sort(), ['delete b', 'delete c']);
    let events: JsonObject[] = [];
    await until('it to be told', async () => {
      const { body } = await admin.expect('GET', `/apis/events.k8s.io/v1/namespaces/${bed.system}/events`);
      events = body.items.filter(({ reason }: JsonObject) => reason === 'Pruned');
      return events.length > 0;
    });
    assert.equal(
      events.map(({ note, type }) => [note, type]),
      [[`2 objects were removed: ConfigMap ${namespace}/b, ConfigMap ${namespace}/c`, 'Normal']],
    );
    const { metadata } = (await bed.get(pathOf(bed, 'd'))) as { metadata: JsonObject };
    assert.is(metadata.uid, stranger.metadata.uid);
    for (const path of [
      pathOf(bed, 'kept'),
      pathOf(bed, 'disabled'),
      `/api/v1/namespaces/${namespace}/persistentvolumeclaims/claim`,
    ])
      assert.ok(await bed.get(path), path);
  }));

test('an override in the commit that takes its manifest away: the object is left alone, and stays when it is lifted', () =>
  withBed(async (bed) => {
    const { namespace } = bed.names;
    const executor = bed.executor();
    await inPlace(bed, [map(bed, 'a'), map(bed, 'b'), map(bed, 'c')]);
    executor.plan.resetLog();
    const overrides = [{ group: '', kind: 'ConfigMap', namespace, name: 'b' }];
    await inPlace(bed, [map(bed, 'a')], { ...roomy, overrides });
    assert.is(((await bed.ledger())[idOf(bed, 'b')] as JsonObject).state, 'unmanaged');
    await inPlace(bed, [{ object: configMap(namespace, 'a', { value: 'two' }) }]);
    const written = payloadMutations(executor.plan, bed.system).map(({ verb, name }) => `${verb} ${name}`);
    assert.equal(written, ['delete c', 'apply a']);
    assert.ok(await bed.get(pathOf(bed, 'b')));
    assert.is(((await bed.ledger())[idOf(bed, 'b')] as JsonObject).state, 'unmanaged');
  }));

test('a removal beyond the bounds that no accepted plan names waits for the digest of exactly this removal', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const names = ['b', 'c', 'd'];
    await inPlace(bed, [map(bed, 'a'), ...names.map((name) => map(bed, name))]);
    await inPlace(bed, [map(bed, 'a')], { prune: { enabled: false } });
    executor.plan.resetLog();
    const built = await build(bed, [map(bed, 'a')]);
    const bounded = { prune: { enabled: true, maxPercent: 50, maxCount: 100 } };
    await bed.applyRelease(built, bounded);
    const stopped = await told(bed, 'PruneBrake');
    const { message = '' } = failureOf(stopped, 'PruneBrake') ?? {};
    assert.match(message, /3 of 4 objects would be removed; prune.maxPercent is 50/);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    const planDigest = /sha256:[0-9a-f]{64}/.exec(message)?.[0] ?? '';
    await bed.applyRelease(built, { ...bounded, approval: { planDigest: `sha256:${'1'.repeat(64)}` } });
    await bed.untilStatus(
      'another digest is none',
      (s) => s.raw.observedGeneration === s.generation && failureOf(s, 'PruneBrake') !== undefined,
    );
    await bed.applyRelease(built, { ...bounded, approval: { planDigest } });
    await bed.untilStatus('the approved ones to go', (s) => is(s, 'Ready', 'True') && s.raw.ledger.count === 1);
  }));

test('a removal that is denied stays in the ledger with reason and number of tries, and is tried again', () =>
  withBed(async (bed) => {
    bed.executor();
    await inPlace(bed, [map(bed, 'a'), map(bed, 'denied'), map(bed, 'goes')]);
    const allow = await denying(bed, 'denied');
    const { digest } = await deliver(bed, [map(bed, 'a')]);
    const status = await told(bed, 'DeleteDenied', (message) => message.includes('it is still in use'));
    assert.match(failureOf(status, 'DeleteDenied')?.object ?? '', 'denied');
    await waitFor({
      what: 'a further try',
      limitMs: 20_000,
      intervalMs: 100,
      clock: systemClock,
      probe: async () => {
        const { state, refused } = (await bed.ledger())[idOf(bed, 'denied')] as { state: string; refused?: JsonObject };
        return state === 'pruning' && refused?.reason === 'DeleteDenied' && Number(refused.attempts) > 1
          ? true
          : undefined;
      },
    });
    assert.is((await bed.ledger())[idOf(bed, 'goes')], undefined, 'what nobody denies is gone');
    await allow();
    await bed.untilStatus('it to go', isThrough(digest), 30_000);
    assert.equal(Object.keys(await bed.ledger()), [idOf(bed, 'a')]);
  }));

test('a webhook that nobody serves is named, with its Service, when a dry run and when a removal meet it', () =>
  withBed(async (bed) => {
    const { admin } = bed.server;
    bed.executor();
    await inPlace(bed, [map(bed, 'a'), map(bed, 'b')]);
    await admin.expect('POST', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
      body: webhook(bed, ['DELETE']),
    });
    const inForce = async (method: 'DELETE' | 'PATCH'): Promise<unknown> =>
      waitFor({
        what: 'the webhook to be asked',
        limitMs: 20_000,
        intervalMs: 100,
        clock: systemClock,
        probe: async () => {
          const body = { data: { probe: 'x' } };
          const patch = { body, type: 'application/merge-patch+json', query: { dryRun: 'All' } };
          const tried = await admin.request(
            method,
            pathOf(bed, 'b'),
            method === 'PATCH' ? patch : { query: { dryRun: 'All' } },
          );
          return tried.status === 500 ? true : undefined;
        },
      });
    await inForce('DELETE');
    const { digest } = await deliver(bed, [map(bed, 'a')]);
    const blocked = new RegExp(
      `blocked by webhook guard.example.com \\(Service ${bed.names.namespace}/guard has no ready endpoints\\)`,
    );
    await told(bed, 'WebhookBlocks', (message) => blocked.test(message));
    assert.is(((await bed.ledger())[idOf(bed, 'b')] as { refused: JsonObject }).refused.reason, 'WebhookBlocks');
    const rule = { op: 'replace', path: '/webhooks/0/rules/0/operations', value: ['UPDATE'] };
    await admin.expect('PATCH', webhookPath(bed), { body: [rule], type: 'application/json-patch+json' });
    await bed.untilStatus('it to go', isThrough(digest), 30_000);

    await deliver(bed, [{ object: configMap(bed.names.namespace, 'a', { value: 'two' }) }]);
    await bed.untilStatus(
      'the change to be blocked',
      (s) => blocked.test(s.condition('Accepted')?.message ?? ''),
      30_000,
    );
    await admin.expect('DELETE', webhookPath(bed));
  }));

test('a webhook that fails closed is written last, and only once something ready serves it', () =>
  withBed(async (bed) => {
    const executor = bed.executor({ engine: { gatePollMs: 100, goneMs: 3_000, kindMs: 1_000 } });
    const { namespace } = bed.names;
    const { digest } = await deliver(bed, [{ object: webhook(bed, ['DELETE']) }, map(bed, 'a')]);
    await told(bed, 'WebhookNotServed', (message) => message.includes(`ready endpoints of Service ${namespace}/guard`));
    assert.ok(await bed.get(pathOf(bed, 'a')));
    assert.is(await bed.get(webhookPath(bed)), undefined);
    await bed.server.admin.expect('POST', `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
      body: {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'guard-1', labels: { 'kubernetes.io/service-name': 'guard' } },
        addressType: 'IPv4',
        endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
      },
    });
    await bed.untilStatus('it is through', isThrough(digest), 30_000);
    assert.equal(
      payloadMutations(executor.plan, bed.system).map(({ verb, name }) => `${verb} ${name}`),
      ['apply a', `apply ${bed.names.release}`],
    );
    await bed.server.admin.expect('DELETE', webhookPath(bed));
  }));

test('finalizers are told with their names and since when, and stay', () =>
  withBed(async (bed) => {
    bed.executor({ engine: { gatePollMs: 100, goneMs: 300 } });
    await inPlace(bed, [map(bed, 'a'), map(bed, 'b')]);
    await merge(bed, pathOf(bed, 'b'), { metadata: { finalizers: ['example.com/wait'] } });
    const { digest } = await deliver(bed, [map(bed, 'a')]);
    await told(bed, 'ObjectTerminating', (message) =>
      /being deleted since 2.*finalizers example\.com\/wait/.test(message),
    );
    assert.equal(((await bed.get(pathOf(bed, 'b'))) as { metadata: JsonObject }).metadata.finalizers, [
      'example.com/wait',
    ]);
    assert.is(((await bed.ledger())[idOf(bed, 'b')] as JsonObject).state, 'pruning');
    await merge(bed, pathOf(bed, 'b'), { metadata: { finalizers: null } });
    await bed.untilStatus('it to be gone', isThrough(digest), 30_000);
    assert.is((await bed.ledger())[idOf(bed, 'b')], undefined);
  }));

test('a kind that is not served: its objects are gone only when its definition is', () =>
  withBed(async (bed) => {
    const { admin } = bed.server;
    const { namespace, group } = bed.names;
    const crdPath = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`;
    const serve = (served: boolean) =>
      admin.expect('PATCH', crdPath, {
        body: [{ op: 'replace', path: '/spec/versions/0/served', value: served }],
        type: 'application/json-patch+json',
      });
    const until = (what: string, probe: () => Promise<boolean>) =>
      waitFor({
        what,
        limitMs: 20_000,
        intervalMs: 100,
        clock: systemClock,
        probe: async () => ((await probe()) ? true : undefined),
      });
    await admin.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `widgets.${group}` },
        spec: {
          group,
          scope: 'Namespaced',
          names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
          versions: [
            {
              name: 'v1',
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            },
          ],
        },
      },
    });
    const widgets = `/apis/${group}/v1/namespaces/${namespace}/widgets`;
    await until('widgets to be served', async () => (await admin.request('GET', widgets)).status === 200);
    const widget = (name: string): Manifest => ({
      object: { apiVersion: `${group}/v1`, kind: 'Widget', metadata: { name, namespace } },
    });
    const id = (name: string) => `${group}/Widget/${namespace}/${name}`;
    bed.executor();
    await inPlace(bed, [map(bed, 'a'), widget('one')]);
    const uid = ((await bed.ledger())[id('one')] as JsonObject).uid;

    await serve(false);
    await until('the group to be unknown', async () => (await admin.request('GET', `/apis/${group}`)).status === 404);
    const { digest } = await deliver(bed, [map(bed, 'a')]);
    await told(bed, 'KindAbsent', (message) => message.includes(`definition widgets.${group} exists`));
    assert.is(((await bed.ledger())[id('one')] as JsonObject).uid, uid);
    await serve(true);
    await bed.untilStatus('it to be found and removed', isThrough(digest), 30_000);
    assert.is((await admin.request('GET', `${widgets}/one`)).status, 404);
    assert.is((await bed.ledger())[id('one')], undefined);

    await inPlace(bed, [map(bed, 'a'), widget('two')]);
    await admin.expect('DELETE', crdPath);
    await until('the definition to be gone', async () => (await admin.request('GET', crdPath)).status === 404);
    await inPlace(bed, [map(bed, 'a')]);
    assert.equal(Object.keys(await bed.ledger()), [idOf(bed, 'a')]);
  }));

test('a payload that holds nothing, or that is damaged, is refused; what was accepted stays, all of it', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    await inPlace(bed, [map(bed, 'a'), map(bed, 'b')]);
    const ledger = await bed.ledger();
    executor.plan.resetLog();
    const empty = await deliver(bed, [], { ...roomy, approval: { mode: 'never' } });
    const told = await bed.untilStatus('it is refused', (s) => s.condition('Accepted')?.reason === 'PayloadIntegrity');
    assert.match(told.condition('Accepted')?.message ?? '', 'holds no object');
    assert.is(told.raw.desired, empty.digest);
    const good = await build(bed, [map(bed, 'a')]);
    await bed.deliver({ ...good, archive: good.archive.subarray(0, good.archive.length - 20) });
    await bed.applyRelease(good, { ...roomy, approval: { mode: 'never' } });
    await bed.untilStatus(
      'the damaged one is refused',
      (s) => s.raw.desired === good.digest && s.condition('Accepted')?.status === 'False',
    );
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    assert.equal(await bed.ledger(), ledger);
  }));

test('a replaced object is shown in the plan, approved, and the very object that the ledger knows', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const secret = (value: string, recreate: boolean): Manifest => ({
      object: {
        ...configMap(bed.names.namespace, 'fixed', { value }),
        immutable: true,
      },
      flags: { recreate },
    });
    await inPlace(bed, [secret('one', true), map(bed, 'a')]);
    const before = (await bed.ledger())[idOf(bed, 'fixed')] as JsonObject;
    executor.plan.resetLog();
    const built = await deliver(bed, [secret('two', true), map(bed, 'a')]);
    const waiting = await bed.untilStatus(
      'it waits for a person',
      (s) => s.condition('Accepted')?.reason === 'ApprovalRequired',
    );
    assert.match(waiting.condition('Accepted')?.message ?? '', /1 object\(s\) may be deleted and created again/);
    assert.is(waiting.raw.plan.counts.replaced, 1);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    await bed.applyRelease(built, { ...roomy, approval: { planDigest: waiting.raw.plan.digest } });
    await bed.untilStatus('it is in place', isThrough(built.digest));
    assert.equal(
      payloadMutations(executor.plan, bed.system).map(({ verb, name }) => `${verb} ${name}`),
      ['delete fixed', 'apply fixed'],
    );
    assert.is.not(((await bed.ledger())[idOf(bed, 'fixed')] as JsonObject).uid, before.uid);
  }));

test.run();
