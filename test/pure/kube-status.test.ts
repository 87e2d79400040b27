import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { deepEqual, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { createClient, type KubeClient } from '../../executor/kube/client.ts';
import { largestStatusBytes, mergePatch, writeStatus } from '../../executor/kube/status.ts';
import type { TransportRequest } from '../../executor/kube/transport.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { seededRandom, VirtualClock } from './virtualClock.ts';

/** RFC 7396, section 2, word for word: the server's half of the bargain. */
function applyMergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else if (value !== undefined) result[name] = applyMergePatch(result[name], value);
  }
  return result;
}

const json = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<JsonValue>(null, true, 0, 1, 'a', 'b'),
    fc.array(tie('value'), { maxLength: 2 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
})).object;

/** Without null members: what a server stores. */
function stored(value: JsonObject): JsonObject {
  return applyMergePatch({}, value) as JsonObject;
}

test('a merge patch turns the one status into the other, and there is none between equals', () => {
  fc.assert(
    fc.property(json, json, (from, to) => {
      const live = stored(from);
      const patch = mergePatch(live, to);
      assert.ok(deepEqual(applyMergePatch(live, patch ?? {}), to), JSON.stringify(patch));
      assert.is(patch === undefined, deepEqual(live, to));
      assert.is(mergePatch(live, live), undefined);
    }),
    { numRuns: 500 },
  );
});

const live: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'd', namespace: 'demo', uid: 'u1', resourceVersion: '5' },
  status: { replicas: 1, conditions: [{ type: 'A', status: 'True' }], old: 'x' },
};

function clientOn(answer: (request: TransportRequest) => Scripted): { client: KubeClient; sent: TransportRequest[] } {
  const { transport, requests } = scriptedTransport((request) => discoveryAnswer(request.path) ?? answer(request));
  const sent = requests;
  return { client: createClient({ transport, clock: new VirtualClock(), random: seededRandom(1) }), sent };
}

const fieldManager = 'keelson-status';
const bodies = (sent: readonly TransportRequest[]): JsonObject[] =>
  sent.filter(({ method }) => method === 'PATCH').map(({ body }) => JSON.parse(body ?? ''));

test('half of a character in one message keeps nothing from being told, and is told once', async () => {
  const told = { replicas: 1, message: 'cut \ud83d' };
  const { client, sent } = clientOn(({ body }) => {
    const { status } = JSON.parse(body ?? '{}') as { status: JsonObject };
    return { status: 200, body: { ...live, status: { ...live.status, ...status } } };
  });
  const outcome = await writeStatus(client, live, () => told, { fieldManager });
  assert.is(outcome.type, 'written');
  assert.equal(
    bodies(sent).map(({ status }) => isObject(status) && status.message),
    ['cut \ufffd'],
  );
  // A server stores it as this; it is not another message the next time.
  const stored = { ...live, status: { replicas: 1, message: 'cut \ufffd' } };
  assert.is((await writeStatus(client, stored, () => told, { fieldManager })).type, 'unchanged');
});

test('only what differs is sent, guarded by the version that was read', async () => {
  const { client, sent } = clientOn(() => ({ status: 200, body: { ...live, status: { replicas: 2 } } }));
  const outcome = await writeStatus(
    client,
    live,
    () => ({ replicas: 2, conditions: live.status?.conditions ?? null }),
    { fieldManager },
  );
  assert.equal(outcome.type === 'written' && outcome.status, { replicas: 2 });
  assert.equal(bodies(sent), [{ metadata: { resourceVersion: '5' }, status: { replicas: 2, old: null } }]);
  const request = sent.at(-1);
  assert.equal(
    [request?.path, request?.headers['content-type'], request?.query.fieldManager],
    ['/apis/apps/v1/namespaces/demo/deployments/d/status', 'application/merge-patch+json', fieldManager],
  );
});

test('the same status is not sent', async () => {
  const { client, sent } = clientOn(() => ({ status: 500 }));
  const outcome = await writeStatus(client, live, () => ({ ...live.status, nothing: null }), { fieldManager });
  assert.is(outcome.type, 'unchanged');
  assert.is(sent.length, 0);
});

test('after a conflict the object is read again and the status made anew, once', async () => {
  const newer: KubeObject = { ...live, metadata: { ...live.metadata, resourceVersion: '6' }, status: { replicas: 7 } };
  let refused = 0;
  const { client, sent } = clientOn(({ method }) => {
    if (method === 'GET') return { status: 200, body: newer };
    return refused++ === 0 ? statusOf(409, 'Conflict', 'modified') : { status: 200, body: newer };
  });
  const seen: string[] = [];
  const outcome = await writeStatus(
    client,
    live,
    (object) => {
      seen.push(object.metadata.resourceVersion ?? '');
      return { replicas: 9 };
    },
    { fieldManager },
  );
  assert.is(outcome.type, 'written');
  assert.equal(seen, ['5', '6']);
  assert.equal(
    bodies(sent).map((body) => body.metadata),
    [{ resourceVersion: '5' }, { resourceVersion: '6' }],
  );
});

test('another object of the same name, a deleted one and a third writer end it', async () => {
  const stale = statusOf(409, 'Conflict', 'modified');
  const cases: [Scripted, string][] = [
    [{ status: 200, body: { ...live, metadata: { ...live.metadata, uid: 'u2' } } }, 'gone'],
    [statusOf(404, 'NotFound', 'x', { name: 'd', kind: 'deployments' }), 'gone'],
    [{ status: 200, body: live }, 'lost'],
  ];
  for (const [read, expected] of cases) {
    const { client } = clientOn(({ method }) => (method === 'GET' ? read : stale));
    assert.is((await writeStatus(client, live, () => ({ replicas: 9 }), { fieldManager })).type, expected);
  }
});

test('a status beyond 32 KiB is not sent, and says how large it is', async () => {
  const { client, sent } = clientOn(() => ({ status: 500 }));
  const fits = 'x'.repeat(largestStatusBytes - '{"a":""}'.length);
  const outcome = await writeStatus(client, live, () => ({ a: `${fits}y` }), { fieldManager });
  assert.equal(outcome.type === 'tooLarge' && [outcome.bytes, outcome.limit], [
    largestStatusBytes + 1,
    largestStatusBytes,
  ]);
  assert.is(sent.length, 0);
  await writeStatus(client, live, () => ({ a: fits }), { fieldManager, attempts: 1 });
  assert.is(bodies(sent).length, 1);
});

test('a kind without a status subresource is refused before anything is sent', async () => {
  const { client, sent } = clientOn(() => ({ status: 500 }));
  const outcome = await writeStatus(client, { ...live, apiVersion: 'v1', kind: 'ConfigMap' }, () => ({ a: 1 }), {
    fieldManager,
  });
  assert.is(outcome.type, 'invalid');
  assert.is(bodies(sent).length, 0);
});

test.run();
