import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createClient } from '../../executor/kube/client.ts';
import { Reflector, type ReflectorEvent, type ReflectorProblem } from '../../executor/kube/reflector.ts';
import type { ReflectorTimings } from '../../executor/kube/reflector-timings.ts';
import type { TransportRequest } from '../../executor/kube/transport.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { decodeEvent, linesOf } from '../../executor/kube/watchstream.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

function object(name: string, version: number, uid = `uid-${name}`): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'demo', uid, resourceVersion: String(version) },
  };
}

function line(type: string, subject: KubeObject | object): string {
  return `${JSON.stringify({ type, object: subject })}\n`;
}

function listOf(version: number, ...items: KubeObject[]): Scripted {
  return { status: 200, body: { metadata: { resourceVersion: String(version) }, items } };
}

/** A watch that the test feeds. It ends like a real one when its request is aborted. */
class Stream {
  readonly #chunks: Uint8Array[] = [];
  #ended = false;
  #wake: () => void = () => undefined;
  closed = false;

  push(text: string): void {
    this.#chunks.push(Buffer.from(text));
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *body(signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const wake = (): void => this.#wake();
    signal?.addEventListener('abort', wake);
    try {
      for (;;) {
        signal?.throwIfAborted();
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) yield chunk;
        else if (this.#ended) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      this.closed = true;
      signal?.removeEventListener('abort', wake);
    }
  }
}

interface Bed {
  readonly clock: VirtualClock;
  readonly reflector: Reflector;
  readonly events: string[];
  readonly problems: ReflectorProblem[];
  readonly requests: TransportRequest[];
  readonly streams: Stream[];
  stop(): Promise<void>;
}

interface Script {
  readonly list: (count: number) => Scripted;
  /** A refusal of the n-th watch in place of a stream. */
  readonly watch?: (count: number) => Scripted | undefined;
  readonly handler?: (event: ReflectorEvent) => void;
  readonly timings?: Partial<ReflectorTimings>;
}

function tell(event: ReflectorEvent): string {
  return event.type === 'synced'
    ? 'synced'
    : `${event.type} ${event.object.metadata.name} ${event.object.metadata.uid} ${event.object.metadata.resourceVersion}`;
}

async function bed(script: Script): Promise<Bed> {
  const clock = new VirtualClock();
  const events: string[] = [];
  const problems: ReflectorProblem[] = [];
  const streams: Stream[] = [];
  const counts = { list: 0, watch: 0 };
  const { transport, requests } = scriptedTransport((request) => {
    const known = discoveryAnswer(request.path);
    if (known !== undefined) return known;
    if (request.query.watch !== 'true') return script.list(++counts.list);
    const refused = script.watch?.(++counts.watch);
    if (refused !== undefined) return refused;
    const stream = new Stream();
    streams.push(stream);
    return { status: 200, stream: stream.body(request.signal) };
  });
  const reflector = new Reflector({
    client: createClient({ transport, clock, random: seededRandom(1) }),
    selection: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo' },
    clock,
    random: () => 0.5,
    handler: (event) => {
      events.push(tell(event));
      script.handler?.(event);
    },
    onProblem: (problem) => problems.push(problem),
    timings: { backoff: { initialMs: 100, factor: 2, maxMs: 1600, jitter: 0 }, ...script.timings },
  });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  await settled();
  await settled();
  return {
    ...{ clock, reflector, events, problems, requests, streams },
    async stop() {
      stop.abort();
      await running;
      await settled();
      assert.is(clock.sleeping, 0, 'a timer was left');
      assert.ok(
        streams.every((stream) => stream.closed),
        'a stream was left open',
      );
    },
  };
}

const watches = (requests: readonly TransportRequest[]): TransportRequest[] =>
  requests.filter(({ query }) => query.watch === 'true');
const lists = (requests: readonly TransportRequest[]): number =>
  requests.filter(({ query }) => query.limit !== undefined).length;

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

test('lines come out whole, however the bytes are cut', async () => {
  const texts = fc.array(
    fc
      .string({ unit: 'grapheme', minLength: 1 })
      .filter((text) => !/[\r\n]/.test(text) && text.trim() === text && text !== ''),
  );
  await fc.assert(
    fc.asyncProperty(texts, fc.array(fc.integer({ min: 1, max: 7 })), async (wanted, cuts) => {
      const bytes = Buffer.from(wanted.map((text) => `${text}\n`).join(''));
      async function* body(): AsyncGenerator<Uint8Array> {
        for (let at = 0, n = 0; at < bytes.length; n += 1) {
          const size = cuts[n % Math.max(1, cuts.length)] ?? 3;
          yield bytes.subarray(at, at + size);
          at += size;
        }
      }
      const got: string[] = [];
      for await (const item of linesOf(body())) got.push(item.type === 'line' ? item.text : item.type);
      assert.equal(got, wanted);
    }),
  );
});

test('an error event keeps code, reason and the time that the server asks for', () => {
  const text = JSON.stringify({
    type: 'ERROR',
    object: { kind: 'Status', code: 429, reason: 'TooManyRequests', details: { retryAfterSeconds: 3 } },
  });
  assert.equal(decodeEvent(text), { type: 'error', code: 429, reason: 'TooManyRequests', retryAfterMs: 3000 });
});

test.run();
