import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { digestOf } from '../../constructs/lib/digest.ts';
import {
  canonicalJson,
  deepEqual,
  getAt,
  type JsonValue,
  setAt,
  sortedCopy,
  toPointer,
  wellFormed,
} from '../../constructs/lib/json.ts';

const json = fc.letrec<{ v: JsonValue }>((tie) => ({
  v: fc.oneof(
    { depthSize: 'small' },
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }),
    fc.boolean(),
    fc.constant(null),
    fc.string({ unit: 'grapheme' }),
    fc.array(tie('v')),
    fc.dictionary(fc.string({ unit: 'grapheme' }), tie('v')),
  ),
})).v;

test('halves of characters are replaced wherever they are; a value without any is the same one', () => {
  const value: JsonValue = { a: ['x\ud83d', { b: '\u{1f600}' }], '\udc00': null, c: undefined, d: 1 };
  assert.equal(wellFormed(value), { a: ['x\ufffd', { b: '\u{1f600}' }], '\ufffd': null, c: undefined, d: 1 });
  const halves = fc.string({ unit: fc.constantFrom('a', '\ud83d', '\udc00') });
  fc.assert(fc.property(fc.array(fc.dictionary(halves, halves)), (any) => void canonicalJson(wellFormed(any))));
  fc.assert(fc.property(json, (whole) => assert.is(wellFormed(whole), whole)));
});

test('canonical JSON sorts members by UTF-16 code units and drops null and undefined members', () => {
  assert.is(
    canonicalJson({ b: 1, a: [null, 'x'], c: null, d: undefined, '\u20ac': 2, '\r': 3 }),
    '{"\\r":3,"a":[null,"x"],"b":1,"\u20ac":2}',
  );
});

test('canonical JSON is the same whether members are in order or not', () => {
  const nested = { 9: 1, 10: [{ b: null, a: 'x' }, null], z: { a: undefined, b: 'é\n' } };
  const text = '{"10":[{"a":"x"},null],"9":1,"z":{"b":"é\\n"}}';
  assert.is(canonicalJson(nested), text);
  assert.is(canonicalJson(JSON.parse(text)), text);
  const ordered = { a: [1, 'x', { b: true, c: 0.5 }], b: { c: null }, d: [undefined as unknown as null] };
  assert.is(canonicalJson(ordered), '{"a":[1,"x",{"b":true,"c":0.5}],"b":{},"d":[null]}');
});

test('canonical JSON writes numbers as RFC 8785 does', () => {
  assert.is(
    canonicalJson([333333333.3333333, 4.5, 0.002, 1e-27, -0, 1e21 / 1e20]),
    '[333333333.3333333,4.5,0.002,1e-27,0,10]',
  );
});

for (const [what, value] of [
  ['an integer beyond 2^53-1', 2 ** 53],
  ['infinity', Number.POSITIVE_INFINITY],
  ['not a number', Number.NaN],
  ['a lone surrogate', '\ud800'],
] as const) {
  test(`canonical JSON refuses ${what}`, () => {
    assert.throws(() => canonicalJson({ a: [value] }), TypeError);
  });
}

test('property: key order never changes the canonical form or the digest', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), json), (object) => {
      const keys = Object.keys(object).reverse();
      const shuffled = Object.fromEntries(keys.map((key) => [key, object[key]]));
      assert.is(canonicalJson(object), canonicalJson(shuffled));
      assert.is(digestOf(object), digestOf(shuffled));
      assert.ok(deepEqual(sortedCopy(object), shuffled));
    }),
  );
});

test('property: a set value is found at its pointer, and the original is untouched', () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 4 }), fc.string(), (path, value) => {
      const before = { keep: { me: 1 } };
      const pointer = toPointer(['new', ...path]);
      const after = setAt(before, pointer, value);
      assert.is(getAt(after, pointer), value);
      assert.equal(before, { keep: { me: 1 } });
      assert.is(getAt(after, '/keep/me'), 1);
    }),
  );
});

test('names that every object inherits are members like any other', () => {
  for (const name of ['valueOf', '__proto__', 'constructor', 'toString']) {
    const after = setAt({ keep: 1 }, `/${name}/x`, 'y');
    assert.is(getAt(after, `/${name}/x`), 'y');
    assert.is(getAt({}, `/${name}`), undefined);
    assert.is(Object.getPrototypeOf(after), Object.prototype);
  }
});

test('setAt refuses to lead through a primitive or past an array', () => {
  assert.throws(() => setAt({ a: 1 }, '/a/b', 2), TypeError);
  assert.throws(() => setAt({ a: [] }, '/a/1', 2), TypeError);
  assert.equal(setAt({ a: [1, 2] }, '/a/0', undefined), { a: [2] });
});

test.run();
