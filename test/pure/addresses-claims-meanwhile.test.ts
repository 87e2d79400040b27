import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LedgerBed, scenario } from './addresses-bed.ts';

/** Claims that are written by others in the same moment, and claims that nobody changes; by the ids of the catalogue. */

const claimRef = { namespace: 'tenant-a', name: 'web' };
const claim = (bed: LedgerBed, name = 'web') => bed.live('IPAddressClaim', name);
const phase = (bed: LedgerBed, name = 'web') => bed.phase('IPAddressClaim', name);

for (const late of ['the first write', 'the status'] as const)
  test(`C32: ${late} comes too late: it is decided anew, and told once`, async () => {
    const bed = new LedgerBed();
    bed.class();
    bed.claim();
    bed.core.deliver();
    // Somebody else writes the claim right before, and the watch has not told of it.
    const meanwhile = (): void => bed.annotate('IPAddressClaim', 'web', 'other', 'x');
    if (late === 'the first write') meanwhile();
    else bed.core.before = (line) => (line === 'status IPAddressClaim web' ? meanwhile() : undefined);
    await bed.core.pass('IPAddressClaim tenant-a/web');
    bed.core.before = undefined;
    const tried = bed.core.writes.filter((line) => line === 'status IPAddressClaim web').length;
    assert.is(tried, late === 'the status' ? 2 : 1);
    await bed.settle();
    assert.equal([phase(bed), bed.reasons('web')], ['Pending', ['Pending']]);
    assert.is(claim(bed).metadata.annotations?.other, 'x');
  });

test('C33, race 1: of two claims that want one address one gets it', async () => {
  const bed = new LedgerBed();
  bed.class();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.claim('a');
  bed.claim('b');
  bed.core.deliver();
  await Promise.all([bed.core.pass('IPAddressClaim tenant-a/a'), bed.core.pass('IPAddressClaim tenant-a/b')]);
  await bed.settle();
  assert.equal([phase(bed, 'a'), phase(bed, 'b')].sort(), ['Bound', 'Pending']);
  await bed.quiet();
});

scenario('C34: who takes the claimRef away wakes the former owner', async (bed) => {
  bed.class();
  bed.claim();
  bed.address('203.0.113.7');
  await bed.settle();
  bed.editSpec('IPAddress', 'ip-203-0-113-7', { claimRef: undefined });
  await bed.settle();
  assert.equal([phase(bed), bed.phase('IPAddress', 'ip-203-0-113-7')], ['Lost', 'Available']);
});

test('C35: two hundred looks at what has not changed write and say nothing', async () => {
  const bed = new LedgerBed();
  bed.class();
  bed.claim();
  bed.claim('none', { className: 'nowhere' });
  bed.address('203.0.113.7');
  bed.address('203.0.113.8', { claimRef: { ...claimRef, name: 'none' } });
  await bed.settle();
  for (let n = 0; n < 100; n += 1) await bed.quiet();
});

test.run();
