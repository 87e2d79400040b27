import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations as annotations, addressFinalizers as finalizers } from '../../constructs/api/addresses.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { planAddress } from '../../executor/addresses/core/plan-address.ts';
import { held, LedgerBed, released, scenario } from './addresses-bed.ts';
import { ledgerObject } from './addresses-model.ts';

/** Addresses, by the ids of the catalogue. */

const hour = 3_600_000;
const ip = 'ip-203-0-113-7';
const claimRef = { namespace: 'tenant-a', name: 'web' };
const phase = (bed: LedgerBed, name = ip) => bed.phase('IPAddress', name);
const bound = (bed: LedgerBed, name = ip) => bed.condition('IPAddress', name, 'Bound');

scenario('A1: an address that nobody has is protected and Available', async (bed) => {
  bed.address('203.0.113.7');
  await bed.settle();
  assert.equal(bed.live('IPAddress', ip).metadata.finalizers, [finalizers.address]);
  assert.equal([phase(bed), bound(bed)], ['Available', 'False/Available']);
});

scenario('A2: an address that names a live claim by UID is Bound', async (bed) => {
  bed.class();
  const { metadata } = bed.claim();
  bed.address('203.0.113.7', { claimRef: { ...claimRef, uid: metadata.uid ?? '' } });
  await bed.settle();
  assert.equal([phase(bed), bound(bed), bed.phase('IPAddressClaim', 'web')], ['Bound', 'True/Bound', 'Bound']);
});

test('A3: before the claim has taken it, the phase of an address that names it is left alone', async () => {
  const bed = new LedgerBed();
  bed.class();
  bed.claim();
  bed.address('203.0.113.7', { claimRef });
  bed.core.deliver();
  await bed.core.pass(`IPAddress ${ip}`);
  assert.equal([phase(bed), bound(bed)], [undefined, 'False/ClaimPending']);
});

scenario(
  'A4, race 9: an address before its claim is released, and no later claim of that name gets it',
  async (bed) => {
    bed.class();
    bed.address('203.0.113.7', { claimRef });
    await bed.settle();
    assert.equal([phase(bed), bound(bed), bed.claimRef(ip)], ['Released', 'False/Released', claimRef]);
    assert.equal(bed.reasons(ip), ['Reclaimed']);
    bed.claim();
    await bed.settle();
    assert.equal([phase(bed), bed.phase('IPAddressClaim', 'web')], ['Released', 'Pending']);
    assert.equal(bed.reasons(ip), ['Reclaimed']);
  },
);

scenario('A5: the same under Delete: it is deleted', async (bed) => {
  bed.class();
  bed.address('203.0.113.7', { claimRef, reclaimPolicy: 'Delete' });
  await bed.settle();
  assert.is(bed.find('IPAddress', ip), undefined);
  assert.equal(bed.reasons(ip), ['Reclaimed']);
});

for (const reclaimPolicy of ['Retain', 'Delete'])
  scenario(`A6, race 2: an address of a former claim of the name is reclaimed (${reclaimPolicy})`, async (bed) => {
    bed.class();
    bed.claim();
    bed.address('203.0.113.7', { claimRef: { ...claimRef, uid: 'former' }, reclaimPolicy });
    await bed.settle();
    assert.is(bed.phase('IPAddressClaim', 'web'), 'Pending');
    if (reclaimPolicy === 'Delete') assert.is(bed.find('IPAddress', ip), undefined);
    else assert.equal([phase(bed), bed.claimRef(ip)], ['Released', { ...claimRef, uid: 'former' }]);
    assert.equal(bed.reasons(ip), ['Reclaimed']);
  });

for (const state of ['Conflict', 'Lost'])
  for (const ref of [undefined, claimRef])
    scenario(
      `A7, race 11: ${state} is left to the driver, ${ref === undefined ? 'free' : 'with a claim'}`,
      async (bed) => {
        bed.class();
        if (ref !== undefined) bed.claim();
        bed.address('203.0.113.7');
        await bed.settle();
        bed.editStatus('IPAddress', ip, { phase: state });
        const before = bed.live('IPAddress', ip);
        await bed.settle();
        assert.equal(bed.live('IPAddress', ip), before);
      },
    );

for (const text of ['not-an-ip', '', '1.2.3', '010.0.0.1', 'fe80::1%eth0'])
  scenario(`A8: what is stored as '${text}' is never anybody's`, async (bed) => {
    bed.class();
    bed.claim();
    bed.server.plant(
      ledgerObject('IPAddress', 'odd', {
        className: 'public',
        address: text,
        source: { fromClass: {} },
        reclaimPolicy: 'Retain',
      }),
    );
    await bed.settle();
    assert.equal([phase(bed, 'odd'), bound(bed, 'odd')], ['Pending', 'False/InvalidAddress']);
    assert.equal(bed.reasons('odd'), ['InvalidAddress']);
    assert.is(bed.phase('IPAddressClaim', 'web'), 'Pending');
  });

