import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import type { PassKey } from '../../executor/addresses/core/wake.ts';
import { LedgerEngine } from '../../executor/addresses/engine.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import { LedgerBed, scenario } from './addresses-bed.ts';
import { ledgerObject, ModelServer, modelApi, provisioner } from './addresses-model.ts';

/** Claims that wait: the oldest is served first, and only those are looked at whose turn it is. */

/** Claims that wait, each a second younger than the one before it. */
async function wait(bed: LedgerBed, names: readonly string[], spec = {}): Promise<void> {
  for (const name of names) {
    bed.claim(name, { className: 'public', ...spec });
    await bed.wait(1_000);
  }
}
const bound = (bed: LedgerBed): string[] =>
  bed.server
    .list('IPAddressClaim')
    .filter(({ status }) => status?.phase === 'Bound')
    .map(({ metadata }) => metadata.name ?? '')
    .sort();

scenario('the claim that waits longest is served first, whatever its name', async (bed) => {
  bed.class('public', {}, { annotations: { [addressAnnotations.defaultClass]: 'true' } });
  await wait(bed, ['z']);
  await wait(bed, ['m'], { className: undefined });
  await wait(bed, ['a', 'b']);
  const served: string[] = [];
  for (const n of [1, 2, 3, 4]) {
    bed.address(`203.0.113.${n}`);
    await bed.settle();
    served.push(...bound(bed).filter((name) => !served.includes(name)));
  }
  assert.equal(served, ['z', 'm', 'a', 'b']);
});

scenario('claims without a class wait in the line of the default once there is one', async (bed) => {
  await wait(bed, ['z'], { className: undefined });
  bed.class('public');
  await wait(bed, ['a']);
  bed.address('203.0.113.1');
  await bed.settle();
  assert.equal(bound(bed), ['a'], 'nobody else could have it');
  bed.annotate('IPAddressClass', 'public', addressAnnotations.defaultClass, 'true');
  await wait(bed, ['b']);
  bed.address('203.0.113.2');
  await bed.settle();
  assert.equal(bound(bed), ['a', 'z']);
  bed.address('203.0.113.3');
  await bed.settle();
});

scenario('an address is for the oldest that lacks one of its family', async (bed) => {
  bed.class();
  bed.address('2001:db8::1');
  await wait(bed, ['z'], { family: 'IPv6' });
  await wait(bed, ['y', 'x'], { family: 'IPv6' });
  await wait(bed, ['w'], { family: 'Dual' });
  await wait(bed, ['a'], { family: 'IPv4' });
  bed.address('2001:db8::2');
  await bed.settle();
  bed.address('203.0.113.1');
  await bed.settle();
  assert.equal(bound(bed), ['y', 'z']);
  assert.equal(bed.got('w'), ['ip-203-0-113-1']);
});

scenario('who leaves the line makes room for the next', async (bed) => {
  bed.class();
  await wait(bed, ['z', 'y', 'x']);
  // The address is offered to z, and z is gone before it is looked at.
  bed.address('203.0.113.1');
  bed.core.deliver();
  bed.delete('IPAddressClaim', 'z');
  await bed.settle();
  assert.equal(bound(bed), ['y']);
  bed.address('203.0.113.2');
  bed.core.deliver();
  bed.editSpec('IPAddressClaim', 'x', { className: 'other' });
  await wait(bed, ['w']);
  assert.equal(bound(bed), ['w', 'y']);
});

test('many that wait are not looked at for one address', async () => {
  const bed = new LedgerBed(false);
  bed.class();
  for (let n = 0; n < 5_000; n += 1) bed.claim(`c-${String(n).padStart(4, '0')}`);
  await bed.settle(100_000);
  const before = bed.core.passes;
  bed.address('203.0.113.1');
  await bed.settle();
  assert.equal(bound(bed), ['c-0000']);
  assert.ok(bed.core.passes - before <= 8, `${bed.core.passes - before} passes`);
  const many = bed.core.passes;
  for (let n = 2; n < 102; n += 1) bed.address(`203.0.113.${n}`);
  await bed.settle(100_000);
  assert.equal(bound(bed).length, 101);
  assert.is(bound(bed).at(-1), 'c-0100');
  assert.ok(bed.core.passes - many <= 100 * 8, `${bed.core.passes - many} passes`);
});

test('one whose turn it is and that can not be written keeps it from nobody else, and is not asked without end', async () => {
  const server = new ModelServer(() => 0);
  const api = modelApi(server);
  const [woken, offered] = [[] as PassKey[], [] as PassKey[]];
  const engine = new LedgerEngine<PassKey>({
    api: {
      create: async (object) => api.create(object),
      patch: async (target, patch) =>
        target.kind === 'IPAddress' && patch.claimRef?.name === 'old'
          ? { type: 'refused', message: 'not by you' }
          : api.patch(target, patch),
      status: async (target, status) => api.status(target, status),
      remove: async (target) => api.remove(target),
      read: async (ref) => api.read(ref),
      addresses: async () => api.addresses(),
    },
    ledger: new LedgerStore(),
    controllers: coreControllers,
    now: () => 0,
    wake: (key) => woken.push(key),
    offer: (key) => offered.push(key),
    tell: () => undefined,
  });
  const create = (...args: Parameters<typeof ledgerObject>): void => {
    const outcome = server.create(ledgerObject(...args));
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
    engine.seen(outcome.object);
  };
  create('IPAddressClass', 'public', { provisioner });
  create('IPAddressClaim', 'old', { className: 'public' });
  create('IPAddressClaim', 'young', { className: 'public' });
  create('IPAddress', 'ip-1', { className: 'public', address: '203.0.113.1', source: { fromClass: {} } });
  const never = new AbortController().signal;
  await engine.pass('IPAddress ip-1', never);
  woken.length = 0;
  assert.equal(await engine.pass('IPAddressClaim tenant-a/old', never), { type: 'failed' });
  assert.equal(offered, ['IPAddressClaim tenant-a/young']);
  assert.not.ok(woken.includes('IPAddressClaim tenant-a/young'));
  assert.equal(await engine.pass('IPAddressClaim tenant-a/young', never), { type: 'done' });
});

test.run();
