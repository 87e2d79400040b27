import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { metallbAnnotations } from '../../constructs/api/metallb.ts';
import { ownParts } from '../../executor/addresses/client-api.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import { linkTo, placeholder } from '../../executor/addresses/metallb/holds.ts';
import { kept } from '../../executor/addresses/metallb/kept.ts';
import { placeholderAnnotations } from '../../executor/addresses/metallb/names.ts';
import { readDriverObject } from '../../executor/addresses/metallb/views.ts';
import { SharedObjects } from '../../executor/addresses/shared.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { settings } from './addresses-metallb-bed.ts';
import { ledgerObject } from './addresses-model.ts';

const link = linkTo('ip-x', '203.0.113.1');
const hold = placeholder(settings, {
  name: 'iad-ip-x',
  family: 'IPv4',
  className: 'public',
  labels: link.labels,
  annotations: { 'metallb.io/loadBalancerIPs': '203.0.113.1', [placeholderAnnotations.asked]: 'x 1' },
});
const metadata = { uid: 'u', resourceVersion: '7', creationTimestamp: '2026-01-01T00:00:00Z', finalizers: ['f'] };
const services: KubeObject[] = [
  { ...hold, metadata: { ...hold.metadata, ...metadata } },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      ...metadata,
      name: 'web',
      namespace: 'tenant',
      labels: { app: 'web' },
      annotations: {
        [addressAnnotations.claim]: 'web',
        [metallbAnnotations.pinned]: 'true',
        'metallb.universe.tf/loadBalancerIPs': '203.0.113.1',
        'kubectl.kubernetes.io/last-applied-configuration': '{}',
      },
    },
    spec: { type: 'LoadBalancer', loadBalancerClass: 'c', loadBalancerIP: '1.2.3.4', ipFamilies: ['IPv4'], ports: [] },
    status: { loadBalancer: { ingress: [{ ip: '203.0.113.1', ipMode: 'VIP' }, { hostname: 'x' }] } },
  },
  { apiVersion: 'v1', kind: 'Service', metadata: { ...metadata, name: 'plain', namespace: 'tenant' }, spec: {} },
];

test('of a Service the driver sees the same in what it keeps', () => {
  for (const service of services) {
    const [whole, less] = [service, kept(service)].map((one) => readDriverObject(one, settings));
    assert.equal({ ...less, object: undefined }, { ...whole, object: undefined });
  }
  assert.is(JSON.stringify(kept(services[1] as KubeObject)).includes('last-applied'), false);
});

test('of the ledger what it is about is kept, and nothing that anybody may hang on to it', () => {
  const own = { [addressAnnotations.provisioner]: 'p', [addressAnnotations.replaceLost]: 'true' };
  const claim = ledgerObject('IPAddressClaim', 'web', { className: 'public' }, { ...metadata, annotations: own });
  const whole = {
    ...claim,
    metadata: {
      ...claim.metadata,
      managedFields: [],
      labels: { app: 'web' },
      annotations: { ...own, a: 'x'.repeat(200_000), [addressAnnotations.held]: 'x'.repeat(60_000) },
    },
  };
  for (const keep of [kept, ownParts]) assert.equal(keep(whole), claim);
  const pool: KubeObject = {
    apiVersion: 'metallb.io/v1beta1',
    kind: 'IPAddressPool',
    metadata: { ...metadata, name: 'iad-public', labels: { a: 'b' }, annotations: { c: 'd' } },
    spec: { addresses: [] },
  };
  assert.equal(kept(pool), pool);
});

test('workers of a process share one copy of each version, and what they see of it', () => {
  const shared = new SharedObjects();
  const of = (resourceVersion: string): KubeObject =>
    ledgerObject('IPAddress', 'ip-x', { address: '203.0.113.1', className: 'public' }, { uid: 'u', resourceVersion });
  const [one, two] = [new LedgerStore(shared.read), new LedgerStore(shared.read)];
  const put = (ledger: LedgerStore, version: string) => ledger.put(shared.same(of(version)))?.after;
  assert.is(put(one, '1'), put(two, '1'));
  const newer = put(one, '2');
  assert.is.not(newer, two.address('ip-x'));
  assert.is(put(two, '2'), newer);
  // One that is behind still sees what it saw.
  assert.is(put(two, '1'), undefined);
  assert.is(put(one, '3'), one.address('ip-x'));
  shared.drop(of('3'));
  assert.is.not(shared.same(of('3')), one.address('ip-x')?.object);
});

test.run();
