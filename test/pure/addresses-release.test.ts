import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressesApiVersion } from '../../constructs/api/addresses.ts';
import { readIPRange } from '../../constructs/lib/ip.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { type AddressView, readLedgerObject } from '../../executor/addresses/objects.ts';
import { admitLedger, type Giver } from '../../executor/addresses/release/admit.ts';
import type { Item } from '../../executor/apply/items.ts';
import { prunePlan } from '../../executor/apply/prune-plan.ts';
import { lintRuntime } from '../../executor/release/lint.ts';
import { entry, item, ledgerOf, liveMeta, release } from './executor-support.ts';

/** What of the cluster stands against a release of the ledger. */

/** The objects of a payload that gives these networks to classes. */
const giving = (ranges: Readonly<Record<string, readonly string[]>>): Map<string, JsonObject> =>
  new Map([
    ['/Namespace//holds', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'holds' } }],
    [
      '/ConfigMap/holds/keelson-address-ranges',
      { data: Object.fromEntries(Object.entries(ranges).map(([name, texts]) => [name, texts.join('\n')])) },
    ],
  ]);

function address(name: string, className: string, text: string, more: JsonObject = {}): AddressView {
  const view = readLedgerObject({
    apiVersion: addressesApiVersion,
    kind: 'IPAddress',
    metadata: { name, uid: name },
    spec: { className, address: text, source: { fromClass: {} }, ...more },
    status: { phase: 'Bound' },
  });
  if (view?.kind !== 'IPAddress') throw new Error('no address');
  return view;
}

const giver = (kind: Giver['kind'], name: string, ...texts: readonly string[]): Giver => ({
  kind,
  name,
  ...(kind === 'IPAddressPool' ? { namespace: 'metallb-system' } : {}),
  blocks: texts.map((text) => {
    const block = readIPRange(text);
    if (block === undefined) throw new Error(text);
    return block;
  }),
});

interface Case {
  readonly now?: Readonly<Record<string, readonly string[]>>;
  readonly before?: Readonly<Record<string, readonly string[]>>;
  readonly addresses?: readonly AddressView[];
  readonly givers?: readonly Giver[];
}

const told = ({ now, before, addresses = [], givers = [] }: Case): string[] =>
  admitLedger(now && giving(now), before && giving(before), { addresses, givers }).map(
    ({ reason, object, value, message }) => `${reason} ${object} ${value ?? ''} ${message}`,
  );

const wide = ['203.0.113.0/24', '2001:db8::/64'];

