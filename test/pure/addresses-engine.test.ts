import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { LedgerWrite } from '../../executor/addresses/api.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import type { PassKey } from '../../executor/addresses/core/wake.ts';
import { LedgerEngine } from '../../executor/addresses/engine.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import { Locks } from '../../executor/addresses/locks.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { ledgerObject, ModelServer, modelApi, provisioner } from './addresses-model.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const never = new AbortController().signal;

/** An engine whose writes arrive when the test says so. */
function held() {
  const server = new ModelServer(() => 0);
  const api = modelApi(server);
  const waiting: (() => void)[] = [];
  const queue: PassKey[] = [];
  const hold = (send: () => LedgerWrite): Promise<LedgerWrite> =>
    new Promise((resolve) => waiting.push(() => resolve(send())));
  const engine = new LedgerEngine<PassKey>({
    api: {
      create: (object) => hold(() => api.create(object)),
      patch: (target, patch) => hold(() => api.patch(target, patch)),
      status: (target, status) => hold(() => api.status(target, status)),
      remove: (target) => hold(() => api.remove(target)),
      read: async (ref) => api.read(ref),
      addresses: async () => api.addresses(),
    },
    ledger: new LedgerStore(),
    controllers: coreControllers,
    now: () => 0,
    wake: (key) => queue.push(key),
    tell: () => undefined,
  });
  const create = (object: KubeObject): KubeObject => {
    const outcome = server.create(object);
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
    engine.seen(outcome.object);
    return outcome.object;
  };
  /** Lets writes arrive until the passes are over. */
  const finish = async (passes: readonly Promise<unknown>[]): Promise<void> => {
    let open = true;
    const over = Promise.all(passes).then(() => {
      open = false;
    });
    while (open) {
      waiting.shift()?.();
      await turn();
    }
    await over;
  };
  return { server, engine, create, finish, waiting, queue };
}

test('a claim and an address that it may take are never decided at the same time', async () => {
  const { server, engine, create, finish, waiting, queue } = held();
  create(ledgerObject('IPAddressClass', 'public', { provisioner }));
  const claim = create(ledgerObject('IPAddressClaim', 'web', { className: 'public' }));
  const address = (n: number, uid?: string): KubeObject =>
    create(
      ledgerObject('IPAddress', `ip-${n}`, {
        className: 'public',
        address: `203.0.113.${n}`,
        claimRef: { namespace: 'tenant-a', name: 'web', ...(uid === undefined ? {} : { uid }) },
        source: { fromClass: {} },
      }),
    );
  address(2);
  // The claim has decided for the one that it knows; its writes are on their way.
  const first = engine.pass('IPAddressClaim tenant-a/web', never);
  await turn();
  assert.is(waiting.length, 1);
  // Meanwhile a driver has made one with the UID of the claim.
  address(1, claim.metadata.uid);
  const second = engine.pass('IPAddress ip-1', never);
  await turn();
  assert.is(waiting.length, 1, 'the second pass waits');
  await finish([first, second]);
  for (let key = queue.shift(); key !== undefined; key = queue.shift()) await finish([engine.pass(key, never)]);
  const phases = ['ip-1', 'ip-2'].map((name) => server.get({ kind: 'IPAddress', name })?.status?.phase);
  assert.equal(phases, ['Pending', 'Bound']);
});

test('passes about different things do not wait for each other', async () => {
  const { engine, create, waiting, finish } = held();
  create(ledgerObject('IPAddressClaim', 'a', {}));
  create(ledgerObject('IPAddressClaim', 'b', {}));
  const passes = ['a', 'b'].map((name) => engine.pass(`IPAddressClaim tenant-a/${name}`, never));
  await turn();
  assert.is(waiting.length, 2);
  await finish(passes);
});

test('locks of several names are taken without waiting for each other in a circle', async () => {
  const locks = new Locks();
  const done: string[] = [];
  const work = (name: string) => async (): Promise<void> => {
    await turn();
    done.push(name);
  };
  await Promise.all([
    locks.hold(['a', 'b'], work('ab')),
    locks.hold(['b', 'a'], work('ba')),
    locks.hold(['b', 'c', 'b'], work('bc')),
    locks.hold(['a'], () => Promise.reject(new Error('x'))).catch(() => done.push('failed')),
  ]);
  assert.equal(done.sort(), ['ab', 'ba', 'bc', 'failed']);
});

const version = (object: KubeObject, resourceVersion: string): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion },
});

test('what is older than what is known changes nothing, and what was seen to be gone stays gone', () => {
  const ledger = new LedgerStore();
  const address = ledgerObject('IPAddress', 'ip-1', { className: 'public', address: '203.0.113.1' }, { uid: 'u' });
  assert.ok(ledger.put(version(address, '9')));
  assert.is(ledger.put(version(address, '9')), undefined);
  assert.ok(ledger.put(version(address, '10')));
  assert.is(ledger.put(version(address, '9')), undefined, 'older');
  assert.equal(
    [...ledger.freeOf('public')].map(({ name }) => name),
    ['ip-1'],
  );
  assert.ok(ledger.drop(version(address, '10'), 'look'));
  assert.is(ledger.put(version(address, '10')), undefined, 'the watch is late');
  assert.equal([...ledger.freeOf('public')], []);
  assert.is(ledger.drop(version(address, '11'), 'watch'), undefined);
  const again = { ...address, metadata: { ...address.metadata, uid: 'v', resourceVersion: '12' } };
  assert.ok(ledger.put(again));
  assert.is(ledger.drop(version(address, '11'), 'watch'), undefined, 'another object has the name');
  assert.equal(
    ledger.addressesAt('203.0.113.1').map(({ uid }) => uid),
    ['v'],
  );
});

test('the answer to a write that comes after the deletion was told makes no ghost; what was out of sight comes back', () => {
  const ledger = new LedgerStore();
  const address = ledgerObject('IPAddress', 'ip-1', { className: 'public', address: '203.0.113.1' }, { uid: 'u' });
  ledger.put(version(address, '9'));
  // Our write made it version 10, and somebody deleted it at 11; the watch was faster than our answer.
  ledger.drop(version(address, '11'), 'watch');
  assert.is(ledger.put(version(address, '10')), undefined);
  assert.is(ledger.address('ip-1'), undefined);
  const other = ledgerObject('IPAddress', 'ip-2', { className: 'public', address: '203.0.113.2' }, { uid: 'w' });
  ledger.put(version(other, '9'));
  // Its kind was not served for a moment: a list without it, and one with it.
  ledger.drop(version(other, '9'), 'watch');
  assert.ok(ledger.put(version(other, '9')));
});

test.run();
