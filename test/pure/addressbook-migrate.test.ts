import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { migrationText } from '../../bin/addresses/migration.ts';
import { validateDocument } from '../../constructs/api/validate.ts';
import { type JsonObject, objectOf } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { bookOf } from '../../executor/addressbook/book.ts';
import { readPool } from '../../executor/addressbook/migrate/pools.ts';
import { type Migration, proposeMigration } from '../../executor/addressbook/migrate/propose.ts';
import { readService } from '../../executor/addressbook/pins.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { classObject, serviceObject } from './addressbook-support.ts';

/** What is proposed to those who come from plain MetalLB. */

const metallb = (kind: string, name: string, spec: JsonObject): KubeObject => ({
  apiVersion: 'metallb.io/v1beta1',
  kind,
  metadata: { namespace: 'metallb-system', name },
  spec,
});
const pool = (name: string, addresses: readonly string[], more: JsonObject = {}): KubeObject =>
  metallb('IPAddressPool', name, { addresses: [...addresses], ...more });
const layer2 = metallb('L2Advertisement', 'all', {});
const pin = 'metallb.io/loadBalancerIPs';

function propose(objects: readonly KubeObject[]): Migration {
  const of = (kind: string): KubeObject[] => objects.filter((one) => one.kind === kind);
  const advertisements = [...of('L2Advertisement'), ...of('BGPAdvertisement')];
  return proposeMigration({
    book: bookOf(objects),
    pools: of('IPAddressPool').map((one) => readPool(one, advertisements)),
    services: of('Service').map(readService),
  });
}

const office = pool('office', ['203.0.113.4-203.0.113.9', '2001:db8::/126'], { autoAssign: false });

test('a class for each pool says the same addresses in networks, and is one that its definition takes', () => {
  const { classes, left } = propose([office, layer2]);
  assert.equal(left, []);
  const [{ document, notes, className } = { document: {}, notes: ['x'], className: '' }] = classes;
  assert.is(className, 'office');
  assert.equal(notes, []);
  assert.equal(document, {
    apiVersion: 'local.sdn.cozystack.io/v1alpha1',
    kind: 'IPAddressClass',
    metadata: { name: 'office' },
    spec: {
      provisioner: 'metallb.drivers.local.sdn.cozystack.io',
      reclaimPolicy: 'Retain',
      parameters: { addresses: ['203.0.113.4/30', '203.0.113.8/31', '2001:db8::/126'] },
    },
  });
  assert.ok(validateDocument(document as KubeObject).ok);
});

test('what a class does otherwise than a pool is told', () => {
  const given = pool('office', ['203.0.113.0/29'], { avoidBuggyIPs: true, serviceAllocation: { priority: 5 } });
  const notes = (...more: KubeObject[]): string =>
    propose([given, ...more])
      .classes.flatMap((one) => one.notes)
      .join('\n');
  assert.match(notes(), /by itself.*\n.*\.0 and \.255.*\n.*some namespaces/);
  for (const [spec, told] of [
    [{}, true],
    [{ ipAddressPools: ['office'] }, true],
    [{ ipAddressPools: ['other'] }, false],
    [{ ipAddressPoolSelectors: [{ matchLabels: { a: 'b' } }] }, true],
  ] as const)
    assert.is(
      /BGPAdvertisement edge announces it/.test(notes(metallb('BGPAdvertisement', 'edge', spec as JsonObject))),
      told,
    );
  assert.match(
    notes(metallb('L2Advertisement', 'narrow', { interfaces: ['eth0'] })),
    /L2Advertisement narrow is narrowed/,
  );
  assert.not.match(notes(metallb('L2Advertisement', 'wide', { interfaces: [] })), /narrow/);
});

test('pools that are classes already need none; what can not be one says why', () => {
  const { classes, left } = propose([
    classObject('public', ['203.0.113.0/24']),
    classObject('half', ['198.51.100.0/25']),
    pool('iad-public', ['203.0.113.0/24']),
    pool('old', ['203.0.113.16/28']),
    pool('half', ['198.51.100.0/24']),
    pool('wide', ['198.51.100.64/26', '192.0.2.0/24']),
    pool('odd', ['here']),
    pool('empty', []),
    pool('good', ['192.0.2.128/25']),
  ]);
  assert.equal(
    classes.map(({ className }) => className),
    ['good'],
  );
  assert.equal(
    left.map(({ object, why }) => `${object.split('/')[1]}: ${why}`),
    [
      'empty: it has no range',
      'half: a class half is there already, with other ranges',
      'odd: its range "here" can not be read',
      'wide: class half has some of its addresses, and not all',
    ],
  );
});

