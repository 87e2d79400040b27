import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { classText, holdingsJson, holdingsText } from '../../bin/addresses/listing.ts';
import { holdsIP, type IPBlock, type IPFamily, ipOf, parseCIDR } from '../../constructs/lib/ip.ts';
import { bookOf } from '../../executor/addressbook/book.ts';
import { holdingsOf } from '../../executor/addressbook/holdings.ts';
import { countOf, joined, networksOf, readRange } from '../../executor/addressbook/ranges.ts';
import { type AddressReturn, returnOf } from '../../executor/addressbook/returns.ts';
import { bar, type FamilyUsage, usageByClass } from '../../executor/addressbook/usage.ts';
import {
  type AddressParts,
  addressObject,
  ago,
  claimObject,
  classObject,
  hour,
  moment,
} from './addressbook-support.ts';

/** What `keelson addresses` shows, decided from objects alone. */

const usageIn = (ranges: readonly string[], objects: Parameters<typeof bookOf>[0]): readonly FamilyUsage[] =>
  usageByClass(bookOf([classObject('public', ranges), ...objects])).get('public')?.families ?? [];

test('a range is read for what it means, or not at all', () => {
  const meaning = (text: string): string => {
    const block = readRange(text);
    return block === undefined
      ? 'nothing'
      : `${ipOf(block.family, block.first).text}..${ipOf(block.family, block.last).text}`;
  };
  for (const [text, wanted] of [
    ['203.0.113.0/29', '203.0.113.0..203.0.113.7'],
    ['203.0.113.5/29', '203.0.113.0..203.0.113.7'],
    ['203.0.113.4 - 203.0.113.9', '203.0.113.4..203.0.113.9'],
    ['2001:DB8::/126', '2001:db8::..2001:db8::3'],
    ['::ffff:203.0.113.7/128', '203.0.113.7..203.0.113.7'],
    ['203.0.113.9-203.0.113.4', 'nothing'],
    ['203.0.113.0/33', 'nothing'],
    ['203.0.113.0/', 'nothing'],
    ['010.0.0.0/8', 'nothing'],
    ['here', 'nothing'],
  ] as const)
    assert.is(meaning(text), wanted, text);
});

const block = fc
  .tuple(fc.constantFrom<IPFamily>('IPv4', 'IPv6'), fc.bigInt(0n, 300n), fc.bigInt(0n, 80n), fc.boolean())
  .map(([family, at, length, high]): IPBlock => {
    const base = high ? (family === 'IPv4' ? (1n << 32n) - 1n : (1n << 128n) - 1n) - 500n : 0n;
    return { family, first: base + at, last: base + at + length, text: '' };
  });

test('joined blocks and their networks hold exactly the addresses that they are made of', () => {
  fc.assert(
    fc.property(fc.array(block, { maxLength: 6 }), (blocks) => {
      const whole = joined(blocks);
      const members = new Set(
        blocks.flatMap(({ family, first, last }) =>
          Array.from({ length: Number(last - first) + 1 }, (_, n) => `${family} ${first + BigInt(n)}`),
        ),
      );
      assert.is(countOf(whole), BigInt(members.size));
      const networks = whole.flatMap(networksOf).map((text) => {
        const read = parseCIDR(text);
        assert.ok(read.ok, text);
        return read.value;
      });
      assert.is(countOf(networks), BigInt(members.size));
      for (const member of members) {
        const [family, value] = member.split(' ') as [IPFamily, string];
        assert.is(networks.filter((one) => holdsIP(one, ipOf(family, BigInt(value)))).length, 1, member);
      }
    }),
    { numRuns: 200 },
  );
  const ends: IPBlock = { family: 'IPv4', first: 0n, last: (1n << 32n) - 1n, text: '' };
  assert.equal(networksOf(ends), ['0.0.0.0/0']);
  assert.equal(networksOf({ ...ends, first: 1n, last: 6n }), ['0.0.0.1/32', '0.0.0.2/31', '0.0.0.4/31', '0.0.0.6/32']);
});

