/** Following a database over connections that fail, fall and come back: what is resumed, what is read anew, and when. */
import type { Duplex } from 'node:stream';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { fault, ok, type Result } from '../../probes/jsonrpc/fault.ts';
import { FrameReader } from '../../probes/jsonrpc/framing.ts';
import { probing } from '../../probes/jsonrpc/inactivity.ts';
import { encode, type Json, type JsonMap } from '../../probes/jsonrpc/json.ts';
import { firstAttempt, nextAttempt } from '../../probes/ovsdb/reconnect.ts';
import { follow, type SessionEvent } from '../../probes/ovsdb/session.ts';
import { streamPair } from './streamPair.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

const policy = { initialMs: 1000, factor: 2, maxMs: 8000, jitter: 0 };
const even = (): number => 0.5;
const limits = { maxBytes: 100_000, maxDepth: 32, maxTokenBytes: 50_000, maxPending: 8, maxOutgoing: 50_000 };
const schema = { name: 'Demo', version: '1.0.0', tables: { T: { columns: { n: { type: 'integer' } } } } };

/** A server that the test writes: what it answers to each method, one connection after the other. */
type Script = (method: string, params: readonly Json[]) => Json | { readonly error: Json };

interface Bed {
  readonly clock: VirtualClock;
  readonly events: SessionEvent[];
  readonly calls: [string, readonly Json[]][];
  readonly peers: Duplex[];
  readonly stop: () => Promise<void>;
}

function bed(dials: readonly (Script | 'refused')[], names = ['s1']): Bed {
  const clock = new VirtualClock();
  const events: SessionEvent[] = [];
  const calls: [string, readonly Json[]][] = [];
  const peers: Duplex[] = [];
  const left = [...dials];
  const end = new AbortController();
  const dial = async (): Promise<Result<Duplex>> => {
    const script = left.shift() ?? 'refused';
    if (script === 'refused') return fault('refused', 'nobody listens');
    const [near, far] = streamPair();
    serve(far, script, calls);
    peers.push(far);
    return ok(near);
  };
  const running = follow(
    {
      servers: names.map((name) => ({ name, dial })),
      db: 'Demo',
      wanted: { T: ['n'] },
      clock,
      random: even,
      policy,
      limits,
      callMs: 2000,
      onEvent: (event) => events.push(event),
    },
    end.signal,
  );
  return {
    clock,
    events,
    calls,
    peers,
    stop: async () => {
      end.abort();
      await running;
      assert.is(clock.sleeping, 0, 'nothing is left behind');
    },
  };
}

function serve(far: Duplex, script: Script, calls: [string, readonly Json[]][]): void {
  const reader = new FrameReader(limits);
  far.on('error', () => undefined);
  far.on('data', (chunk: Uint8Array) => {
    for (const message of reader.push(chunk).messages) {
      const [method, params] = [message.method as string, message.params as readonly Json[]];
      calls.push([method, params]);
      const answer = script(method, params) as JsonMap;
      const failed = answer !== null && typeof answer === 'object' && Object.hasOwn(answer, 'error');
      far.write(
        encode(failed ? { error: answer.error, id: message.id } : { result: answer, error: null, id: message.id }),
      );
    }
  });
}

const plain =
  (monitors: Readonly<Record<string, Json | ((params: readonly Json[]) => Json)>>): Script =>
  (method, params) => {
    if (method === 'set_db_change_aware') return {};
    if (method === 'get_schema') return schema;
    const answer = Object.hasOwn(monitors, method) ? monitors[method] : undefined;
    if (answer === undefined) return { error: 'unknown method' };
    return typeof answer === 'function' ? answer(params) : answer;
  };
const everything = (n: number): Json => ({ T: { a: { initial: { n } } } });
const notify = async (peer: Duplex | undefined, method: string, params: readonly Json[]): Promise<void> => {
  peer?.write(encode({ method, params, id: null }));
  await ready();
};
const ready = async (): Promise<void> => {
  for (let n = 0; n < 60; n++) await settled();
};
const numbers = (event: SessionEvent | undefined): Json | undefined =>
  event !== undefined && event.type !== 'lost' ? event.rows.get('T')?.get('a')?.get('n') : undefined;

