import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { Reflector, type ReflectorEvent, type ReflectorProblem } from '../../executor/kube/reflector.ts';
import type { ReflectorTimings } from '../../executor/kube/reflector-timings.ts';
import { refOf } from '../../executor/kube/types.ts';
import type { Selection } from '../../executor/kube/verbs/list.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { type SharedServer, sharedApiServer } from '../apiserver/shared.ts';
import { type FaultProxy, startFaultProxy } from '../faults/proxy.ts';
import { configMap, type Edge, edgeOf, until } from './kubeBed.ts';

const fieldManager = 'keelson';
let server: SharedServer;
let proxy: FaultProxy;
/** Past the proxy, for what others do; and through it. */
let direct: Edge;
let edge: Edge;

test.before(async () => {
  server = await sharedApiServer();
  proxy = await startFaultProxy(server);
  direct = edgeOf(server);
  edge = edgeOf(server, { url: proxy.url });
});

test.after(async () => {
  // A test that failed has not stopped its own.
  for (const follower of following) await follower.stop();
  await edge.transport.close();
  await direct.transport.close();
  await proxy.stop();
  await server.admin.close();
});

const following: Follower[] = [];

interface Follower {
  readonly reflector: Reflector;
  readonly seen: string[];
  readonly problems: ReflectorProblem[];
  stop(): Promise<void>;
}

const quick: Partial<ReflectorTimings> = {
  backoff: { initialMs: 20, factor: 2, maxMs: 400, jitter: 0.1 },
  watchSeconds: [30, 60],
  shortestWatchMs: 50,
};

async function follow(
  through: Edge,
  namespace: string,
  timings: Partial<ReflectorTimings> = {},
  narrowed: Partial<Selection> = {},
): Promise<Follower> {
  const seen: string[] = [];
  const problems: ReflectorProblem[] = [];
  const tell = (event: ReflectorEvent): string =>
    event.type === 'synced' ? 'synced' : `${event.type} ${event.object.metadata.name}`;
  const reflector = new Reflector({
    client: through.client,
    selection: { apiVersion: 'v1', kind: 'ConfigMap', namespace, ...narrowed },
    clock: systemClock,
    random: Math.random,
    handler: (event) => seen.push(tell(event)),
    onProblem: (problem) => problems.push(problem),
    timings: { ...quick, ...timings },
  });
  const abort = new AbortController();
  const running = reflector.run(abort.signal);
  const follower = {
    ...{ reflector, seen, problems },
    async stop() {
      abort.abort();
      await running;
    },
  };
  following.push(follower);
  await until('the first list', () => reflector.synced);
  return follower;
}

const put = (namespace: string, name: string, value = '1') =>
  direct.client.apply(configMap(namespace, name, { v: value }), { fieldManager });
const has = (follower: Follower, event: string) => until(event, () => follower.seen.includes(event));

test('429 with Retry-After: an apply waits for it, halves the limit, and succeeds', async () => {
  const namespace = await freshNamespace(server.admin, 'throttle');
  proxy.plan.clear();
  const hits = proxy.plan.inject({
    match: { verb: 'apply', namespace },
    times: 2,
    fault: { kind: 'status', code: 429, retryAfterSeconds: 1 },
  });
  const began = performance.now();
  const outcome = await edge.client.apply(configMap(namespace, 'a', {}), { fieldManager });
  assert.is(outcome.type, 'created');
  assert.is(hits(), 2);
  assert.ok(performance.now() - began >= 2000);
  assert.ok(edge.client.load().limit <= 5, `limit ${edge.client.load().limit}`);
});