scenario(
  'A9, race 6: an address is not deleted under its claim, and goes with it under Retain as well',
  async (bed) => {
    await held(bed);
    bed.delete('IPAddress', ip);
    await bed.settle();
    assert.equal(bed.live('IPAddress', ip).metadata.finalizers, [finalizers.address]);
    assert.equal(bed.reasons(ip), ['DeletionBlocked']);
    assert.equal([bed.phase('IPAddressClaim', 'web'), bed.got()], ['Bound', [ip]]);
    bed.delete('IPAddressClaim', 'web');
    await bed.settle();
    assert.is(bed.find('IPAddress', ip), undefined);
  },
);

for (const state of ['Released', 'Available'])
  scenario(`A10: an address that is ${state} goes at once`, async (bed) => {
    await released(bed);
    if (state === 'Available') bed.editSpec('IPAddress', ip, { claimRef: undefined });
    await bed.settle();
    assert.is(phase(bed), state);
    bed.delete('IPAddress', ip);
    await bed.settle();
    assert.is(bed.find('IPAddress', ip), undefined);
  });

scenario('A11: who takes the claimRef of a released address away lets others have it', async (bed) => {
  await released(bed);
  bed.editSpec('IPAddress', ip, { claimRef: undefined });
  await bed.settle();
  assert.is(phase(bed), 'Available');
  bed.claim('mail');
  await bed.settle();
  assert.equal(bed.got('mail'), [ip]);
});

test('A12 and A13: one source, an address that stays, a provisioner that stays', () => {
  const bed = new LedgerBed();
  bed.class();
  bed.address('203.0.113.7');
  const refused = (spec: JsonObject): string =>
    bed.refusal('IPAddress', 'x', { className: 'public', address: '203.0.113.8', ...spec });
  assert.match(refused({ source: {} }), 'exactly one');
  assert.match(refused({ source: { fromClass: {}, providerRef: { id: 'x' } } }), 'exactly one');
  assert.throws(() => bed.editSpec('IPAddress', ip, { address: '203.0.113.8' }), /address cannot be changed/);
  assert.throws(() => bed.editSpec('IPAddressClass', 'public', { provisioner: 'x' }), /provisioner cannot be changed/);
});

scenario('A14: an IPv4 address that is stored as IPv6 is an IPv4 address', async (bed) => {
  bed.class();
  bed.claim();
  const spec = {
    className: 'public',
    address: '::ffff:203.0.113.7',
    source: { fromClass: {} },
    reclaimPolicy: 'Retain',
  };
  bed.server.plant(ledgerObject('IPAddress', 'mapped', spec));
  await bed.settle();
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.got()], ['Bound', ['mapped']]);
});

scenario('A15: a released address returns when the delay of its class is over', async (bed) => {
  await released(bed, { releaseDelay: '1h' });
  await bed.wait(59 * 60_000);
  assert.is(phase(bed), 'Released');
  await bed.wait(60_000);
  assert.equal([phase(bed), bed.claimRef(ip)], ['Available', undefined]);
  assert.is(bed.reasons(ip).at(-1), 'Returned');
});

scenario('A16: while it is held it stays, and time counts on', async (bed) => {
  await released(bed, { releaseDelay: '1h' });
  bed.annotate('IPAddress', ip, annotations.held, 'true');
  await bed.wait(3 * hour);
  assert.is(phase(bed), 'Released');
  bed.annotate('IPAddress', ip, annotations.held, undefined);
  await bed.settle();
  assert.is(phase(bed), 'Available');
});

scenario('A17 and Q7: held means nothing but the return', async (bed) => {
  await released(bed);
  bed.annotate('IPAddress', ip, annotations.held, 'true');
  await bed.wait(hour);
  assert.is(phase(bed), 'Released');
  bed.editSpec('IPAddress', ip, { claimRef: undefined });
  await bed.settle();
  assert.is(phase(bed), 'Available');
  bed.claim('mail');
  await bed.settle();
  assert.equal([phase(bed), bed.got('mail')], ['Bound', [ip]]);
});

for (const value of ['false', '1', 'True'])
  scenario(`A18: "${value}" does not hold`, async (bed) => {
    await released(bed, { releaseDelay: '1h' });
    bed.annotate('IPAddress', ip, annotations.held, value);
    await bed.wait(hour);
    assert.is(phase(bed), 'Available');
  });

scenario('A19: a delay that is made shorter counts for what is released', async (bed) => {
  await released(bed, { releaseDelay: '24h' });
  await bed.wait(2 * hour);
  bed.editSpec('IPAddressClass', 'public', { releaseDelay: '1h' });
  await bed.settle();
  assert.is(phase(bed), 'Available');
});

