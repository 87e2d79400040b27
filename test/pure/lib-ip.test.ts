import { isIP } from 'node:net';
import fc from 'fast-check';
import { Address6 } from 'ip-address';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  blocksOverlap,
  byFamily,
  holdsIP,
  type IPBlock,
  ipOf,
  parseCIDR,
  parseIP,
  parseIPRange,
  readIP,
  readIPRange,
  withoutBlocks,
} from '../../constructs/lib/ip.ts';

const v4 = fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }).map((value) => ipOf('IPv4', value));
/** Addresses with runs of zeros, which is where the forms differ. */
const v6 = fc
  .array(fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(0xffff) }), {
    minLength: 8,
    maxLength: 8,
  })
  .map((parts) => parts.reduce((value, part) => (value << 16n) | BigInt(part), 0n))
  .filter((value) => value >> 32n !== 0xffffn)
  .map((value) => ipOf('IPv6', value));
const any = fc.oneof(v4, v6);

test('an address that is written is the address that is read', () => {
  fc.assert(
    fc.property(any, (address) => {
      const read = parseIP(address.text);
      assert.equal(read, { ok: true, value: address });
      assert.is(isIP(address.text), address.family === 'IPv4' ? 4 : 6);
    }),
    { numRuns: 2000 },
  );
});

test('the canonical form of IPv6 is that of another implementation', () => {
  fc.assert(
    fc.property(v6, ({ text, value }) => {
      const other = new Address6(text);
      assert.is(other.correctForm(), text);
      assert.is(other.bigInt(), value);
    }),
    { numRuns: 2000 },
  );
});

test('every other form of an address reads as the same address, and is refused as new', () => {
  const expanded = (text: string): string => new Address6(text).canonicalForm();
  fc.assert(
    fc.property(v6, fc.boolean(), ({ text, value }, upper) => {
      const form = upper ? expanded(text).toUpperCase() : expanded(text);
      assert.is(readIP(form)?.value, value);
      assert.is(readIP(form)?.text, text);
      const read = parseIP(form);
      assert.is(read.ok, form === text);
      if (!read.ok) assert.is(read.why, `is written as ${text}`);
    }),
    { numRuns: 1000 },
  );
});

