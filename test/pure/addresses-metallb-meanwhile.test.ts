import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { associated, ip, type MetallbBed, one, scenario, stock } from './addresses-metallb-bed.ts';
import { ingressOf } from './addresses-metallb-model.ts';

/** What others do between two writes of the driver, or between what it saw and what it does. */

const hold = `iad-${one}`;

/** After each pass of the driver the core does all that it has to do; `check` looks after each of them. */
async function inTurns(bed: MetallbBed, check: () => void): Promise<void> {
  for (let n = 0; n < 100; n += 1) {
    const worked = await bed.driver.step();
    await bed.core.settle(100);
    check();
    if (!worked) return;
  }
  throw new Error('it does not settle');
}

/** Service `a` has the only address of a class that gives back at once what is released; claim `mail` waits for it. */
async function oneForTwo(bed: MetallbBed): Promise<void> {
  bed.class(['203.0.113.0/32'], { releaseDelay: '0s' });
  bed.claim();
  bed.service('a', { claim: 'web' });
  await bed.settle();
  bed.claim('mail');
  await bed.settle();
  assert.equal([bed.ingress('a'), bed.phase('IPAddressClaim', 'mail')], [[ip], 'Pending']);
}

scenario('what a Service keeps is given to no other claim, between no two writes', async (bed) => {
  await oneForTwo(bed);
  bed.delete('IPAddressClaim', 'web');
  await inTurns(bed, () => assert.is(bed.claimRef(one).name, 'web'));
  assert.equal([bed.user(one), bed.phase('IPAddress', one), bed.ingress('a')], [undefined, 'Conflict', [ip]]);
  for (const reason of ['Disassociated', 'AddressConflict'])
    assert.ok(bed.driver.reasons('a').includes(reason), reason);
  assert.ok(bed.driver.reasons(one).includes('Conflict'));
  bed.delete('Service', 'a');
  await bed.settle();
  assert.equal([bed.claimRef(one).name, bed.phase('IPAddressClaim', 'mail')], ['mail', 'Bound']);
});

scenario(
  'what is taken off by force is used until it is off, and somebody waits for it',
  async (bed) => {
    await oneForTwo(bed);
    bed.delete('IPAddressClaim', 'web');
    await inTurns(bed, () => assert.equal([bed.claimRef(one).name, bed.user(one)], ['web', 'tenant-a/a']));
    assert.equal([bed.ingress('a'), bed.holds().includes(hold)], [[ip], true]);
    await bed.settle();
    assert.equal([bed.ingress('a'), bed.user(one), bed.claimRef(one).name], [[], undefined, 'mail']);
    assert.is(bed.condition(one, 'Held'), 'True/Reserved');
    assert.is(bed.driver.reasons('a').filter((reason) => reason === 'Disassociated').length, 1);
  },
  { forcedRelease: 'always' },
);

scenario('what a Service kept while no pool had it is in conflict when a pool has it again', async (bed) => {
  await oneForTwo(bed);
  bed.runs.metallb = false;
  bed.editSpec('IPAddressPool', 'iad-public', { addresses: ['192.0.2.0/32'] });
  bed.driver.deliver();
  await bed.driver.pass(`IPAddress ${one}`);
  bed.delete('IPAddressClaim', 'web');
  await bed.core.settle(100);
  bed.driver.deliver();
  await bed.driver.pass('Service tenant-a/a');
  assert.equal([bed.user(one), bed.phase('IPAddress', one), bed.ingress('a')], [undefined, 'Lost', [ip]]);
  await inTurns(bed, () => assert.is(bed.claimRef(one).name, 'web'));
  assert.is(bed.phase('IPAddress', one), 'Conflict');
  bed.runs.metallb = true;
  bed.delete('Service', 'a');
  await bed.settle();
  assert.equal([bed.claimRef(one).name, bed.phase('IPAddressClaim', 'mail')], ['mail', 'Bound']);
});

