import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { decodeEvent, linesOf } from '../../executor/kube/watchstream.ts';

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
