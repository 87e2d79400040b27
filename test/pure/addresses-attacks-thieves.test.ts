import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { planAddress } from '../../executor/addresses/metallb/plan-address.ts';
import { readDriverObject } from '../../executor/addresses/metallb/views.ts';
import { ip, one, scenario, settings, stock } from './addresses-metallb-bed.ts';
import { ledgerObject } from './addresses-model.ts';

/** Services that wait for an address, in whatever way MetalLB can be asked, do not get it while it changes hands. */

const pool = 'metallb.io/address-pool';
const thieves: Readonly<
  Record<string, { readonly pin?: string; readonly spec?: JsonObject; readonly note?: readonly [string, string] }>
> = {
  'by a pin': { pin: ip },
  'by the older pin': { note: ['metallb.universe.tf/loadBalancerIPs', ip] },
  'by a pin in another form': { pin: `::ffff:${ip}` },
  'by the field': { spec: { loadBalancerIP: ip } },
  'by the pool': { note: [pool, 'iad-public'] },
  'by the older name of the pool': { note: ['metallb.universe.tf/address-pool', 'iad-public'] },
};

for (const [how, { pin, spec, note }] of Object.entries(thieves))
  scenario(`who waits ${how} gets nothing while the address changes hands`, async (bed) => {
    bed.class(['203.0.113.0/32']);
    bed.claim('web');
    await bed.settle();
    bed.service('thief', { ...(pin === undefined ? {} : { pin }), ...(spec === undefined ? {} : { spec }) });
    if (note !== undefined) bed.annotate('Service', 'thief', ...note);
    await bed.settle();
    assert.equal(bed.ingress('thief'), []);
    bed.service('a', { claim: 'web' });
    await bed.settle();
    assert.equal(bed.ingress('thief'), [], 'the thief has nothing');
    assert.equal([bed.user(one), bed.driver.reasons('a')], [undefined, ['AddressContested']]);
    bed.delete('Service', 'thief');
    await bed.settle();
    await bed.wait(60_000);
    assert.equal([bed.ingress('a'), bed.user(one)], [[ip], 'tenant-a/a']);
  });

scenario('a hold is not given up for another object that only a late watch still shows', async (bed) => {
  await stock(bed);
  const rival = bed.server.plant(
    ledgerObject('IPAddress', 'rival', { className: 'public', address: ip, source: { fromClass: {} } }),
  );
  bed.delete('IPAddress', 'rival');
  // As the watch would have told of it: taken, and not yet gone.
  bed.driver.ledger.put({ ...rival, status: { phase: 'Bound' } });
  const plan = planAddress(bed.driver.ledger, one, bed.now);
  assert.equal(
    plan.actions.map(({ type, confirm }) => [type, confirm]),
    [['delete', [{ type: 'identity', ref: { kind: 'IPAddress', name: 'rival' }, uid: rival.metadata.uid }]]],
  );
  await bed.driver.pass(`IPAddress ${one}`);
  assert.is(bed.holds().length, 1);
});

test('a pin that names more than MetalLB gives asks for nothing, however long it is', () => {
  const asks = (pin: string): readonly string[] => {
    const metadata = { name: 'a', namespace: 'tenant-a', annotations: { 'metallb.io/loadBalancerIPs': pin } };
    const view = readDriverObject({ apiVersion: 'v1', kind: 'Service', metadata, spec: {} }, settings);
    return view?.kind === 'Service' ? view.asks : [];
  };
  assert.equal(asks(`${ip}, 2001:db8:0::1`), [ip, '2001:db8::1']);
  assert.equal(asks(Array.from({ length: 4_000 }, (_, n) => `203.0.${n >> 8}.${n & 255}`).join()), []);
});

for (const late of [false, true])
  scenario(
    `two that name the pool and have a claim each do not keep each other waiting${late ? ', nor a third one' : ''}`,
    async (bed) => {
      bed.class(['203.0.113.0/31']);
      bed.claim('web');
      bed.claim('api');
      await bed.settle();
      for (const name of ['a', 'b']) {
        bed.service(name);
        bed.annotate('Service', name, pool, 'iad-public');
      }
      await bed.settle();
      assert.equal([bed.ingress('a'), bed.ingress('b')], [[], []]);
      if (late) bed.runs.metallb = false;
      bed.names('a', 'web');
      bed.names('b', 'api');
      await bed.settle();
      bed.runs.metallb = true;
      await bed.settle();
      await bed.wait(60_000);
      assert.equal([...bed.ingress('a'), ...bed.ingress('b')].sort(), ['203.0.113.0', '203.0.113.1']);
      for (const name of ['a', 'b']) assert.equal(bed.ingress(name), [bed.pin(name)]);
    },
  );

test.run();
