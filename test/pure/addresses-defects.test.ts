import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations as annotations, addressFinalizers as finalizers } from '../../constructs/api/addresses.ts';
import { kindSchema } from '../../constructs/api/crd.ts';
import { ipAddressKind } from '../../constructs/api/kinds/ipaddress.ts';
import { ipAddressClaimKind } from '../../constructs/api/kinds/ipaddressclaim.ts';
import { ipAddressClassKind } from '../../constructs/api/kinds/ipaddressclass.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { held, LedgerBed, scenario } from './addresses-bed.ts';
import { ledgerObject, provisioner, teardown } from './addresses-model.ts';

/** Defects of the controllers before ours, by the ids under which they are known, and the answers to what was left open. */

const ip = 'ip-203-0-113-7';
const claimRef = { namespace: 'tenant-a', name: 'web' };
const address = (bed: LedgerBed, name = ip) => bed.phase('IPAddress', name);
const claim = (bed: LedgerBed, name = 'web') => bed.phase('IPAddressClaim', name);
const bound = (bed: LedgerBed, name = ip) => bed.condition('IPAddress', name, 'Bound');

/** As a driver makes an address: for a claim, with a finalizer of its own. */
const provide = (bed: LedgerBed, text: string, uid: string, name = 'web') =>
  bed.address(text, { claimRef: { namespace: 'tenant-a', name, uid } }, { finalizers: [teardown] });

/** The claim is gone without its finalizer having worked. */
async function vanish(bed: LedgerBed): Promise<void> {
  bed.strip('IPAddressClaim', 'web');
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
}

test('D1: every object has a spec', () => {
  for (const kind of [ipAddressClassKind, ipAddressKind, ipAddressClaimKind]) {
    assert.equal(kindSchema(kind).required, ['spec'], kind.kind);
  }
  const bed = new LedgerBed();
  bed.address('203.0.113.7');
  const { spec: _, ...bare } = bed.live('IPAddress', ip);
  assert.throws(() => bed.edit('IPAddress', ip, () => bare as never), /spec is required/);
});

scenario('D2: of two objects with one address only the older is usable, and both forms are one', async (bed) => {
  bed.class();
  const spec = { className: 'public', source: { fromClass: {} }, reclaimPolicy: 'Retain' };
  bed.server.plant(ledgerObject('IPAddress', 'second', { ...spec, address: '2001:db8::7' }));
  bed.now += 1000;
  bed.server.plant(ledgerObject('IPAddress', 'first', { ...spec, address: '2001:db8:0::7' }));
  await bed.settle();
  assert.equal([address(bed, 'second'), address(bed, 'first')], ['Available', 'Pending']);
  assert.is(bound(bed, 'first'), 'False/DuplicateAddress');
  assert.equal(bed.reasons('first'), ['DuplicateAddress']);
  bed.claim('a', { className: 'public', family: 'IPv6' });
  bed.claim('b', { className: 'public', family: 'IPv6' });
  await bed.settle();
  assert.equal([claim(bed, 'a'), claim(bed, 'b')], ['Bound', 'Pending']);
  bed.delete('IPAddressClaim', 'a');
  await bed.settle();
  bed.delete('IPAddress', 'second');
  await bed.settle();
  assert.equal([claim(bed, 'b'), bed.got('b')], ['Bound', ['first']]);
});

scenario('D2: two that are both taken keep what they have, and are told of', async (bed) => {
  bed.class();
  const uids = [bed.claim('a'), bed.claim('b')].map(({ metadata }) => metadata.uid ?? '');
  for (const [n, name] of ['a', 'b'].entries())
    bed.server.plant({
      ...ledgerObject('IPAddress', `ip-${name}`, {
        className: 'public',
        address: '203.0.113.7',
        claimRef: { ...claimRef, name, uid: uids[n] ?? '' },
        source: { fromClass: {} },
        reclaimPolicy: 'Retain',
      }),
      status: { phase: 'Bound' },
    });
  await bed.settle();
  assert.equal([claim(bed, 'a'), claim(bed, 'b')], ['Bound', 'Bound']);
  assert.equal([bed.reasons('ip-a'), bed.reasons('ip-b')], [['DuplicateAddress'], ['DuplicateAddress']]);
});

