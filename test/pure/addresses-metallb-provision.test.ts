import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { objectsOf } from '../../constructs/lib/json.ts';
import { driverFinalizer } from '../../executor/addresses/metallb/names.ts';
import { ip, MetallbBed, one, provisioned, scenario } from './addresses-metallb-bed.ts';
import { ingressOf } from './addresses-metallb-model.ts';

/** Provisioning and rendering: section 9.4 of the contract by its ids, and the defects that are not here. */

const driver = 'metallb.drivers.local.sdn.cozystack.io';

scenario('P1: a stamped claim gets a placeholder, and no address before MetalLB has chosen', async (bed) => {
  bed.runs.metallb = false;
  bed.class();
  const { metadata } = bed.claim();
  await bed.settle();
  const name = `iad-${metadata.uid}-v4`;
  assert.equal(bed.holds(), [name]);
  const { metadata: own, spec } = bed.placeholder(name);
  assert.equal(own.annotations, {
    'metallb.io/address-pool': 'iad-public',
    [`${driver}/claim-namespace`]: 'tenant-a',
    [`${driver}/claim-name`]: 'web',
  });
  assert.equal(own.labels, { [`${driver}/placeholder`]: 'true' });
  assert.equal(spec, {
    type: 'LoadBalancer',
    ports: [{ name: 'placeholder', port: 65_535, protocol: 'TCP' }],
    allocateLoadBalancerNodePorts: false,
    ipFamilyPolicy: 'SingleStack',
    ipFamilies: ['IPv4'],
  });
  assert.equal(bed.server.list('IPAddress'), []);
  assert.equal(bed.driver.reasons('web'), ['Reserving']);
});

scenario('P2, P3: what MetalLB gave is recorded, and the placeholder keeps it', async (bed) => {
  const { metadata } = await provisioned(bed);
  const address = bed.live('IPAddress', one);
  assert.equal(address.spec, {
    className: 'public',
    address: ip,
    reclaimPolicy: 'Retain',
    claimRef: { namespace: 'tenant-a', name: 'web', uid: metadata.uid },
    source: { fromClass: {} },
  });
  assert.ok(address.metadata.finalizers?.includes(driverFinalizer));
  const hold = bed.placeholder(`iad-${metadata.uid}-v4`);
  assert.is(hold.metadata.annotations?.['metallb.io/loadBalancerIPs'], ip);
  assert.is(hold.metadata.labels?.[`${driver}/ip-address`], one);
  assert.equal(
    objectsOf(hold.metadata.ownerReferences).map(({ kind, name, uid }) => ({ kind, name, uid })),
    [{ kind: 'IPAddress', name: one, uid: address.metadata.uid }],
  );
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.phase('IPAddress', one)], ['Bound', 'Bound']);
  assert.equal(bed.driver.reasons('web'), ['Reserving', 'Provisioned']);
  assert.is(bed.condition(one, 'Held'), 'True/Reserved');
  assert.equal([bed.server.list('IPAddress').length, bed.holds().length], [1, 1]);
});

scenario('P4: a Dual claim gets a placeholder for each family', async (bed) => {
  bed.class(['203.0.113.0/29']);
  const { metadata } = bed.claim('web', { family: 'Dual' });
  await bed.settle();
  assert.equal(bed.holds(), [`iad-${metadata.uid}-v4`, `iad-${metadata.uid}-v6`]);
  assert.equal(
    bed.placeholders().map(({ spec }) => [spec?.ipFamilyPolicy, spec?.ipFamilies]),
    [
      ['SingleStack', ['IPv4']],
      ['SingleStack', ['IPv6']],
    ],
  );
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.server.list('IPAddress').length], ['Pending', 1]);
  bed.editSpec('IPAddressClass', 'public', { parameters: { addresses: ['203.0.113.0/29', '2001:db8::/126'] } });
  await bed.settle();
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.server.list('IPAddress').length], ['Bound', 2]);
});

scenario(
  'P5, R2: a claim or a class of another driver, or a claim that names an address, gets nothing',
  async (bed) => {
    bed.class();
    bed.make({
      ...bed.live('IPAddressClass', 'public'),
      metadata: { name: 'other' },
      spec: { provisioner: 'other.example', reclaimPolicy: 'Retain' },
    });
    bed.claim('foreign', { className: 'other' });
    bed.claim('named', { addressName: one });
    await bed.settle();
    assert.equal(bed.holds(), []);
    assert.equal(
      ['IPAddressPool', 'L2Advertisement'].map((kind) => bed.find(kind, 'iad-other')),
      [undefined, undefined],
    );
    assert.equal([bed.server.list('IPAddress'), bed.driver.reasons('other')], [[], []]);
  },
);

scenario('P6: of a claim that is gone, placeholders that hold an address stay', async (bed) => {
  bed.class(['203.0.113.0/32']);
  const kept = bed.claim('web');
  await bed.settle();
  bed.claim('late');
  await bed.settle();
  assert.is(bed.holds().length, 2);
  for (const name of ['web', 'late']) bed.delete('IPAddressClaim', name);
  await bed.settle();
  assert.equal(bed.holds(), [`iad-${kept.metadata.uid}-v4`]);
  assert.is(bed.phase('IPAddress', one), 'Released');
});

