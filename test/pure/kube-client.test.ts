import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { retryAfterMs } from '../../executor/kube/call.ts';
import { createClient, type KubeClient } from '../../executor/kube/client.ts';
import { TransportError, type TransportRequest } from '../../executor/kube/transport.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { seededRandom, VirtualClock } from './virtualClock.ts';

const fieldManager = 'keelson';
const map: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'demo' },
  data: { k: 'v' },
};

function clientOn(
  answer: (request: TransportRequest, count: number) => Scripted,
  clock = new VirtualClock(),
): { client: KubeClient; requests: TransportRequest[]; clock: VirtualClock } {
  const { transport, requests } = scriptedTransport(
    (request, count) => discoveryAnswer(request.path) ?? answer(request, count),
  );
  const backoff = { initialMs: 100, factor: 2, maxMs: 1000, jitter: 0 };
  return { client: createClient({ transport, clock, random: seededRandom(1), backoff }), requests, clock };
}

/** Runs the clock until the promise settles. */
async function timed<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let over = false;
  const settle = (): void => {
    over = true;
  };
  promise.then(settle, settle);
  for (let n = 0; n < 1000 && !over; n += 1) await clock.next();
  return promise;
}

test('an apply carries manager, strictness and the bare intent, and nothing that could overwrite another', async () => {
  const { client, requests } = clientOn(() => ({
    status: 201,
    body: map,
    headers: { warning: '299 - "old \\"kind\\"", 299 - "two"' },
  }));
  const managed = {
    ...map.metadata,
    managedFields: [],
    resourceVersion: '7',
    uid: 'other',
    generation: 3,
    creationTimestamp: 'x',
  };
  const outcome = await client.apply({ ...map, metadata: managed }, { fieldManager, uid: 'u1' });
  assert.is(outcome.type, 'created');
  if (outcome.type === 'created') assert.equal(outcome.warnings, ['old "kind"', 'two']);
  const sent = requests.at(-1);
  assert.is(sent?.path, '/api/v1/namespaces/demo/configmaps/a');
  assert.equal(sent?.query, { fieldManager, fieldValidation: 'Ignore', dryRun: undefined });
  assert.is(sent?.headers['content-type'], 'application/apply-patch+yaml');
  assert.equal(JSON.parse(sent?.body ?? '').metadata, { name: 'a', namespace: 'demo', uid: 'u1' });
  await client.apply(map, { fieldManager, dryRun: true });
  assert.is(requests.at(-1)?.query.dryRun, 'All');
  assert.is(requests.at(-1)?.headers.accept, undefined);
  await client.apply(map, { fieldManager, dryRun: true, metadataOnly: true });
  assert.match(String(requests.at(-1)?.headers.accept), /as=PartialObjectMetadata;.*,application\/json$/);
});

test('a list of metadata alone takes whole objects too, and keeps no more than metadata of them', async () => {
  const metadata = { name: 'a', namespace: 'demo', uid: 'u1' };
  const { client, requests } = clientOn(() => ({
    status: 200,
    body: { metadata: {}, items: [{ metadata, data: { a: 'b' } }] },
  }));
  const maps = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo' };
  const brief = await client.list(maps, { metadataOnly: true });
  assert.equal(brief.type === 'listed' && brief.items, [{ apiVersion: 'v1', kind: 'ConfigMap', metadata }]);
  assert.match(String(requests.at(-1)?.headers.accept), /as=PartialObjectMetadataList;.*,application\/json$/);
  const whole = await client.list(maps);
  assert.equal(whole.type === 'listed' && whole.items[0]?.data, { a: 'b' });
});

