import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readText, type Transport, TransportError, type TransportRequest } from '../../executor/kube/transport.ts';
import { type CrashPoint, crashPoints, crashTransport, ProcessDied } from '../faults/crash.ts';
import { FaultPlan, type FaultRule } from '../faults/plan.ts';
import { describeRequest } from '../faults/request.ts';
import { BodyCut, shapeBody } from '../faults/stream.ts';
import { faultTransport } from '../faults/transport.ts';

const never = new AbortController().signal;

async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

async function collect(body: AsyncIterable<Uint8Array>): Promise<{ text: string; error: unknown }> {
  let text = '';
  try {
    for await (const chunk of body) text += Buffer.from(chunk).toString();
    return { text, error: undefined };
  } catch (error) {
    return { text, error };
  }
}

test('requests are read as the API server reads them', () => {
  const apply = describeRequest(
    'PATCH',
    '/apis/apps/v1/namespaces/a/deployments/web?fieldManager=keelson&dryRun=All',
    'application/apply-patch+yaml',
    '{"kind":"Deployment"}',
  );
  assert.equal(apply, {
    method: 'PATCH',
    verb: 'apply',
    path: '/apis/apps/v1/namespaces/a/deployments/web',
    group: 'apps',
    version: 'v1',
    resource: 'deployments',
    namespace: 'a',
    name: 'web',
    dryRun: true,
    force: false,
    fieldManager: 'keelson',
    mutating: false,
    body: { kind: 'Deployment' },
  });
  const verbs: readonly [string, string, string, string, boolean][] = [
    ['GET', '/api/v1/namespaces/a', 'get', 'namespaces', false],
    ['GET', '/api/v1/namespaces', 'list', 'namespaces', false],
    ['GET', '/api/v1/namespaces/a/pods?watch=true', 'watch', 'pods', false],
    ['GET', '/readyz', 'other', '', false],
    ['GET', '/apis/apps/v1', 'other', '', false],
    ['POST', '/api/v1/namespaces', 'create', 'namespaces', true],
    ['PUT', '/api/v1/namespaces/a/finalize', 'update', 'namespaces', true],
    ['PATCH', '/apis/x.io/v1/widgets/w/status', 'patch', 'widgets', true],
    ['DELETE', '/api/v1/namespaces/a/pods', 'deletecollection', 'pods', true],
    ['DELETE', '/api/v1/namespaces/a/pods/p', 'delete', 'pods', true],
    ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', 'create', 'selfsubjectaccessreviews', false],
    ['POST', '/api/v1/namespaces/a/serviceaccounts/b/token', 'create', 'serviceaccounts', false],
  ];
  for (const [method, url, verb, resource, mutating] of verbs) {
    const request = describeRequest(method, url);
    assert.equal([request.verb, request.resource, request.mutating], [verb, resource, mutating], `${method} ${url}`);
  }
});