test('rows come, change, and after a fall only what was missed is told', async () => {
  const first = plain({ monitor_cond_since: [false, 't1', everything(1)] });
  const second = plain({ monitor_cond_since: [true, 't3', { T: { a: { modify: { n: 9223372036854775807n } } } }] });
  const { clock, events, calls, peers, stop } = bed([first, second]);
  await ready();
  await notify(peers[0], 'update3', ['rows', 't2', { T: { a: { modify: { n: 2 } } } }]);
  assert.equal(
    events.map(({ type }) => type),
    ['synced', 'changed'],
  );
  assert.equal(events.map(numbers), [1, 2]);
  peers[0]?.destroy();
  await ready();
  await clock.advance(1000);
  await ready();
  assert.equal(
    events.map(({ type }) => type),
    ['synced', 'changed', 'lost', 'synced'],
  );
  const asked = calls.filter(([method]) => method === 'monitor_cond_since').map(([, params]) => params[3]);
  assert.equal(asked, ['00000000-0000-0000-0000-000000000000', 't2']);
  const last = events.at(-1);
  assert.ok(last?.type === 'synced' && last.resumed);
  assert.is(numbers(last), 9223372036854775807n);
  await stop();
});

test('a server that does not remember the transaction tells everything anew', async () => {
  const first = plain({ monitor_cond_since: [false, 't1', everything(1)] });
  const second = plain({ monitor_cond_since: [false, 't9', { T: {} }] });
  const { clock, events, peers, stop } = bed([first, second]);
  await ready();
  peers[0]?.destroy();
  await ready();
  await clock.advance(1000);
  await ready();
  const last = events.at(-1);
  assert.ok(last?.type === 'synced' && !last.resumed);
  assert.is(last.rows.get('T')?.size, 0);
  await stop();
});

test('an older server is asked by what it knows, and nothing is resumed there', async () => {
  const cond = plain({ monitor_cond: everything(3) });
  const rfc = plain({ monitor: { T: { a: { new: { n: 4 } } } } });
  const { clock, events, calls, peers, stop } = bed([cond, rfc]);
  await ready();
  await notify(peers[0], 'update2', ['rows', { T: { a: { modify: { n: 5 } } } }]);
  peers[0]?.destroy();
  await ready();
  await clock.advance(1000);
  await ready();
  await notify(peers[1], 'update', ['rows', { T: { a: { old: { n: 4 }, new: { n: 6 } } } }]);
  assert.equal(events.map(numbers), [3, 5, undefined, 4, 6]);
  const methods = events.flatMap((event) => (event.type === 'synced' ? [event.method] : []));
  assert.equal(methods, ['monitor_cond', 'monitor']);
  const asked = calls.filter(([method]) => method === 'monitor_cond_since').map(([, params]) => params[3]);
  assert.equal(new Set(asked), new Set(['00000000-0000-0000-0000-000000000000']));
  await stop();
});

test('an update that comes in one piece with the answer is applied after it', async () => {
  const [near, far] = streamPair();
  const reader = new FrameReader(limits);
  far.on('data', (chunk: Uint8Array) => {
    for (const { method, id } of reader.push(chunk).messages) {
      const answer = (result: Json): string => encode({ result, error: null, id });
      if (method === 'set_db_change_aware') far.write(answer({}));
      else if (method === 'get_schema') far.write(answer(schema));
      else {
        const update = encode({
          method: 'update3',
          params: ['rows', 't2', { T: { a: { modify: { n: 2 } } } }],
          id: null,
        });
        far.write(`${answer([false, 't1', everything(1)])}${update}`);
      }
    }
  });
  const events: SessionEvent[] = [];
  const end = new AbortController();
  const running = follow(
    {
      servers: [{ name: 's1', dial: async () => ok(near) }],
      db: 'Demo',
      wanted: { T: ['n'] },
      clock: new VirtualClock(),
      random: even,
      policy,
      limits,
      callMs: 2000,
      onEvent: (event) => events.push(event),
    },
    end.signal,
  );
  await ready();
  assert.equal(events.map(numbers), [2]);
  end.abort();
  await running;
});

