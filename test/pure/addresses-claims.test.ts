import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations as annotations, addressFinalizers as finalizers } from '../../constructs/api/addresses.ts';
import { LedgerBed, scenario } from './addresses-bed.ts';
import { ledgerObject, provisioner } from './addresses-model.ts';

/** Claims, by the ids of the catalogue. After every test nothing is left to write. */

const isDefault = { annotations: { [annotations.defaultClass]: 'true' } };
const claimRef = { namespace: 'tenant-a', name: 'web' };
const claim = (bed: LedgerBed, name = 'web') => bed.live('IPAddressClaim', name);
const stampOf = (bed: LedgerBed, name = 'web') => claim(bed, name).metadata.annotations?.[annotations.provisioner];
const bound = (bed: LedgerBed, name = 'web') => bed.condition('IPAddressClaim', name, 'Bound');
const resolved = (bed: LedgerBed, name = 'web') => bed.condition('IPAddressClaim', name, 'ClassResolved');
const phase = (bed: LedgerBed, name = 'web') => bed.phase('IPAddressClaim', name);
const message = (bed: LedgerBed, type: string) => String(bed.conditionOf('IPAddressClaim', 'web', type)?.message);

scenario('C1: a claim of a class is stamped and waits', async (bed) => {
  bed.class();
  bed.claim();
  await bed.settle();
  assert.equal(claim(bed).metadata.finalizers, [finalizers.claim]);
  assert.is(stampOf(bed), provisioner);
  assert.is(claim(bed).status?.className, 'public');
  assert.equal([phase(bed), resolved(bed), bound(bed)], ['Pending', 'True/Resolved', 'False/WaitingForProvisioning']);
  assert.match(message(bed, 'Bound'), provisioner);
  assert.match(message(bed, 'Bound'), 'IPv4');
  assert.equal(bed.reasons('web'), ['Pending']);
});

scenario('C2: a claim without a class gets the default one, and the class is recorded', async (bed) => {
  bed.class('public', {}, isDefault);
  bed.claim('web', {});
  await bed.settle();
  assert.equal([claim(bed).status?.className, stampOf(bed)], ['public', provisioner]);
});

scenario('C3: no default class', async (bed) => {
  bed.class();
  bed.claim('web', {});
  await bed.settle();
  assert.equal([phase(bed), resolved(bed), stampOf(bed)], ['Pending', 'False/NoDefaultClass', undefined]);
  assert.ok(bed.core.events.some(({ type, reason }) => type === 'Warning' && reason === 'NoDefaultClass'));
});

scenario('C4: several default classes are no default', async (bed) => {
  bed.class('b', {}, isDefault);
  bed.class('a', {}, isDefault);
  bed.claim('web', {});
  await bed.settle();
  assert.equal([resolved(bed), stampOf(bed)], ['False/MultipleDefaultClasses', undefined]);
  assert.match(message(bed, 'ClassResolved'), 'a, b');
});

for (const value of ['True', 'yes', ''])
  scenario(`C5: the default is marked by "true" and not by "${value}"`, async (bed) => {
    bed.class('public', {}, { annotations: { [annotations.defaultClass]: value } });
    bed.claim('web', {});
    await bed.settle();
    assert.is(resolved(bed), 'False/NoDefaultClass');
  });

scenario('C6: a class that does not exist', async (bed) => {
  bed.claim();
  await bed.settle();
  assert.equal([phase(bed), resolved(bed)], ['Pending', 'False/ClassNotFound']);
  bed.class();
  await bed.settle();
  assert.is(resolved(bed), 'True/Resolved');
});

scenario('C7, race 8: a class that was found stays, though the default moves', async (bed) => {
  bed.class('public', {}, isDefault);
  bed.claim('web', {});
  await bed.settle();
  bed.annotate('IPAddressClass', 'public', annotations.defaultClass, undefined);
  bed.class('private', {}, isDefault);
  await bed.settle();
  assert.equal([claim(bed).status?.className, resolved(bed)], ['public', 'True/Resolved']);
});

scenario('C8: stamp and class follow a claim that is pointed elsewhere', async (bed) => {
  bed.class();
  bed.class('private', { provisioner: 'other' });
  bed.claim();
  await bed.settle();
  bed.editSpec('IPAddressClaim', 'web', { className: 'private' });
  await bed.settle();
  assert.equal([stampOf(bed), claim(bed).status?.className], ['other', 'private']);
});

scenario('C9: a pre-bound address is taken, and the claim is Bound', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7', { claimRef });
  await bed.settle();
  assert.equal(bed.claimRef('ip-203-0-113-7'), { ...claimRef, uid: claim(bed).metadata.uid });
  assert.equal([phase(bed), bound(bed), bed.got()], ['Bound', 'True/Bound', ['ip-203-0-113-7']]);
  assert.equal([bed.phase('IPAddress', 'ip-203-0-113-7')], ['Bound']);
  assert.is(stampOf(bed), provisioner);
});