test('no source of the edge can ask for a forced write', () => {
  const folders = ['../../executor/kube/', '../../executor/kube/verbs/', '../../executor/lease/'];
  for (const folder of folders) {
    const url = new URL(folder, import.meta.url);
    for (const file of readdirSync(url).filter((name) => name.endsWith('.ts')))
      assert.not.match(
        readFileSync(new URL(file, url), 'utf8'),
        /\bforce\b\s*[?]?[:=]|['"]force['"]|[?&]force/,
        `${folder}${file}`,
      );
  }
});

test('every refusal has its name', async () => {
  const cases: [Scripted, string][] = [
    [statusOf(401, 'Unauthorized', 'no'), 'unauthorized'],
    [statusOf(403, 'Forbidden', 'no'), 'forbidden'],
    [statusOf(403, 'Forbidden', 'terminating', { causes: [{ reason: 'NamespaceTerminating' }] }), 'namespaceMissing'],
    [
      statusOf(404, 'NotFound', 'namespaces "demo" not found', { name: 'demo', kind: 'namespaces' }),
      'namespaceMissing',
    ],
    [
      statusOf(422, 'Invalid', 'bad', { causes: [{ field: 'spec.x', reason: 'FieldValueInvalid', message: 'm' }] }),
      'invalid',
    ],
    [statusOf(400, 'BadRequest', 'strict decoding error: unknown field "spec.y"'), 'invalid'],
    [statusOf(413, 'RequestEntityTooLarge', 'too large'), 'invalid'],
    [
      statusOf(
        500,
        '',
        'failed to create typed patch object (demo/a; /v1, Kind=ConfigMap): .dato: field not declared in schema',
      ),
      'invalid',
    ],
    [
      statusOf(500, '', 'failed to convert new object (demo/a; /v1, Kind=ConfigMap) to proper version: illegal'),
      'invalid',
    ],
    [
      statusOf(409, 'Conflict', 'uid mismatch: the provided object specified uid u1, and no existing object was found'),
      'gone',
    ],
    [
      statusOf(422, 'Invalid', 'x', { causes: [{ field: 'metadata.uid', reason: 'FieldValueInvalid', message: 'm' }] }),
      'gone',
    ],
    [statusOf(409, 'Conflict', 'the object has been modified'), 'unavailable'],
    [statusOf(503, 'ServiceUnavailable', 'later'), 'unavailable'],
    // The field names a UID, but this is no precondition that failed.
    [
      statusOf(409, 'Conflict', 'conflict with "x": .metadata.ownerReferences[uid="u2"]', {
        causes: [
          {
            reason: 'FieldManagerConflict',
            message: 'conflict with "x"',
            field: '.metadata.ownerReferences[uid="u2"]',
          },
        ],
      }),
      'conflict',
    ],
    [statusOf(404, 'NotFound', 'the server could not find the requested resource'), 'unavailable'],
  ];
  for (const [answer, expected] of cases) {
    const { client, clock } = clientOn(() => answer);
    const outcome = await timed(clock, client.apply(map, { fieldManager, uid: 'u1', attempts: 2 }));
    assert.is(outcome.type, expected, JSON.stringify(answer.body));
  }
});

test('invalid names its fields also where the server hides them in the message', async () => {
  const typed = '.spec.a: field not declared in schema, .spec.replicas: expected numeric (int or float), got string';
  const answers = [
    statusOf(500, '', `failed to create typed patch object: ${typed}`),
    statusOf(400, 'BadRequest', 'unknown field "spec.b", duplicate field "spec.c"'),
  ];
  const { client } = clientOn((_request, count) => answers[count - 2] ?? { status: 200 });
  const first = await client.apply(map, { fieldManager });
  assert.equal(first.type === 'invalid' && first.causes.map(({ field, reason }) => [field, reason]), [
    ['.spec.a', 'FieldNotDeclared'],
    ['.spec.replicas', 'TypedPatch'],
  ]);
  const second = await client.apply(map, { fieldManager });
  assert.equal(second.type === 'invalid' && second.causes.map(({ field, reason }) => [field, reason]), [
    ['spec.b', 'FieldUnknown'],
    ['spec.c', 'FieldDuplicate'],
  ]);
});

test('a conflict tells each manager once, with operation, subresource and fields', async () => {
  const cause = (message: string, field: string): object => ({ reason: 'FieldManagerConflict', message, field });
  const causes = [
    cause('conflict with "kubectl" with subresource "scale" using apps/v1 at 2026-01-01T00:00:00Z', '.spec.replicas'),
    cause('conflict with "helm"', '.spec.a'),
    cause('conflict with "helm"', '.spec.b'),
    cause('conflict with "odd \\"name\\"" using v1', '.spec.c'),
  ];
  const { client } = clientOn(() => statusOf(409, 'Conflict', 'Apply failed with 4 conflicts', { causes }));
  const outcome = await client.apply(map, { fieldManager });
  assert.equal(outcome.type === 'conflict' && outcome.managers, [
    { manager: 'kubectl', operation: 'Update', subresource: 'scale', fields: ['.spec.replicas'] },
    { manager: 'helm', operation: 'Apply', fields: ['.spec.a', '.spec.b'] },
    { manager: 'odd "name"', operation: 'Update', fields: ['.spec.c'] },
  ]);
});

test('no text about a Secret quotes it', async () => {
  const canary = 'canary-8f3c';
  const secret: KubeObject = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'demo' },
    stringData: { p: canary },
  };
  const details = {
    causes: [{ field: 'data[p]', reason: 'FieldValueInvalid', message: `Invalid value: "${canary}"` }],
  };
  const answers = [
    statusOf(422, 'Invalid', `Secret "s" is invalid: data[p]: "${canary}"`, details),
    statusOf(500, '', `failed to create typed patch object: .data.p: expected string, got ${canary}`),
    statusOf(500, 'InternalError', canary),
    statusOf(403, 'Forbidden', canary),
    statusOf(409, 'Conflict', canary, {
      causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "x"', field: '.data.p' }],
    }),
    statusOf(400, 'BadRequest', canary),
    statusOf(401, 'Unauthorized', canary),
  ];
  for (const answer of answers) {
    const { client, clock } = clientOn(() => answer);
    const calls: (() => Promise<{ readonly type: string }>)[] = [
      () => client.apply(secret, { fieldManager, attempts: 1 }),
      () => client.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'demo', name: 's' }, { attempts: 1 }),
      () =>
        client.delete(
          { apiVersion: 'v1', kind: 'Secret', namespace: 'demo', name: 's' },
          { uid: 'u', propagation: 'Background', attempts: 1 },
        ),
      () => client.list({ apiVersion: 'v1', kind: 'Secret' }, { attempts: 1 }),
    ];
    for (const call of calls) assert.not.match(JSON.stringify(await timed(clock, call())), canary);
  }
  const { client } = clientOn(() => statusOf(403, 'Forbidden', 'denied: Authorization: Bearer abcdefgh12345'));
  assert.not.match(JSON.stringify(await client.apply(map, { fieldManager })), 'abcdefgh');
});

