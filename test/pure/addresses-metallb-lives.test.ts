import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressFinalizers } from '../../constructs/api/addresses.ts';
import { associated, ip, one, provisioned, scenario, stock } from './addresses-metallb-bed.ts';
import { ingressOf } from './addresses-metallb-model.ts';

/** Conflicts, what MetalLB gives to the wrong one, and whole lives of addresses: the rest of section 9 that is the driver's. */

const pinKey = 'metallb.io/loadBalancerIPs';
const hold = `iad-${one}`;

scenario('X1, X2, X4: a Service without authority is told of until it lets go', async (bed) => {
  await provisioned(bed);
  bed.server.remove(bed.placeholders()[0] as never);
  bed.runs.driver = false;
  bed.service('thief', { pin: ip });
  await bed.settle();
  bed.runs.driver = true;
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.claimRef(one).name], ['Conflict', 'web']);
  assert.equal(
    [bed.driver.reasons('thief'), bed.driver.reasons(one).includes('Conflict')],
    [['AddressConflict'], true],
  );
  assert.equal(bed.holds(), [hold], 'the hold waits, and is no conflict');
  assert.is(bed.phase('IPAddressClaim', 'web'), 'Bound');
  await bed.wait(11_000);
  assert.is(bed.condition(one, 'Held'), 'False/HoldPending', 'D29');
  bed.delete('Service', 'thief');
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.condition(one, 'Held')], ['Bound', 'True/Reserved']);
  assert.ok(bed.driver.reasons(one).includes('ConflictResolved'));
});

scenario('E2: who asks for a held address waits, and that is no conflict', async (bed) => {
  await provisioned(bed);
  bed.service('thief', { pin: ip });
  await bed.settle();
  assert.equal([bed.ingress('thief'), bed.phase('IPAddress', one), bed.driver.reasons('thief')], [[], 'Bound', []]);
});

scenario('E2: an address does not change hands while somebody else waits for it', async (bed) => {
  await provisioned(bed);
  bed.service('thief', { pin: ip });
  bed.service('a', { claim: 'web' });
  await bed.settle();
  assert.equal([bed.ingress('thief'), bed.ingress('a'), bed.user(one)], [[], [], undefined]);
  assert.equal([bed.driver.reasons('a'), bed.holds().length], [['AddressContested'], 1]);
  bed.annotate('Service', 'thief', pinKey, undefined);
  await bed.settle();
  assert.equal([bed.ingress('a'), bed.user(one), bed.phase('IPAddress', one)], [[ip], 'tenant-a/a', 'Bound']);
});

scenario('X5: the label of placeholders means nothing elsewhere', async (bed) => {
  await stock(bed);
  bed.server.remove(bed.placeholder(hold));
  bed.runs.driver = false;
  bed.service('thief', { pin: ip, labels: { 'metallb.drivers.local.sdn.cozystack.io/placeholder': 'true' } });
  await bed.settle();
  bed.runs.driver = true;
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.driver.reasons('thief')], ['Conflict', ['AddressConflict']]);
});

scenario('X8, D30: an address that nobody has claimed is not free for the taking', async (bed) => {
  await stock(bed);
  assert.is(bed.phase('IPAddress', one), 'Available');
  bed.server.remove(bed.placeholder(hold));
  bed.runs.driver = false;
  bed.service('thief', { pin: ip });
  await bed.settle();
  bed.runs.driver = true;
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.claimRef(one)], ['Conflict', {}]);
  assert.equal([bed.driver.reasons('thief'), bed.driver.reasons(one).at(-1)], [['AddressConflict'], 'Conflict']);
  bed.delete('Service', 'thief');
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.condition(one, 'Held')], ['Available', 'True/Reserved']);
});

scenario('X6, D33: an address of no class is nobody’s business, one of a class is told of', async (bed) => {
  bed.class(['203.0.113.0/30']);
  bed.make({
    apiVersion: 'metallb.io/v1beta1',
    kind: 'IPAddressPool',
    metadata: { name: 'plain', namespace: 'metallb-system' },
    spec: { addresses: ['192.0.2.0/24'] },
  });
  bed.service('plain');
  bed.service('drain');
  bed.annotate('Service', 'drain', 'metallb.io/address-pool', 'iad-public');
  await bed.settle();
  assert.equal([bed.ingress('plain'), bed.driver.reasons('plain')], [['192.0.2.0'], []]);
  assert.equal([bed.ingress('drain'), bed.driver.reasons('drain')], [[ip], ['AddressNotInLedger']]);
});

scenario('D25: a Service that turns to another claim gives back what it had', async (bed) => {
  await associated(bed);
  bed.claim('mail');
  await bed.settle();
  bed.names('a', 'mail');
  await bed.settle();
  const other = 'ip-203-0-113-1';
  assert.equal([bed.ingress('a'), bed.user(other), bed.user(one)], [['203.0.113.1'], 'tenant-a/a', undefined]);
  assert.equal([bed.holds(), bed.condition(one, 'Held')], [[hold], 'True/Reserved']);
  assert.is(bed.phase('IPAddress', one), 'Bound');
});