test('usage counts every address once, by what it is to who looks for a free one', () => {
  const [four, six] = usageIn(
    ['203.0.113.0/29', '203.0.113.4/30', '2001:db8::/64'],
    [
      addressObject('a', '203.0.113.0', { phase: 'Bound' }),
      addressObject('b', '203.0.113.1', { phase: 'Conflict' }),
      addressObject('c', '203.0.113.2', { phase: 'Lost' }),
      addressObject('d', '203.0.113.3', { phase: 'Released' }),
      addressObject('e', '203.0.113.4', { phase: 'Released', heldBack: true }),
      addressObject('f', '203.0.113.5', { phase: 'Available', heldBack: true }),
      addressObject('g', '203.0.113.6'),
      // The same address once more, and others that are none of these ranges.
      addressObject('g2', '::ffff:203.0.113.6', { phase: 'Bound' }),
      addressObject('g3', '203.0.113.6', { phase: 'Available' }),
      addressObject('h', '198.51.100.1', { phase: 'Bound' }),
      addressObject('i', 'nonsense'),
      addressObject('j', '203.0.113.7', { className: 'other', phase: 'Bound' }),
      addressObject('k', '2001:db8::7', { phase: 'Bound' }),
    ],
  );
  assert.equal(four, {
    family: 'IPv4',
    size: 8n,
    counts: { used: 4, released: 1, held: 1, ready: 1, pending: 0 },
    free: 1n,
  });
  assert.equal(six, {
    family: 'IPv6',
    size: 1n << 64n,
    counts: { used: 1, released: 0, held: 0, ready: 0, pending: 0 },
    free: (1n << 64n) - 1n,
  });
});

