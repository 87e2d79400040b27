import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { metallbProvisioner } from '../../constructs/api/metallb.ts';
import { holdsIP, ipOf, readIP, readIPRange } from '../../constructs/lib/ip.ts';
import { Networks } from '../../executor/addresses/metallb/networks.ts';
import { readLedgerObject } from '../../executor/addresses/objects.ts';
import { ledgerObject } from './addresses-model.ts';

const classOf = (name: string, addresses: readonly string[], provisioner: string = metallbProvisioner) => {
  const view = readLedgerObject(
    ledgerObject('IPAddressClass', name, { provisioner, parameters: { addresses: [...addresses] } }),
  );
  if (view?.kind !== 'IPAddressClass') throw new Error('no class');
  return view;
};
const at = (networks: Networks, text: string): string | undefined => {
  const ip = readIP(text);
  return ip === undefined ? undefined : networks.classAt(ip);
};

test('the class with a network that holds an address is found', () => {
  const networks = new Networks([
    classOf('wide', ['10.0.0.0/8', '2001:db8::/32']),
    classOf('inner', ['192.168.7.0/30']),
    classOf('others', ['172.16.0.0/12'], 'someone.example.com'),
    classOf('wrong', ['no network']),
  ]);
  assert.is(at(networks, '10.255.255.255'), 'wide');
  assert.is(at(networks, '11.0.0.0'), undefined);
  assert.is(at(networks, '192.168.7.3'), 'inner');
  assert.is(at(networks, '192.168.7.4'), undefined);
  assert.is(at(networks, '172.16.0.1'), undefined, 'not ours');
  assert.is(at(networks, '2001:db8:ffff::'), 'wide');
  assert.is(at(networks, '::1'), undefined);
});

test('networks that overlap hide none', () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let round = 0; round < 100; round += 1) {
    const texts = Array.from({ length: 8 }, () => `10.0.${random(4)}.${random(256)}/${22 + random(10)}`);
    const networks = new Networks(texts.map((text, n) => classOf(`class-${n}`, [text])));
    const blocks = texts.map(readIPRange);
    for (let n = 0; n < 50; n += 1) {
      const ip = ipOf('IPv4', (10n << 24n) + BigInt(random(1_300)));
      const holders = blocks.flatMap((one, k) => (one !== undefined && holdsIP(one, ip) ? [`class-${k}`] : []));
      const found = networks.classAt(ip);
      assert.ok(found === undefined ? holders.length === 0 : holders.includes(found), `${ip.text} in ${texts.join()}`);
    }
  }
});

test.run();