test('what is lost on the way is sent again; what got lost on the way back is told as such', async () => {
  const namespace = await freshNamespace(server.admin, 'lost');
  proxy.plan.clear();
  proxy.plan.inject({ match: { verb: 'apply', namespace, name: 'before' }, fault: { kind: 'dropBefore' } });
  proxy.plan.inject({ match: { verb: 'apply', namespace, name: 'after' }, fault: { kind: 'dropAfter' } });
  proxy.plan.inject({ match: { verb: 'apply', namespace, name: 'cut' }, fault: { kind: 'cut', afterBytes: 20 } });
  proxy.plan.inject({ match: { verb: 'apply', namespace, name: 'hang' }, fault: { kind: 'hang' } });
  proxy.plan.inject({ match: { verb: 'apply', namespace, name: 'dead' }, times: 99, fault: { kind: 'dropAfter' } });
  const results: string[] = [];
  for (const name of ['before', 'after', 'cut', 'hang']) {
    const outcome = await edge.client.apply(configMap(namespace, name, {}), { fieldManager, timeoutMs: 300 });
    results.push(`${name} ${outcome.type} ${'retried' in outcome && outcome.retried}`);
  }
  assert.equal(results, ['before created true', 'after configured true', 'cut configured true', 'hang created true']);
  const dead = await edge.client.apply(configMap(namespace, 'dead', {}), { fieldManager, attempts: 2 });
  assert.is(dead.type === 'unavailable' && dead.mayHaveHappened, true);
  assert.is((await direct.client.get(refOf(configMap(namespace, 'dead', {})))).type, 'found');
});

test('a watch survives 410, half a line, a cut and a broken connection, and loses nothing', async () => {
  const namespace = await freshNamespace(server.admin, 'watch');
  proxy.plan.clear();
  const match = { verb: 'watch', namespace } as const;
  proxy.plan.inject({ match, nth: 1, fault: { kind: 'watchError', afterEvents: 1 } });
  proxy.plan.inject({ match, nth: 2, fault: { kind: 'halfLine', afterLines: 1 } });
  proxy.plan.inject({ match, nth: 3, fault: { kind: 'cut', afterBytes: 100 } });
  proxy.plan.inject({ match, nth: 4, fault: { kind: 'watchError', afterEvents: 0, code: 500 } });
  proxy.plan.inject({ match, nth: 5, fault: { kind: 'status', code: 429, retryAfterSeconds: 1 } });
  const follower = await follow(edge, namespace);
  const watches = (): number => proxy.plan.count({ verb: 'watch', namespace });
  const names: string[] = [];
  // A change may also be seen by a list, so there are as many as it takes to meet every fault.
  while (watches() < 6 || names.length < 6) {
    assert.ok(names.length < 60, `${watches()} watches after 60 changes`);
    const name = `m${names.length}`;
    names.push(name);
    await put(namespace, name);
    await has(follower, `added ${name}`);
  }
  proxy.cutConnections();
  const found = await direct.client.get(refOf(configMap(namespace, 'm0', {})));
  if (found.type !== 'found') throw new Error(found.type);
  await direct.client.delete(refOf(found.object), { uid: found.object.metadata.uid ?? '', propagation: 'Background' });
  await has(follower, 'deleted m0');
  const left = [...follower.reflector.objects.keys()].map((key) => key.split('/')[1]);
  assert.equal(left.sort(), names.slice(1).sort());
  const reasons = new Set(follower.problems.map(({ reason }) => reason));
  assert.ok(reasons.has('Expired') && reasons.has('Watch'), [...reasons].join());
  assert.not(reasons.has('Undecodable'));
  assert.equal(
    follower.seen.filter((event) => event !== 'synced').length,
    new Set(follower.seen).size - 1,
    'nothing was told twice',
  );
  await follower.stop();
});

test('a stream that drips byte by byte is understood', async () => {
  const namespace = await freshNamespace(server.admin, 'drip');
  proxy.plan.clear();
  proxy.plan.inject({
    match: { verb: 'watch', namespace },
    fault: { kind: 'slowStream', chunkBytes: 7, intervalMs: 1 },
  });
  const follower = await follow(edge, namespace);
  await put(namespace, 'a', 'ünïcödé');
  await has(follower, 'added a');
  assert.equal(follower.problems, []);
  assert.is(follower.reflector.health().lists, 1);
  await follower.stop();
});

