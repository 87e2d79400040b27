import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createClient } from '../../executor/kube/client.ts';
import { cutBytes, EventRecorder, type EventRecorderOptions, longestNoteBytes } from '../../executor/kube/events.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

// biome-ignore lint/suspicious/noExplicitAny: what was sent is read loosely here
type Sent = any;

function bed(
  options: Partial<EventRecorderOptions> = {},
  answer: () => Scripted = () => ({ status: 201, body: { kind: 'Event', metadata: {} } }),
) {
  const clock = new VirtualClock();
  const { transport, requests } = scriptedTransport((request) => discoveryAnswer(request.path) ?? answer());
  let ids = 0;
  const recorder = new EventRecorder({
    client: createClient({ transport, clock, random: seededRandom(1) }),
    clock,
    uniqueId: () => `id${ids++}`,
    reportingController: 'keelson.dev/executor',
    reportingInstance: 'pod-1',
    fieldManager: 'keelson',
    ...options,
  });
  const stop = new AbortController();
  const running = recorder.run(stop.signal);
  return {
    clock,
    recorder,
    sent: (): Sent[] => requests.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body ?? '')),
    async stop() {
      stop.abort();
      await running;
      assert.is(clock.sleeping, 0);
    },
  };
}

const regarding = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'a', uid: 'u' };
const input = { regarding, type: 'Normal', reason: 'Applied', action: 'Apply', note: 'done' } as const;

test('the first is sent at once, the same again is counted and told later as one', async () => {
  const { clock, recorder, sent, stop } = bed();
  for (let n = 0; n < 50; n += 1) recorder.record(input);
  recorder.record({ ...input, note: 'another' });
  await clock.advance(1000);
  assert.equal(
    sent().map((event) => [event.note, event.series]),
    [
      ['done', undefined],
      ['another', undefined],
    ],
  );
  await clock.advance(600_000);
  assert.equal(
    sent()
      .slice(2)
      .map((event) => [event.note, event.series.count]),
    [['done', 50]],
  );
  assert.match(sent()[2].series.lastObservedTime, /T\d\d:\d\d:\d\d\.\d{6}Z$/);
  recorder.record(input);
  await clock.advance(1000);
  assert.is(sent().length, 4);
  await stop();
});

test('an event is complete: namespace, names, times, a note that is short and tells no secret', async () => {
  const { clock, recorder, sent, stop } = bed();
  recorder.record({
    ...input,
    regarding: { apiVersion: 'v1', kind: 'Namespace', name: 'demo' },
    note: `token=abc123secret ${'ü'.repeat(900)}`,
  });
  await clock.advance(300);
  const [event] = sent();
  assert.equal(event.metadata, { name: 'demo.id0', namespace: 'default' });
  assert.match(event.eventTime, /^2023-11-14T22:13:20\.\d{6}Z$/);
  assert.is(event.reportingInstance, 'pod-1');
  assert.ok(Buffer.byteLength(event.note) <= longestNoteBytes);
  assert.not.match(event.note, 'abc123secret');
  await stop();
});

test('one object cannot flood: after the burst it earns an event per five minutes', async () => {
  const { clock, recorder, sent, stop } = bed({ burst: 3, refillMs: 300_000 });
  for (let n = 0; n < 10; n += 1) recorder.record({ ...input, note: `n${n}` });
  recorder.record({ ...input, regarding: { ...regarding, name: 'b' } });
  await clock.advance(300);
  assert.is(sent().length, 4);
  assert.equal(recorder.counts, { sent: 4, dropped: 7, waiting: 0 });
  await clock.advance(300_000);
  recorder.record({ ...input, note: 'late' });
  await clock.advance(300);
  assert.is(sent().length, 5);
  await stop();
});

test('a dead server is waited for, a refusal is given up, and neither harms the caller', async () => {
  let answer = statusOf(503, 'ServiceUnavailable', 'x');
  const { clock, recorder, stop } = bed({}, () => answer);
  recorder.record(input);
  await clock.advance(5000);
  assert.equal(recorder.counts, { sent: 0, dropped: 0, waiting: 1 });
  answer = statusOf(403, 'Forbidden', 'x');
  await clock.advance(5000);
  assert.equal(recorder.counts, { sent: 0, dropped: 1, waiting: 0 });
  await stop();
});

test('the last words: flush sends what waits and what was only counted', async () => {
  const { recorder, sent, stop } = bed();
  await stop();
  recorder.record(input);
  recorder.record(input);
  await recorder.flush(1000);
  await settled();
  assert.equal(
    sent().map((event) => event.series?.count),
    [undefined, 2],
  );
});

test('a cut never leaves half a character, and never exceeds its limit', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), fc.integer({ min: 3, max: 60 }), (text, max) => {
      const cut = cutBytes(text, max);
      assert.ok(Buffer.byteLength(cut) <= max);
      assert.ok(cut.isWellFormed());
      assert.ok(cut === text || (cut.endsWith('…') && text.startsWith(cut.slice(0, -1))));
    }),
  );
});

test.run();
