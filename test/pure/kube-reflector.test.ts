import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { statusOf } from './fakeTransport.ts';
import { bed, line, listOf, lists, object, watches } from './kube-reflector-support.ts';
import { settled } from './virtualClock.ts';

test('it lists, then follows, and resumes where the watch ended', async () => {
  const { clock, events, requests, reflector, streams, stop } = await bed({ list: () => listOf(5, object('a', 3)) });
  assert.equal(events, ['added a uid-a 3', 'synced']);
  streams[0]?.push(line('ADDED', object('b', 6)) + line('MODIFIED', object('a', 7)) + line('DELETED', object('b', 8)));
  streams[0]?.push(line('BOOKMARK', { metadata: { resourceVersion: '20' } }));
  await settled();
  assert.equal(events.slice(2), ['added b uid-b 6', 'modified a uid-a 7', 'deleted b uid-b 8']);
  assert.equal([...reflector.objects.keys()], ['demo/a']);
  await clock.advance(5000);
  assert.is(reflector.health().lastHeardAgeMs, 5000);
  streams[0]?.end();
  await settled();
  assert.equal(
    watches(requests).map(({ query }) => query.resourceVersion),
    ['5', '20'],
  );
  assert.equal(
    [watches(requests)[0]?.query.allowWatchBookmarks, watches(requests)[0]?.query.timeoutSeconds],
    ['true', '450'],
  );
  assert.is(watches(requests)[0]?.timeoutMs, 480_000);
  assert.is(lists(requests), 1);
  await stop();
});

test('410, in the answer or on the stream, means a new list and tells what changed meanwhile', async () => {
  const { clock, events, requests, streams, stop } = await bed({
    list: (count) =>
      count === 1
        ? listOf(5, object('a', 3), object('gone', 4), object('same', 2))
        : listOf(50, object('a', 40, 'uid-new'), object('same', 2)),
    watch: (count) => (count === 2 ? statusOf(410, 'Expired', 'too old') : undefined),
  });
  streams[0]?.push(line('ERROR', { kind: 'Status', code: 410, reason: 'Expired' }));
  await settled();
  await clock.advance(100);
  assert.equal(events.slice(4), ['deleted gone uid-gone 4', 'deleted a uid-a 3', 'added a uid-new 40']);
  assert.is(lists(requests), 2);
  await clock.advance(400);
  assert.is(lists(requests), 3);
  assert.is(streams.length, 2);
  await stop();
});

test('an object made again under its name is another one, also on the watch', async () => {
  const { events, streams, stop } = await bed({ list: () => listOf(5, object('a', 3)) });
  streams[0]?.push(line('MODIFIED', object('a', 9, 'uid-2')));
  streams[0]?.push(line('DELETED', object('a', 8, 'uid-a')));
  await settled();
  assert.equal(events.slice(2), ['deleted a uid-a 3', 'added a uid-2 9']);
  await stop();
});

test('half a line at the end is dropped and told, and the watch resumes before it', async () => {
  const { events, problems, requests, streams, clock, stop } = await bed({ list: () => listOf(5) });
  streams[0]?.push(line('ADDED', object('a', 6)));
  streams[0]?.push(line('ADDED', object('b', 7)).slice(0, 30));
  streams[0]?.end();
  await settled();
  await clock.advance(200);
  assert.equal(events, ['synced', 'added a uid-a 6']);
  assert.equal(
    problems.map(({ reason }) => reason),
    ['Truncated'],
  );
  assert.equal(
    watches(requests).map(({ query }) => query.resourceVersion),
    ['5', '6'],
  );
  await stop();
});

test('a line that makes no sense is a reason to list, never passed over', async () => {
  for (const nonsense of [
    '{"type":"ADDED","object":\n',
    'hello\n',
    line('RENAMED', object('a', 6)),
    line('ADDED', { metadata: { name: 'x' } }),
  ]) {
    const { problems, requests, streams, clock, stop } = await bed({
      list: (count) => listOf(count === 1 ? 5 : 9, object('a', 6)),
    });
    streams[0]?.push(nonsense);
    await settled();
    await clock.advance(100);
    assert.equal(
      problems.map(({ reason }) => reason),
      ['Undecodable'],
    );
    assert.is(lists(requests), 2);
    await stop();
  }
});

test('what keeps failing is asked less and less often, and a list alone is no recovery', async () => {
  const { clock, requests, reflector, stop } = await bed({
    list: () => listOf(5),
    watch: () => ({ status: 200, body: 'nonsense\n' }),
  });
  await clock.advance(60_000);
  assert.ok(lists(requests) < 45, `${lists(requests)} lists in a minute`);
  assert.is(reflector.health().connected, false);
  assert.is(reflector.synced, true);
  await stop();
});