test('one object, or those of a label, can be followed alone; leaving the selection reads as deleted', async () => {
  const namespace = await freshNamespace(server.admin, 'narrow');
  const single = await follow(direct, namespace, {}, { name: 'b' });
  const labelled = await follow(direct, namespace, {}, { labelSelector: 'team=x' });
  const marked = (team: string): ReturnType<typeof put> => {
    const map = configMap(namespace, 'b', {});
    map.metadata.labels = { team };
    return direct.client.apply(map, { fieldManager });
  };
  await put(namespace, 'a');
  await marked('x');
  await has(single, 'added b');
  await has(labelled, 'added b');
  await marked('y');
  await has(labelled, 'deleted b');
  await has(single, 'modified b');
  assert.equal([...single.reflector.objects.keys(), ...labelled.reflector.objects.keys()], [`${namespace}/b`]);
  await single.stop();
  await labelled.stop();
});

test('a watch that hangs, before its answer or after, is given up by our own limit', async () => {
  const namespace = await freshNamespace(server.admin, 'mute');
  proxy.plan.clear();
  proxy.plan.inject({ match: { verb: 'watch', namespace }, fault: { kind: 'hang' } });
  const follower = await follow(edge, namespace, { watchSeconds: [1, 1], graceMs: 200, idleMs: 400 });
  await put(namespace, 'a');
  await has(follower, 'added a');
  await until('silence was noticed', () => follower.problems.some(({ reason }) => reason === 'Idle'));
  await put(namespace, 'b');
  await has(follower, 'added b');
  assert.is(follower.reflector.health().lists, 1);
  await follower.stop();
});

test('a version that the server no longer knows means a new list', async () => {
  const own = await startApiServer({ extraArgs: ['--watch-cache=false', '--etcd-compaction-interval=0'] });
  const past = edgeOf(own);
  try {
    const namespace = await freshNamespace(own.admin, 'old');
    let first = '';
    for (let n = 0; n < 5; n += 1) {
      const outcome = await past.client.apply(configMap(namespace, 'a', { n: String(n) }), { fieldManager });
      if (first === '' && outcome.type === 'created') first = outcome.object.metadata.resourceVersion ?? '';
    }
    await compact(own.etcdUrl, Number(first) + 3);
    const abort = new AbortController();
    const selection = { apiVersion: 'v1', kind: 'ConfigMap', namespace };
    const start = await past.client.watch(selection, {
      signal: abort.signal,
      resourceVersion: first,
      timeoutSeconds: 5,
      timeoutMs: 5000,
    });
    let text = start.type;
    if (start.type === 'stream') for await (const chunk of start.body) text += Buffer.from(chunk).toString();
    assert.match(text, /expired|"code":410/);
    abort.abort();
    const follower = await follow(past, namespace);
    assert.is(follower.reflector.objects.size, 1);
    await follower.stop();
  } finally {
    await past.transport.close();
    await own.stop();
  }
});

/** Forgets everything before a revision, as etcd does of itself after some minutes. */
async function compact(etcd: string, revision: number): Promise<void> {
  const response = await fetch(`${etcd}/v3/kv/compaction`, {
    method: 'POST',
    body: JSON.stringify({ revision: String(revision), physical: true }),
  });
  if (!response.ok) throw new Error(await response.text());
}

test('kill -9 of the API server: calls get their answer from the new one, watches go on', async () => {
  const own = await startApiServer();
  const past = edgeOf(own);
  try {
    const namespace = await freshNamespace(own.admin, 'kill');
    const follower = await follow(past, namespace);
    await past.client.apply(configMap(namespace, 'a', {}), { fieldManager });
    await has(follower, 'added a');
    await own.kill9();
    await until('the outage was noticed', () => !follower.reflector.health().connected);
    const during = await past.client.get(refOf(configMap(namespace, 'a', {})), { attempts: 1 });
    assert.is(during.type, 'unavailable');
    const waiting = past.client.apply(configMap(namespace, 'b', {}), { fieldManager, attempts: 60 });
    const began = performance.now();
    await own.restart();
    assert.match((await waiting).type, /created|configured/);
    await has(follower, 'added b');
    console.log(
      `after kill -9: event seen ${Math.round(performance.now() - began)} ms after the restart began; ${JSON.stringify(follower.reflector.health())}`,
    );
    assert.is(follower.reflector.health().connected, true);
    assert.is(follower.reflector.objects.size, 2);
    await follower.stop();
  } finally {
    await past.transport.close();
    await own.stop();
  }
});

test.run();