test('a rule hits from its n-th match on, so many times, and the first rule that hits decides', () => {
  const plan = new FaultPlan();
  const hits = plan.inject({ match: { verb: 'get' }, nth: 2, times: 2, fault: { kind: 'dropBefore' } });
  plan.inject({ match: { path: /\/pods\// }, times: 9, fault: { kind: 'hang' } });
  const pod = describeRequest('GET', '/api/v1/namespaces/a/pods/p');
  const kinds = Array.from({ length: 4 }, () => plan.admit(pod).fault?.kind);
  assert.equal(kinds, ['hang', 'dropBefore', 'dropBefore', 'hang']);
  assert.is(hits(), 2);
  plan.admit(describeRequest('POST', '/api/v1/namespaces/a/pods?dryRun=All'));
  assert.equal(plan.counts(), { 'get pods': 4, 'create pods (dry run)': 1 });
  assert.equal(plan.mutations(), []);
});

test('force is answered with 500 and remembered', () => {
  const plan = new FaultPlan();
  const { fault } = plan.admit(describeRequest('PATCH', '/api/v1/nodes/n?force=true&fieldManager=keelson'));
  assert.equal(fault, { kind: 'status', code: 500, reason: 'ForceRefused' });
  assert.is(plan.violations.length, 1);
  plan.admit(describeRequest('PATCH', '/api/v1/nodes/n?force=false&fieldManager=keelson'));
  assert.is(plan.violations.length, 1);
});

test('bodies break off in the middle of a line, after bytes, or end with an ERROR event', async () => {
  const lines = ['{"a":1}\n{"b', '":2}\n{"c":3}\n'];
  const half = await collect(shapeBody(chunks(...lines), { kind: 'halfLine', afterLines: 1 }, never));
  assert.is(half.text, '{"a":1}\n{"b"');
  assert.instance(half.error, BodyCut);
  const cut = await collect(shapeBody(chunks(...lines), { kind: 'cut', afterBytes: 10 }, never));
  assert.is(cut.text, '{"a":1}\n{"');
  assert.instance(cut.error, BodyCut);
  const expired = await collect(shapeBody(chunks(...lines), { kind: 'watchError', afterEvents: 1 }, never));
  const [first, second] = expired.text.trimEnd().split('\n');
  assert.is(first, '{"a":1}');
  assert.equal([JSON.parse(second ?? '').type, JSON.parse(second ?? '').object.code], ['ERROR', 410]);
  assert.is(expired.error, undefined);
  const slow = await collect(shapeBody(chunks(...lines), { kind: 'slowStream', chunkBytes: 4, intervalMs: 1 }, never));
  assert.is(slow.text, lines.join(''));
});

function server(): { inner: Transport; seen: TransportRequest[] } {
  const seen: TransportRequest[] = [];
  const inner: Transport = async (request) => {
    seen.push(request);
    return { status: 201, headers: {}, body: chunks('{"kind":"ConfigMap"}') };
  };
  return { inner, seen };
}

function write(n: number): TransportRequest {
  const path = `/api/v1/namespaces/a/configmaps/c${n}`;
  const headers = { 'content-type': 'application/apply-patch+yaml' };
  return { method: 'PATCH', path, query: { fieldManager: 'keelson' }, headers, body: '{}', timeoutMs: 1000 };
}

async function outcome(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'answered';
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

test('the transport loses requests before and after their effect, delays, refuses and hangs', async () => {
  const cases: readonly [FaultRule['fault'], string, number][] = [
    [{ kind: 'dropBefore' }, 'TransportError', 0],
    [{ kind: 'dropAfter' }, 'TransportError', 1],
    [{ kind: 'delay', ms: 1 }, 'answered', 1],
    [{ kind: 'status', code: 429, retryAfterSeconds: 1 }, 'answered', 0],
    [{ kind: 'hang' }, 'TransportError', 0],
  ];
  for (const [fault, expected, effects] of cases) {
    const { inner, seen } = server();
    const plan = new FaultPlan();
    plan.inject({ match: { mutating: true }, fault });
    const send = faultTransport(inner, plan);
    assert.is(await outcome(send({ ...write(1), timeoutMs: 50 })), expected, fault.kind);
    assert.is(seen.length, effects, fault.kind);
    assert.is((await send(write(2))).status, 201);
  }
});

test('an injected answer has status, Retry-After and a Status body; a shaped one breaks as a connection does', async () => {
  const plan = new FaultPlan();
  plan.inject({ match: {}, fault: { kind: 'status', code: 429, retryAfterSeconds: 2 } });
  plan.inject({ match: {}, nth: 2, fault: { kind: 'cut', afterBytes: 3 } });
  const send = faultTransport(server().inner, plan);
  const refused = await send(write(1));
  assert.is(refused.headers['retry-after'], '2');
  assert.equal(JSON.parse(await readText(refused)).reason, 'TooManyRequests');
  const broken = await collect((await send(write(2))).body);
  assert.instance(broken.error, TransportError);
  assert.equal(
    plan.log.map(({ status, fault }) => [status, fault]),
    [
      [429, 'status'],
      [201, 'cut'],
    ],
  );
});

test('hanging requests end when the plan is cleared and when the caller gives up', async () => {
  const plan = new FaultPlan();
  plan.inject({ match: {}, times: 2, fault: { kind: 'hang' } });
  const send = faultTransport(server().inner, plan);
  const caller = new AbortController();
  const waiting = outcome(send({ ...write(1), signal: caller.signal }));
  caller.abort(new RangeError('no longer wanted'));
  assert.is(await waiting, 'RangeError');
  const hanging = outcome(send(write(2)));
  plan.clear();
  assert.is(await hanging, 'TransportError');
});

test('a process dies before, in or after its n-th write, and nothing of it goes on', async () => {
  const effects: Readonly<Record<CrashPoint, number>> = { beforeSend: 1, afterEffect: 2, afterReply: 2 };
  for (const at of crashPoints) {
    const { inner, seen } = server();
    const { transport, crashed, count } = crashTransport(inner, { nth: 2, at });
    assert.is(await outcome(transport(write(1))), 'answered');
    assert.is(await outcome(transport(write(2))), at === 'afterReply' ? 'answered' : 'ProcessDied', at);
    assert.instance(crashed.reason, ProcessDied);
    assert.is(await outcome(transport({ ...write(3), method: 'GET' })), 'ProcessDied');
    assert.equal([seen.length, count()], [effects[at], 2], at);
  }
});

test('a crash breaks streams and requests that are under way', async () => {
  const inner: Transport = async (request) => {
    if (request.method === 'GET') return { status: 200, headers: {}, body: endless() };
    return { status: 201, headers: {}, body: chunks('{}') };
  };
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('{}\n');
    await new Promise(() => undefined);
  }
  const { transport } = crashTransport(inner, { nth: 1, at: 'beforeSend' });
  const stream = (await transport({ ...write(1), method: 'GET', query: { watch: 'true' } })).body[
    Symbol.asyncIterator
  ]();
  assert.is(Buffer.from((await stream.next()).value).toString(), '{}\n');
  const more = outcome(stream.next());
  assert.is(await outcome(transport(write(1))), 'ProcessDied');
  assert.is(await more, 'ProcessDied');
});

test('without a crash it only counts', async () => {
  const { transport, crashed, count } = crashTransport(server().inner, { nth: 99, at: 'beforeSend' });
  for (const n of [1, 2, 3]) await transport(write(n));
  await transport({ ...write(4), query: { dryRun: 'All' } });
  assert.equal([count(), crashed.aborted], [3, false]);
});

test.run();