scenario('P6: that a claim is gone is asked of the server, not of a watch', async (bed) => {
  bed.runs.metallb = false;
  bed.class();
  bed.claim();
  await bed.settle();
  // The watch of this process tells of a deletion that was not one.
  const { ledger } = bed.driver;
  const claim = bed.live('IPAddressClaim', 'web');
  ledger.drop(claim, 'watch');
  await bed.driver.pass('IPAddressClaim tenant-a/web');
  assert.is(bed.holds().length, 1);
  assert.ok(bed.driver.reads.includes('IPAddressClaim'));
});

scenario('P7: a claim that got a free address needs its placeholder no more', async (bed) => {
  bed.runs.metallb = false;
  bed.class();
  bed.claim();
  await bed.settle();
  assert.is(bed.holds().length, 1);
  bed.address('ip-203-0-113-5', '203.0.113.5');
  await bed.settle();
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.holds()], ['Bound', ['iad-ip-203-0-113-5']]);
});

scenario('P10, D21: the first address of an IPv6 network has a name that is one', async (bed) => {
  bed.class(['2001:db8::/126']);
  bed.claim('web', { family: 'IPv6' });
  await bed.settle();
  assert.equal(
    bed.server.list('IPAddress').map(({ metadata }) => metadata.name),
    ['ip-2001-db8--0'],
  );
  bed.service('a', { claim: 'web', spec: { ipFamilies: ['IPv6'] } });
  await bed.settle();
  assert.equal([bed.ingress('a'), bed.holds()], [['2001:db8::'], []]);
});

scenario('P11: who waits for an exhausted pool is served when an address is given up', async (bed) => {
  bed.class(['203.0.113.0/32'], { reclaimPolicy: 'Delete' });
  bed.claim('a');
  await bed.settle();
  bed.claim('b');
  await bed.settle();
  assert.is(bed.phase('IPAddressClaim', 'b'), 'Pending');
  bed.delete('IPAddressClaim', 'a');
  await bed.settle();
  assert.is(bed.phase('IPAddressClaim', 'b'), 'Bound');
});

scenario('D34: few placeholders wait at once, and each that is served lets the next one ask', async (bed) => {
  bed.class(['203.0.113.0/30'], { reclaimPolicy: 'Delete' });
  for (let n = 0; n < 12; n += 1) bed.claim(`c${n}`);
  await bed.settle();
  const bound = (): string[] =>
    bed.server
      .list('IPAddressClaim')
      .filter(({ status }) => status?.phase === 'Bound')
      .map(({ metadata }) => metadata.name ?? '');
  assert.equal([bound().length, bed.holds().length], [4, 8]);
  for (let left = 12; left > 0; left -= 4) {
    for (const name of bound()) bed.delete('IPAddressClaim', name);
    await bed.settle();
  }
  assert.equal([bed.server.list('IPAddressClaim').length, bed.holds().length], [0, 0]);
});

scenario(
  'D23: an address that the ledger has already is kept for its owner, and another one is asked for',
  async (bed) => {
    bed.runs.core = false;
    bed.class(['203.0.113.0/30']);
    bed.runs.core = true;
    bed.claim();
    bed.runs.driver = false;
    await bed.settle();
    bed.runs.driver = true;
    // Recorded by a person, while MetalLB has no placeholder for it.
    while (bed.server.list('IPAddressPool').length === 0 || bed.holds().length === 0) await bed.driver.step();
    while (bed.metallb.step());
    bed.address('vip', ip);
    await bed.settle();
    assert.is(bed.phase('IPAddressClaim', 'web'), 'Bound');
    assert.ok(bed.driver.reasons('web').includes('LedgerMismatch'), bed.driver.reasons('web').join());
    const held = bed.placeholders().find(({ metadata }) => metadata.annotations?.['metallb.io/loadBalancerIPs'] === ip);
    assert.is(held?.metadata.labels?.[`${driver}/ip-address`], 'vip');
    assert.equal(ingressOf(held), [ip]);
  },
);

scenario('a class whose claim was turned to another one is asked no more', async (bed) => {
  bed.runs.metallb = false;
  bed.class();
  bed.class(['198.51.100.0/29'], {}, 'other');
  bed.claim();
  await bed.settle();
  bed.editSpec('IPAddressClaim', 'web', { className: 'other' });
  await bed.settle();
  assert.equal(
    bed.placeholders().map(({ metadata }) => metadata.annotations?.['metallb.io/address-pool']),
    ['iad-other'],
  );
});