scenario('a claim that was made anew is another one: what the former had is taken off all the same', async (bed) => {
  await associated(bed, { reclaimPolicy: 'Delete' });
  Object.assign(bed.runs, { core: false, driver: false, metallb: false });
  bed.delete('IPAddressClaim', 'web');
  bed.strip('IPAddressClaim', 'web');
  bed.claim('web', { family: 'IPv6' });
  bed.runs.driver = true;
  await bed.settle();
  assert.equal([bed.user(one), bed.pin('a'), bed.ingress('a')], ['tenant-a/a', undefined, [ip]]);
  bed.runs.core = true;
  await bed.settle();
  assert.ok(bed.find('IPAddress', one), 'it waits until nobody has it');
  bed.runs.metallb = true;
  await bed.settle();
  assert.equal([bed.find('IPAddress', one), bed.ingress('a')], [undefined, []]);
  assert.not.ok(bed.driver.reasons('a').includes('AddressNotInLedger'));
});

scenario('of two placeholders none goes before the other one was looked at', async (bed) => {
  await stock(bed);
  const held = bed.placeholder(hold);
  const { resourceVersion: _, uid: __, ...metadata } = held.metadata;
  const { status: ___, ...twin } = held;
  bed.driver.seen(bed.make({ ...twin, metadata: { ...metadata, name: 'zz-another' } }));
  // The hold is deleted by hand, and the watch does not tell yet.
  bed.server.remove(held);
  while (bed.metallb.step());
  bed.driver.seen(bed.placeholder('zz-another'));
  await bed.driver.pass(`IPAddress ${one}`);
  assert.equal([bed.holds(), ingressOf(bed.placeholder('zz-another'))], [['zz-another'], [ip]]);
});

const [before, after] = ['203.0.113.0/30', '198.51.100.0/30'];

/** Claim `web` has a placeholder, and MetalLB has not yet chosen. */
async function asked(bed: MetallbBed): Promise<void> {
  bed.class([before]);
  bed.runs.metallb = false;
  bed.claim();
  await bed.settle();
  assert.is(bed.placeholders().length, 1);
}

const given = (bed: MetallbBed, address: string): void => {
  const [placeholder] = bed.placeholders();
  if (placeholder === undefined) throw new Error('no placeholder');
  bed.server.updateStatus(placeholder, { loadBalancer: { ingress: [{ ip: address }] } });
};

const turn = (bed: MetallbBed): void =>
  bed.editSpec('IPAddressClass', 'public', { parameters: { addresses: [after] } });
const pool = (bed: MetallbBed): unknown => bed.live('IPAddressPool', 'iad-public').spec?.addresses;

scenario('an address that has left the pool before it was recorded is not recorded', async (bed) => {
  await asked(bed);
  turn(bed);
  await bed.settle();
  assert.equal(pool(bed), [after]);
  // MetalLB did not know yet.
  given(bed, ip);
  await bed.settle();
  assert.is(bed.find('IPAddress', one), undefined);
  assert.equal(ingressOf(bed.placeholders()[0]), [ip]);
  bed.runs.metallb = true;
  await bed.settle();
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.phase('IPAddress', 'ip-198-51-100-0')], ['Bound', 'Bound']);
});

for (const isKept of [true, false])
  scenario(
    `a network stays in the pool for what is not yet recorded, ${isKept ? 'and then for what is' : 'and until it never will be'}`,
    async (bed) => {
      await asked(bed);
      given(bed, ip);
      turn(bed);
      bed.driver.deliver();
      await bed.driver.pass('IPAddressClass public');
      assert.equal(pool(bed), [after, before]);
      if (!isKept) {
        // It stays unrecorded until everything has come to rest.
        bed.driver.refuses = 'IPAddress';
        await bed.settle();
        assert.equal([bed.find('IPAddress', one), pool(bed)], [undefined, [after, before]]);
        bed.driver.refuses = undefined;
        bed.delete('IPAddressClaim', 'web');
        bed.strip('IPAddressClaim', 'web');
      }
      bed.runs.metallb = true;
      await bed.settle();
      if (isKept) assert.equal([bed.phase('IPAddress', one), pool(bed)], ['Bound', [after, before]]);
      else assert.equal([bed.find('IPAddress', one), bed.holds(), pool(bed)], [undefined, [], [after]]);
    },
  );

test.run();
