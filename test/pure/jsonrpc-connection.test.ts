/** One JSON-RPC connection against a peer that the test plays: limits, cancels, echoes, silence, and what goes wrong. */
import type { Duplex } from 'node:stream';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type ConnectionLimits, errorText, JsonRpcConnection } from '../../probes/jsonrpc/connection.ts';
import { FrameReader } from '../../probes/jsonrpc/framing.ts';
import type { Json, JsonMap } from '../../probes/jsonrpc/json.ts';
import { streamPair } from './streamPair.ts';
import { settled, VirtualClock } from './virtualClock.ts';

const limits: ConnectionLimits = {
  maxBytes: 10_000,
  maxDepth: 16,
  maxTokenBytes: 5_000,
  maxPending: 3,
  maxOutgoing: 2_000,
};

interface Bed {
  readonly rpc: JsonRpcConnection;
  readonly clock: VirtualClock;
  readonly peer: Duplex;
  readonly near: Duplex;
  /** What the peer received. */
  readonly received: JsonMap[];
  readonly told: [string, readonly Json[]][];
  say(text: string): Promise<void>;
}

function bed(probeIntervalMs?: number): Bed {
  const [near, peer] = streamPair();
  const clock = new VirtualClock();
  const received: JsonMap[] = [];
  const told: [string, readonly Json[]][] = [];
  const reader = new FrameReader(limits);
  peer.on('data', (chunk: Uint8Array) => received.push(...reader.push(chunk).messages));
  peer.on('error', () => undefined);
  const rpc = new JsonRpcConnection(near, {
    peer: 'the peer',
    clock,
    limits,
    ...(probeIntervalMs === undefined ? {} : { probeIntervalMs }),
    onNotification: (method, params) => told.push([method, params]),
  });
  const say = async (text: string): Promise<void> => {
    peer.write(text);
    await settled();
    await settled();
  };
  return { rpc, clock, peer, near, received, told, say };
}

const limit = { limitMs: 1000 };

test('answers find their calls in any order, several in one chunk, with or without the other member', async () => {
  const { rpc, received, say } = bed();
  const [first, second, third] = [rpc.call('a', [], limit), rpc.call('b', ['x'], limit), rpc.call('c', [], limit)];
  await settled();
  assert.equal(
    received.map(({ method, id }) => [method, id]),
    [
      ['a', 0],
      ['b', 1],
      ['c', 2],
    ],
  );
  await say('{"id":1,"result":[1],"error":null}{"error":"unknown method","id":2}{"result":null,"id":0,"error":null}');
  assert.equal(await first, { type: 'ok', value: null });
  assert.equal(await second, { type: 'ok', value: [1] });
  assert.equal(await third, { type: 'error', error: 'unknown method' });
});

test('a call without an answer ends at its limit and names peer and method; the late answer harms nothing', async () => {
  const { rpc, clock, say } = bed();
  const call = rpc.call('slow', [], limit);
  await clock.advance(999);
  const other = rpc.call('quick', [], limit);
  await clock.advance(1);
  assert.equal(await call, { type: 'fault', code: 'timeout', message: 'the peer: no answer to slow within 1000 ms' });
  await say('{"id":0,"result":1,"error":null}{"id":1,"result":2,"error":null}');
  assert.equal(await other, { type: 'ok', value: 2 });
});

test('a cancelled call ends at once', async () => {
  const { rpc } = bed();
  const given = new AbortController();
  const call = rpc.call('a', [], { limitMs: 1000, signal: given.signal });
  given.abort();
  assert.is((await call).type === 'fault' && ((await call) as { code: string }).code, 'aborted');
  const late = await rpc.call('a', [], { limitMs: 1000, signal: given.signal });
  assert.ok(late.type === 'fault' && late.code === 'aborted');
});

