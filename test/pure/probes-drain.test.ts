import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { gatewaysOf } from '../../probes/drain/collect.ts';
import type { JsonMap } from '../../probes/jsonrpc/json.ts';

const id = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;
const uuid = (n: number) => ['uuid', id(n)] as const;
const port = (name: string, more: JsonMap): JsonMap => ({
  logical_port: name,
  chassis: ['set', []],
  ha_chassis_group: ['set', []],
  ...more,
});

test('a chassis is a gateway where it is active, and where it could take over', () => {
  const members: JsonMap[] = [
    { _uuid: uuid(1), chassis: uuid(7), priority: 20n },
    { _uuid: uuid(2), chassis: uuid(8), priority: 10n },
    { _uuid: uuid(3), chassis: uuid(8), priority: 5n },
  ];
  const groups: JsonMap[] = [
    { _uuid: uuid(4), ha_chassis: ['set', [uuid(1), uuid(2)]] },
    // A set of one stands bare.
    { _uuid: uuid(5), ha_chassis: uuid(3) },
  ];
  const ports = [
    port('cr-b', { chassis: uuid(8), ha_chassis_group: uuid(4) }),
    port('cr-a', { chassis: uuid(7), ha_chassis_group: uuid(4) }),
    port('cr-c', { ha_chassis_group: uuid(5) }),
    port('cr-d', { chassis: uuid(7) }),
  ];
  assert.equal(gatewaysOf(id(7), ports, groups, members), {
    count: 3,
    first: [
      { port: 'cr-a', priority: 20, active: true, others: 1 },
      { port: 'cr-b', priority: 20, active: false, others: 1 },
      { port: 'cr-d', priority: 0, active: true, others: 0 },
    ],
  });
  assert.equal(
    gatewaysOf(id(8), ports, groups, members).first.map(({ port: name, others }) => [name, others]),
    [
      ['cr-a', 1],
      ['cr-b', 1],
      ['cr-c', 0],
    ],
  );
  assert.equal(gatewaysOf(id(9), ports, groups, members), { count: 0, first: [] });
});

test('all gateways are counted, the first of them told', () => {
  const ports = Array.from({ length: 200 }, (_, n) => port(`cr-${String(n).padStart(3, '0')}`, { chassis: uuid(7) }));
  const found = gatewaysOf(id(7), ports.reverse(), [], []);
  assert.is(found.count, 200);
  assert.is(found.first.length, 128);
  assert.is(found.first[0]?.port, 'cr-000');
});

test.run();