test('an IPv4 address in the clothes of IPv6 is that IPv4 address', () => {
  fc.assert(
    fc.property(v4, ({ text, value }) => {
      const hex = `::ffff:${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
      for (const form of [`::ffff:${text}`, hex, hex.toUpperCase()]) {
        assert.equal(readIP(form), { family: 'IPv4', value, text });
        assert.equal(parseIP(form), { ok: false, why: `is written as ${text}` });
      }
    }),
  );
});

for (const text of [
  'not-an-ip',
  '',
  '1.2.3',
  '010.0.0.1',
  '1.2.3.04',
  '0x7f.1',
  '1',
  '1.2.3.4.5',
  '256.1.1.1',
  ' 1.2.3.4',
])
  test(`'${text}' is no address`, () => assert.is(readIP(text), undefined));
for (const text of [
  'fe80::1%eth0',
  ':::',
  '1::2::3',
  '12345::',
  '[::1]',
  '::ffff:1.2.3.04',
  '1:2:3:4:5:6:7',
  '1.2.3.4/32',
])
  test(`'${text}' is no address`, () => assert.is(readIP(text), undefined));

test('what is refused says why', () => {
  const why = (text: string): string => {
    const read = parseIPRange(text);
    return read.ok ? '' : read.why;
  };
  assert.match(why('010.0.0.1'), 'leading zero');
  assert.match(why('fe80::1%eth0'), 'zone');
  assert.match(why('203.0.113.7/29'), 'the network is 203.0.113.0/29');
  assert.match(why('2001:db8::1/126'), 'the network is 2001:db8::/126');
  assert.match(why('203.0.113.0/029'), 'prefix from 0 to 32');
  assert.match(why('203.0.113.0/33'), 'prefix from 0 to 32');
  assert.match(why('2001:DB8::/32'), 'is written as 2001:db8::');
  assert.match(why('::ffff:203.0.113.0/125'), 'is written as 203.0.113.0');
  assert.match(why('203.0.113.9-203.0.113.1'), 'ends before it starts');
  assert.match(why('203.0.113.9-2001:db8::'), 'different families');
  assert.match(why('203.0.113.0/24/8'), 'not a network');
  assert.match(why('a-b-c'), 'not a range');
});

const cidr = fc
  .tuple(any, fc.nat(128))
  .map(([{ family, value }, n]) => {
    const width = family === 'IPv4' ? 32 : 128;
    const bits = n % (width + 1);
    const hosts = (1n << BigInt(width - bits)) - 1n;
    return `${ipOf(family, value & ~hosts).text}/${bits}`;
  })
  .filter((text) => parseCIDR(text).ok);
const block = (text: string): IPBlock => {
  const read = parseIPRange(text);
  if (!read.ok) throw new Error(`${text} ${read.why}`);
  return read.value;
};

test('a network holds its ends and not their neighbours, and equals the range between them', () => {
  fc.assert(
    fc.property(cidr, (text) => {
      const { family, first, last } = block(text);
      assert.ok(holdsIP(block(text), ipOf(family, first)) && holdsIP(block(text), ipOf(family, last)));
      assert.not.ok(holdsIP(block(text), { family, value: last + 1n, text: '' }));
      assert.not.ok(holdsIP(block(text), { family, value: first - 1n, text: '' }));
      const range = parseIPRange(`${ipOf(family, first).text}-${ipOf(family, last).text}`);
      // The ends of a network of IPv6 may be addresses of IPv4 in disguise, which no range is written with.
      if (range.ok) assert.equal([range.value.first, range.value.last], [first, last]);
    }),
  );
});

test('two blocks overlap exactly when one holds an end of the other', () => {
  fc.assert(
    fc.property(cidr, cidr, (a, b) => {
      const [one, two] = [block(a), block(b)];
      const ends = (of: IPBlock, inside: IPBlock): boolean =>
        [of.first, of.last].some((value) => holdsIP(inside, { family: of.family, value, text: '' }));
      assert.is(blocksOverlap(one, two), ends(one, two) || ends(two, one));
    }),
  );
});

test('what others wrote is read as they read it, bits of hosts included', () => {
  const read = (text: string): string | undefined => {
    const block = readIPRange(text);
    return block === undefined ? undefined : `${block.family} ${block.first}-${block.last}`;
  };
  assert.is(read('0.0.0.9/29'), 'IPv4 8-15');
  assert.is(read(' 0.0.0.1 - 0.0.0.3 '), 'IPv4 1-3');
  assert.is(read('::7'), 'IPv6 7-7');
  for (const text of [
    '',
    'x',
    '0.0.0.1/33',
    '0.0.0.1/',
    '0.0.0.1-0.0.0.3/29',
    '0.0.0.3-0.0.0.1',
    '::1-0.0.0.3',
    'fe80::%1/64',
  ])
    assert.is(read(text), undefined, text);
});

test('the part of IPv6 in which addresses of IPv4 are written holds those', () => {
  const parts = (text: string): string[] =>
    byFamily(readIPRange(text) as IPBlock).map(({ family, first, last }) => `${family} ${first}-${last}`);
  assert.equal(parts('::ffff:0.0.0.8/125'), ['IPv4 8-15']);
  assert.equal(parts('::/96'), [`IPv6 0-${2n ** 32n - 1n}`]);
  assert.equal(parts('::/80'), [`IPv6 0-${2n ** 48n - 1n}`, `IPv4 0-${2n ** 32n - 1n}`]);
  assert.equal(parts('::ffff:0.0.0.9-::1:0:0:5'), ['IPv6 281470681743369-281474976710661', `IPv4 9-${2n ** 32n - 1n}`]);
  assert.equal(parts('0.0.0.8/29'), ['IPv4 8-15']);
});

test('what is left of blocks is what is in none of the others', () => {
  const block = fc
    .tuple(fc.nat(31), fc.nat(31))
    .map(
      ([a, b]): IPBlock => ({ family: 'IPv4', first: BigInt(Math.min(a, b)), last: BigInt(Math.max(a, b)), text: '' }),
    );
  fc.assert(
    fc.property(fc.array(block, { maxLength: 3 }), fc.array(block, { maxLength: 4 }), (blocks, taken) => {
      const left = withoutBlocks(blocks, taken);
      for (let value = 0n; value < 32n; value += 1n) {
        const within = (all: readonly IPBlock[]): boolean => all.some((one) => holdsIP(one, ipOf('IPv4', value)));
        assert.is(within(left), within(blocks) && !within(taken), `${value}`);
      }
    }),
    { numRuns: 500 },
  );
});

test.run();