scenario('D3: a pre-binding is held to class and family', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('2001:db8::7', { claimRef });
  bed.address('203.0.113.8', { claimRef, className: 'private' });
  await bed.settle();
  assert.equal([claim(bed), bed.got()], ['Pending', []]);
});

scenario('D4: what holds on is told once', async (bed) => {
  bed.claim('none', { className: 'nowhere' });
  bed.server.plant(
    ledgerObject('IPAddress', 'odd', {
      className: 'public',
      address: 'x',
      source: { fromClass: {} },
      reclaimPolicy: 'Retain',
    }),
  );
  await held(bed);
  bed.delete('IPAddress', ip);
  for (let n = 0; n < 5; n += 1) {
    await bed.settle();
    await bed.quiet();
  }
  const of = (reason: string): number => bed.core.events.filter((event) => event.reason === reason).length;
  assert.equal([of('ClassNotFound'), of('InvalidAddress'), of('DeletionBlocked')], [1, 1, 1]);
});

scenario('D5 and Q1: a lost address is not replaced unless the claim allows it', async (bed) => {
  await held(bed);
  bed.address('203.0.113.1');
  bed.editStatus('IPAddress', ip, { phase: 'Lost' });
  await bed.settle();
  assert.equal([claim(bed), bed.got(), bed.claimRef('ip-203-0-113-1')], ['Lost', [ip], undefined]);
  bed.annotate('IPAddressClaim', 'web', annotations.replaceLost, 'true');
  await bed.settle();
  assert.equal([claim(bed), bed.got(), bound(bed)], ['Bound', ['ip-203-0-113-1'], 'False/Released']);
  // The driver brings the old one back: it has no claim any more.
  bed.editStatus('IPAddress', ip, { phase: 'Bound' });
  await bed.settle();
  assert.equal([claim(bed), bed.got(), address(bed)], ['Bound', ['ip-203-0-113-1'], 'Released']);
});

scenario('Q1: one that is gone is not replaced either', async (bed) => {
  await held(bed);
  bed.address('203.0.113.1');
  bed.delete('IPAddress', ip);
  bed.strip('IPAddress', ip);
  await bed.settle();
  assert.equal([claim(bed), bed.got(), bed.claimRef('ip-203-0-113-1')], ['Lost', [], undefined]);
  bed.annotate('IPAddressClaim', 'web', annotations.replaceLost, 'true');
  await bed.settle();
  assert.equal([claim(bed), bed.got()], ['Bound', ['ip-203-0-113-1']]);
});

scenario('D6: the family of a claim stays', async (bed) => {
  await held(bed);
  assert.throws(() => bed.editSpec('IPAddressClaim', 'web', { family: 'Dual' }), /family cannot be changed/);
});

scenario('D7: an address whose deletion is blocked counts', async (bed) => {
  await held(bed);
  bed.address('203.0.113.1');
  bed.delete('IPAddress', ip);
  await bed.settle();
  assert.equal([claim(bed), bed.got(), address(bed)], ['Bound', [ip], 'Bound']);
});

scenario('D8: the protection of an address goes only when its claim is gone', async (bed) => {
  bed.class();
  const { metadata } = bed.claim();
  provide(bed, '203.0.113.7', metadata.uid ?? '');
  await bed.settle();
  bed.delete('IPAddress', ip);
  await bed.settle();
  assert.equal(bed.live('IPAddress', ip).metadata.finalizers, [teardown, finalizers.address]);
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.equal(bed.live('IPAddress', ip).metadata.finalizers, [teardown]);
});

test('D9: an address is protected from the match on', async () => {
  const bed = new LedgerBed();
  bed.class();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.claim();
  bed.core.deliver();
  await bed.core.pass('IPAddressClaim tenant-a/web');
  assert.is(address(bed), 'Available');
  bed.delete('IPAddress', ip);
  await bed.settle();
  assert.equal([claim(bed), bed.reasons(ip)], ['Bound', ['DeletionBlocked']]);
});

