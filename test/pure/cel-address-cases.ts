import { address, addressClass, type CelCase, claim, edit } from './cel-objects.ts';

const claimRef = { namespace: 'tenant-a', name: 'web' };
const held = edit(address, { '/spec/claimRef': { ...claimRef, uid: 'u-1' } });
const reserved = edit(address, { '/spec/claimRef': claimRef });

/** Forms of one address that are accepted, and forms that are not; a stored one may keep the form that it has. */
const forms: readonly (readonly [accepted: string, refused: string])[] = [
  ['203.0.113.7', '203.0.113.07'],
  ['0.0.0.0', '010.0.0.1'],
  ['255.255.255.255', '256.0.0.1'],
  ['10.0.0.1', '10.0.1'],
  ['2001:db8::7', '2001:db8:0::7'],
  ['2001:db8::', '2001:DB8::'],
  ['::', ':::'],
  ['::1', '::0:1'],
  ['1::', '1::0'],
  ['2001:db8::1:0:0:1', '2001:db8:0:0:1::1'],
  ['1:0:0:2::3', '1::2:0:0:0:3'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7'],
  ['1:2:3:4:5:6:0:8', '1:2:3:4:5:6::8'],
  ['1:0:3:0:5:0:7:0', '1:2:3:0:0:6:7:8'],
  ['::2:0:0:0:3', '::2:0:0:0:0'],
  ['fe80::1', 'fe80::1%eth0'],
  ['::ffff:0:102:304', '::ffff:203.0.113.7'],
  ['64:ff9b::102:304', '::ffff:102:304'],
  ['2001:db8:85a3::8a2e:370:7334', '2001:0db8:85a3::8a2e:370:7334'],
  ['2001:db8::7', 'not-an-ip'],
  ['2001:db8::7', '203.0.113.0/24'],
];

export const addressCases: readonly CelCase[] = [
  {
    rule: 'provisioner cannot be changed',
    old: addressClass,
    accepted: edit(addressClass, {
      '/spec/reclaimPolicy': 'Delete',
      '/spec/parameters': { other: [1, { deep: true }] },
    }),
    refused: edit(addressClass, { '/spec/provisioner': 'another' }),
  },
  ...(
    [
      ['0s', '87601h'],
      ['720h', '999999h'],
      ['1h30m', '5256001m'],
    ] as const
  ).map(([accepted, refused]) => ({
    rule: 'releaseDelay must be from 0s to 87600h',
    accepted: edit(addressClass, { '/spec/releaseDelay': accepted }),
    refused: edit(addressClass, { '/spec/releaseDelay': refused }),
  })),
  ...forms.map(([accepted, refused]) => ({
    rule: 'address must be an IPv4 or IPv6 address in canonical form, such as 203.0.113.7 or 2001:db8::7',
    accepted: edit(address, { '/spec/address': accepted }),
    refused: edit(address, { '/spec/address': refused }),
  })),
  {
    rule: 'address cannot be changed',
    old: address,
    accepted: held,
    refused: edit(address, { '/spec/address': '203.0.113.8' }),
  },
  ...[{}, { fromClass: {}, providerRef: { id: 'r-1' } }].map((refused) => ({
    rule: 'source must name exactly one of fromClass and providerRef',
    accepted: edit(address, { '/spec/source': { providerRef: { id: 'r-1' } } }),
    refused: edit(address, { '/spec/source': refused }),
  })),
  {
    rule: 'source cannot be changed',
    old: address,
    accepted: edit(address, { '/spec/reclaimPolicy': 'Delete' }),
    refused: edit(address, { '/spec/source': { providerRef: { id: 'r-1' } } }),
  },
  {
    rule: 'className cannot be changed while a claim has the address',
    old: held,
    accepted: edit(held, { '/spec/claimRef': undefined }),
    refused: edit(held, { '/spec/className': 'private' }),
  },
  {
    rule: 'className cannot be changed while a claim has the address',
    old: held,
    accepted: edit(held, { '/spec/claimRef/uid': '' }),
    refused: edit(held, { '/spec/className': 'private', '/spec/claimRef': undefined }),
  },
  ...(
    [
      ['/spec/claimRef/name', 'mail'],
      ['/spec/claimRef/namespace', 'tenant-b'],
    ] as const
  ).map(([at, value]) => ({
    rule: 'claimRef cannot be turned to another claim: take it away first',
    old: reserved,
    accepted: edit(held, { '/spec/className': 'private' }),
    refused: edit(reserved, { [at]: value }),
  })),
  {
    rule: 'claimRef.uid is filled in or emptied, never exchanged',
    old: held,
    accepted: reserved,
    refused: edit(held, { '/spec/claimRef/uid': 'u-2' }),
  },
  ...['IPv6', 'Dual'].map((family) => ({
    rule: 'family cannot be changed',
    old: claim,
    accepted: edit(claim, { '/spec/family': 'IPv4', '/spec/addressName': undefined }),
    refused: edit(claim, { '/spec/family': family }),
  })),
  {
    rule: 'family cannot be changed',
    old: edit(claim, { '/spec': { family: 'Dual' } }),
    accepted: edit(claim, { '/spec': { family: 'Dual', className: 'private' } }),
    refused: edit(claim, { '/spec': undefined }),
  },
  {
    rule: 'addressName names one address: use family IPv4 or IPv6',
    accepted: edit(claim, { '/spec/family': 'Dual', '/spec/addressName': '' }),
    refused: edit(claim, { '/spec/family': 'Dual' }),
  },
];
