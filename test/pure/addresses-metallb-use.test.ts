import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { holdName } from '../../executor/addresses/metallb/names.ts';
import { associated, ip, MetallbBed, one, provisioned, scenario, stock } from './addresses-metallb-bed.ts';

/** Holding, using, conflicts: section 9.5 of the contract by its ids, and the defects that are not here. */

const marker = 'metallb.drivers.local.sdn.cozystack.io/pinned';
const pinKey = 'metallb.io/loadBalancerIPs';
const hold = `iad-${one}`;

scenario('H1: an address that nobody uses is held', async (bed) => {
  await stock(bed);
  const { metadata } = bed.placeholder(hold);
  assert.equal([metadata.annotations?.[pinKey], bed.driver.reasons(one)], [ip, ['Held']]);
  assert.is(metadata.labels?.['metallb.drivers.local.sdn.cozystack.io/ip-address'], one);
  assert.is((metadata.ownerReferences as { uid: string }[])[0]?.uid, bed.live('IPAddress', one).metadata.uid);
  assert.is(bed.condition(one, 'Held'), 'True/Reserved');
});

scenario('H2: a placeholder that is left beside a user goes', async (bed) => {
  await associated(bed);
  bed.make({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: hold,
      namespace: bed.settings.placeholderNamespace,
      labels: {
        'metallb.drivers.local.sdn.cozystack.io/placeholder': 'true',
        'metallb.drivers.local.sdn.cozystack.io/ip-address': one,
      },
      annotations: { [pinKey]: ip },
    },
    spec: { type: 'LoadBalancer', ipFamilies: ['IPv4'] },
  });
  await bed.settle();
  assert.equal([bed.holds(), bed.ingress('a')], [[], [ip]]);
});

scenario('H3, I6: the Service goes: the address is held again, and stays its claim’s', async (bed) => {
  await associated(bed);
  const ref = bed.claimRef(one);
  bed.delete('Service', 'a');
  await bed.settle();
  assert.equal([bed.user(one), bed.holds()], [undefined, [hold]]);
  assert.equal(bed.driver.reasons(one).slice(-2), ['AssociationCleared', 'Held']);
  assert.equal([bed.claimRef(one), bed.phase('IPAddressClaim', 'web')], [ref, 'Bound']);
});

scenario('H3: a watch that is late about a Service takes nothing from it', async (bed) => {
  await associated(bed);
  bed.driver.ledger.drop(bed.live('Service', 'a'), 'watch');
  await bed.driver.pass(`IPAddress ${one}`);
  assert.equal([bed.user(one), bed.holds()], ['tenant-a/a', []]);
});

scenario('H4: an address of a class of somebody else is left alone', async (bed) => {
  bed.make({
    apiVersion: 'local.sdn.cozystack.io/v1alpha1',
    kind: 'IPAddressClass',
    metadata: { name: 'public' },
    spec: { provisioner: 'other.example', reclaimPolicy: 'Retain' },
  });
  bed.address(one, ip);
  bed.service('a', { pin: ip });
  await bed.settle();
  assert.equal([bed.driver.writes, bed.driver.events], [[], []]);
});

scenario('H5: a hold that is deleted by hand comes back', async (bed) => {
  await stock(bed);
  bed.server.remove(bed.placeholder(hold));
  await bed.settle();
  assert.equal(bed.holds(), [hold]);
});

scenario('H6: an address under Delete takes its hold and its pin along', async (bed) => {
  await associated(bed, { reclaimPolicy: 'Delete' });
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(bed.find('IPAddress', one), undefined);
  assert.equal([bed.holds(), bed.pin('a'), bed.marked('a')], [[], undefined, false]);
  assert.ok(bed.driver.reasons('a').includes('Disassociated'));
});

scenario('H7, D8: what a live claim keeps is torn down after it, not before', async (bed) => {
  await associated(bed);
  bed.delete('IPAddress', one);
  await bed.settle();
  assert.equal([bed.pin('a'), bed.user(one), bed.ingress('a')], [ip, 'tenant-a/a', [ip]]);
  bed.delete('Service', 'a');
  await bed.settle();
  assert.equal(bed.holds(), [hold], 'held as long as it is protected');
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.equal([bed.find('IPAddress', one), bed.holds()], [undefined, []]);
});

