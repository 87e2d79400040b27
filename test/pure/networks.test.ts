import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { networksOf, networkText } from '../../bin/networks.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../../executor/kube/client.ts';

const now = Date.UTC(2026, 0, 1, 0, 1, 0);
const condition = (type: string, status: string, reason: string, message: string): JsonObject => ({
  type,
  status,
  reason,
  message,
});
const member = (node: string, serverID: string): JsonObject => ({ node, serverID });
const status: JsonObject = {
  phase: 'Verifying',
  observedVersion: '1.16.12',
  topology: {
    databases: [
      {
        name: 'OVN_Northbound',
        model: 'clustered',
        leader: 's2',
        term: '7',
        members: [member('n1', 's1'), member('n2', 's2')],
      },
      { name: 'OVN_Southbound', model: 'clustered', members: [] },
    ],
  },
  northd: {
    observedAt: '2026-01-01T00:00:48Z',
    members: [
      { node: 'n1', state: 'active' },
      { node: 'n2', state: 'standby' },
      { node: 'n3', state: 'standby' },
    ],
  },
  dataPlane: {
    observedAt: '2026-01-01T00:00:48Z',
    nodes: 1000,
    connected: 970,
    missing: ['n7: no SB', 'n9: unreachable'],
  },
  network: {
    observedAt: '2026-01-01T00:00:48Z',
    nodes: 3,
    families: ['ipv4'],
    checks: 12,
    passed: 11,
    missing: ['n2 ipv4'],
  },
  conditions: [
    condition('Ready', 'False', 'PacketLost', 'x'),
    condition('DataPlaneReady', 'True', 'ChassisConnected', '3 of 3 chassis are connected and run br-int'),
    condition('NorthdReady', 'True', 'OneActive', 'northd of node n1 is active'),
  ],
};

test('what status tells of a network: databases, leader, term, members, northd, chassis, probe, and how old that is', () => {
  const lines = networkText({ namespace: 'kube-system', name: 'main', status }, now)
    .split('\n')
    .map((line) => line.trim().replace(/ {2,}/g, ' | '));
  for (const line of [
    'network | kube-system/main, Verifying, Kube-OVN 1.16.12',
    'OVN_Northbound | n2 | 7 | n1 n2',
    'OVN_Southbound | none seen | - | none seen',
    'northd | True | OneActive | northd of node n1 is active',
    'chassis | True | ChassisConnected | 3 of 3 chassis are connected and run br-int',
    'probe | 11 of 12 checks passed on 3 nodes (ipv4), 12s ago',
    'missing: n2 ipv4',
    'northd | active on n1; standby on n2 n3, 12s ago',
    'chassis | 970 of 1000 are connected, 12s ago',
    'missing: n7: no SB, n9: unreachable and 28 more',
  ])
    assert.ok(lines.includes(line), `${line} in\n${lines.join('\n')}`);
});

test('a status that holds nothing yet, and one without evidence, tell nothing of it', () => {
  assert.is(networkText({ namespace: 'a', name: 'b', status: {} }, now), 'network   a/b, Pending');
});

test('networks belong to their Releases; without any nothing is asked, and a refusal hides no Release', async () => {
  let asked = 0;
  const client = (outcome: object) =>
    ({
      list: async () => {
        asked += 1;
        return outcome;
      },
    }) as unknown as KubeClient;
  const { signal } = new AbortController();
  const listed = {
    type: 'listed',
    items: [{ metadata: { namespace: 'kube-system', name: 'main' } }, { metadata: { name: 'other' } }],
  };
  assert.equal([...(await networksOf(client(listed), [{ name: 'network-main' }], signal)).keys()], ['network-main']);
  assert.is((await networksOf(client(listed), [{ name: 'manifests-a' }], signal)).size, 0);
  assert.is(asked, 1);
  const denied = { type: 'denied', message: 'forbidden' };
  assert.is((await networksOf(client(denied), [{ name: 'network-main' }], signal)).size, 0);
});

test.run();
