/** Messages cut out of a byte stream: whatever the chunks are, whole, exact, and never more than the limits allow. */
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type FrameLimits, FrameReader } from '../../probes/jsonrpc/framing.ts';
import { decode, encode, integer, type Json, type JsonMap } from '../../probes/jsonrpc/json.ts';

const wide: FrameLimits = { maxBytes: 1_000_000, maxDepth: 64, maxTokenBytes: 100_000 };

/** The messages and the fault's code of a stream that comes in pieces cut at the given places. */
function read(bytes: Uint8Array, cuts: readonly number[], limits = wide): { messages: JsonMap[]; code?: string } {
  const reader = new FrameReader(limits);
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  const messages: JsonMap[] = [];
  let from = 0;
  for (const to of [...places, bytes.length]) {
    const frames = reader.push(bytes.subarray(from, to));
    messages.push(...frames.messages);
    if (frames.fault !== undefined) return { messages, code: frames.fault.code };
    from = to;
  }
  return { messages };
}

const text = (value: string, limits = wide) => read(Buffer.from(value), [], limits);
const unit = fc.oneof(
  fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'é', '€', '😀', '\n', '\u0000'),
  fc.string(),
);
const leaf: fc.Arbitrary<Json> = fc.oneof(
  fc.array(unit, { maxLength: 6 }).map((parts) => parts.join('')),
  fc.integer(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }).map((value) => integerForm(value)),
  fc.constantFrom(true, false, null, 0.5, -1e-7),
);
const integerForm = (value: bigint): Json => (Number.isSafeInteger(Number(value)) ? Number(value) : value);
const values = fc.letrec<{ value: Json; map: Json }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('value'), { maxLength: 4 }), tie('map')),
  map: fc.dictionary(fc.oneof(fc.constant('__proto__'), fc.string()), tie('value'), {
    maxKeys: 4,
  }) as fc.Arbitrary<Json>,
}));

const messageOf = values.map as fc.Arbitrary<JsonMap>;

test('whatever the messages and wherever the chunks end, what was written is read', () => {
  const stream = fc.array(fc.tuple(messageOf, fc.constantFrom('', '\n', ' \t\r\n')), { maxLength: 5 });
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (messages, cuts) => {
      const bytes = Buffer.from(messages.map(([message, gap]) => `${encode(message)}${gap}`).join(''));
      const told = read(bytes, cuts);
      assert.is(told.code, undefined);
      // As texts: the objects that were made up differ from read ones in their prototype.
      assert.equal(
        told.messages.map(encode),
        messages.map(([message]) => encode(message)),
      );
    }),
    { numRuns: 300 },
  );
});

test('a chunk for every byte: in the middle of characters, escapes and numbers', () => {
  const message = { 'é€😀': '\\"}{][\\\\', n: [9223372036854775807n, -9007199254740993n, 1] };
  const bytes = Buffer.from(`${encode(message)}${encode({ id: 'next' })}`);
  const everywhere = Array.from({ length: bytes.length }, (_, at) => at);
  assert.equal(read(bytes, everywhere), { messages: [message, { id: 'next' }] });
});

test('integers are exact beyond what a number holds, and stay numbers below', () => {
  const { messages } = text(
    '{"a":[9007199254740991,9007199254740992,-9223372036854775808,18446744073709551615],"r":1e20,"s":"1234567890123456789"}',
  );
  const [first] = messages;
  assert.equal(first?.a, [9007199254740991, 9007199254740992n, -9223372036854775808n, 18446744073709551615n]);
  assert.is(first?.r, 1e20);
  assert.is(first?.s, '1234567890123456789');
  assert.is(
    encode({ a: first?.a }),
    '{"a":[9007199254740991,9007199254740992,-9223372036854775808,18446744073709551615]}',
  );
  assert.is(integer(decode('[9223372036854775807]')), undefined);
  assert.is(integer(9007199254740992), undefined, 'a number that may be its neighbour is no integer');
  assert.equal([integer(7), integer(7n), integer(0.5), integer('7')], [7n, 7n, undefined, undefined]);
});

test('of members with the same name the last one counts, and none reaches a prototype', () => {
  const { messages } = text('{"a":1,"a":2,"__proto__":{"polluted":true}}');
  assert.is(messages[0]?.a, 2);
  assert.is(({} as Record<string, unknown>).polluted, undefined);
});

test('limits: bytes, nesting, one token; what came before is still given', () => {
  const limits = { maxBytes: 64, maxDepth: 4, maxTokenBytes: 16 };
  assert.equal(text(`{"a":1}{"b":[${'1,'.repeat(40)}`, limits), { messages: [{ a: 1 }], code: 'tooLarge' });
  assert.equal(text('{"a":[[[1]]]}', limits).messages.length, 1);
  assert.equal(text('{"a":[[[[1]]]]}', limits), { messages: [], code: 'tooLarge' });
  assert.equal(text(`{"a":"${'x'.repeat(16)}"}`, limits).messages.length, 1);
  assert.equal(text(`{"a":"${'x'.repeat(17)}"}`, limits), { messages: [], code: 'tooLarge' });
  assert.equal(text(`{"a":${'1'.repeat(17)}}`, limits), { messages: [], code: 'tooLarge' });
});

test('the limit of bytes holds before the end of the message came', () => {
  const reader = new FrameReader({ ...wide, maxBytes: 1000 });
  const seen: number[] = [];
  for (let sent = 0; sent < 10_000; sent += 100) {
    const part = Buffer.from(`${sent === 0 ? '{"a":[' : ''}${'1,'.repeat(50)}`);
    if (reader.push(part).fault === undefined) seen.push(sent);
    else break;
  }
  assert.ok(seen.length < 11, `${seen.length} chunks were kept`);
});

test('what is no object, no JSON or no UTF-8 ends the stream for good', () => {
  for (const bad of ['[]', '"text"', '1', '}', '{"a":}', '{]', '{"a":1,}', "{'a':1}"])
    assert.is(text(bad).code, 'protocol', bad);
  assert.is(read(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), []).code, 'protocol');
  const reader = new FrameReader(wide);
  assert.is(reader.push(Buffer.from('nonsense')).fault?.code, 'protocol');
  assert.equal(reader.push(Buffer.from('{"a":1}')).messages, []);
});

test('a reader is idle between messages only', () => {
  const reader = new FrameReader(wide);
  assert.ok(reader.idle);
  reader.push(Buffer.from('{"a":"'));
  assert.not(reader.idle);
  reader.push(Buffer.from('"} \n'));
  assert.ok(reader.idle);
});

test.run();