scenario('C10 and C14: a pre-bound address of another class is refused until the class is set right', async (bed) => {
  bed.class();
  bed.class('private');
  bed.claim();
  bed.address('203.0.113.7', { claimRef, className: 'private' });
  await bed.settle();
  assert.equal(bed.claimRef('ip-203-0-113-7'), claimRef);
  assert.equal([phase(bed), bed.phase('IPAddress', 'ip-203-0-113-7')], ['Pending', 'Pending']);
  assert.is(bed.condition('IPAddress', 'ip-203-0-113-7', 'Bound'), 'False/PreBindingRefused');
  assert.is(bed.reasons('web').filter((one) => one === 'PreBindingRefused').length, 1);
  bed.editSpec('IPAddress', 'ip-203-0-113-7', { className: 'public' });
  await bed.settle();
  assert.equal([phase(bed), bed.phase('IPAddress', 'ip-203-0-113-7')], ['Bound', 'Bound']);
});

scenario('C11: a pre-bound address of another family is refused', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('2001:db8::7', { claimRef });
  await bed.settle();
  assert.equal(
    [phase(bed), bed.condition('IPAddress', 'ip-2001-db8--7', 'Bound')],
    ['Pending', 'False/PreBindingRefused'],
  );
  assert.equal([bed.claimRef('ip-2001-db8--7'), bed.got()], [claimRef, []]);
  assert.is(bed.reasons('web').filter((one) => one === 'PreBindingRefused').length, 1);
});

scenario('C12: a second address of a family is refused', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7', { claimRef });
  await bed.settle();
  bed.address('203.0.113.1', { claimRef });
  await bed.settle();
  assert.equal(bed.got(), ['ip-203-0-113-7']);
  assert.is(bed.condition('IPAddress', 'ip-203-0-113-1', 'Bound'), 'False/PreBindingRefused');
  assert.equal([phase(bed), bed.claimRef('ip-203-0-113-1')], ['Bound', claimRef]);
  assert.ok(bed.reasons('web').includes('PreBindingRefused'));
});

scenario('C15: a free address of the class is matched, in the pass that sees it', async (bed) => {
  bed.class();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.claim();
  bed.core.deliver();
  await bed.core.pass('IPAddressClaim tenant-a/web');
  assert.equal(bed.claimRef('ip-203-0-113-7'), { ...claimRef, uid: claim(bed).metadata.uid });
  assert.equal(bed.reasons('web'), ['Matched', 'Bound']);
  assert.is(phase(bed), 'Bound');
});

scenario('C16: addresses of another class or family are not matched', async (bed) => {
  bed.class();
  bed.class('private');
  bed.address('203.0.113.7', { className: 'private' });
  bed.address('2001:db8::7');
  bed.claim();
  await bed.settle();
  assert.equal(
    [phase(bed), bed.claimRef('ip-203-0-113-7'), bed.claimRef('ip-2001-db8--7')],
    ['Pending', undefined, undefined],
  );
});

scenario('C17: of several the one with the smallest name is matched', async (bed) => {
  bed.class();
  bed.address('203.0.113.9');
  bed.address('203.0.113.10');
  await bed.settle();
  bed.claim();
  await bed.settle();
  assert.equal(bed.got(), ['ip-203-0-113-10']);
});

for (const state of ['Pending', undefined, 'Released', 'Conflict', 'Lost', 'deleting'] as const)
  test(`C18: an address that is ${state} is not matched`, async () => {
    const bed = new LedgerBed();
    bed.class();
    bed.claim();
    await bed.settle();
    bed.address('203.0.113.7', {}, { finalizers: [finalizers.address, 'other/hold'] });
    if (state === 'deleting') bed.delete('IPAddress', 'ip-203-0-113-7');
    else if (state !== undefined) bed.editStatus('IPAddress', 'ip-203-0-113-7', { phase: state });
    bed.core.deliver();
    await bed.core.pass('IPAddressClaim tenant-a/web');
    assert.equal([phase(bed), bed.claimRef('ip-203-0-113-7')], ['Pending', undefined]);
  });

scenario('C19: a claim for both families fills one after the other', async (bed) => {
  bed.class();
  bed.claim('web', { className: 'public', family: 'Dual' });
  bed.address('203.0.113.7');
  await bed.settle();
  assert.equal([phase(bed), bed.got()], ['Pending', ['ip-203-0-113-7']]);
  bed.address('2001:db8::7');
  await bed.settle();
  assert.equal([phase(bed), bed.got()], ['Bound', ['ip-2001-db8--7', 'ip-203-0-113-7']]);
});

scenario('C20: a claim that names an address waits for that one', async (bed) => {
  bed.class();
  bed.address('203.0.113.1');
  bed.claim('web', { className: 'public', addressName: 'ip-203-0-113-7' });
  await bed.settle();
  assert.equal([phase(bed), bed.claimRef('ip-203-0-113-1')], ['Pending', undefined]);
  assert.match(message(bed, 'Bound'), 'ip-203-0-113-7');
  bed.address('203.0.113.7');
  await bed.settle();
  assert.equal([phase(bed), bed.got()], ['Bound', ['ip-203-0-113-7']]);
});