scenario('H8, D20, D22: an address is found by its name, whatever that is', async (bed) => {
  const long = `vip.${'x'.repeat(60)}.${'y'.repeat(60)}.web`;
  await stock(bed, long);
  assert.equal(bed.holds(), [holdName(long)]);
  assert.ok(holdName(long).length <= 63);
  bed.claim('web', { addressName: long });
  bed.service('a', { claim: 'web' });
  await bed.settle();
  assert.equal([bed.ingress('a'), bed.holds()], [[ip], []]);
  bed.delete('Service', 'a');
  await bed.settle();
  assert.equal(bed.holds(), [holdName(long)]);
});

scenario('S1: the ledger says whose it is, the hold goes, the Service asks: in this order', async (bed) => {
  await provisioned(bed);
  bed.service('a', { claim: 'web' });
  const before = bed.driver.writes.length;
  await bed.settle();
  const [status, gone, patch] = bed.driver.writes.slice(before);
  assert.equal([status, patch], [`status IPAddress ${one}`, 'patch Service a']);
  assert.match(gone ?? '', /^delete Service iad-/);
  assert.equal([bed.pin('a'), bed.marked('a'), bed.user(one), bed.ingress('a')], [ip, true, 'tenant-a/a', [ip]]);
  assert.equal(bed.driver.reasons('a'), ['Associated']);
  assert.is(bed.condition(one, 'Held'), 'True/InUse');
});

scenario('S2, S3: a claim serves one Service; the next one when that is gone', async (bed) => {
  await associated(bed);
  bed.service('b', { claim: 'web' });
  await bed.settle();
  assert.equal(
    [bed.driver.reasons('b'), bed.pin('b'), bed.user(one)],
    [['AssociationRejected'], undefined, 'tenant-a/a'],
  );
  bed.delete('Service', 'a');
  await bed.settle();
  assert.equal([bed.ingress('b'), bed.user(one), bed.holds()], [[ip], 'tenant-a/b', []]);
});

scenario('S4, I10: without the annotation the pin goes, and what the Service keeps is told', async (bed) => {
  await associated(bed);
  const ref = bed.claimRef(one);
  bed.names('a', undefined);
  await bed.settle();
  assert.equal([bed.pin('a'), bed.marked('a'), bed.user(one)], [undefined, false, undefined]);
  assert.equal([bed.claimRef(one), bed.holds()], [ref, [hold]]);
  // MetalLB leaves it what it has: it uses the address, and has no right to it.
  assert.equal([bed.ingress('a'), bed.phase('IPAddress', one)], [[ip], 'Conflict']);
  bed.delete('Service', 'a');
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.condition(one, 'Held')], ['Bound', 'True/Reserved']);
});

scenario(
  'D24, Q10: where it is wished for, MetalLB takes the address off a Service that has lost the annotation',
  async (bed) => {
    await associated(bed);
    bed.names('a', undefined);
    await bed.settle();
    assert.equal([bed.ingress('a'), bed.phase('IPAddress', one), bed.holds()], [[], 'Bound', [hold]]);
    const { annotations = {} } = bed.live('Service', 'a').metadata;
    assert.equal(Object.keys(annotations), [], 'nothing of ours is left');
    assert.is(bed.condition(one, 'Held'), 'True/Reserved');
  },
  { forcedRelease: 'always' },
);

scenario('D24, Q10: an address that is deleted goes once MetalLB has taken it off, and not before', async (bed) => {
  await associated(bed, { reclaimPolicy: 'Delete' });
  bed.runs.metallb = false;
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.ok(bed.find('IPAddress', one), 'it waits');
  assert.ok(bed.driver.reasons(one).includes('Releasing'));
  bed.runs.metallb = true;
  await bed.settle();
  assert.equal([bed.find('IPAddress', one), bed.ingress('a')], [undefined, []]);
  assert.is(bed.live('Service', 'a').metadata.annotations?.['metallb.io/address-pool'], undefined);
});