scenario('a hold that MetalLB forgot about is asked for again, less and less often', async (bed) => {
  await associated(bed);
  bed.names('a', undefined);
  await bed.settle();
  // The Service moves to another address: MetalLB asks nobody who waits.
  bed.annotate('Service', 'a', pinKey, '203.0.113.3');
  await bed.wait(1);
  assert.equal([bed.ingress('a'), bed.phase('IPAddress', one)], [['203.0.113.3'], 'Bound']);
  const [held] = bed.placeholders();
  assert.is(held?.status, undefined);
  await bed.wait(60_000);
  assert.is(bed.condition(one, 'Held'), 'True/Reserved');
});

scenario('D36: of two placeholders of one address the one that has it stays', async (bed) => {
  await stock(bed);
  const [held] = bed.placeholders();
  if (held === undefined) throw new Error('no hold');
  const { resourceVersion: _, uid: __, ...metadata } = held.metadata;
  bed.make({ ...held, metadata: { ...metadata, name: 'another' } });
  await bed.settle();
  assert.equal(bed.holds(), [hold]);
});

scenario('D37: what a claim shows counts only if the address says the same', async (bed) => {
  await provisioned(bed);
  bed.runs.core = false;
  bed.address('ip-203-0-113-6', '203.0.113.6');
  const claim = bed.live('IPAddressClaim', 'web');
  bed.server.updateStatus(claim, { ...claim.status, addresses: [{ name: 'ip-203-0-113-6', address: '203.0.113.6' }] });
  bed.service('a', { claim: 'web' });
  await bed.settle();
  assert.equal([bed.pin('a'), bed.user('ip-203-0-113-6')], [undefined, undefined]);
  bed.runs.core = true;
  await bed.core.pass('IPAddressClaim tenant-a/web');
  await bed.settle();
  assert.is(bed.pin('a'), ip);
});

scenario('D29: an address that no pool holds is Lost until one does', async (bed) => {
  await stock(bed, 'far', '198.51.100.9');
  assert.equal([bed.phase('IPAddress', 'far'), bed.condition('far', 'Held')], ['Lost', 'False/OutsidePool']);
  bed.editSpec('IPAddressClass', 'public', { parameters: { addresses: ['198.51.100.0/24'] } });
  await bed.settle();
  assert.equal([bed.phase('IPAddress', 'far'), bed.condition('far', 'Held')], ['Available', 'True/Reserved']);
});

scenario('D40: an address whose claim has gone is Released when its conflict ends', async (bed) => {
  await associated(bed);
  bed.names('a', undefined);
  await bed.settle();
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(bed.phase('IPAddress', one), 'Conflict');
  const from = bed.server.log.length;
  bed.delete('Service', 'a');
  await bed.settle();
  assert.is(bed.phase('IPAddress', one), 'Released');
  const phases = bed.server.log
    .slice(from)
    .filter(({ object }) => object.metadata.name === one)
    .map(({ object }) => object.status?.phase);
  assert.not.ok(phases.includes('Bound'), phases.join());
});

scenario('E1, E3: an address outlives its Services, and under Retain its claim', async (bed) => {
  await associated(bed);
  bed.delete('Service', 'a');
  await bed.settle();
  bed.service('b', { claim: 'web' });
  await bed.settle();
  assert.equal([bed.ingress('b'), bed.phase('IPAddressClaim', 'web')], [[ip], 'Bound']);
  bed.delete('Service', 'b');
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.condition(one, 'Held')], ['Released', 'True/Reserved']);
  bed.editSpec('IPAddress', one, { claimRef: undefined });
  await bed.settle();
  assert.equal([bed.phase('IPAddress', one), bed.condition(one, 'Held')], ['Available', 'True/Reserved']);
  bed.claim('next', { addressName: one });
  bed.service('c', { claim: 'next' });
  await bed.settle();
  assert.equal(bed.ingress('c'), [ip]);
});

scenario('E6: removed in the order of the page, nothing is left and nothing hangs', async (bed) => {
  await associated(bed);
  bed.claim('mail');
  await bed.settle();
  bed.names('a', undefined);
  await bed.settle();
  for (const name of ['web', 'mail']) bed.delete('IPAddressClaim', name);
  await bed.settle();
  for (const { metadata } of bed.server.list('IPAddress')) bed.delete('IPAddress', metadata.name ?? '');
  await bed.settle();
  bed.delete('IPAddressClass', 'public');
  await bed.settle();
  assert.equal(
    bed.server.list().map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ['Service a'],
  );
});