scenario('C21 and D11: an address that is named and can not be had is told of, and never stolen', async (bed) => {
  bed.class();
  bed.class('private');
  bed.address('203.0.113.7', { className: 'private' });
  bed.address('203.0.113.8');
  bed.claim('other', { className: 'public' });
  await bed.settle();
  bed.claim('web', { className: 'public', addressName: 'ip-203-0-113-7' });
  bed.claim('mail', { className: 'public', addressName: 'ip-203-0-113-8' });
  await bed.settle();
  assert.equal([phase(bed), phase(bed, 'mail'), bed.got('other')], ['Pending', 'Pending', ['ip-203-0-113-8']]);
  for (const name of ['web', 'mail']) assert.equal(bed.reasons(name), ['Pending', 'AddressNameUnusable']);
});

test('C22 and D11: a claim for both families names no address', () => {
  const bed = new LedgerBed();
  assert.match(
    bed.refusal('IPAddressClaim', 'web', { family: 'Dual', addressName: 'x' }),
    'addressName names one address',
  );
});

scenario('C22: one that is stored from before gets the family of the address that it names, and waits', async (bed) => {
  bed.class();
  const spec = { className: 'public', family: 'Dual', addressName: 'ip-203-0-113-7' };
  bed.server.plant(ledgerObject('IPAddressClaim', 'web', spec));
  bed.address('203.0.113.7');
  bed.address('2001:db8::7');
  await bed.settle();
  assert.equal([phase(bed), bed.got()], ['Pending', ['ip-203-0-113-7']]);
  assert.is(bed.claimRef('ip-2001-db8--7'), undefined);
});

scenario('C23: a Bound claim needs its class no more', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.delete('IPAddressClass', 'public');
  bed.strip('IPAddressClass', 'public');
  await bed.settle();
  const [told, read, before] = [bed.reasons('web').length, bed.core.reads.length, claim(bed)];
  bed.annotate('IPAddressClaim', 'web', 'other', 'x');
  await bed.settle();
  assert.equal([phase(bed), claim(bed).status, bed.reasons('web').length], ['Bound', before.status, told]);
  assert.not.ok(bed.core.reads.slice(read).includes('IPAddressClass'));
  assert.is(resolved(bed), 'True/Resolved');
});

scenario('C24: a lost address is waited for, and the claim is Bound when it is back', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7');
  await bed.settle();
  const uid = claim(bed).metadata.uid ?? '';
  bed.delete('IPAddress', 'ip-203-0-113-7');
  bed.strip('IPAddress', 'ip-203-0-113-7');
  await bed.settle();
  assert.equal([phase(bed), bound(bed)], ['Lost', 'False/AddressLost']);
  bed.address('203.0.113.7', { claimRef: { ...claimRef, uid } });
  await bed.settle();
  assert.is(phase(bed), 'Bound');
});

scenario('C25: what the driver has lost is lost until the driver brings it back', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.editStatus('IPAddress', 'ip-203-0-113-7', { phase: 'Lost' });
  await bed.settle();
  assert.equal([phase(bed), bed.got()], ['Lost', ['ip-203-0-113-7']]);
  bed.editStatus('IPAddress', 'ip-203-0-113-7', { phase: 'Bound' });
  await bed.settle();
  assert.is(phase(bed), 'Bound');
});

scenario('C26: a conflict does not unbind the claim', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.editStatus('IPAddress', 'ip-203-0-113-7', { phase: 'Conflict' });
  await bed.settle();
  assert.equal([phase(bed), bed.phase('IPAddress', 'ip-203-0-113-7')], ['Bound', 'Conflict']);
});

scenario('C27: under Retain the address of a deleted claim is released', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7');
  await bed.settle();
  const uid = claim(bed).metadata.uid;
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(bed.find('IPAddressClaim', 'web'), undefined);
  assert.equal(bed.claimRef('ip-203-0-113-7'), { ...claimRef, uid });
  assert.is(bed.phase('IPAddress', 'ip-203-0-113-7'), 'Released');
  assert.is(bed.reasons('web').at(-1), 'AddressReleased');
  assert.not.ok(bed.reasons('ip-203-0-113-7').includes('Reclaimed'));
});

scenario('C28: under Delete the address goes with its claim, which does not wait for it', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7', { reclaimPolicy: 'Delete' }, { finalizers: ['other/teardown'] });
  await bed.settle();
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(bed.find('IPAddressClaim', 'web'), undefined);
  assert.equal(bed.live('IPAddress', 'ip-203-0-113-7').metadata.finalizers, ['other/teardown']);
  assert.is(bed.reasons('web').at(-1), 'AddressDeleted');
});

scenario('C29: the policy of the address counts, not that of the class', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.editSpec('IPAddressClass', 'public', { reclaimPolicy: 'Delete' });
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(bed.phase('IPAddress', 'ip-203-0-113-7'), 'Released');
});

scenario('C31: an address that is being deleted is passed over', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.delete('IPAddress', 'ip-203-0-113-7');
  await bed.settle();
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.equal([bed.find('IPAddressClaim', 'web'), bed.find('IPAddress', 'ip-203-0-113-7')], [undefined, undefined]);
  assert.equal(bed.reasons('web'), ['Pending', 'Matched', 'Bound'], 'it was neither deleted nor released by its claim');
});

test.run();