scenario(
  'D24, Q10: where it is not wished for, the pin goes and nothing else',
  async (bed) => {
    await associated(bed, { reclaimPolicy: 'Delete' });
    bed.delete('IPAddressClaim', 'web');
    await bed.settle();
    assert.equal([bed.find('IPAddress', one), bed.ingress('a'), bed.pin('a')], [undefined, [ip], undefined]);
    assert.ok(bed.driver.reasons('a').includes('AddressNotInLedger'), 'D33');
  },
  { forcedRelease: 'never' },
);

scenario('S5, D38: a pin is taken off only if it is marked, and if the ledger says so', async (bed) => {
  await stock(bed);
  bed.service('hand', { pin: '203.0.113.3' });
  bed.service('forged', { pin: '203.0.113.4' });
  bed.annotate('Service', 'forged', marker, 'true');
  await bed.settle();
  assert.equal([bed.pin('hand'), bed.pin('forged'), bed.marked('forged')], ['203.0.113.3', '203.0.113.4', true]);
});

scenario('S6, E4: a Service that was pinned by hand keeps address and pin, and the pin stays its own', async (bed) => {
  bed.class();
  bed.service('a', { pin: ip });
  await bed.settle();
  assert.equal(bed.ingress('a'), [ip]);
  const moves = (): number =>
    bed.server.log.filter(
      ({ object }) =>
        object.metadata.name === 'a' &&
        JSON.stringify(object.status ?? {}) !== JSON.stringify(bed.live('Service', 'a').status),
    ).length;
  const before = moves();
  bed.claim('web', { addressName: one });
  await bed.settle();
  bed.address(one, ip, { claimRef: { namespace: 'tenant-a', name: 'web' }, reclaimPolicy: 'Retain' });
  await bed.settle();
  bed.names('a', 'web');
  await bed.settle();
  assert.equal(
    [bed.phase('IPAddressClaim', 'web'), bed.phase('IPAddress', one), bed.user(one)],
    ['Bound', 'Bound', 'tenant-a/a'],
  );
  assert.equal([bed.pin('a'), bed.marked('a'), bed.ingress('a'), bed.holds()], [ip, false, [ip], []]);
  assert.ok(bed.driver.reasons('a').includes('Associated'));
  assert.is(moves(), before, 'the address never left it');
  bed.names('a', undefined);
  await bed.settle();
  assert.equal([bed.pin('a'), bed.marked('a'), bed.user(one)], [ip, false, undefined]);
});

scenario('S6, D42: a pin under the older key counts', async (bed) => {
  bed.class();
  bed.service('a');
  bed.annotate('Service', 'a', 'metallb.universe.tf/loadBalancerIPs', ip);
  await bed.settle();
  bed.claim('web', { addressName: one });
  bed.address(one, ip, { claimRef: { namespace: 'tenant-a', name: 'web' } });
  bed.names('a', 'web');
  await bed.settle();
  assert.equal(
    [bed.user(one), bed.pin('a'), bed.marked('a'), bed.ingress('a')],
    ['tenant-a/a', undefined, false, [ip]],
  );
});

scenario('S7, D27, Q9: a pin by hand to another address is not overwritten', async (bed) => {
  await provisioned(bed);
  bed.service('a', { claim: 'web', pin: '203.0.113.3' });
  await bed.settle();
  assert.equal([bed.pin('a'), bed.marked('a'), bed.user(one)], ['203.0.113.3', false, undefined]);
  assert.ok(bed.driver.reasons('a').includes('PinDiffers'));
  assert.is(bed.holds().length, 1);
  bed.annotate('Service', 'a', pinKey, undefined);
  await bed.settle();
  assert.equal([bed.ingress('a'), bed.user(one)], [[ip], 'tenant-a/a']);
});