test('a range is not taken from under an address, in whatever phase and form it is', () => {
  const claimRef = { namespace: 'tenant', name: 'web', uid: 'u' };
  const addresses = [
    address('ip-203-0-113-7', 'public', '203.0.113.7', { claimRef }),
    address('ip-203-0-113-9', 'public', '203.0.113.9'),
    address('old', 'public', '::ffff:203.0.113.8'),
    address('six', 'public', '2001:DB8:0::7'),
    address('elsewhere', 'office', '203.0.113.7'),
  ];
  assert.equal(told({ now: { public: wide }, before: { public: wide }, addresses }), []);
  const [problem, ...more] = told({
    now: { public: ['203.0.113.8/31'] },
    before: { public: wide },
    addresses,
  });
  assert.equal(more, []);
  assert.match(
    problem ?? '',
    /^AddressWithoutRange IPAddressClass public .*ip-203-0-113-7 \(203\.0\.113\.7, Bound, of claim tenant\/web\), six \(/,
  );
  assert.not.match(problem ?? '', /old|113-9|elsewhere/);
});

test('a class that leaves Git leaves its addresses nowhere to be', () => {
  const addresses = [address('ip-203-0-113-7', 'public', '203.0.113.7')];
  assert.is(told({ now: {}, before: { public: wide }, addresses }).length, 1);
  assert.equal(told({ now: {}, before: { public: wide } }), []);
  assert.equal(told({ now: {}, addresses }), [], 'of a class that was never in Git nothing is known');
});

test('what lay in no range before is not of this change; a first release tells all of it', () => {
  const addresses = [address('stray', 'public', '192.0.2.1')];
  assert.equal(told({ now: { public: ['203.0.113.0/25'] }, before: { public: wide }, addresses }), []);
  assert.is(told({ now: { public: wide }, addresses }).length, 1);
  const reserved = [address('leased', 'public', '192.0.2.1', { source: { providerRef: { id: 'x' } } })];
  assert.equal(told({ now: { public: wide }, addresses: reserved }), [], 'a provider gave it');
  assert.equal(told({ now: { public: wide }, addresses: [address('odd', 'public', 'none')] }), []);
});

test('a class that was in the cluster before it is in Git brings its addresses along', () => {
  const addresses = [address('ip-203-0-113-7', 'public', '203.0.113.7')];
  const before = { office: ['198.51.100.0/24'] };
  assert.equal(told({ now: { ...before, public: wide }, before, addresses }), []);
  const [problem, ...more] = told({ now: { ...before, public: ['203.0.113.128/25'] }, before, addresses });
  assert.equal(more, []);
  assert.match(problem ?? '', /^AddressWithoutRange IPAddressClass public .*ip-203-0-113-7/);
  assert.equal(told({ now: before, before, addresses }), [], 'it is not in Git');
});

test('many addresses are counted, not listed', () => {
  const addresses = Array.from({ length: 9 }, (_, n) => address(`a${n}`, 'public', `203.0.113.${n}`));
  const [problem] = told({ now: { public: ['2001:db8::/64'] }, before: { public: wide }, addresses });
  assert.match(problem ?? '', /a4 .*, and 4 more: /);
  assert.not.match(problem ?? '', /a5/);
});

test('a range that somebody else in the cluster gives is told, by class and by pool, in whatever form', () => {
  const givers = [
    giver('IPAddressClass', 'public', ...wide),
    giver('IPAddressPool', 'iad-public', ...wide),
    giver('IPAddressClass', 'handmade', '203.0.113.128/25'),
    giver('IPAddressPool', 'office', '::ffff:198.51.100.4-::ffff:198.51.100.9'),
    giver('IPAddressPool', 'iad-gone', '2001:db8::ff/128'),
  ];
  const found = told({ now: { public: [...wide, '198.51.100.0/29', '192.0.2.0/29'] }, givers });
  assert.is(found.length, 3, found.join('\n'));
  assert.match(found[0] ?? '', /^AddressRangeTaken IPAddressClass public 203\.0\.113\.0\/24 IPAddressClass handmade/);
  assert.match(found[1] ?? '', /2001:db8::\/64 IPAddressPool metallb-system\/iad-gone/);
  assert.match(found[2] ?? '', /198\.51\.100\.0\/29 IPAddressPool metallb-system\/office/);
});

test('a range is not given to a class while the pool of another one still has it', () => {
  const now = { office: ['203.0.113.0/25'], public: ['203.0.113.128/25'] };
  const classes = [giver('IPAddressClass', 'public', ...wide), giver('IPAddressClass', 'office', '203.0.113.0/25')];
  const kept = giver('IPAddressPool', 'iad-public', '203.0.113.128/25', '203.0.113.4/30');
  const [problem, ...more] = told({ now, givers: [...classes, kept] });
  assert.equal(more, []);
  assert.match(
    problem ?? '',
    /^AddressRangeTaken IPAddressClass office 203\.0\.113\.0\/25 IPAddressPool metallb-system\/iad-public, which is of another class, .*203\.0\.113\.4/,
  );
  assert.equal(told({ now, givers: [...classes, giver('IPAddressPool', 'iad-public', '203.0.113.128/25')] }), []);
});

test('a payload that says nothing of ranges has none to be wrong', () => {
  assert.equal(
    told({ addresses: [address('a', 'public', '203.0.113.7')], givers: [giver('IPAddressPool', 'x', '::/0')] }),
    [],
  );
});

test('what is runtime is in no payload, and is not pruned, whoever wrote it first', () => {
  const service = (name: string, metadata: JsonObject = {}): Item =>
    item({ kind: 'Service', name, body: { metadata: { ...metadata } } });
  const label = 'metallb.drivers.local.sdn.cozystack.io/placeholder';
  const owners = [{ apiVersion: addressesApiVersion, kind: 'IPAddressClass', name: 'public', uid: 'u' }];
  const held = service('held', { labels: { [label]: 'true' } });
  const claim = item({ apiVersion: addressesApiVersion, kind: 'IPAddressClaim', name: 'web' });
  const pool = item({ apiVersion: 'metallb.io/v1beta1', kind: 'IPAddressPool', name: 'iad-public' });
  const plain = service('plain');
  assert.equal(
    lintRuntime([held, claim, plain]).map(({ reason, object }) => `${reason} ${object}`),
    ['RuntimeObject Service demo/held', 'RuntimeObject IPAddressClaim.local.sdn.cozystack.io demo/web'],
  );
  const live = new Map([
    [held.id, liveMeta(held, { labels: { [label]: 'true' } })],
    [claim.id, liveMeta(claim)],
    [pool.id, liveMeta(pool, { ownerReferences: owners })],
    [plain.id, liveMeta(plain)],
  ]);
  const plan = prunePlan({
    release,
    ledger: ledgerOf(...[held, claim, pool, plain].map((one) => entry(one))),
    wanted: new Set(),
    live,
    planned: new Set(),
    policy: { enabled: true, maxPercent: 100, maxCount: 100 },
    approved: false,
    unbounded: false,
  });
  assert.equal(
    plan.remove.map(({ id }) => id),
    [plain.id],
  );
  assert.equal(
    plan.dropped.map(({ id, why }) => `${why} ${id}`).sort(),
    [held, claim, pool].map(({ id }) => `keep ${id}`).sort(),
  );
});

test.run();
