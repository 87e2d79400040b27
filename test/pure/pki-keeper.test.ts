/** The keeper of the authority beside a wall clock that jumps and an API server that takes no byte. */
import { X509Certificate } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { AuthorityKeeper } from '../../executor/pki/keeper.ts';
import { VirtualClock } from './virtualClock.ts';

const day = 86_400_000;
const signal = new AbortController().signal;

/** As much of an API server as the keeper needs: objects by kind, and whether any more may be written. */
function store() {
  const objects = new Map<string, KubeObject>();
  let version = 0;
  const made = {
    objects,
    full: false,
    /** Whether somebody else holds what tells probes whom to believe. */
    held: false,
    client: {
      get: async ({ kind }: { kind: string }) => {
        const object = objects.get(kind);
        return object === undefined ? { type: 'absent' } : { type: 'found', object };
      },
      apply: async (object: KubeObject) => {
        if (made.held && object.kind === 'ConfigMap') return { type: 'conflict', message: 'somebody holds ca.crt' };
        if (made.full) return { type: 'unavailable', message: 'etcdserver: mvcc: database space exceeded' };
        version += 1;
        const before = objects.get(object.kind);
        const metadata = { ...before?.metadata, ...object.metadata, resourceVersion: String(version) };
        objects.set(object.kind, { ...object, metadata });
        return { type: before === undefined ? 'created' : 'configured', object };
      },
    } as unknown as KubeClient,
  };
  return made;
}

function bed() {
  const [clock, api] = [new VirtualClock(), store()];
  const said: string[] = [];
  const common = { client: api.client, clock, namespace: 'keelson-system', probeNamespaces: ['kube-system'] };
  const keeper = () => new AuthorityKeeper({ ...common, log: (_level, message) => said.push(message) });
  return { clock, api, said, keeper };
}

const isValid = (pem: string, now: number): boolean => {
  const { validFromDate, validToDate } = new X509Certificate(pem);
  return validFromDate.getTime() <= now && now < validToDate.getTime();
};

test('a clock that was two years ahead for ten minutes: what is signed with afterwards is valid at once, and a person is heard', async () => {
  const { clock, api, keeper } = bed();
  const one = keeper();
  await one.step(signal);
  const first = one.trust()?.signer.id;
  clock.jump(730 * day);
  for (let n = 0; n < 22; n += 1) {
    await one.step(signal);
    await clock.advance(30_000);
  }
  assert.is.not(one.trust()?.signer.id, first, 'it seemed to have expired');
  clock.jump(-730 * day);
  // The process that saw it, and one that comes after.
  for (const running of [one, keeper()]) {
    await running.step(signal);
    const trust = running.trust();
    assert.is(trust?.signer.id, first);
    assert.ok(isValid(trust?.signer.certificate ?? '', clock.now()));
    assert.ok(isValid(trust?.identities[0]?.certificate ?? '', clock.now()), 'as whom it dials first');
  }
  for (let n = 0; n < 30; n += 1) {
    await clock.advance(3_600_000);
    await one.step(signal);
    assert.ok(isValid(one.trust()?.signer.certificate ?? '', clock.now()), `hour ${n}`);
    assert.ok(isValid(one.trust()?.identities[0]?.certificate ?? '', clock.now()), `hour ${n}`);
  }
  const current = one.trust()?.signer.id;
  assert.is.not(current, first);
  const secret = api.objects.get('Secret');
  assert.ok(secret);
  const asking = { ...secret.metadata, annotations: { [annotations.rotate]: 'asked' } };
  api.objects.set('Secret', { ...secret, metadata: asking });
  await one.step(signal);
  await clock.advance(301_000);
  await one.step(signal);
  assert.is.not(one.trust()?.signer.id, current);
});

test('a certificate that was made while the clock was ahead is replaced as soon as it is right', async () => {
  const { clock, keeper } = bed();
  const one = keeper();
  await one.step(signal);
  // Not so far that the authority would be replaced, and farther than a certificate lives.
  clock.jump(60 * day);
  await one.step(signal);
  clock.jump(-60 * day);
  await one.step(signal);
  assert.ok(isValid(one.trust()?.identities[0]?.certificate ?? '', clock.now()));
});

test('a store that takes no byte: nobody is believed whose key would be lost; it is told, and mended once there is room', async () => {
  const { clock, api, said, keeper } = bed();
  api.full = true;
  const one = keeper();
  await one.step(signal);
  await one.step(signal);
  assert.is(one.trust(), undefined);
  assert.equal(said, [
    'Secret keelson-system/keelson-evidence-ca is not written: etcdserver: mvcc: database space exceeded',
  ]);
  api.full = false;
  await one.step(signal);
  const signer = one.trust()?.signer.id;
  assert.ok(signer);
  // Later on the store is full when an authority is due: the one there is goes on.
  api.full = true;
  clock.jump(300 * day);
  await one.step(signal);
  assert.is(one.trust()?.signer.id, signer);
  api.full = false;
  await one.step(signal);
  await clock.advance(301_000);
  await one.step(signal);
  assert.is.not(one.trust()?.signer.id, signer);
});

test('a successor that probes can not be told of waits until they are', async () => {
  const { clock, api, said, keeper } = bed();
  const one = keeper();
  await one.step(signal);
  const signer = one.trust()?.signer.id;
  const secret = api.objects.get('Secret');
  assert.ok(secret);
  const asking = { ...secret.metadata, annotations: { [annotations.rotate]: 'asked' } };
  api.objects.set('Secret', { ...secret, metadata: asking });
  api.held = true;
  for (let n = 0; n < 40; n += 1) {
    await one.step(signal);
    await clock.advance(3_600_000);
    assert.is(one.trust()?.signer.id, signer, `hour ${n}`);
  }
  assert.ok(said.includes('somebody holds ca.crt'), said.join('; '));
  // Nor does a process that comes now believe that they were.
  api.held = false;
  const next = keeper();
  await next.step(signal);
  assert.is(next.trust()?.signer.id, signer);
  await next.step(signal);
  assert.is.not(next.trust()?.signer.id, signer);
});

test('who asks right after the start waits for the authority, and not for ever', async () => {
  const { clock, api, keeper } = bed();
  const [one, none] = [keeper(), keeper()];
  let over = 0;
  const waiting = [one, none].map((each) => each.settled(10_000, signal).then(() => ++over));
  await one.step(signal);
  await waiting[0];
  assert.equal([over, one.trust() === undefined], [1, false]);
  api.full = true;
  await clock.advance(10_000);
  await waiting[1];
  assert.is(none.trust(), undefined);
  await one.settled(10_000, signal);
});

test.run();