test('an outage: the place in the watch is kept for two tries, then everything is listed', async () => {
  let down = false;
  const { clock, requests, reflector, streams, stop } = await bed({
    list: () => (down ? statusOf(503, 'ServiceUnavailable', 'x') : listOf(5)),
    watch: () => (down ? statusOf(503, 'ServiceUnavailable', 'x') : undefined),
  });
  down = true;
  streams[0]?.end();
  await settled();
  assert.is(reflector.health().connected, false);
  await clock.advance(299);
  assert.is(lists(requests), 1);
  await clock.advance(1000);
  assert.ok(lists(requests) > 1);
  down = false;
  await clock.advance(2000);
  assert.is(reflector.health().connected, true);
  assert.is(reflector.health().problem, undefined);
  await stop();
});

test('429 on a watch waits as long as the server asks', async () => {
  const { clock, requests, stop } = await bed({
    list: () => listOf(5),
    watch: (count) =>
      count === 1 ? { ...statusOf(429, 'TooManyRequests', 'x'), headers: { 'retry-after': '7' } } : undefined,
  });
  await clock.advance(6999);
  assert.is(watches(requests).length, 1);
  await clock.advance(1);
  assert.is(watches(requests).length, 2);
  assert.is(lists(requests), 1);
  await stop();
});

test('a silent watch is opened anew from where it was; one that drips is kept', async () => {
  const { clock, problems, requests, streams, stop } = await bed({
    list: () => listOf(5),
    timings: { idleMs: 60_000 },
  });
  for (let n = 0; n < 4; n += 1) {
    await clock.advance(50_000);
    streams[0]?.push('{');
    await settled();
  }
  assert.is(watches(requests).length, 1);
  await clock.advance(60_000);
  assert.equal(
    problems.map(({ reason }) => reason),
    ['Idle'],
  );
  assert.equal(
    watches(requests).map(({ query }) => query.resourceVersion),
    ['5', '5'],
  );
  assert.is(lists(requests), 1);
  await stop();
});

test('everything is listed again after a while, and when it is asked for', async () => {
  const { clock, requests, reflector, streams, stop } = await bed({
    list: (count) => listOf(count * 10, object('a', count)),
    timings: { idleMs: 1e9, relistMs: 600_000 },
  });
  // The server ends the watch when its time is up.
  await clock.advance(450_000);
  streams[0]?.end();
  await settled();
  assert.is(watches(requests)[1]?.query.timeoutSeconds, '150');
  await clock.advance(150_000);
  streams[1]?.end();
  await settled();
  assert.is(lists(requests), 2);
  reflector.relist();
  await settled();
  await settled();
  assert.is(lists(requests), 3);
  assert.is(watches(requests).at(-1)?.query.resourceVersion, '30');
  await stop();
});

test('a handler that throws is told and changes nothing', async () => {
  const { events, problems, reflector, streams, stop } = await bed({
    list: () => listOf(5, object('a', 3)),
    handler: () => {
      throw new Error('not my day');
    },
  });
  streams[0]?.push(line('ADDED', object('b', 6)));
  await settled();
  assert.equal(events.length, 3);
  assert.equal(
    problems.map(({ reason, message }) => `${reason} ${message}`),
    ['Handler not my day', 'Handler not my day', 'Handler not my day'],
  );
  assert.is(reflector.objects.size, 2);
  await stop();
});

test('a kind that is confirmed to be gone takes its objects along', async () => {
  let served = true;
  const { clock, events, reflector, streams, requests, stop } = await bed({
    list: () => (served ? listOf(5, object('a', 3)) : { status: 404, body: '404 page not found' }),
    watch: () => (served ? undefined : { status: 404, body: '404 page not found' }),
  });
  assert.is(reflector.objects.size, 1);
  served = false;
  streams[0]?.end();
  await clock.advance(5000);
  // Discovery of the core group still names the kind here, so nothing is believed to be gone.
  assert.is(reflector.objects.size, 1);
  assert.ok(lists(requests) > 1);
  assert.equal(events, ['added a uid-a 3', 'synced']);
  await stop();
});

test('stopped while it waits, it leaves nothing', async () => {
  const { clock, reflector, stop } = await bed({ list: () => statusOf(503, 'ServiceUnavailable', 'x') });
  await clock.advance(50);
  assert.is(reflector.synced, false);
  await stop();
});

test.run();
