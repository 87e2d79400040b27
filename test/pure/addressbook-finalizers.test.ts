import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { strippingText } from '../../bin/addresses/finalizers.ts';
import { addressFinalizers } from '../../constructs/api/addresses.ts';
import { bookOf } from '../../executor/addressbook/book.ts';
import { planStripping } from '../../executor/addressbook/finalizers/plan.ts';
import { readService } from '../../executor/addressbook/pins.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { addressObject, claimObject, classObject, serviceObject } from './addressbook-support.ts';
import { provisioner, teardown } from './addresses-model.ts';

const withFinalizers = (object: KubeObject, ...finalizers: string[]): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, finalizers },
});
const deleting = (object: KubeObject): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});
const other = 'backup.example/keep';

const objects: readonly KubeObject[] = [
  withFinalizers(classObject('public', ['203.0.113.0/29']), addressFinalizers.class),
  withFinalizers(classObject('cloud', [], { provisioner: 'cloud.example' }), addressFinalizers.class),
  deleting(withFinalizers(addressObject('ip-2', '203.0.113.2'), addressFinalizers.address, teardown, other)),
  withFinalizers(
    addressObject('ip-1', '198.51.100.1', { className: 'cloud', spec: { source: { providerRef: { id: 'eip-7' } } } }),
    'cloud.example/teardown',
  ),
  withFinalizers(addressObject('ip-3', '203.0.113.3'), other),
  withFinalizers(claimObject('tenant-b/web'), addressFinalizers.claim),
  withFinalizers(claimObject('tenant-a/web'), addressFinalizers.claim, other),
];

test('claims, addresses, classes: finalizers of the core and of drivers go, those of others stay', () => {
  const plan = planStripping(bookOf(objects), []);
  assert.equal(
    plan.objects.map(({ namespace, name, remove, keep, deleting: goes }) => [
      namespace ?? '',
      name,
      remove,
      keep,
      goes,
    ]),
    [
      ['tenant-a', 'web', [addressFinalizers.claim], [other], false],
      ['tenant-b', 'web', [addressFinalizers.claim], [], false],
      ['', 'ip-1', ['cloud.example/teardown'], [], false],
      ['', 'ip-2', [addressFinalizers.address, teardown], [other], true],
      ['', 'cloud', [addressFinalizers.class], [], false],
      ['', 'public', [addressFinalizers.class], [], false],
    ],
  );
  // What was done is out of the plan; what is left is another one.
  const rest = planStripping(bookOf(objects.slice(0, -1)), []);
  assert.is.not(rest.digest, plan.digest);
  assert.is(planStripping(bookOf([...objects].reverse()), []).digest, plan.digest);
});

test('what a driver would have released is named, with what to do about it', () => {
  const services = [
    serviceObject('metallb-iad-system/iad-ip-2', {
      placeholder: true,
      has: ['203.0.113.2'],
      labels: { [`${provisioner}/ip-address`]: 'ip-2' },
    }),
    serviceObject('metallb-iad-system/iad-x-v4', { placeholder: true }),
    serviceObject('tenant-a/web', {
      pins: { 'metallb.io/loadBalancerIPs': '203.0.113.3', [`${provisioner}/pinned`]: 'true' },
      has: ['203.0.113.3'],
    }),
    serviceObject('tenant-a/own', { pins: { 'metallb.io/loadBalancerIPs': '203.0.113.4' }, has: ['203.0.113.4'] }),
  ].map(readService);
  const { leftovers } = planStripping(bookOf(objects), services);
  assert.equal(
    leftovers.map(({ object }) => object),
    [
      'Service metallb-iad-system/iad-ip-2',
      'Service metallb-iad-system/iad-x-v4',
      'Service tenant-a/web',
      'IPAddress ip-1',
      'IPAddressClass public',
    ],
  );
  const said = leftovers.map(({ what }) => what).join('\n');
  for (const part of [
    /^holds 203\.0\.113\.2 for IPAddress ip-2 in MetalLB: delete it/m,
    /^holds no address yet in MetalLB/m,
    /^is pinned to 203\.0\.113\.3 by the driver: it keeps the address/m,
    /^reservation eip-7 at the provider of class cloud/m,
    /^its pool and advertisement iad-public/m,
  ])
    assert.match(said, part);
});

test('people read what is taken off, what stays, and how to approve it', () => {
  const plan = planStripping(bookOf(objects), []);
  const text = strippingText(plan, [
    { namespace: 'old', name: 'a4cfeeab.sdn.cozystack.io', holder: 'somebody', durationMs: 1, version: '1' },
  ]);
  assert.match(text, /^Lease old\/a4cfeeab\.sdn\.cozystack\.io names somebody, and was not renewed$/m);
  assert.match(
    text,
    /^IPAddress +ip-2 +being deleted +\S+address-protection \S+teardown +keeps backup\.example\/keep$/m,
  );
  assert.match(text, new RegExp(`--approve ${plan.digest}$`));
  assert.is(
    strippingText(planStripping(bookOf([]), []), []),
    'no object of the ledger has a finalizer of its controllers',
  );
});

test.run();
