import { Environment } from '@marcbachmann/cel-js';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressName } from '../../constructs/api/addresses.ts';
import { canonicalAddress } from '../../constructs/api/kinds/ipaddress-fields.ts';
import { ipOf, parseIP } from '../../constructs/lib/ip.ts';
import { isDns1123Label } from '../../constructs/lib/names.ts';

const few = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(0xffff) });
const groups = fc.array(few, { minLength: 8, maxLength: 8 });
const join = (parts: readonly number[]): bigint => parts.reduce((value, part) => (value << 16n) | BigInt(part), 0n);
const ipv6 = groups.map((parts) => ipOf('IPv6', join(parts)));
const ipv4 = fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }).map((value) => ipOf('IPv4', value));

/** Texts around the canonical form: some run of zeros shortened, which may be the wrong one, or none. */
const forms = fc.tuple(groups, fc.nat(7), fc.nat(8), fc.boolean()).map(([parts, at, length, padded]) => {
  const words = parts.map((part) => part.toString(16).padStart(padded ? 4 : 1, '0'));
  const zeros = parts.slice(at, at + length).every((part) => part === 0);
  if (length === 0 || !zeros) return words.join(':');
  return `${words.slice(0, at).join(':')}::${words.slice(at + length).join(':')}`;
});
const junk = fc.string({ unit: fc.constantFrom('0', '1', 'a', 'f', ':', '::', '.', 'F', '%'), maxLength: 20 });

test('the rule of the definition and the parser agree on every text', () => {
  const program = new Environment({ unlistedVariablesAreDyn: true }).parse(canonicalAddress.rule);
  const seen = { canonical: 0, other: 0 };
  const texts = fc.oneof(
    ipv4.map(({ text }) => text),
    ipv6.map(({ text }) => text),
    forms,
    junk,
  );
  fc.assert(
    fc.property(texts, (text) => {
      const { ok } = parseIP(text);
      seen[ok ? 'canonical' : 'other'] += 1;
      assert.is(program({ self: text }), ok, text);
    }),
    { numRuns: 5000 },
  );
  assert.ok(seen.canonical > 500 && seen.other > 500, JSON.stringify(seen));
});

test('names follow the convention', () => {
  const nameOf = (text: string): string => {
    const read = parseIP(text);
    if (!read.ok) throw new Error(`${text} ${read.why}`);
    return addressName(read.value);
  };
  assert.is(nameOf('203.0.113.7'), 'ip-203-0-113-7');
  assert.is(nameOf('2001:db8::7'), 'ip-2001-db8--7');
  assert.is(nameOf('2001:db8::'), 'ip-2001-db8--0');
  assert.is(nameOf('::'), 'ip---0');
});

test('every address has a valid name of its own', () => {
  fc.assert(
    fc.property(fc.oneof(ipv4, ipv6), fc.oneof(ipv4, ipv6), (a, b) => {
      assert.ok(isDns1123Label(addressName(a)), addressName(a));
      assert.is(addressName(a) === addressName(b), a.text === b.text);
    }),
    { numRuns: 2000 },
  );
});

test.run();
