import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { objectOf } from '../../constructs/lib/json.ts';
import { MetallbBed } from './addresses-metallb-bed.ts';

/** A cluster that has Services of IPv4 alone, and what asks it for others. */

const message = 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster';

function singleStack(): MetallbBed {
  const bed = new MetallbBed();
  bed.driver.invalid = ({ kind, spec }) =>
    kind === 'Service' && JSON.stringify(objectOf(spec).ipFamilies).includes('IPv6') ? message : undefined;
  return bed;
}
const told = (bed: MetallbBed, about: string): string[] =>
  bed.driver.reasons(about).filter((reason) => reason === 'PlaceholderRefused');

test('a claim of a family that the cluster does not have is told so once, and asked for every ten minutes', async () => {
  const bed = singleStack();
  bed.class();
  const { metadata } = bed.claim('six', { family: 'IPv6' });
  await bed.settle();
  assert.equal(bed.driver.foundInvalid, [`iad-${metadata.uid}-v6`]);
  assert.equal(told(bed, 'six'), ['PlaceholderRefused']);
  assert.match(bed.driver.events.find(({ about }) => about === 'six')?.note ?? '', message);
  // Whatever wakes it: nothing is sent.
  bed.annotate('IPAddressClaim', 'six', 'other', 'x');
  bed.annotate('IPAddressClass', 'public', 'other', 'x');
  bed.claim('four');
  await bed.wait(599_000);
  assert.is(bed.driver.foundInvalid.length, 1);
  await bed.wait(2_000);
  assert.is(bed.driver.foundInvalid.length, 2);
  await bed.wait(3_600_000);
  assert.is(bed.driver.foundInvalid.length, 3);
  assert.equal([told(bed, 'six').length, bed.driver.problems.length], [1, 1]);
  // The cluster is given the family.
  bed.driver.invalid = () => undefined;
  await bed.wait(600_000);
  assert.is(bed.phase('IPAddressClaim', 'six'), 'Bound');
});

test('of a Dual claim the family that there is gets its address, and the other is asked for once', async () => {
  const bed = singleStack();
  bed.class();
  bed.claim('both', { family: 'Dual' });
  await bed.settle();
  assert.is(bed.phase('IPAddress', 'ip-203-0-113-0'), 'Bound');
  assert.equal([bed.driver.foundInvalid.length, told(bed, 'both').length], [1, 1]);
});

test('a class that is changed is tried at once', async () => {
  const bed = singleStack();
  bed.class();
  bed.class(['2001:db8:1::/126'], {}, 'other');
  bed.claim('six', { family: 'IPv6' });
  await bed.settle();
  bed.editSpec('IPAddressClaim', 'six', { className: 'other' });
  await bed.settle();
  assert.is(bed.driver.foundInvalid.length, 2);
});

test('a recorded address of that family is told that nothing holds it', async () => {
  const bed = singleStack();
  bed.class();
  bed.address('ip-six', '2001:db8::1');
  await bed.settle();
  bed.annotate('IPAddress', 'ip-six', 'other', 'x');
  await bed.settle();
  assert.equal([bed.driver.foundInvalid, told(bed, 'ip-six').length], [['iad-ip-six'], 1]);
});

test.run();