scenario('S9, D39: told once, and no pin: a claim that is not there, not Bound, or of somebody else', async (bed) => {
  bed.class(['203.0.113.0/32']);
  bed.service('a', { claim: 'web' });
  await bed.settle();
  await bed.driver.pass('Service tenant-a/a');
  assert.equal(bed.driver.reasons('a'), ['ClaimNotFound']);
  bed.claim('first');
  await bed.settle();
  bed.claim('web');
  await bed.settle();
  await bed.driver.pass('Service tenant-a/a');
  assert.equal([bed.driver.reasons('a'), bed.pin('a')], [['ClaimNotFound', 'ClaimNotBound'], undefined]);
  bed.make({
    apiVersion: 'local.sdn.cozystack.io/v1alpha1',
    kind: 'IPAddressClass',
    metadata: { name: 'other' },
    spec: { provisioner: 'other.example', reclaimPolicy: 'Retain' },
  });
  bed.claim('theirs', { className: 'other' });
  bed.service('b', { claim: 'theirs' });
  await bed.settle();
  assert.equal([bed.driver.reasons('b'), bed.pin('b')], [[], undefined]);
});

scenario('S10, D26: the claim goes while a Service uses its address', async (bed) => {
  bed.class(undefined, { releaseDelay: '0s' });
  bed.claim();
  bed.service('a', { claim: 'web' });
  await bed.settle();
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.equal([bed.pin('a'), bed.user(one), bed.phase('IPAddress', one)], [undefined, undefined, 'Conflict']);
  assert.is(bed.claimRef(one).name, 'web', 'nobody else gets what is in use');
  bed.delete('Service', 'a');
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.claimRef(one)], ['Available', {}]);
});

for (const [what, spec, annotation] of [
  ['no LoadBalancer', { type: 'ClusterIP' }, undefined],
  ['another class of Services', { loadBalancerClass: 'other' }, undefined],
  ['spec.loadBalancerIP', { loadBalancerIP: '203.0.113.3' }, undefined],
  ['both families', { ipFamilies: ['IPv4', 'IPv6'] }, undefined],
  ['another pool', {}, 'elsewhere'],
] as const)
  scenario(`S11, D28: a Service with ${what} gets nothing, and the hold stays`, async (bed) => {
    await provisioned(bed);
    bed.service('a', { claim: 'web', spec: structuredClone(spec) as never });
    if (annotation !== undefined) bed.annotate('Service', 'a', 'metallb.io/address-pool', annotation);
    await bed.settle();
    assert.ok(bed.driver.reasons('a').includes('ServiceUnfit'), bed.driver.reasons('a').join());
    assert.equal([bed.pin('a'), bed.user(one), bed.holds().length], [undefined, undefined, 1]);
  });

scenario('S11: a user that becomes unfit gives the address back to be held', async (bed) => {
  await associated(bed);
  bed.editSpec('Service', 'a', { type: 'ClusterIP' });
  await bed.settle();
  assert.equal([bed.pin('a'), bed.user(one), bed.condition(one, 'Held')], [undefined, undefined, 'True/Reserved']);
});

scenario('S12: a Dual claim is pinned IPv4 first', async (bed) => {
  await provisioned(bed, { family: 'Dual' });
  bed.service('a', { claim: 'web', spec: { ipFamilies: ['IPv6', 'IPv4'] } });
  await bed.settle();
  assert.is(bed.pin('a'), `${ip},2001:db8::`);
  assert.equal(bed.ingress('a').sort(), ['2001:db8::', ip]);
  assert.equal(bed.holds(), []);
});

test('S13: a process that dies after any write of a hand-off is followed by one that ends it', async () => {
  for (let n = 1; n <= 3; n += 1) {
    const bed = new MetallbBed();
    await provisioned(bed);
    bed.service('a', { claim: 'web' });
    const before = bed.driver.writes.length;
    bed.driver.before = () => {
      if (bed.driver.writes.length === before + n) throw new Error('died');
    };
    const died = await bed.settle().then(
      () => false,
      (error: Error) => error.message === 'died',
    );
    assert.ok(died || n === 3, `write ${n}`);
    bed.driver.before = undefined;
    bed.driver.restart();
    await bed.settle();
    assert.equal(
      [bed.pin('a'), bed.user(one), bed.ingress('a'), bed.holds()],
      [ip, 'tenant-a/a', [ip], []],
      `after write ${n}`,
    );
    await bed.quiet();
  }
});

test.run();