test('no more calls wait than the limit, and no more bytes than the peer takes', async () => {
  const { rpc, peer } = bed();
  const waiting = ['a', 'b', 'c'].map((method) => rpc.call(method, [], limit));
  const fourth = await rpc.call('d', [], limit);
  assert.ok(fourth.type === 'fault' && fourth.code === 'tooLarge', JSON.stringify(fourth));
  rpc.close();
  for (const call of waiting) assert.is((await call).type, 'fault');
  peer.destroy();
  const [second] = [bed()];
  const large = await second.rpc.call('x', ['y'.repeat(3000)], limit);
  assert.ok(large.type === 'fault' && large.code === 'tooLarge');
  assert.equal(second.received, []);
});

test('an echo of the peer is answered with what it sent, any other request with an error', async () => {
  const { received, say } = bed();
  await say('{"method":"echo","params":["x",9223372036854775807],"id":"echo"}{"method":"reboot","params":[],"id":4}');
  assert.equal(received, [
    { result: ['x', 9223372036854775807n], error: null, id: 'echo' },
    { result: null, error: 'unknown method', id: 4 },
  ]);
});

test('notifications are handed on in order', async () => {
  const { told, say } = bed();
  await say('{"method":"update2","params":["m",{}],"id":null}{"method":"locked","params":["l"],"id":null}');
  assert.equal(told, [
    ['update2', ['m', {}]],
    ['locked', ['l']],
  ]);
});

test('a peer that asks and takes no answers is left', async () => {
  const { rpc, peer, near } = bed();
  peer.pause();
  peer.removeAllListeners('data');
  const ask = `{"method":"echo","params":["${'z'.repeat(500)}"],"id":1}`;
  for (let n = 0; n < 2000 && !near.destroyed; n++) {
    peer.write(ask);
    await settled();
  }
  const ended = await rpc.ended;
  assert.is(ended.code, 'tooLarge');
});

test('silence: an echo after the interval, any word keeps the connection, none ends it', async () => {
  const { rpc, clock, received, say } = bed(5000);
  await clock.advance(4999);
  assert.equal(received, []);
  await clock.advance(1);
  assert.equal(
    received.map(({ method }) => method),
    ['echo'],
  );
  await clock.advance(4000);
  await say('{"id":0,"result":[],"error":null}');
  await clock.advance(4999);
  assert.is(received.length, 1);
  await clock.advance(1);
  assert.is(received.length, 2, 'another echo five seconds after the last word');
  const call = rpc.call('a', [], { limitMs: 60_000 });
  await clock.advance(5000);
  const ended = await rpc.ended;
  assert.is(ended.code, 'timeout');
  assert.match(ended.message, /the peer: not a word for 10000 ms/);
  assert.equal(await call, ended);
  assert.is(clock.sleeping, 0, 'nothing is left behind');
});

test('a peer that closes, within a message or between two, ends every call', async () => {
  for (const [last, words] of [
    ['', 'closed by the peer'],
    ['{"id":0,"res', 'closed within a message'],
  ] as const) {
    const { rpc, peer, say } = bed();
    const call = rpc.call('a', [], limit);
    if (last !== '') await say(last);
    peer.end();
    assert.equal(await call, { type: 'fault', code: 'closed', message: `the peer: ${words}` });
    const after = await rpc.call('b', [], limit);
    assert.ok(after.type === 'fault' && after.code === 'closed');
  }
});

test('answers to what was not asked and messages that are none end the connection', async () => {
  for (const bad of ['{"id":7,"result":1,"error":null}', '{"id":"0","result":1}', '{"a":1}', 'text']) {
    const { rpc, say } = bed();
    const call = rpc.call('a', [], limit);
    await say(bad);
    const outcome = await call;
    assert.ok(outcome.type === 'fault' && outcome.code === 'protocol', bad);
  }
});

test('errors read as a sentence, whatever form they have', () => {
  assert.is(errorText('no such thing\n'), 'no such thing');
  assert.is(errorText({ error: 'unknown database', details: 'x', syntax: '[]' }), 'unknown database: x');
  assert.is(errorText({ code: 5n }), '{"code":5}');
});

test.run();
