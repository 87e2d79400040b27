/** What the row of a node's own database says, as ovn-controller reads it. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readNode } from '../../probes/chassis/database.ts';
import { uuidOf } from './observe-support.ts';

const node = (ids: Readonly<Record<string, string>>) =>
  readNode(uuidOf(1), { external_ids: ['map', Object.entries({ 'system-id': 'node-a', ...ids })] });
const facts = (ids: Readonly<Record<string, string>>) => {
  const read = node(ids);
  assert.is(read.type, 'ok', JSON.stringify(read));
  return read.type === 'ok' ? read.value : undefined;
};

test('9.4: ovn-controller waits for its northd in whatever case it is told to', () => {
  const key = 'ovn-match-northd-version';
  for (const [value, waits] of [
    ['true', true],
    ['True', true],
    ['TRUE', true],
    ['false', false],
    ['1', false],
    ['', false],
  ] as const)
    assert.is(facts({ [key]: value })?.matchNorthdVersion, waits, value);
  assert.is(facts({})?.matchNorthdVersion, false);
});

test('a setting that names the chassis goes before the one for every chassis, and none of another does', () => {
  const all = {
    'ovn-remote': 'tcp:10.0.0.1:6642',
    'ovn-encap-type': 'geneve',
    'ovn-encap-ip': '10.0.0.9',
    'ovn-match-northd-version': 'false',
  };
  const own = {
    'ovn-remote-node-a': 'ssl:10.0.0.2:6642',
    'ovn-encap-ip-node-a': '10.0.1.9,fd00::9',
    'ovn-match-northd-version-node-a': 'true',
  };
  const other = Object.fromEntries(
    Object.entries(own).map(([name, value]) => [name.replace('node-a', 'node-b'), value]),
  );
  const plain = facts({ ...all, ...other });
  assert.equal([plain?.remote, plain?.matchNorthdVersion], ['tcp:10.0.0.1:6642', false]);
  assert.equal(plain?.encaps, [{ type: 'geneve', ip: '10.0.0.9' }]);
  const named = facts({ ...all, ...own });
  assert.equal([named?.remote, named?.matchNorthdVersion], ['ssl:10.0.0.2:6642', true]);
  assert.equal(named?.encaps, [
    { type: 'geneve', ip: '10.0.1.9' },
    { type: 'geneve', ip: 'fd00::9' },
  ]);
});

test('a node without a name, or with a tunnel end that is no address, is not told of', () => {
  for (const ids of [{ 'system-id': '' }, { 'ovn-encap-type': 'geneve', 'ovn-encap-ip': 'somewhere' }])
    assert.is(node(ids).type, 'fault');
});

test.run();
