import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  classText,
  provisioner,
  publicClass,
  rendered,
  renderLedger,
  writeClasses,
  writeSettings,
} from './addresses-render-support.ts';
import { type Copy, using } from './render-support.ts';

/** What of classes, manifests and settings is refused before anything of it is published. */

interface Refusal {
  readonly what: string;
  readonly change: (copy: Copy) => void;
  readonly wanted: readonly { reason: string; line?: number; path?: string; value?: string; says?: RegExp }[];
}

const refusals: readonly Refusal[] = [
  {
    what: 'ranges that overlap, within a class, between classes and with a pool, in whichever form they are written',
    change: (copy) => {
      writeClasses(
        copy,
        classText('a', ['203.0.113.0/28', '203.0.113.8/29']),
        classText('b', ['203.0.113.15/32', '2001:db8::/64']),
        classText('c', ['2001:db8:1::/64', '2001:db8::ff/128', '192.0.2.0/30']),
      );
      copy.write(
        'manifests/demo/20-config/pool.yaml',
        'apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata:\n  name: office\n  namespace: metallb-system\nspec:\n  addresses:\n    - 192.0.2.2-192.0.2.9\n    - "::ffff:203.0.113.4/126"\n',
      );
    },
    wanted: [
      { reason: 'AddressRangesOverlap', line: 10, path: 'spec.parameters.addresses[1]', value: '203.0.113.8/29' },
      {
        reason: 'AddressRangesOverlap',
        line: 20,
        value: '203.0.113.15/32',
        says: /class a has .*203\.0\.113\.0\/28.*:9\)/,
      },
      { reason: 'AddressRangesOverlap', value: '2001:db8::ff/128', says: /class b/ },
      { reason: 'AddressRangesOverlap', line: 8, value: '192.0.2.2-192.0.2.9', says: /class c/ },
      { reason: 'AddressRangesOverlap', line: 9, value: '::ffff:203.0.113.4/126', says: /class a/ },
    ],
  },
  {
    what: 'an IPv6 network in which addresses of IPv4 are written',
    change: (copy) => writeClasses(copy, classText('a', ['::/32']), classText('b', ['203.0.113.0/30'])),
    wanted: [{ reason: 'AddressRangesOverlap', says: /::\/32/ }],
  },
  {
    what: 'what is no network',
    change: (copy) =>
      writeClasses(
        copy,
        classText('a', ['203.0.113.7', '203.0.113.1-203.0.113.3', '203.0.113.1/29', '010.0.0.0/8', '2001:DB8::/64']),
        classText('b', []).replace('    addresses:\n', '    addresses: []\n'),
        classText('c', []).replace('  parameters:\n    addresses:\n', ''),
      ),
    wanted: [
      { reason: 'FieldInvalid', line: 9, path: 'spec.parameters.addresses[0]', value: '203.0.113.7' },
      { reason: 'FieldInvalid', line: 10, value: '203.0.113.1-203.0.113.3' },
      { reason: 'FieldInvalid', line: 11, value: '203.0.113.1/29', says: /203\.0\.113\.0\/29/ },
      { reason: 'FieldInvalid', line: 12, value: '010.0.0.0/8', says: /leading zero/ },
      { reason: 'FieldInvalid', line: 13, value: '2001:DB8::/64', says: /2001:db8::/ },
      { reason: 'FieldInvalid', line: 22, value: '[]' },
      { reason: 'FieldMissing', says: /parameters\.addresses is missing/ },
    ],
  },
  {
    what: 'two default classes',
    change: (copy) => {
      const mark = '  annotations:\n    ipaddressclass.local.sdn.cozystack.io/is-default-class: "true"\n';
      writeClasses(
        copy,
        classText('a', ['203.0.113.0/30'], '', mark),
        classText('b', ['203.0.113.4/30'], '', mark),
        classText('c', ['203.0.113.8/30'], '', mark.replace('"true"', '"True"')),
      );
    },
    wanted: [{ reason: 'MultipleDefaultClasses', line: 18, says: /class a .*:1\)/ }],
  },
  {
    what: 'claims and addresses',
    change: (copy) => {
      writeClasses(
        copy,
        publicClass,
        'apiVersion: local.sdn.cozystack.io/v1alpha1\nkind: IPAddressClaim\nmetadata: {name: web, namespace: demo}\n',
      );
      copy.write(
        'manifests/demo/20-config/address.yaml',
        'apiVersion: local.sdn.cozystack.io/v1alpha1\nkind: IPAddress\nmetadata: {name: ip-203-0-113-1}\n',
      );
    },
    wanted: [
      { reason: 'OneShotKind', line: 13, says: /kubectl apply .*keelson addresses adopt/ },
      { reason: 'OneShotKind', line: 2, says: /kubectl apply/ },
    ],
  },
  {
    what: 'what the driver makes, and what it writes on Services',
    change: (copy) => {
      writeClasses(copy, publicClass);
      const service = (name: string, namespace: string, metadata: string): string =>
        `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\n${metadata}spec: {type: LoadBalancer, ports: [{port: 80}]}\n`;
      copy.write(
        'manifests/demo/20-config/runtime.yaml',
        [
          'apiVersion: metallb.io/v1beta1\nkind: L2Advertisement\nmetadata:\n  name: iad-public\n  namespace: metallb-system\nspec: {}\n',
          service('copied', 'demo', `  labels: {${provisioner}/placeholder: "true"}\n`),
          service('stray', 'metallb-iad-system', ''),
        ].join('---\n'),
      );
    },
    wanted: [
      { reason: 'RuntimeObject', line: 4, path: 'metadata.name', value: 'iad-public' },
      { reason: 'RuntimeObject', says: /placeholders are made/ },
      { reason: 'RuntimeObject', path: 'metadata.namespace', says: /metallb-iad-system/ },
    ],
  },
  {
    what: 'the mark of the driver on a Service',
    change: (copy) => {
      writeClasses(copy, publicClass);
      copy.write(
        'manifests/demo/20-config/web.yaml',
        `apiVersion: v1\nkind: Service\nmetadata:\n  name: pinned\n  namespace: demo\n  annotations:\n    ${provisioner}/pinned: "true"\nspec: {ports: [{port: 80}]}\n`,
      );
    },
    wanted: [{ reason: 'LiveAnnotation', line: 7 }],
  },
  {
    what: 'settings that are none',
    change: (copy) => {
      writeClasses(copy, publicClass);
      writeSettings(copy, '{workers: [core, core], metallb: {forcedRelease: maybe}, admission: {pin: {}}}');
    },
    wanted: [
      { reason: 'DuplicateEntry', path: 'spec.addresses.workers[1]' },
      { reason: 'InvalidValue', path: 'spec.addresses.metallb.forcedRelease' },
      { reason: 'UnknownField', path: 'spec.addresses.admission.pin' },
    ],
  },
];