for (const [what, runs] of [
  ['up', true],
  ['down', false],
] as const)
  scenario(`E7: a namespace that is deleted with its claims while the controllers are ${what}`, async (bed) => {
    await associated(bed);
    bed.claim('brief', { family: 'IPv6' });
    bed.claim('waits', { addressName: 'ip-203-0-113-6' });
    await bed.settle();
    bed.editSpec('IPAddressClass', 'public', { reclaimPolicy: 'Delete' });
    bed.claim('fresh');
    await bed.settle();
    Object.assign(bed.runs, { core: runs, driver: runs });
    const rest = (): string[] =>
      bed.server
        .list()
        .filter(({ metadata }) => metadata.namespace === 'tenant-a')
        .map(({ metadata }) => metadata.name ?? '');
    // As the controller of namespaces does it.
    for (const object of bed.server.list()) if (object.metadata.namespace === 'tenant-a') bed.server.remove(object);
    await bed.settle();
    if (!runs) assert.equal(rest().sort(), ['brief', 'fresh', 'waits', 'web'], 'claims wait for their controller');
    Object.assign(bed.runs, { core: true, driver: true });
    await bed.settle();
    assert.equal(rest(), []);
    // By the policy of each address: that of the last one is Delete.
    assert.equal(
      bed.server.list('IPAddress').map(({ metadata, status }) => [metadata.name, status?.phase]),
      [
        [one, 'Released'],
        ['ip-2001-db8--0', 'Released'],
      ],
    );
    assert.is(bed.holds().length, 2);
  });

scenario('A15: the hold of a released address is the same before, while and after it returns', async (bed) => {
  await provisioned(bed, {}, { releaseDelay: '1h' });
  const before = bed.holds();
  const from = bed.server.log.length;
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  await bed.wait(59 * 60_000);
  assert.equal([bed.phase('IPAddress', one), bed.claimRef(one).name], ['Released', 'web']);
  await bed.wait(60_000);
  assert.equal([bed.phase('IPAddress', one), bed.claimRef(one), bed.holds()], ['Available', {}, before]);
  const touched = bed.server.log.slice(from).filter(({ object }) => object.kind === 'Service');
  assert.equal(touched, [], 'nothing was done to it');
});

scenario('a finalizer of the core that is there keeps everything else', async (bed) => {
  await provisioned(bed);
  bed.runs.core = false;
  bed.delete('IPAddress', one);
  await bed.settle();
  assert.ok(bed.live('IPAddress', one).metadata.finalizers?.includes(addressFinalizers.address));
  assert.is(bed.holds().length, 1);
  bed.runs.core = true;
});

scenario('an address of one class in the pool of another: who has it keeps it', async (bed) => {
  bed.class(['203.0.113.0/31']);
  bed.class(['198.51.100.0/31'], {}, 'other');
  await bed.settle();
  bed.address('stray', '198.51.100.0');
  await bed.settle();
  assert.equal([bed.phase('IPAddress', 'stray'), bed.condition('stray', 'Held')], ['Lost', 'False/OutsidePool']);
  bed.claim('mail', { className: 'other' });
  await bed.settle();
  assert.equal(
    [bed.phase('IPAddressClaim', 'mail'), bed.find('IPAddress', 'ip-198-51-100-1') !== undefined],
    ['Bound', true],
  );
  const [held] = bed.placeholders().filter(({ metadata }) => metadata.annotations?.[pinKey] === '198.51.100.0');
  assert.equal(ingressOf(held), ['198.51.100.0']);
});

scenario('a placeholder makes way for a Service, at once, and then less and less often', async (bed) => {
  bed.class(['203.0.113.0/31']);
  bed.claim();
  bed.service('a', { claim: 'web' });
  await bed.settle();
  // The Service has lost what it uses, and MetalLB gives it to the next one who asks.
  bed.runs.metallb = false;
  const service = bed.live('Service', 'a');
  bed.server.updateStatus(service, { loadBalancer: {} });
  bed.metallb.restart();
  const { metadata } = bed.claim('mail');
  await bed.settle();
  const names = (): string[] =>
    bed.placeholders().map((object) => `${object.metadata.name?.split(`${metadata.uid}-`)[1]} ${ingressOf(object)}`);
  const give = (nth: string, address: string): void => {
    const found = bed.placeholders().find((object) => object.metadata.name?.endsWith(nth));
    if (found !== undefined) bed.server.updateStatus(found, { loadBalancer: { ingress: [{ ip: address }] } });
  };
  give('-v4', ip);
  await bed.settle();
  assert.equal(names(), ['v4-2 '], 'the first makes way at once');
  give('-v4-2', ip);
  await bed.settle();
  assert.equal(names(), [`v4-2 ${ip}`], 'the second after a second');
  await bed.wait(1_000);
  assert.equal(names(), ['v4-3 ']);
  assert.is(bed.driver.reasons('mail').filter((reason) => reason === 'LedgerMismatch').length, 2);
  bed.runs.metallb = true;
  bed.metallb.restart();
  await bed.settle();
  assert.equal([bed.ingress('a'), bed.phase('IPAddressClaim', 'mail')], [[ip], 'Bound']);
});

scenario('D34: those who wait for one family keep nobody from the other', async (bed) => {
  bed.class(['203.0.113.0/28']);
  for (let n = 0; n < 6; n += 1) bed.claim(`six-${n}`, { family: 'IPv6' });
  await bed.settle();
  bed.claim('web');
  await bed.settle();
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.holds().length], ['Bound', 5]);
});

test.run();
