import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { summaryJson, summaryText } from '../../bin/addresses/summary.ts';
import { bookOf } from '../../executor/addressbook/book.ts';
import { type LedgerSummary, summaryOf } from '../../executor/addressbook/summary.ts';
import { slimAddress } from '../../executor/addressbook/watch.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { page } from '../../executor/page/html/page.ts';
import { type PageModel, pageLimits } from '../../executor/page/model.ts';
import { pageModel } from '../../executor/page/page.ts';
import { addressObject, claimObject, classObject, moment } from './addressbook-support.ts';

/** The ledger in numbers: in `keelson status`, and on the page. */

const objects: readonly KubeObject[] = [
  classObject('public', ['203.0.113.0/29', '2001:db8::/64']),
  addressObject('ip-1', '203.0.113.1', { phase: 'Bound', claim: 'tenant-a/web u' }),
  addressObject('ip-2', '203.0.113.2', { phase: 'Released', heldBack: true, bound: ['False', 'Released', 60_000] }),
  addressObject('ip-3', '203.0.113.3', { phase: 'Conflict', claim: 'tenant-a/mail u', service: 'tenant-a/mail' }),
  addressObject('ip-4', '203.0.113.4'),
  addressObject('ip-5', '203.0.113.5', { phase: 'Available' }),
  addressObject('ip-6', '2001:db8::6', { phase: 'Lost', claim: 'tenant-b/six u' }),
  addressObject('ip-9', '198.51.100.9', { className: 'gone', phase: 'Bound', claim: 'tenant-b/old u' }),
  claimObject('tenant-a/web', {}, { phase: 'Bound', className: 'public' }),
  claimObject('tenant-a/new', {}, {}),
  claimObject(
    'tenant-b/six',
    { className: 'public', family: 'IPv6' },
    { phase: 'Lost', conditions: [{ type: 'Bound', status: 'False', reason: 'AddressLost', message: 'it is gone' }] },
  ),
];

const summaryIn = (given: Iterable<KubeObject>): LedgerSummary => {
  const summary = summaryOf(bookOf(given));
  assert.ok(summary);
  return summary;
};

test('addresses and claims are counted by class and phase; what is wrong is named', () => {
  const { classes, troubles } = summaryIn(objects);
  assert.equal(
    classes.map(({ name, provisioner, addresses, claims, outside }) => [
      name,
      provisioner !== '',
      addresses,
      claims,
      outside,
    ]),
    [
      [
        '',
        false,
        { Pending: 0, Available: 0, Bound: 0, Released: 0, Conflict: 0, Lost: 0 },
        { Pending: 1, Bound: 0, Lost: 0 },
        0,
      ],
      [
        'gone',
        false,
        { Pending: 0, Available: 0, Bound: 1, Released: 0, Conflict: 0, Lost: 0 },
        { Pending: 0, Bound: 0, Lost: 0 },
        0,
      ],
      [
        'public',
        true,
        { Pending: 1, Available: 1, Bound: 1, Released: 1, Conflict: 1, Lost: 1 },
        { Pending: 0, Bound: 1, Lost: 1 },
        0,
      ],
    ],
  );
  assert.equal(troubles, [
    { phase: 'Conflict', object: 'IPAddress ip-3', what: '203.0.113.3, claim tenant-a/mail, Service tenant-a/mail' },
    { phase: 'Lost', object: 'IPAddress ip-6', what: '2001:db8::6, claim tenant-b/six' },
    { phase: 'Lost', object: 'IPAddressClaim tenant-b/six', what: 'it is gone' },
  ]);
  assert.is(summaryOf(bookOf([])), undefined);
});

test('what a watch keeps of an object is all that the numbers are made of', () => {
  const told = objects.map((object) => ({
    ...object,
    metadata: {
      ...object.metadata,
      managedFields: [{ manager: 'x'.repeat(500) }],
      annotations: { ...object.metadata.annotations, long: 'x'.repeat(2_000) },
    },
  }));
  const kept = told.map(slimAddress);
  assert.ok(JSON.stringify(kept).length < JSON.stringify(told).length / 4);
  assert.equal(summaryIn(kept), summaryIn(objects));
});

test('status tells classes in numbers, and what is in conflict or lost', () => {
  const text = summaryText(summaryIn(objects));
  for (const line of [
    /^addresses 7 in 3 classes; claims pending\/bound\/lost; keelson addresses tells more$/m,
    /^CLASS +PENDING +AVAILABLE +BOUND +RELEASED +CONFLICT +LOST +CLAIMS +RANGES$/m,
    /^public +1 +1 +1 +1 +1 +1 +0\/1\/1 +IPv4 \[[#!+?]+\.+\] 3 free of 8 {2}IPv6 \[#\.+\] 18446744073709551615 free of 18446744073709551616$/m,
    /^gone \(gone\) +0 +0 +1/m,
    /^\(no class yet\) +0 +0 +0 +0 +0 +0 +1\/0\/0$/m,
    /^Conflict: IPAddress ip-3: 203\.0\.113\.3, claim tenant-a\/mail, Service tenant-a\/mail$/m,
  ])
    assert.match(text, line);
  assert.match(JSON.stringify(summaryJson(summaryIn(objects))), `"size":"${1n << 64n}"`);
});

const modelOf = (addresses: LedgerSummary | undefined): PageModel => {
  const known = {
    since: moment,
    releases: [],
    installations: [],
    observed: () => undefined,
    addresses: () => addresses,
  };
  return pageModel({ identity: 'executor-1', namespace: 'keelson-system', planOnly: false, known, tick: 0 });
};
const htmlOf = async (model: PageModel): Promise<string> => String(await page(model, 'digest', moment));

test('the page shows what is wrong first, and the classes in numbers; nothing where there is no ledger', async () => {
  const text = await htmlOf(modelOf(summaryIn(objects)));
  assert.match(text, /Conflict<\/span> *<strong>IPAddress ip-3<\/strong>/);
  assert.match(text, /4 of 8 taken/);
  assert.match(text, /no class yet/);
  assert.match(text, /aria-label="Addresses of public that are taken, IPv4"/);
  assert.match(text, /the class is gone/);
  assert.not.match(text, / style=/);
  assert.is(modelOf(undefined).addresses, undefined);
  assert.not.match(await htmlOf(modelOf(undefined)), /id="addresses"/);
});

test('a large ledger makes a bounded page: classes with trouble first, the rest counted', () => {
  const many: KubeObject[] = Array.from({ length: 200 }, (_, n) =>
    classObject(`c${String(n).padStart(3, '0')}`, [`10.0.${n}.0/24`]),
  );
  for (let n = 0; n < 10_000; n += 1) {
    const className = `c${String(n % 200).padStart(3, '0')}`;
    many.push(
      addressObject(`a${n}`, `10.0.${n % 200}.${Math.floor(n / 200)}`, {
        className,
        phase: n % 200 === 150 ? 'Lost' : 'Bound',
      }),
    );
  }
  const started = performance.now();
  const summary = summaryIn(many);
  assert.ok(performance.now() - started < 2_000, 'it is made for every change');
  const { addresses } = modelOf(summary);
  assert.is(addresses?.classes[0]?.name, 'c150');
  assert.equal(
    [addresses?.classes.length, addresses?.classesMore],
    [pageLimits.addressClasses, 200 - pageLimits.addressClasses],
  );
  assert.equal(
    [addresses?.troubles.length, addresses?.troublesMore],
    [pageLimits.addressTroubles, 50 - pageLimits.addressTroubles],
  );
  assert.ok(JSON.stringify(addresses).length < 40_000);
});

test.run();