scenario('D9: an address in conflict is protected as well', async (bed) => {
  await held(bed);
  bed.editStatus('IPAddress', ip, { phase: 'Conflict' });
  bed.delete('IPAddress', ip);
  await bed.settle();
  assert.equal([address(bed), bed.reasons(ip)], ['Conflict', ['DeletionBlocked']]);
});

for (const state of ['Conflict', 'Lost']) {
  scenario(
    `D10: a claim that goes leaves ${state} to the driver, and the address is Released after it`,
    async (bed) => {
      await held(bed);
      bed.editStatus('IPAddress', ip, { phase: state });
      bed.delete('IPAddressClaim', 'web');
      await bed.settle();
      assert.equal([bed.find('IPAddressClaim', 'web'), address(bed), bound(bed)], [undefined, state, 'False/Released']);
      bed.editStatus('IPAddress', ip, { phase: 'Bound' });
      await bed.settle();
      assert.is(address(bed), 'Released');
    },
  );

  scenario(`D10, race 5: a claim that vanishes under ${state} has its address reclaimed`, async (bed) => {
    await held(bed, { reclaimPolicy: 'Delete' });
    bed.editStatus('IPAddress', ip, { phase: state });
    await vanish(bed);
    assert.is(bed.find('IPAddress', ip), undefined);
  });
}

scenario('D11: an address that was named counts, and another one is not taken for it', async (bed) => {
  bed.class();
  bed.claim('web', { className: 'public', addressName: ip });
  bed.address('203.0.113.8', { claimRef });
  await bed.settle();
  assert.equal([claim(bed), bound(bed, 'ip-203-0-113-8')], ['Pending', 'False/PreBindingRefused']);
  bed.address('203.0.113.7', { claimRef });
  await bed.settle();
  assert.equal([claim(bed), bed.got()], ['Bound', [ip]]);
});

test('D12, race 4: an address that was made for a claim that never had it is deleted under Retain as well', async () => {
  const bed = new LedgerBed();
  bed.class();
  const { metadata } = bed.claim();
  await bed.settle();
  bed.strip('IPAddressClaim', 'web');
  bed.delete('IPAddressClaim', 'web');
  provide(bed, '203.0.113.7', metadata.uid ?? '');
  await bed.settle();
  // What is left of it is the driver's to take down.
  assert.equal(bed.live('IPAddress', ip).metadata.finalizers, [teardown]);
  assert.ok(bed.live('IPAddress', ip).metadata.deletionTimestamp);
});

scenario('D12: one that a claim had stays', async (bed) => {
  bed.class();
  const { metadata } = bed.claim();
  provide(bed, '203.0.113.7', metadata.uid ?? '');
  await bed.settle();
  await vanish(bed);
  assert.is(address(bed), 'Released');
});

scenario('D12: one that a claim has shown stays, though nobody has written on it yet', async (bed) => {
  bed.class();
  const { metadata } = bed.claim();
  provide(bed, '203.0.113.7', metadata.uid ?? '');
  await bed.settle();
  // The write of its own status is still to come: the claim's came first.
  bed.server.updateStatus(bed.live('IPAddress', ip), {});
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(address(bed), 'Released');
});

scenario('D13: what an address is, and whose, is not edited away', async (bed) => {
  await held(bed);
  const refused = (spec: JsonObject, why: RegExp): void =>
    assert.throws(() => bed.editSpec('IPAddress', ip, spec), why);
  refused({ className: 'private' }, /className cannot be changed/);
  refused({ source: { providerRef: { id: 'x' } } }, /source cannot be changed/);
  refused({ claimRef: { ...claimRef, name: 'mail' } }, /claimRef cannot be turned/);
  refused({ claimRef: { ...claimRef, uid: 'another' } }, /never exchanged/);
});

