import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressFinalizers as finalizers } from '../../constructs/api/addresses.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { held, type LedgerBed, released, scenario } from './addresses-bed.ts';
import { ledgerObject, provisioner } from './addresses-model.ts';

/** Classes, by the ids of the catalogue. */

const ip = 'ip-203-0-113-7';
const claimRef = { namespace: 'tenant-a', name: 'web' };
const phase = (bed: LedgerBed) => bed.phase('IPAddress', ip);

scenario('K1: a class is protected, and nothing else of it changes', async (bed) => {
  const before = bed.class();
  await bed.settle();
  const after = bed.live('IPAddressClass', 'public');
  assert.equal(after.metadata.finalizers, [finalizers.class]);
  assert.equal(after.spec, before.spec);
});

scenario('K2: a class goes with its last address, by itself', async (bed) => {
  await released(bed);
  bed.delete('IPAddressClass', 'public');
  await bed.settle();
  assert.equal(
    bed.core.events
      .filter(({ about }) => about === 'public')
      .map(({ type, reason, note }) => [type, reason, note.includes(ip)]),
    [['Warning', 'ClassInUse', true]],
  );
  bed.delete('IPAddress', ip);
  await bed.settle();
  assert.is(bed.find('IPAddressClass', 'public'), undefined);
});

for (const state of ['Pending', 'Available', 'Bound', 'Released', 'Conflict', 'Lost'])
  scenario(`K3: an address that is ${state} holds its class`, async (bed) => {
    if (state === 'Released') await released(bed);
    else if (state === 'Available') {
      bed.class();
      bed.address('203.0.113.7');
    } else if (state === 'Pending') {
      bed.class();
      bed.class('private');
      bed.claim('web', { className: 'private' });
      bed.address('203.0.113.7', { claimRef });
    } else {
      await held(bed);
      if (state !== 'Bound') bed.editStatus('IPAddress', ip, { phase: state });
    }
    await bed.settle();
    assert.is(phase(bed), state);
    bed.delete('IPAddressClass', 'public');
    await bed.settle();
    assert.ok(bed.live('IPAddressClass', 'public'));
    assert.equal(bed.reasons('public'), ['ClassInUse']);
  });

scenario('K4, race 7: claims alone do not hold a class', async (bed) => {
  bed.class();
  bed.claim();
  await bed.settle();
  bed.delete('IPAddressClass', 'public');
  await bed.settle();
  assert.is(bed.find('IPAddressClass', 'public'), undefined);
  assert.is(bed.condition('IPAddressClaim', 'web', 'ClassResolved'), 'False/ClassNotFound');
});

scenario('K6 and Q6: a class that is going serves no new claim', async (bed) => {
  await released(bed);
  bed.delete('IPAddressClass', 'public');
  bed.editSpec('IPAddress', ip, { claimRef: undefined });
  await bed.settle();
  bed.claim('mail');
  await bed.settle();
  assert.is(bed.condition('IPAddressClaim', 'mail', 'ClassResolved'), 'False/ClassNotFound');
  assert.is(bed.live('IPAddressClaim', 'mail').metadata.annotations, undefined, 'no driver is to serve it');
  assert.equal([phase(bed), bed.phase('IPAddressClaim', 'mail')], ['Available', 'Pending']);
});

scenario('a class with many addresses names some and counts the rest', async (bed) => {
  bed.class();
  for (let n = 0; n < 12; n += 1) bed.address(`203.0.113.${n}`);
  await bed.settle();
  bed.delete('IPAddressClass', 'public');
  await bed.settle();
  assert.match(bed.core.events.find(({ reason }) => reason === 'ClassInUse')?.note ?? '', /ip-203-0-113-7 and 2 more/);
});

scenario('a class that looks unused is looked at anew before it goes', async (bed) => {
  bed.class();
  await bed.settle();
  bed.delete('IPAddressClass', 'public');
  bed.core.deliver();
  // Made by a driver, and not told by the watch yet.
  bed.address('203.0.113.7');
  await bed.core.pass('IPAddressClass public');
  assert.ok(bed.live('IPAddressClass', 'public'));
  assert.equal(bed.reasons('public'), ['ClassInUse']);
});

test('I3: what the parameters of a class say is not looked at', () => {
  const ledger = new LedgerStore();
  const put = (object: KubeObject): void => {
    const metadata = { ...object.metadata, uid: `u-${object.kind}`, resourceVersion: '1' };
    ledger.put({ ...object, metadata });
  };
  const spec = {
    provisioner,
    reclaimPolicy: 'Retain',
    get parameters(): JsonObject {
      throw new Error('it was looked at');
    },
  };
  put(ledgerObject('IPAddressClass', 'public', spec));
  put(ledgerObject('IPAddressClaim', 'web', { className: 'public', family: 'IPv4' }));
  put(ledgerObject('IPAddress', ip, { className: 'public', address: '203.0.113.7', source: { fromClass: {} } }));
  for (const key of ['IPAddressClass public', 'IPAddressClaim tenant-a/web', `IPAddress ${ip}`] as const)
    assert.ok(coreControllers.plan(ledger, key, 0).actions.length > 0, key);
});

test.run();