for (const { what, change, wanted } of refusals)
  test(`refuses ${what}`, () =>
    using(async (copy) => {
      change(copy);
      const outcome = await renderLedger(copy);
      if (outcome.ok) throw new Error('it was rendered');
      const told = outcome.problems.map((p) => `${p.file}:${p.line} ${p.path} ${p.value} ${p.reason} ${p.message}`);
      for (const { reason, line, path, value, says } of wanted) {
        const found = outcome.problems.filter(
          (problem) =>
            problem.reason === reason &&
            (line === undefined || problem.line === line) &&
            (path === undefined || problem.path === path) &&
            (value === undefined || problem.value === value) &&
            (says === undefined || says.test(`${problem.message} ${problem.remedy}`)),
        );
        assert.is(
          found.length,
          1,
          `${JSON.stringify({ reason, line, path, value, says: `${says}` })}\n${told.join('\n')}`,
        );
        assert.match(found[0]?.file ?? '', /^clusters\/plain\//);
      }
      assert.is(outcome.problems.length, wanted.length, told.join('\n'));
    }));

test('what becomes of classes that were published: moved and renamed is refused, less is told', () =>
  using(async (copy) => {
    writeClasses(copy, publicClass, classText('office', ['198.51.100.0/28']));
    const before = (await rendered(copy)).tree;
    const reasons = async (): Promise<string[]> => {
      const outcome = await renderLedger(copy, before);
      return outcome.ok
        ? outcome.rendered.changes.map(({ reason, message }) => `${reason} ${message}`)
        : outcome.problems.map(({ reason, path, value }) => `${reason} ${path} ${value}`);
    };
    assert.equal(await reasons(), []);
    writeClasses(copy, classText('public', ['203.0.113.0/30', '203.0.113.4/31', '2001:db8::/125']));
    const [less, ...none] = await reasons();
    assert.match(less ?? '', /AddressRangeShrinks addresses of 203\.0\.113\.0\/29 are taken/);
    assert.equal(none, [], 'a class that leaves stays in the cluster');
    writeClasses(copy, classText('public', ['203.0.113.0/29', '2001:db8::/126', '198.51.100.8/30']));
    assert.equal(await reasons(), ['AddressRangeMoved spec.parameters.addresses[2] 198.51.100.8/30']);
    writeClasses(copy, publicClass.replace(provisioner, 'other.example.com'));
    assert.equal(await reasons(), ['RuleViolated spec.provisioner other.example.com']);
    writeClasses(copy, publicClass);
    writeSettings(copy, '{metallb: {placeholderNamespace: elsewhere}}');
    assert.equal(await reasons(), ['PlaceholdersMoved spec.addresses.metallb.placeholderNamespace elsewhere']);
  }));

test.run();