scenario('D14: a stamp that somebody else writes is set back, on a Bound claim as well', async (bed) => {
  await held(bed);
  bed.annotate('IPAddressClaim', 'web', annotations.provisioner, 'mine');
  await bed.settle();
  assert.is(bed.live('IPAddressClaim', 'web').metadata.annotations?.[annotations.provisioner], provisioner);
});

scenario('D15: a loss is a warning', async (bed) => {
  await held(bed);
  bed.editStatus('IPAddress', ip, { phase: 'Lost' });
  await bed.settle();
  assert.equal(
    bed.core.events.filter(({ reason }) => reason === 'Lost').map(({ type }) => type),
    ['Warning'],
  );
});

scenario('D16: a class that is gone is not waited for under its old stamp', async (bed) => {
  bed.class();
  bed.claim();
  await bed.settle();
  bed.delete('IPAddressClass', 'public');
  await bed.settle();
  const message = String(bed.conditionOf('IPAddressClaim', 'web', 'Bound')?.message);
  assert.not.match(message, provisioner);
  assert.match(message, 'waiting for a class');
});

scenario('Q2: a refused address is kept, Pending', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('2001:db8::7', { claimRef, reclaimPolicy: 'Delete' });
  await bed.settle();
  assert.equal([address(bed, 'ip-2001-db8--7'), bound(bed, 'ip-2001-db8--7')], ['Pending', 'False/PreBindingRefused']);
});

test('Q3: a delay is a Go duration; nothing is at once, absent is never', () => {
  const bed = new LedgerBed();
  for (const releaseDelay of ['-1h', '1d', '3600', ''])
    assert.ok(bed.refusal('IPAddressClass', 'x', { provisioner: 'p', releaseDelay }).length > 10, releaseDelay);
  bed.class('zero', { releaseDelay: '0s' });
});

test('D19: that a quota counts claims, and not addresses, is told', () => {
  const page = readFileSync(new URL('../../docs/addresses.md', import.meta.url), 'utf8');
  assert.match(page, /count\/ipaddressclaims\.local\.sdn\.cozystack\.io`: a `Dual` claim is one, with two addresses/);
});

test('D41: what a hold costs is told', () => {
  const page = readFileSync(new URL('../../docs/addresses.md', import.meta.url), 'utf8');
  assert.match(page, /each costs a Service and a cluster address, and counts in a quota on `services\.loadbalancers`/);
});

scenario('Q4: a claim of the same name gets a released address back only if it asks for it', async (bed) => {
  await held(bed);
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  bed.claim();
  bed.editSpec('IPAddress', ip, { claimRef });
  await bed.settle();
  assert.equal([claim(bed), address(bed)], ['Pending', 'Released']);
  bed.editSpec('IPAddressClaim', 'web', { addressName: ip });
  await bed.settle();
  assert.equal([claim(bed), address(bed), bed.got()], ['Bound', 'Bound', [ip]]);
});

scenario('Q5: refusals and a class in use are warnings', async (bed) => {
  await held(bed);
  bed.address('203.0.113.8', { claimRef });
  bed.delete('IPAddressClass', 'public');
  await bed.settle();
  for (const reason of ['PreBindingRefused', 'ClassInUse'])
    assert.equal(
      bed.core.events.filter((event) => event.reason === reason).map(({ type }) => type),
      ['Warning'],
      reason,
    );
});

scenario('Q8: the gate compares names of classes, and needs no class', async (bed) => {
  bed.claim('web', { className: 'gone' });
  bed.address('203.0.113.7', { claimRef, className: 'gone' });
  await bed.settle();
  assert.equal([claim(bed), bed.got()], ['Bound', [ip]]);
});

test('every answer to what was left open is recorded', () => {
  const record = readFileSync(new URL('../../docs/decisions/0030-the-address-ledger.md', import.meta.url), 'utf8');
  for (let n = 1; n <= 10; n += 1) assert.match(record, new RegExp(`^\\| Q${n} \\|`, 'm'));
  for (let n = 1; n <= 19; n += 1) assert.match(record, new RegExp(`^\\| D${n} \\|`, 'm'));
});

test.run();