test('429 waits as long as the server asks, halves the limit, and a long Retry-After goes to the caller', async () => {
  const clock = new VirtualClock();
  const throttled = { ...statusOf(429, 'TooManyRequests', 'slow down'), headers: { 'retry-after': '3' } };
  const { client } = clientOn((_request, count) => (count < 4 ? throttled : { status: 200, body: map }), clock);
  assert.is(client.load().limit, 8);
  const outcome = await timed(clock, client.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'a' }));
  assert.is(outcome.type, 'found');
  assert.is(clock.monotonic(), 6000);
  assert.is(client.load().limit, 4);
  const patient = clientOn(() => ({ ...throttled, headers: { 'retry-after': '3600' } }));
  const late = await patient.client.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'a' });
  assert.is(late.type === 'unavailable' && late.retryAfterMs, 3_600_000);
  assert.is(patient.requests.length, 2);
});

test('a 429 of one kind whose cache is being filled presses nobody else', async () => {
  const clock = new VirtualClock();
  const filling = {
    ...statusOf(429, 'TooManyRequests', 'storage is (re)initializing'),
    headers: { 'retry-after': '1' },
  };
  const { client, requests } = clientOn(
    ({ path }, count) => (path.endsWith('/a') && count < 4 ? filling : { status: 200, body: map }),
    clock,
  );
  const slow = client.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'a' });
  const other = await client.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'b' });
  assert.is(other.type, 'found');
  assert.is((await timed(clock, slow)).type, 'found');
  assert.ok(requests.length >= 4);
  assert.ok(clock.monotonic() < 3_000, 'the header says a second each time; the cache is there sooner');
  assert.is(client.load().limit, 8);
});

test('Retry-After is read as seconds and as a date', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  assert.is(retryAfterMs({ 'retry-after': '7' }, now), 7000);
  assert.is(retryAfterMs({ 'retry-after': 'Thu, 01 Jan 2026 00:00:10 GMT' }, now), 10_000);
  assert.is(retryAfterMs({ 'retry-after': 'Wed, 31 Dec 2025 00:00:10 GMT' }, now), 0);
  assert.is(retryAfterMs({ 'retry-after': 'soon' }, now), undefined);
  assert.is(retryAfterMs({}, now), undefined);
});

test('a lost reply is told: by retried on success, by mayHaveHappened on failure; never for what was not sent', async () => {
  const lost = clientOn((_request, count) => {
    if (count === 2) throw new TransportError('reset', true);
    return { status: 200, body: map };
  });
  const applied = await timed(lost.clock, lost.client.apply(map, { fieldManager }));
  assert.is(applied.type === 'configured' && applied.retried, true);
  for (const sent of [true, false]) {
    const dead = clientOn(() => {
      throw new TransportError('refused', sent);
    });
    const outcome = await timed(dead.clock, dead.client.apply(map, { fieldManager, attempts: 3 }));
    assert.is(outcome.type === 'unavailable' && outcome.mayHaveHappened, sent);
    assert.is(dead.requests.length, 4);
    const read = await timed(
      dead.clock,
      dead.client.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'a' }),
    );
    assert.is(read.type === 'unavailable' && read.mayHaveHappened, false);
  }
});