test('rows that disagree with the server are let go and read anew', async () => {
  const first = plain({ monitor_cond_since: [false, 't1', everything(1)] });
  const second = plain({
    monitor_cond_since: (params) => [params[3] !== '00000000-0000-0000-0000-000000000000', 't5', everything(7)],
  });
  const { clock, events, calls, peers, stop } = bed([first, second]);
  await ready();
  await notify(peers[0], 'update3', ['rows', 't2', { T: { unknown: { modify: { n: 2 } } } }]);
  const lost = events.at(-1);
  assert.ok(lost?.type === 'lost' && lost.fault.code === 'protocol');
  await clock.advance(1000);
  await ready();
  assert.is(numbers(events.at(-1)), 7);
  const asked = calls.filter(([method]) => method === 'monitor_cond_since').map(([, params]) => params[3]);
  assert.is(asked.at(-1), '00000000-0000-0000-0000-000000000000');
  await stop();
});

test('a database that goes away, a refusal and a missing column are told, and tried again', async () => {
  const gone = plain({ monitor_cond_since: [false, 't1', everything(1)] });
  const unknown: Script = (method) =>
    method === 'get_schema' ? { error: { error: 'unknown database', details: 'no Demo' } } : {};
  const narrowSchema: Script = (method) =>
    method === 'get_schema' ? { ...schema, tables: { T: { columns: {} } } } : {};
  const { clock, events, peers, stop } = bed([gone, unknown, narrowSchema]);
  await ready();
  await notify(peers[0], 'monitor_canceled', ['rows']);
  for (let n = 0; n < 2; n++) {
    await clock.advance(8000);
    await ready();
  }
  const lost = events.flatMap((event) => (event.type === 'lost' ? [event.fault.message] : []));
  assert.match(lost[0] ?? '', /went away/);
  assert.match(lost[1] ?? '', /s1: get_schema: unknown database: no Demo/);
  assert.match(lost[2] ?? '', /the schema has no T\.n/);
  await stop();
});

test('servers are tried in turn, later each time, and a cancel ends the wait', async () => {
  const { clock, events, stop } = bed([], ['s1', 's2', 's3']);
  await ready();
  for (let n = 0; n < 5; n++) await clock.next();
  const lost = events.flatMap((event) => (event.type === 'lost' ? [[event.server, event.retryInMs]] : []));
  assert.equal(lost, [
    ['s1', 1000],
    ['s2', 2000],
    ['s3', 4000],
    ['s1', 8000],
    ['s2', 8000],
    ['s3', 8000],
  ]);
  await stop();
});

test('a server that gives rows and falls at once is tried later and later; one that held starts anew', () => {
  let attempts = firstAttempt;
  const delays: number[] = [];
  for (const heldMs of [10, 10, 10, 10, 8001, undefined]) {
    const next = nextAttempt(attempts, 2, heldMs, policy, even);
    delays.push(next.delayMs);
    attempts = next.attempts;
  }
  assert.equal(delays, [1000, 2000, 4000, 8000, 1000, 2000]);
  assert.is(attempts.server, 1);
});

test('the delay is spread, and never beyond the policy', () => {
  const random = seededRandom(7);
  const wide = { ...policy, jitter: 0.5 };
  const delays = Array.from(
    { length: 200 },
    () => nextAttempt({ server: 0, failures: 9 }, 1, undefined, wide, random).delayMs,
  );
  assert.ok(Math.min(...delays) >= 4000 && Math.max(...delays) <= 12_000);
  assert.ok(new Set(delays).size > 100);
});

test('silence: waits, probes once, then gives up', () => {
  const silence = { heardAtMs: 100, intervalMs: 50 };
  assert.equal(probing({ ...silence, nowMs: 120 }), { type: 'wait', ms: 30 });
  assert.equal(probing({ ...silence, nowMs: 150 }), { type: 'probe' });
  assert.equal(probing({ ...silence, nowMs: 160, probedAtMs: 150 }), { type: 'wait', ms: 40 });
  assert.equal(probing({ ...silence, nowMs: 200, probedAtMs: 150 }), { type: 'gone', silentMs: 100 });
  assert.equal(probing({ ...silence, heardAtMs: 180, nowMs: 200, probedAtMs: 150 }), { type: 'wait', ms: 30 });
});

test.run();