test('each Service gets its steps, by the class that is there or the one that is proposed', () => {
  const { steps, left, done } = propose([
    office,
    classObject('public', ['198.51.100.0/24']),
    serviceObject('a/pinned', { pins: { [pin]: '203.0.113.4' }, has: ['203.0.113.4'] }),
    serviceObject('a/older', { pins: { 'metallb.universe.tf/loadBalancerIPs': '203.0.113.5' }, has: ['203.0.113.5'] }),
    serviceObject('a/field', { field: '203.0.113.6', has: ['203.0.113.6'] }),
    serviceObject('a/free', { has: ['2001:db8::2'] }),
    serviceObject('b/known', { pins: { [pin]: '198.51.100.7' }, has: ['198.51.100.7'] }),
    serviceObject('b/claimed', { pins: { [pin]: '198.51.100.8' }, has: ['198.51.100.8'], claim: 'x' }),
    serviceObject('b/waiting', {}),
    serviceObject('b/cloud', { has: ['192.0.2.1'] }),
    serviceObject('b/hold', { pins: { [pin]: '198.51.100.9' }, has: ['198.51.100.9'], placeholder: true }),
    serviceObject('c/dual', { pins: { [pin]: '203.0.113.7,2001:db8::3' }, has: ['203.0.113.7', '2001:db8::3'] }),
    serviceObject('c/dualfree', { has: ['203.0.113.8', '2001:db8::1'] }),
    serviceObject('c/lost', { pins: { [pin]: '203.0.113.8' } }),
    serviceObject('c/nowhere', { pins: { [pin]: '192.0.2.9' }, has: ['192.0.2.9'] }),
    serviceObject('c/one', { pins: { [pin]: '203.0.113.9' }, has: ['203.0.113.9'] }),
    serviceObject('c/two', { pins: { [pin]: '203.0.113.9' }, has: ['203.0.113.9'] }),
  ]);
  const annotated = (ip: string): JsonObject => ({ metadata: { annotations: { [pin]: ip } } });
  assert.equal(steps, [
    {
      namespace: 'a',
      service: 'field',
      address: '203.0.113.6',
      className: 'office',
      pin: { ...annotated('203.0.113.6'), spec: { loadBalancerIP: null } },
    },
    { namespace: 'a', service: 'free', address: '2001:db8::2', className: 'office', pin: annotated('2001:db8::2') },
    { namespace: 'a', service: 'older', address: '203.0.113.5', className: 'office' },
    { namespace: 'a', service: 'pinned', address: '203.0.113.4', className: 'office' },
    { namespace: 'b', service: 'known', address: '198.51.100.7', className: 'public' },
  ]);
  assert.equal(
    left.map(({ object, why }) => `${object}: ${why}`),
    [
      'Service c/dual: it is pinned to 2 addresses',
      'Service c/dualfree: it has 203.0.113.8, 2001:db8::1, and a claim that names an address has no second one',
      'Service c/lost: it is pinned to 203.0.113.8 and has no address',
      'Service c/nowhere: 192.0.2.9 is in no class and in no pool that could be one',
      'Service c/one: it shares 203.0.113.9 with Service c/two',
      'Service c/two: it shares 203.0.113.9 with Service c/one',
    ],
  );
  assert.is(done, 1);
});

test('people read the steps in their order, and the classes are YAML as it goes into Git', () => {
  const text = migrationText(
    propose([
      office,
      serviceObject('a/field', { field: '203.0.113.6', has: ['203.0.113.6'] }),
      serviceObject('a/b', { claim: 'x' }),
    ]),
  );
  const order = [
    'kubectl -n a patch service field --type merge -p',
    'kind: IPAddressClass',
    'take away metallb-system/office',
    'keelson addresses adopt field --namespace a --class office',
    '1 Services name a claim already',
  ];
  const places = order.map((part) => text.indexOf(part));
  assert.ok(
    places.every((place, n) => place > (places[n - 1] ?? -1)),
    text,
  );
  const yaml = text.slice(text.indexOf('---'), text.indexOf('# then take away'));
  const { documents, problems } = parseYaml(yaml, 'text');
  assert.equal(problems, []);
  assert.is(objectOf(documents[0]?.value).kind, 'IPAddressClass');
  assert.is(migrationText(propose([])), 'nothing is to be migrated');
});

test.run();
