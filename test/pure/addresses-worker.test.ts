import { Registry } from 'prom-client';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import { coreMetrics } from '../../executor/addresses/core/metrics.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import { readLedgerObject } from '../../executor/addresses/objects.ts';
import { runLedger } from '../../executor/addresses/worker.ts';
import { createClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { ledgerObject, provisioner } from './addresses-model.ts';
import { type Scripted, scriptedTransport } from './fakeTransport.ts';

const group = '/apis/local.sdn.cozystack.io/v1alpha1';
const verbs = ['get', 'list', 'watch', 'patch', 'delete'];
const resources = [
  { name: 'ipaddressclasses', kind: 'IPAddressClass', namespaced: false, verbs },
  { name: 'ipaddresses', kind: 'IPAddress', namespaced: false, verbs },
  { name: 'ipaddresses/status', kind: 'IPAddress', namespaced: false, verbs },
  { name: 'ipaddressclaims', kind: 'IPAddressClaim', namespaced: true, verbs },
  { name: 'ipaddressclaims/status', kind: 'IPAddressClaim', namespaced: true, verbs },
];

const stored = (object: KubeObject, uid: string): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, uid, resourceVersion: '5' },
});

test('D18: nothing is planned before every kind is listed', async () => {
  const claims = Promise.withResolvers<void>();
  const patched = Promise.withResolvers<void>();
  const stop = new AbortController();
  const found = stored(ledgerObject('IPAddressClass', 'public', { provisioner }), 'u-1');
  /** Released under a claim that is there: without the claims it would look as if that were gone. */
  const address = stored(
    ledgerObject('IPAddress', 'ip-1', {
      className: 'public',
      address: '203.0.113.1',
      reclaimPolicy: 'Delete',
      claimRef: { namespace: 'tenant-a', name: 'web' },
      source: { fromClass: {} },
    }),
    'u-2',
  );
  async function* open(): AsyncGenerator<Uint8Array> {
    await new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve(), { once: true }));
    yield Buffer.from('');
  }
  const list = (items: readonly KubeObject[]): Scripted => ({
    status: 200,
    body: { kind: 'List', metadata: { resourceVersion: '9' }, items },
  });
  const { transport, requests } = scriptedTransport(async ({ method, path, query }) => {
    if (path === group) return { status: 200, body: { kind: 'APIResourceList', resources } };
    if (query.watch !== undefined) return { status: 200, stream: open() };
    if (method === 'GET' && path === `${group}/ipaddressclasses`) return list([found]);
    if (method === 'GET' && path === `${group}/ipaddresses`) return list([address]);
    if (method === 'GET' && path === `${group}/ipaddressclaims`) {
      await claims.promise;
      return list([stored(ledgerObject('IPAddressClaim', 'web', { className: 'public', family: 'IPv4' }), 'u-3')]);
    }
    if (method !== 'GET') patched.resolve();
    return { status: 503, body: { kind: 'Status', message: 'not now' } };
  });
  let ready = false;
  const client = createClient({ transport, clock: systemClock, random: () => 0 });
  const running = runLedger(
    {
      client,
      clock: systemClock,
      random: () => 0,
      ledger: new LedgerStore(),
      controllers: coreControllers,
      tell: () => undefined,
      log: () => undefined,
      onReady: () => {
        ready = true;
      },
    },
    stop.signal,
  );
  const watches = (): number => requests.filter(({ query }) => query.watch !== undefined).length;
  while (watches() < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.is(ready, false);
  assert.equal(
    requests.filter(({ method }) => method !== 'GET'),
    [],
  );
  claims.resolve();
  await patched.promise;
  assert.is(ready, true);
  assert.equal(
    requests.filter(({ method }) => method === 'DELETE'),
    [],
  );
  stop.abort();
  await running;
});

test('D17: what the ledger holds is counted when it is asked for, and no more after the term', async () => {
  const registry = new Registry();
  const metrics = coreMetrics(registry, () => Date.parse('2026-01-01T00:00:05Z'));
  const ledger = new LedgerStore();
  const claim = ledgerObject(
    'IPAddressClaim',
    'web',
    { className: 'public' },
    { uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' },
  );
  ledger.put(claim);
  ledger.put(ledgerObject('IPAddressClass', 'public', { provisioner }, { uid: 'c' }));
  // Tenants may name whatever they like: that makes no series of its own.
  for (const className of ['', 'no such class', 'another'])
    ledger.put(ledgerObject('IPAddressClaim', `of-${className.length}`, { className }, { uid: `w-${className}` }));
  const spec = { className: 'public', address: '203.0.113.1', reclaimPolicy: 'Delete' };
  const address: KubeObject = { ...ledgerObject('IPAddress', 'a', spec, { uid: 'v' }), status: { phase: 'Bound' } };
  ledger.put(address);
  metrics.ready(ledger);
  metrics.passed('IPAddress a', true, 0.01);
  const [about, gone] = [readLedgerObject(claim), readLedgerObject(address)];
  assert.ok(about !== undefined && gone !== undefined);
  if (about === undefined || gone === undefined) return;
  metrics.told({ about, type: 'Normal', reason: 'Bound', note: '' });
  metrics.told({ about: gone, type: 'Normal', reason: 'Reclaimed', note: '' });
  metrics.told({ about, type: 'Warning', reason: 'PreBindingRefused', note: '' });
  const text = await registry.metrics();
  for (const line of [
    'address_controller_addresses{class="public",family="IPv4",phase="Bound"} 1',
    'address_controller_claims{class="public",phase="Pending"} 1',
    'address_controller_claims{class="",phase="Pending"} 3',
    'address_controller_ready 1',
    'address_controller_pass_seconds_count{controller="ipaddress",result="error"} 1',
    'address_controller_claim_bind_seconds_sum{class="public"} 5',
    'address_controller_reclaims_total{class="public",policy="Delete",path="vanished"} 1',
    'address_controller_prebinding_refused_total 1',
  ])
    assert.ok(text.includes(line), `${line} not in\n${text}`);
  metrics.end();
  assert.not.match(await registry.metrics(), /address_controller_addresses\{/);
});

test.run();
