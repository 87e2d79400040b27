import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressLeases } from '../../constructs/api/addresses.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { type ControllersSeen, controllersSeen } from '../../executor/addressbook/finalizers/leases.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { VirtualClock } from './virtualClock.ts';

/** Whether a controller of the ledger runs, by what its Leases show over time. */

const lease = (spec: JsonObject, version = '1', name: string = addressLeases.core): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, namespace: 'keelson-system', resourceVersion: version },
  spec,
});

/** Looks at Leases that are as `at` says after so many milliseconds. @returns what was seen, when, and what was told. */
async function look(
  at: (ms: number) => readonly KubeObject[],
): Promise<{ seen: ControllersSeen; ms: number; told: string[] }> {
  const clock = new VirtualClock();
  const told: string[] = [];
  const list = async ({ name }: { readonly name?: string }) => ({
    type: 'listed',
    items: at(clock.monotonic()).filter(({ metadata }) => metadata.name === name),
  });
  const client = { list } as unknown as Pick<KubeClient, 'list'>;
  const looking = controllersSeen({ client, clock, signal: new AbortController().signal }, (line) => told.push(line));
  const state = { over: false };
  void looking.finally(() => {
    state.over = true;
  });
  for (let n = 0; n < 200 && !state.over; n += 1) await clock.next();
  return { seen: await looking, ms: clock.monotonic(), told };
}

const free = lease({ holderIdentity: '', leaseDurationSeconds: 1 });

test('without any Lease of theirs nobody runs, and nobody waits', async () => {
  const other = lease({ holderIdentity: 'x' }, '1', 'another');
  assert.equal(await look(() => [other]), { seen: { type: 'gone', abandoned: [] }, ms: 0, told: [] });
});

test('a Lease that was given back may be taken by a pod that is only starting', async () => {
  const taken = lease({ holderIdentity: 'next', leaseDurationSeconds: 15 }, '2');
  const { seen, ms } = await look((now) => [now < 20_000 ? free : taken]);
  assert.is(seen.type === 'running' && seen.leases[0]?.holder, 'next');
  assert.is(ms, 20_000);
  const fresh = lease({ holderIdentity: 'driver', leaseDurationSeconds: 15 }, '1', addressLeases.driver);
  const second = await look((now) => (now < 5_000 ? [free] : [free, fresh]));
  assert.is(second.seen.type === 'running' && second.seen.leases[0]?.holder, 'driver');
});

test('nobody takes it: gone, after half a minute', async () => {
  const { seen, ms, told } = await look(() => [free]);
  assert.equal([seen, ms], [{ type: 'gone', abandoned: [] }, 30_000]);
  assert.equal(told, [`looking for 30 s whether Lease keelson-system/${addressLeases.core} is renewed or taken`]);
});

test('a Lease that names who does not renew it is looked at for as long as it lasts, and for half a minute', async () => {
  for (const [seconds, expected] of [
    [1, 30_000],
    [45, 45_000],
  ] as const) {
    const held = lease({ holderIdentity: 'dead', leaseDurationSeconds: seconds });
    const { seen, ms, told } = await look(() => [held]);
    assert.equal([seen.type, ms], ['gone', expected]);
    assert.is(seen.type === 'gone' && seen.abandoned[0]?.holder, 'dead');
    assert.match(told[0] ?? '', / of dead is renewed/);
  }
});

test('one that is held for longer than anybody looks is taken for held', async () => {
  const { seen, ms } = await look(() => [lease({ holderIdentity: 'slow', leaseDurationSeconds: 3_600 })]);
  assert.equal([seen.type, ms], ['running', 0]);
});

test.run();
