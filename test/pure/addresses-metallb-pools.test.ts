import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { objectsOf } from '../../constructs/lib/json.ts';
import { one, provisioned, scenario } from './addresses-metallb-bed.ts';

/** Pools and advertisements of classes: section 9.4 of the contract by its ids, and the defects that are not here. */

scenario('R1: a class has one pool and one advertisement, and owns them', async (bed) => {
  bed.class();
  await bed.settle();
  const pool = bed.live('IPAddressPool', 'iad-public');
  assert.equal(pool.spec, { addresses: ['203.0.113.0/29', '2001:db8::/126'], autoAssign: false });
  assert.equal(bed.live('L2Advertisement', 'iad-public').spec, { ipAddressPools: ['iad-public'] });
  const { uid } = bed.live('IPAddressClass', 'public').metadata;
  for (const kind of ['IPAddressPool', 'L2Advertisement'])
    assert.equal(objectsOf(bed.live(kind, 'iad-public').metadata.ownerReferences)[0]?.uid, uid);
});

for (const [what, parameters] of [
  ['nil', undefined],
  ['{}', {}],
  ['bare address', { addresses: ['203.0.113.1'] }],
  ['range', { addresses: ['203.0.113.1-203.0.113.5'] }],
  ['text', { addresses: '203.0.113.0/29' }],
  ['bad network', { addresses: ['203.0.113.0/29', '203.0.113.0/33'] }],
  ['empty list', { addresses: [] }],
] as const)
  scenario(`R3: ${what} is no set of networks, and the pool stays as it is`, async (bed) => {
    bed.class();
    await bed.settle();
    bed.editSpec('IPAddressClass', 'public', { parameters: structuredClone(parameters) as never });
    await bed.settle();
    assert.equal(bed.driver.reasons('public'), ['InvalidClassParameters']);
    assert.equal(bed.live('IPAddressPool', 'iad-public').spec?.addresses, ['203.0.113.0/29', '2001:db8::/126']);
  });

scenario('R4, D32: what an administrator adds survives, what is changed by hand is set back', async (bed) => {
  bed.class();
  await bed.settle();
  bed.editSpec('L2Advertisement', 'iad-public', { interfaces: ['eth1'] });
  bed.editSpec('IPAddressPool', 'iad-public', { addresses: ['192.0.2.0/24'], avoidBuggyIPs: true });
  await bed.settle();
  bed.editSpec('IPAddressClass', 'public', { parameters: { addresses: ['203.0.113.0/28'] } });
  await bed.settle();
  assert.equal(bed.live('L2Advertisement', 'iad-public').spec, {
    ipAddressPools: ['iad-public'],
    interfaces: ['eth1'],
  });
  assert.equal(bed.live('IPAddressPool', 'iad-public').spec, {
    addresses: ['203.0.113.0/28'],
    autoAssign: false,
    avoidBuggyIPs: true,
  });
});

scenario('R5: networks with addresses of the ledger stay in the pool until these are gone', async (bed) => {
  await provisioned(bed);
  bed.editSpec('IPAddressClass', 'public', { parameters: { addresses: ['203.0.113.4/30', '198.51.100.0/30'] } });
  await bed.settle();
  assert.equal(bed.live('IPAddressPool', 'iad-public').spec?.addresses, ['198.51.100.0/30', '203.0.113.0/29']);
  assert.equal(bed.driver.reasons('public'), ['ClassRangeInUse']);
  assert.is(bed.phase('IPAddress', one), 'Bound');
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  bed.delete('IPAddress', one);
  await bed.settle();
  assert.equal(bed.live('IPAddressPool', 'iad-public').spec?.addresses, ['203.0.113.4/30', '198.51.100.0/30']);
});

scenario('R6: what MetalLB refuses is told about the class, once', async (bed) => {
  bed.driver.refuses = 'IPAddressPool';
  bed.class();
  await bed.settle();
  await bed.driver.pass('IPAddressClass public');
  await bed.driver.pass('IPAddressClass public');
  assert.equal(bed.driver.reasons('public'), ['PoolRefused']);
  bed.driver.refuses = undefined;
  await bed.driver.pass('IPAddressClass public');
  await bed.settle();
  assert.ok(bed.find('IPAddressPool', 'iad-public'));
});

test.run();
