import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LedgerBed } from './addresses-bed.ts';
import { ledgerObject, provisioner } from './addresses-model.ts';

/** A ledger of 10,000 addresses, 5,000 claims and 200 classes: what is looked at, and what is written, by count. */

const classes = 200;
const bed = new LedgerBed(false);
const many = 1_000_000;
const since = (): { writes: () => number; passes: () => number } => {
  const [writes, passes] = [bed.core.writes.length, bed.core.passes];
  return { writes: () => bed.core.writes.length - writes, passes: () => bed.core.passes - passes };
};

test('every claim gets an address of its class by four writes', async () => {
  for (let n = 0; n < classes; n += 1)
    bed.server.create(ledgerObject('IPAddressClass', `class-${n}`, { provisioner, reclaimPolicy: 'Retain' }));
  for (let n = 0; n < 10_000; n += 1) {
    const address = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
    const spec = { className: `class-${n % classes}`, address, reclaimPolicy: 'Retain', source: { fromClass: {} } };
    bed.server.create(ledgerObject('IPAddress', `ip-${n}`, spec));
  }
  await bed.settle(many);
  assert.is(bed.core.writes.length, classes + 2 * 10_000);
  const { writes, passes } = since();
  for (let n = 0; n < 5_000; n += 1) {
    const spec = { className: `class-${n % classes}`, family: 'IPv4' };
    bed.server.create(ledgerObject('IPAddressClaim', `claim-${n}`, spec));
  }
  const started = performance.now();
  await bed.settle(many);
  const seconds = (performance.now() - started) / 1000;
  assert.is(writes(), 4 * 5_000);
  assert.is(passes(), 5 * 5_000);
  const claims = bed.server.list('IPAddressClaim');
  assert.ok(claims.every(({ status }) => status?.phase === 'Bound'));
  console.error(`5000 claims bound in ${seconds.toFixed(1)} s, ${Math.round(5000 / seconds)} a second`);
});

test('another process looks at everything once and writes nothing', async () => {
  const { writes, passes } = since();
  bed.core.restart();
  await bed.settle(many);
  assert.equal([writes(), passes()], [0, classes + 10_000 + 5_000]);
});

test('one change makes only what it concerns be looked at', async () => {
  const held = since();
  bed.annotate('IPAddress', 'ip-0', 'other', 'x');
  await bed.settle();
  assert.equal([held.writes(), held.passes()], [0, 2], 'the address, and its claim');
  const free = since();
  bed.annotate('IPAddress', 'ip-9999', 'other', 'x');
  await bed.settle();
  assert.equal([free.writes(), free.passes()], [0, 1], 'a free address');
  const kind = since();
  bed.annotate('IPAddressClass', 'class-7', 'other', 'x');
  await bed.settle();
  assert.equal([kind.writes(), kind.passes()], [0, 1], 'a class that nobody waits for');
});

test('one address that becomes free wakes who waits for its class, and nobody else', async () => {
  for (const name of ['a', 'b']) bed.claim(name, { className: 'class-3', family: 'IPv6' });
  bed.claim('other', { className: 'class-4', family: 'IPv6' });
  await bed.settle();
  const woken = since();
  const spec = { className: 'class-3', address: '2001:db8::3', reclaimPolicy: 'Retain', source: { fromClass: {} } };
  bed.server.create(ledgerObject('IPAddress', 'six', spec));
  await bed.settle();
  assert.equal([bed.phase('IPAddressClaim', 'a'), bed.phase('IPAddressClaim', 'b')], ['Bound', 'Pending']);
  assert.ok(woken.passes() <= 8, `${woken.passes()} passes`);
});

test.run();
