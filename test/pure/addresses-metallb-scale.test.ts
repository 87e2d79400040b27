import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { linkTo, placeholder } from '../../executor/addresses/metallb/holds.ts';
import { holdName } from '../../executor/addresses/metallb/names.ts';
import { MetallbBed } from './addresses-metallb-bed.ts';
import { ledgerObject } from './addresses-model.ts';

/** A ledger of 10,000 held addresses in 200 classes: what a start, and what one change, makes the driver look at. */

const count = 10_000;
const classes = 200;
const bed = new MetallbBed({}, false);
Object.assign(bed.runs, { core: false, metallb: false });
const ipOf = (n: number): string => `10.${n % classes}.${Math.floor(n / classes)}.1`;
const many = 1_000_000;

const since = (): { readonly writes: () => number; readonly passes: () => number } => {
  const { writes, passes } = bed.driver;
  const before = writes.length;
  return { writes: () => bed.driver.writes.length - before, passes: () => bed.driver.passes - passes };
};

/** An address as it is once it is held, with its placeholder. */
function plant(n: number): void {
  const className = `class-${n % classes}`;
  const held = { type: 'Held', status: 'True', reason: 'Reserved', lastTransitionTime: '2026-01-01T00:00:00Z' };
  const name = `ip-${n}`;
  const message = `placeholder ${holdName(name)} holds the address`;
  const address = bed.server.plant({
    ...ledgerObject('IPAddress', name, {
      className,
      address: ipOf(n),
      reclaimPolicy: 'Retain',
      source: { fromClass: {} },
    }),
    status: { phase: 'Available', conditions: [{ ...held, message }] },
  });
  const owner = { apiVersion: address.apiVersion, kind: 'IPAddress', name, uid: address.metadata.uid ?? '' };
  const link = linkTo(name, ipOf(n));
  const annotations = Object.fromEntries(
    Object.entries(link.annotations).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
  );
  const object = placeholder(bed.settings, {
    name: holdName(name),
    family: 'IPv4',
    className,
    labels: link.labels,
    annotations,
    owners: [owner],
  });
  bed.server.plant({ ...object, status: { loadBalancer: { ingress: [{ ip: ipOf(n) }] } } });
}

test('a start looks at everything once, and writes nothing', async () => {
  for (let n = 0; n < classes; n += 1) bed.class([`10.${n}.0.0/16`], {}, `class-${n}`);
  await bed.settle(many);
  for (let n = 0; n < count; n += 1) plant(n);
  const start = since();
  const started = performance.now();
  bed.driver.restart();
  await bed.settle(many);
  console.error(`${count} held addresses looked at in ${((performance.now() - started) / 1000).toFixed(1)} s`);
  assert.equal([start.writes(), start.passes()], [0, classes + count]);
});

test('D35: one change makes only what it concerns be looked at', async () => {
  const plain = since();
  bed.service('plain');
  await bed.settle();
  assert.equal([plain.writes(), plain.passes()], [0, 1], 'a Service that has nothing of ours');
  const asks = since();
  bed.service('asks', { pin: ipOf(7) });
  await bed.settle();
  assert.equal([asks.writes(), asks.passes()], [0, 2], 'the Service, and the address that it asks for');
  const held = since();
  bed.annotate('IPAddress', 'ip-7', 'other', 'x');
  await bed.settle();
  assert.equal([held.writes(), held.passes()], [0, 1], 'an address');
  const hold = since();
  const service = bed.placeholder(holdName('ip-8'));
  bed.server.update({
    ...service,
    metadata: { ...service.metadata, annotations: { ...service.metadata.annotations, other: 'x' } },
  });
  await bed.settle();
  assert.equal([hold.writes(), hold.passes()], [0, 1], 'the address of a placeholder');
  const kind = since();
  bed.annotate('IPAddressClass', 'class-9', 'other', 'x');
  await bed.settle();
  assert.equal([kind.writes(), kind.passes()], [0, 1], 'a class that nobody waits for');
});

test.run();