test('a delay of weeks is waited for in days, since no timer holds it', async () => {
  const bed = new LedgerBed();
  await released(bed, { releaseDelay: '720h' });
  const plan = planAddress(bed.core.ledger, ip, bed.now);
  assert.is(plan.againMs, 24 * hour);
  for (let day = 1; day < 30; day += 1) await bed.wait(24 * hour);
  assert.is(phase(bed), 'Released');
  await bed.wait(24 * hour);
  assert.is(phase(bed), 'Available');
});

scenario('A21: under Delete there is no delay', async (bed) => {
  await held(bed, { reclaimPolicy: 'Delete' }, { releaseDelay: '1h' });
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(bed.find('IPAddress', ip), undefined);
});

scenario('A22: a delay that ended while nothing ran ends at the first look', async (bed) => {
  await released(bed, { releaseDelay: '1h' });
  bed.now += 5 * hour;
  bed.core.restart();
  await bed.settle();
  assert.is(phase(bed), 'Available');
});

scenario('A23: the condition moves once a flip', async (bed) => {
  const seen: string[] = [];
  const times = new Set<string>();
  const look = (): void => {
    seen.push(bound(bed));
    times.add(String(bed.conditionOf('IPAddress', ip, 'Bound')?.lastTransitionTime));
  };
  bed.class('public', { releaseDelay: '1h' });
  bed.address('203.0.113.7');
  await bed.settle();
  look();
  await bed.wait(60_000);
  bed.claim();
  await bed.settle();
  look();
  await bed.wait(60_000);
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  look();
  await bed.wait(hour);
  look();
  assert.equal(seen, ['False/Available', 'True/Bound', 'False/Released', 'False/Available']);
  assert.is(times.size, 3);
});

scenario('A24: without its class a released address is never returned', async (bed) => {
  await released(bed, { releaseDelay: '1h' });
  bed.delete('IPAddressClass', 'public');
  bed.strip('IPAddressClass', 'public');
  await bed.wait(2 * hour);
  assert.is(phase(bed), 'Released');
});

scenario('a delay of nothing returns at once, and one that a workload still uses does not return', async (bed) => {
  await held(bed, {}, { releaseDelay: '0s' });
  const associatedTo = { kind: 'Service', namespace: 'tenant-a', name: 'web' };
  bed.editStatus('IPAddress', ip, { associatedTo });
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.equal([phase(bed), bed.live('IPAddress', ip).status?.associatedTo], ['Released', associatedTo]);
  const { associatedTo: _, ...status } = bed.live('IPAddress', ip).status ?? {};
  bed.server.updateStatus(bed.live('IPAddress', ip), status);
  await bed.settle();
  assert.is(phase(bed), 'Available');
});

scenario('an address that was never Bound is released now, and not since it began to wait', async (bed) => {
  bed.class('public', { releaseDelay: '1h' });
  bed.class('private');
  bed.claim('web', { className: 'private' });
  bed.address('203.0.113.7', { claimRef });
  await bed.wait(5 * hour);
  assert.is(bound(bed), 'False/PreBindingRefused');
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(phase(bed), 'Released');
  await bed.wait(hour - 60_000);
  assert.is(phase(bed), 'Released');
  await bed.wait(60_000);
  assert.is(phase(bed), 'Available');
});

for (const state of ['Conflict', 'Lost'])
  scenario(
    `${state}: a claim that an administrator puts in the place of another has not had the address`,
    async (bed) => {
      await held(bed);
      bed.class('other');
      const { metadata } = bed.claim('next', { className: 'other' });
      bed.editStatus('IPAddress', ip, { phase: state });
      bed.editSpec('IPAddress', ip, { claimRef: undefined });
      await bed.settle();
      assert.equal([phase(bed), bound(bed)], [state, 'False/Available']);
      bed.editSpec('IPAddress', ip, { claimRef: { namespace: 'tenant-a', name: 'next', uid: metadata.uid ?? '' } });
      await bed.settle();
      assert.equal([bed.phase('IPAddressClaim', 'next'), bed.got('next')], ['Pending', []]);
      assert.ok(bed.reasons('next').includes('PreBindingRefused'));
    },
  );

scenario('a claim that the watch does not show yet does not lose its address', async (bed) => {
  bed.class();
  await bed.settle();
  const { metadata } = bed.claim();
  const made = bed.address('203.0.113.7', {
    claimRef: { ...claimRef, uid: metadata.uid ?? '' },
    reclaimPolicy: 'Delete',
  });
  bed.core.seen(made);
  await bed.core.pass(`IPAddress ${ip}`);
  assert.ok(bed.core.reads.includes('IPAddressClaim'));
  await bed.settle();
  assert.is(phase(bed), 'Bound');
});

test.run();
