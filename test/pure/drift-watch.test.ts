import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LiveWatch } from '../../executor/apply/drift/live-watch.ts';
import { createClient } from '../../executor/kube/client.ts';
import type { ReflectorProblem } from '../../executor/kube/reflector.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { line, listOf, lists, object, Stream, watches } from './kube-reflector-support.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

const full = (name: string, version: number): KubeObject => ({
  ...object(name, version),
  metadata: {
    ...object(name, version).metadata,
    labels: { 'keelson.dev/release': 'r', other: 'x' },
    annotations: { 'keelson.dev/id': name, note: 'long' },
    managedFields: [{ manager: 'keelson' }],
  },
  data: { secret: 'x'.repeat(1000) },
});

const ref = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name });
const place = { apiVersion: 'v1', kind: 'ConfigMap' };

async function watched(
  list: (count: number) => Scripted,
  refuse: (count: number) => Scripted | undefined = () => undefined,
) {
  const clock = new VirtualClock();
  const streams: Stream[] = [];
  const changed: string[] = [];
  const problems: ReflectorProblem[] = [];
  const counts = { list: 0, watch: 0, listed: 0 };
  const { transport, requests } = scriptedTransport((request) => {
    const known = discoveryAnswer(request.path);
    if (known !== undefined) return known;
    if (request.query.watch !== 'true') return list(++counts.list);
    const refused = refuse(++counts.watch);
    if (refused !== undefined) return refused;
    const stream = new Stream();
    streams.push(stream);
    return { status: 200, stream: stream.body(request.signal) };
  });
  const watch = new LiveWatch({
    client: createClient({ transport, clock, random: seededRandom(1) }),
    clock,
    random: () => 0.5,
    release: 'r',
    timings: { backoff: { initialMs: 100, factor: 2, maxMs: 1600, jitter: 0 } },
    judge: (seen) => ({ same: false, hash: String(seen.metadata.name) }),
    onChange: ({ name }) => changed.push(name),
    onListed: () => {
      counts.listed += 1;
    },
    onProblem: (problem) => problems.push(problem),
  });
  const rest = async (): Promise<void> => {
    await settled();
    await settled();
  };
  return { clock, streams, changed, problems, counts, requests, watch, rest };
}

test('of an object only its marks and a hash are kept; nothing is known of a place before its first list', async () => {
  const { clock, streams, changed, requests, watch, rest } = await watched(() => listOf(5, full('a', 3)));
  assert.is(watch.find(ref('a')), 'unknown');
  watch.set([place]);
  assert.is(watch.find(ref('a')), 'unknown');
  await rest();
  assert.equal(watch.find(ref('a')), {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'a',
      namespace: 'demo',
      uid: 'uid-a',
      resourceVersion: '3',
      labels: { 'keelson.dev/release': 'r' },
      annotations: { 'keelson.dev/id': 'a' },
    },
    seen: { same: false, hash: 'a' },
  });
  assert.is(watch.find(ref('b')), undefined);
  assert.is(watch.find({ ...ref('b'), kind: 'Secret' }), 'unknown');
  streams[0]?.push(line('ADDED', full('b', 6)) + line('DELETED', full('a', 7)));
  await rest();
  assert.equal(changed, ['a', 'b', 'a']);
  assert.is(watch.find(ref('a')), undefined);
  assert.is(watches(requests)[0]?.query.labelSelector, 'keelson.dev/release=r,!keelson.dev/holds');
  watch.set([]);
  assert.is(watch.find(ref('b')), 'unknown');
  await watch.close();
  await rest();
  assert.is(clock.sleeping, 0);
});

test('after a doubt nothing is believed, and nothing watched, before a whole list', async () => {
  const { clock, streams, counts, problems, requests, watch, rest } = await watched(
    () => listOf(5, full('a', 3)),
    (count) => (count === 2 ? statusOf(503, 'ServiceUnavailable', 'down') : undefined),
  );
  watch.set([place]);
  await rest();
  streams[0]?.push(line('BOOKMARK', { metadata: { resourceVersion: '9' } }));
  streams[0]?.end();
  await rest();
  assert.is(problems.length, 1);
  assert.is(watch.find(ref('a')), 'unknown');
  await clock.advance(100);
  await rest();
  assert.is(lists(requests), 2, 'a list comes before the next watch');
  assert.is(watches(requests).length, 3);
  assert.is(counts.listed, 2);
  assert.is.not(watch.find(ref('a')), 'unknown');
  await watch.close();
});

test('a sweep lists a place once and goes on; it does not hang on one that can not be listed', async () => {
  const never = new AbortController().signal;
  const { clock, requests, watch, rest } = await watched((count) =>
    count < 3 ? listOf(5, full('a', 3)) : statusOf(403, 'Forbidden', 'no'),
  );
  watch.set([place]);
  await rest();
  const [key = ''] = watch.places;
  await watch.refresh(key, never);
  assert.is(lists(requests), 2);
  let over = false;
  const second = watch.refresh(key, never).then(() => {
    over = true;
  });
  await clock.advance(59_000);
  assert.is(over, false);
  await clock.advance(1_000);
  await second;
  await watch.close();
});

test.run();