test('a bar shows whatever there is, and free cells if and only if something is free', () => {
  const usage = (size: bigint, used: number, released = 0, held = 0, ready = 0): FamilyUsage => ({
    family: 'IPv6',
    size,
    counts: { used, released, held, ready, pending: 0 },
    free: size - BigInt(used + released + held + ready),
  });
  for (const [given, wanted] of [
    [usage(8n, 0), '........'],
    [usage(8n, 4, 1, 1, 1), '####~!+.'],
    [usage(8n, 8), '########'],
    [usage(1n << 64n, 3, 1), '#~......'],
    [usage(1000n, 999), '#######.'],
  ] as const)
    assert.is(bar(given, 8), wanted);
  assert.match(bar(usage(3n, 1, 1, 1), 8), /^#+~+!+$/);
  fc.assert(
    fc.property(
      fc.array(fc.nat(50), { minLength: 4, maxLength: 4 }),
      fc.bigInt(0n, 1n << 70n),
      fc.integer({ min: 8, max: 40 }),
      ([used = 0, released = 0, held = 0, ready = 0], more, width) => {
        const given = usage(BigInt(used + released + held + ready) + more, used, released, held, ready);
        const line = bar(given, width);
        assert.is(line.length, width);
        assert.is(line.includes('.'), given.free > 0n || given.size === 0n);
        for (const [sign, count] of [
          ['#', used],
          ['~', released],
          ['!', held],
          ['+', ready],
        ] as const)
          assert.is(line.includes(sign), count > 0, `${sign} of ${line}`);
      },
    ),
  );
});

test('the time until an address returns is that of the class, as it is now', () => {
  const released: AddressParts = { phase: 'Released', bound: ['False', 'Released', 3 * hour] };
  const cases: readonly (readonly [AddressParts, string | undefined, AddressReturn])[] = [
    [{ phase: 'Bound', bound: ['True', 'Bound', hour] }, '24h', { type: 'none' }],
    [{ phase: 'Conflict', bound: ['False', 'Released', hour] }, '24h', { type: 'none' }],
    [released, undefined, { type: 'byHand' }],
    [released, '24h', { type: 'counting', leftMs: 21 * hour }],
    [released, '0s', { type: 'counting', leftMs: 0 }],
    [released, '1h', { type: 'counting', leftMs: 0 }],
    [{ ...released, heldBack: true }, '24h', { type: 'held', leftMs: 21 * hour }],
    [{ ...released, heldBack: true }, undefined, { type: 'byHand' }],
    [{ ...released, service: 'tenant-a/web' }, '24h', { type: 'inUse', leftMs: 21 * hour }],
    [{ phase: 'Released' }, '24h', { type: 'byHand' }],
  ];
  for (const [parts, releaseDelay, wanted] of cases) {
    const more = releaseDelay === undefined ? {} : { releaseDelay };
    const { classes, addresses } = bookOf([classObject('public', [], more), addressObject('a', '203.0.113.7', parts)]);
    const [[found], [address]] = [classes, addresses];
    assert.ok(address);
    assert.equal(returnOf(address, found, moment), wanted, JSON.stringify([parts, releaseDelay]));
    if (wanted.type === 'counting') assert.equal(returnOf(address, undefined, moment), { type: 'byHand' });
  }
});

const book = bookOf([
  classObject('public', ['203.0.113.0/29', 'nonsense'], { releaseDelay: '24h' }),
  classObject('inner', ['2001:db8::/126']),
  addressObject('ip-203-0-113-2', '203.0.113.2', { phase: 'Released', bound: ['False', 'Released', 3 * hour] }),
  addressObject('ip-203-0-113-10', '203.0.113.10', { phase: 'Bound', claim: 'tenant-b/mail u2' }),
  addressObject('ip-203-0-113-1', '203.0.113.1', {
    phase: 'Bound',
    claim: 'tenant-a/web u1',
    service: 'tenant-a/web',
    bound: ['True', 'Bound', hour],
  }),
  addressObject('ip-2001-db8--1', '2001:db8::1', { className: 'inner', phase: 'Conflict', claim: 'tenant-a/six u3' }),
  addressObject('odd', 'nonsense', { className: 'gone', phase: 'Pending', bound: ['False', 'InvalidAddress', hour] }),
  claimObject('tenant-a/web', undefined, { phase: 'Bound' }),
  claimObject(
    'tenant-b/wide',
    { className: 'wide' },
    {
      phase: 'Pending',
      conditions: [
        {
          type: 'Bound',
          status: 'False',
          reason: 'WaitingForProvisioning',
          message: 'waits',
          lastTransitionTime: ago(0),
        },
        { type: 'ClassResolved', status: 'False', reason: 'ClassNotFound', message: 'class wide does not exist' },
      ],
    },
  ),
]);

test('rows come by class and by address as a number; filters leave out what is not asked for', () => {
  const all = holdingsOf(book, {}, moment);
  assert.equal(
    all.addresses.map(({ address }) => address),
    ['nonsense', '2001:db8::1', '203.0.113.1', '203.0.113.2', '203.0.113.10'],
  );
  assert.equal(
    all.classes.map(({ name, outside, unread }) => [name, outside, unread]),
    [
      ['inner', 0, []],
      ['public', 1, ['nonsense']],
    ],
  );
  assert.equal(all.waiting, [
    {
      claim: 'tenant-b/wide',
      className: 'wide',
      family: 'IPv4',
      phase: 'Pending',
      reason: 'ClassNotFound',
      message: 'class wide does not exist',
    },
  ]);
  const names = (filter: Parameters<typeof holdingsOf>[1]): string[] =>
    holdingsOf(book, filter, moment).addresses.map(({ name }) => name);
  assert.equal(names({ className: 'inner' }), ['ip-2001-db8--1']);
  assert.equal(names({ namespace: 'tenant-a' }), ['ip-2001-db8--1', 'ip-203-0-113-1']);
  assert.equal(names({ namespace: 'tenant-a', className: 'public' }), ['ip-203-0-113-1']);
  assert.equal(holdingsOf(book, { namespace: 'tenant-a' }, moment).waiting, []);
});

test('people read a table, or where it is too narrow a paragraph for each; nothing is coloured', () => {
  const holdings = holdingsOf(book, {}, moment);
  const wide = holdingsText(holdings, undefined);
  for (const row of [
    /^203\.0\.113\.1 +public +IPv4 +Bound +tenant-a\/web +tenant-a\/web$/m,
    /^203\.0\.113\.2 +public +IPv4 +Released +- +- +returns in 21h0m0s$/m,
    /^nonsense +gone +- +Pending +- +- +InvalidAddress$/m,
    /^tenant-b\/wide +wide +IPv4 +Pending +ClassNotFound +class wide does not exist$/m,
    /^ {2}IPv4 \[###~+\.+\] 1 used, 1 released, 6 free of 8$/m,
    /^ {2}1 of its addresses lie outside of its ranges$/m,
    /^ {2}range "nonsense" can not be read$/m,
  ])
    assert.match(wide, row);
  const narrow = holdingsText(holdings, 60);
  assert.match(
    narrow,
    /^203\.0\.113\.1\n {2}class: public\n {2}family: IPv4\n {2}phase: Bound\n {2}claim: tenant-a\/web\n/m,
  );
  for (const line of narrow.split('\n').filter((one) => !one.includes('provisioner') && !one.startsWith('#')))
    if (!line.startsWith('  IPv') && !line.includes('(metallb')) assert.ok(line.length <= 60, line);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours would be such characters
  assert.not.match(wide, /\u001b/);
  assert.match(holdingsText(holdingsOf(bookOf([]), {}, moment), 60), /^no address is recorded$/);
  assert.match(classText(holdings.classes, 60), /\[#+~?\.+\]/);
});

test('programs read sizes as texts, which no number could hold', () => {
  const wide = bookOf([
    classObject('wide', ['2001:db8::/32']),
    addressObject('a', '2001:db8::1', { className: 'wide', phase: 'Bound' }),
  ]);
  const text = JSON.stringify(holdingsJson(holdingsOf(wide, {}, moment)));
  assert.match(
    text,
    `"size":"${1n << 96n}","used":1,"released":0,"held":0,"ready":0,"pending":0,"free":"${(1n << 96n) - 1n}"`,
  );
});

test.run();