scenario('Q2, race 3: an address that its claim did not take is taken back, with its placeholder', async (bed) => {
  bed.class();
  bed.claim();
  bed.runs.metallb = false;
  await bed.settle();
  while (bed.metallb.step());
  bed.driver.deliver();
  // Before the driver has recorded it, and without that it has seen, the claim gets another one.
  bed.runs.driver = false;
  bed.address('vip', '203.0.113.6', { claimRef: { namespace: 'tenant-a', name: 'web' } });
  await bed.settle();
  assert.is(bed.phase('IPAddressClaim', 'web'), 'Bound');
  await bed.driver.pass('IPAddressClaim tenant-a/web');
  assert.ok(bed.find('IPAddress', one), 'made all the same');
  bed.runs.driver = true;
  bed.runs.metallb = true;
  await bed.settle();
  assert.equal(
    bed.server.list('IPAddress').map(({ metadata }) => metadata.name),
    ['vip'],
  );
  assert.equal(bed.holds(), ['iad-vip']);
});

scenario(
  'D31: where MetalLB serves a class of Services, placeholders are of that class',
  async (bed) => {
    await provisioned(bed);
    assert.is(bed.phase('IPAddressClaim', 'web'), 'Bound');
    assert.is(bed.placeholders()[0]?.spec?.loadBalancerClass, 'metallb');
  },
  { lbClass: 'metallb' },
);

test('P8: a process that dies before any write of a recording is followed by one that ends it', async () => {
  const whole = new MetallbBed();
  const { metadata } = await provisioned(whole);
  for (let n = 0; n < whole.driver.writes.length; n += 1) {
    const bed = new MetallbBed();
    bed.driver.before = () => {
      if (bed.driver.writes.length === n) throw new Error('died');
    };
    const died = await provisioned(bed).then(
      () => false,
      (error: Error) => error.message === 'died',
    );
    assert.ok(died, `write ${n}`);
    bed.driver.before = undefined;
    bed.driver.restart();
    await bed.settle();
    bed.checkHolds();
    assert.equal(bed.holds(), whole.holds(), `write ${n}`);
    assert.equal(bed.live('IPAddress', one).spec, {
      ...whole.live('IPAddress', one).spec,
      claimRef: { namespace: 'tenant-a', name: 'web', uid: metadata.uid },
    });
    assert.equal(bed.placeholders()[0]?.metadata, {
      ...whole.placeholders()[0]?.metadata,
      resourceVersion: bed.placeholders()[0]?.metadata.resourceVersion,
    });
    await bed.quiet();
  }
});

scenario('K6: for a claim of a class that is going nothing is asked, stamped or not', async (bed) => {
  await provisioned(bed);
  bed.delete('IPAddressClass', 'public');
  await bed.settle();
  const before = bed.holds();
  bed.claim('late');
  await bed.settle();
  assert.equal([bed.holds(), bed.phase('IPAddressClaim', 'late')], [before, 'Pending']);
  // The core has resolved it in the moment before.
  bed.runs.core = false;
  bed.annotate('IPAddressClaim', 'late', addressAnnotations.provisioner, driver);
  bed.editStatus('IPAddressClaim', 'late', { className: 'public' });
  await bed.settle();
  assert.equal(bed.holds(), before);
  bed.runs.core = true;
});

scenario('C25: around a loss the driver asks for nothing', async (bed) => {
  await provisioned(bed);
  const before = bed.holds();
  bed.runs.driver = false;
  bed.editStatus('IPAddress', one, { phase: 'Lost' });
  await bed.settle();
  assert.is(bed.phase('IPAddressClaim', 'web'), 'Lost');
  bed.driver.deliver();
  await bed.driver.pass('IPAddressClaim tenant-a/web');
  assert.equal([bed.holds(), bed.server.list('IPAddress').length], [before, 1]);
  // The pool holds it: the driver brings it back.
  bed.runs.driver = true;
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.phase('IPAddressClaim', 'web')], ['Bound', 'Bound']);
});

scenario('race 3: nothing is asked of MetalLB for a claim that a recorded address is there for', async (bed) => {
  bed.class();
  bed.address('ip-free', '203.0.113.3');
  await bed.settle();
  bed.runs.metallb = false;
  bed.claim('one');
  bed.claim('two');
  // The core has stamped both, and given the address to one of them.
  await bed.settle();
  assert.equal(bed.claimRef('ip-free').name, 'one');
  const asking = bed.placeholders().filter(({ metadata }) => metadata.name?.endsWith('-v4'));
  assert.equal(
    asking.map(({ metadata }) => metadata.annotations?.['metallb.drivers.local.sdn.cozystack.io/claim-name']),
    ['two'],
  );
  assert.equal(
    bed.driver.events.filter(({ reason }) => reason === 'Reserving').map(({ about }) => about),
    ['two'],
  );
  bed.runs.metallb = true;
  await bed.settle();
  assert.is(bed.phase('IPAddressClaim', 'two'), 'Bound');
});

scenario('P11: the oldest claims ask MetalLB, four at once', async (bed) => {
  bed.class(['203.0.113.0/31']);
  for (const name of ['z', 'y', 'x', 'w', 'v', 'u', 't', 's']) {
    bed.claim(name);
    await bed.wait(1_000);
  }
  const asking = bed
    .placeholders()
    .map(({ metadata }) => metadata.annotations?.['metallb.drivers.local.sdn.cozystack.io/claim-name'] ?? '')
    .sort();
  assert.equal(asking, ['u', 'v', 'w', 'x', 'y', 'z']);
});

test.run();