test('unchanged needs the live object: by version when stored, by content in a dry run', async () => {
  const live: KubeObject = { ...map, metadata: { ...map.metadata, uid: 'u', resourceVersion: '5', generation: 1 } };
  const same = clientOn(() => ({ status: 200, body: live }));
  assert.is((await same.client.apply(map, { fieldManager, live })).type, 'unchanged');
  assert.is((await same.client.apply(map, { fieldManager })).type, 'configured');
  assert.is(
    (await same.client.apply(map, { fieldManager, live: { ...live, metadata: { ...live.metadata, uid: 'v' } } })).type,
    'configured',
  );
  const changed = clientOn(() => ({ status: 200, body: { ...live, data: { k: 'w' } } }));
  assert.is((await changed.client.apply(map, { fieldManager, live, dryRun: true })).type, 'configured');
  assert.is((await same.client.apply(map, { fieldManager, live, dryRun: true })).type, 'unchanged');
});

test('a kind is absent only by the word of discovery now, and a new one is found without a restart', async () => {
  let served = false;
  const widget: KubeObject = { apiVersion: 'x.io/v1', kind: 'Widget', metadata: { name: 'w' } };
  const { client, requests } = clientOn((request) => {
    if (request.path === '/apis/x.io/v1')
      return served
        ? { status: 200, body: { resources: [{ name: 'widgets', kind: 'Widget', namespaced: false, verbs: [] }] } }
        : { status: 404, body: '404 page not found' };
    return served ? { status: 201, body: widget } : { status: 404, body: '404 page not found' };
  });
  assert.is((await client.apply(widget, { fieldManager })).type, 'kindAbsent');
  served = true;
  assert.is((await client.apply(widget, { fieldManager })).type, 'created');
  assert.is((await client.apply(widget, { fieldManager })).type, 'created');
  assert.is(requests.filter(({ path }) => path === '/apis/x.io/v1').length, 2);
  served = false;
  assert.is((await client.apply(widget, { fieldManager })).type, 'kindAbsent');
  const dead = clientOn(() => statusOf(503, 'ServiceUnavailable', 'x'));
  const unknown = await timed(dead.clock, dead.client.apply(widget, { fieldManager, attempts: 1 }));
  assert.is(unknown.type, 'unavailable');
});

test('an object without name or namespace is refused here, never sent somewhere else', async () => {
  const { client, requests } = clientOn(() => ({ status: 200, body: map }));
  const nameless = await client.apply({ ...map, metadata: { namespace: 'demo' } }, { fieldManager });
  const homeless = await client.apply({ ...map, metadata: { name: 'a' } }, { fieldManager });
  assert.equal(
    [nameless, homeless].map((o) => o.type === 'invalid' && o.causes[0]?.field),
    ['metadata.name', 'metadata.namespace'],
  );
  assert.is(requests.filter(({ method }) => method !== 'GET').length, 0);
  const odd = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'a/../b?x' };
  await client.get(odd);
  assert.is(requests.at(-1)?.path, '/api/v1/namespaces/demo/configmaps/a%2F..%2Fb%3Fx');
});

test('lists are paged, and one that expired half way begins anew', async () => {
  const page = (names: string[], next: string): Scripted => ({
    status: 200,
    body: {
      metadata: { resourceVersion: '9', continue: next },
      items: names.map((name) => ({ metadata: { name, namespace: 'demo' } })),
    },
  });
  let expired = 0;
  const { client, requests } = clientOn(({ query }) => {
    if (query.continue === undefined) return page(['a', 'b'], 't1');
    if (expired++ === 0) return statusOf(410, 'Expired', 'too old');
    return page(['c'], '');
  });
  const outcome = await client.list({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: 'demo',
    name: 'x',
    labelSelector: 'l=1',
    fieldSelector: 'a=b',
  });
  assert.equal(
    outcome.type === 'listed' && outcome.items.map((item) => `${item.apiVersion} ${item.kind} ${item.metadata.name}`),
    ['v1 ConfigMap a', 'v1 ConfigMap b', 'v1 ConfigMap c'],
  );
  const query = requests.at(-1)?.query;
  assert.equal([query?.limit, query?.labelSelector, query?.fieldSelector], ['500', 'l=1', 'metadata.name=x,a=b']);
});

test('an abort ends a call at once, in its wait too', async () => {
  const { client, clock } = clientOn(() => statusOf(503, 'ServiceUnavailable', 'x'));
  const abort = new AbortController();
  const call = client.get(
    { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'a' },
    { signal: abort.signal },
  );
  for (let n = 0; n < 5; n += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.is(clock.sleeping, 1);
  abort.abort(new Error('enough'));
  await call.then(
    () => assert.unreachable('it had to reject'),
    (error: Error) => assert.is(error.message, 'enough'),
  );
  assert.is(clock.sleeping, 0);
  assert.is(client.load().active, 0);
});

test.run();
